"""The page in a real browser: charts, search, links, keyboard, themes and safety."""

import json
import re

import pytest
from browser import open_browser, resize, visit, wait_for_frames
from synthetic_study import NAMES, invent, spread_over_places, write_page

pytestmark = pytest.mark.slow

HOSTILE = [
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>",
    "\u202egnihton si siht\u202c ltr \u2067rtl\u2069 & &amp; \u0000 \ud7ff",
    "$\\frac{1}{0}$ \\input{/etc/passwd} </textarea></style>",
    "a" * 100_000,
]


@pytest.fixture(scope="module")
def study():
    questions = [(f"What is the answer to question {i}?", [f"answer {i}"]) for i in range(120)]
    questions[:4] = [(text, [text]) for text in HOSTILE]
    made = invent(questions=questions, estimators=[*NAMES, "mine<b>"])
    made["shown"].labels["estimators"]["mine<b>"] = "<b>Mine</b>"
    made["shown"].labels["models"]["m"] = "<script>window.hacked = 3</script>"
    return made


@pytest.fixture(scope="module")
def page(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_page(folder, study)
    return folder / "index.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = open_browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


@pytest.fixture
def open_page(page, browser):
    resize(browser, 1200, 900)
    visit(browser, page)
    return browser


def run(browser, script, *arguments):
    return browser.execute_script(script, *arguments)


def text_of(browser, selector):
    return run(browser, "return document.querySelector(arguments[0]).textContent", selector)


def count(browser, selector):
    return run(browser, "return document.querySelectorAll(arguments[0]).length", selector)


def choose(browser, identifier, value):
    """Enter a value, and return how many milliseconds the page takes to show it."""
    return run(
        browser,
        "const n = document.getElementById(arguments[0]); n.value = arguments[1];"
        "const start = performance.now();"
        "n.dispatchEvent(new Event('input', {bubbles: true}));"
        "n.dispatchEvent(new Event('change', {bubbles: true}));"
        "return performance.now() - start",
        identifier,
        value,
    )


def open_details(browser):
    run(browser, "document.querySelectorAll('details').forEach((d) => { d.open = true })")


def n_found(browser):
    return int(text_of(browser, "#count").split(" ")[0].replace(",", ""))


def test_the_page_runs_without_an_error_and_requests_nothing(page, browser):
    browser.get_log("browser"), browser.get_log("performance")
    visit(browser, page)
    open_details(browser)
    assert browser.get_log("browser") == []
    log = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event for event in log if event["method"] == "Network.requestWillBeSent"]
    urls = [event["params"]["request"]["url"] for event in sent]
    assert urls, "the log must hold the page itself"
    assert {url for url in urls if not url.startswith("about:")} == {page.as_uri()}


def test_the_policy_of_the_page_stops_scripts_requests_and_markup(open_page):
    run(
        open_page,
        "const s = document.createElement('script');"
        "try { s.textContent = 'window.hacked = 4' } catch { window.refused = true }"
        "document.body.append(s);"
        "try { document.body.innerHTML += '<b>no</b>' } catch { window.kept = true }",
    )
    outcome = run(open_page, "return [window.hacked, window.refused, window.kept]")
    assert outcome == [None, True, True]
    outcome = open_page.execute_async_script(
        "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done('sent'),"
        "() => done('refused'));"
    )
    assert outcome == "refused"
    messages = [entry["message"] for entry in open_page.get_log("browser")]
    assert any("Content Security Policy" in message for message in messages)


def test_every_chart_is_drawn(open_page):
    charts = ["hero", "accuracy", "flows", "reliability", "pairs", "risks"]
    drawn = [count(open_page, f"#{chart} svg[role=img]") for chart in charts]
    assert drawn == [1, 1, 1, 4, 4, 4]  # the baseline has no small pictures
    assert count(open_page, "#matrix td b") == 3


def test_sorting_a_table_puts_the_best_first(open_page):
    column = (
        "const t = document.querySelector('#tables table');"
        "return [...t.tBodies[0].rows].map((r) => Number(r.cells[arguments[0]].dataset.v))"
    )
    for column_number, lower_is_better in ((1, False), (3, True)):
        heads = "document.querySelectorAll('#tables tr:last-child > th button')"
        run(open_page, f"{heads}[arguments[0]].click()", column_number)
        values = run(open_page, column, column_number)
        assert values == sorted(values, reverse=not lower_is_better)
    assert len(set(values)) > 1


def test_search_finds_questions_and_answers(open_page):
    assert n_found(open_page) == 120
    choose(open_page, "search", "QUESTION 77?")
    assert n_found(open_page) == 1
    assert text_of(open_page, "#list .row .q") == "What is the answer to question 77?"
    choose(open_page, "search", "answer 7")  # references: 7 and 70 to 79
    assert n_found(open_page) == 11


def test_filters_agree_with_the_predictions(open_page, study):
    predictions = study["made"].predictions
    labels = predictions.pivot_table(
        index="question_id", columns="checkpoint", values="correct", aggfunc="first"
    ).astype(bool)
    choose(open_page, "from", "1")  # c2, after one earlier checkpoint
    choose(open_page, "to", "3")
    for kind, expected in {
        "up": ~labels["c2"] & labels["c4"],
        "down": labels["c2"] & ~labels["c4"],
        "flip": labels["c2"] != labels["c4"],
        "both": labels["c2"] & labels["c4"],
    }.items():
        choose(open_page, "change", kind)
        assert n_found(open_page) == expected.sum() > 0

    choose(open_page, "change", "")
    oracle = predictions[predictions["estimator"] == "oracle"]
    mean = oracle.groupby(["question_id", "checkpoint"])[["confidence", "correct"]].mean()
    sure = mean[(mean["confidence"].round(3) > 0.7) & (mean["correct"] == 0)]
    choose(open_page, "who", "4")  # in the order of the labels
    choose(open_page, "above", "0.7")
    assert n_found(open_page) == sure.index.get_level_values("question_id").nunique() > 0


def test_a_link_opens_its_question_and_a_click_changes_the_address(open_page, page):
    visit(open_page, page, "#q=q00033")
    assert text_of(open_page, "#card .asked") == "What is the answer to question 33?"
    assert "33" in text_of(open_page, "#card .meta")
    # Three evaluated checkpoints and the earlier one.
    assert count(open_page, "#card .answers tbody tr") == 4
    run(open_page, "document.getElementById('row-30').click()")
    assert text_of(open_page, "#card .asked") == "What is the answer to question 30?"
    assert run(open_page, "return location.hash") == "#q=q00030"
    visit(open_page, page, "#q=no-such-question")
    assert "not on this page" in text_of(open_page, "#card")


def test_the_row_of_a_linked_question_is_visible(open_page, page):
    for question in (0, 77, 119):
        visit(open_page, page, f"#q=q{question:05d}")
        row = run(
            open_page,
            "const [row, bar, asked] = ['.row[aria-selected=true]', '.bar', '.asked'].map("
            "(name) => document.querySelector(name).getBoundingClientRect());"
            "return [bar.bottom, row.top, row.bottom, innerHeight, asked.top]",
        )
        bar, top, bottom, window, asked = row
        assert bar <= top < bottom <= window and bar <= asked < window


def test_a_card_on_a_narrow_screen_has_labels_and_stays_below_the_bar(open_page, page):
    resize(open_page, 420, 900)
    visit(open_page, page, "#q=q00077")
    top, bar = run(
        open_page,
        "return [document.querySelector('#card .asked').getBoundingClientRect().top,"
        "document.querySelector('.bar').getBoundingClientRect().bottom]",
    )
    assert top >= bar
    assert count(open_page, "#card .chart path.series") == len(NAMES)
    assert count(open_page, "#card .legend span") == len(NAMES)
    heads = "return [...document.querySelectorAll('#card .answers tr:last-child td')]"
    heads += ".map((n) => getComputedStyle(n, '::before').content)"
    assert run(open_page, heads) == ['"Answer"', '"Probability"', '"Label"']


def test_questions_can_be_browsed_with_the_keyboard(open_page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    ActionChains(open_page).send_keys("/").send_keys("question 5").perform()
    assert n_found(open_page) == 11  # 5, 50 to 59
    ActionChains(open_page).send_keys(Keys.ARROW_DOWN).send_keys(Keys.ARROW_DOWN).perform()
    assert text_of(open_page, "#card .asked") == "What is the answer to question 50?"
    ActionChains(open_page).send_keys(Keys.ESCAPE).perform()
    assert n_found(open_page) == 120
    ActionChains(open_page).send_keys(Keys.END).perform()
    assert text_of(open_page, "#card .asked") == "What is the answer to question 119?"


def test_the_button_changes_the_theme_and_the_page_remembers_it(open_page, page):
    background = "return getComputedStyle(document.body).backgroundColor"
    light = run(open_page, background)
    run(open_page, "document.getElementById('theme').click()")
    dark = run(open_page, background)
    low, high = (sum(map(int, colour[4:-1].split(","))) for colour in (dark, light))
    assert low < 150 < 600 < high
    visit(open_page, page)
    assert run(open_page, background) == dark
    run(open_page, "document.getElementById('theme').click()")
    assert run(open_page, background) == light


def test_hostile_texts_are_shown_as_text(page, open_page):
    for i, text in enumerate(HOSTILE):
        visit(open_page, page, f"#q=q{i:05d}")
        asked = text_of(open_page, "#card .asked")
        if len(text) <= 1_000:
            assert asked == text
        else:
            assert asked.startswith(text[:1_000]) and "99,000 more characters" in asked
        style = "getComputedStyle(document.querySelector('#card .asked'))"
        assert "isolate" in run(open_page, f"return {style}.unicodeBidi")
    assert run(open_page, "return window.hacked") is None
    assert count(open_page, "img, b > script") == 0
    assert "<script>window.hacked = 3</script>" in text_of(open_page, ".says")


@pytest.fixture(scope="module")
def two_by_two(tmp_path_factory):
    """Write the page of two models on two datasets, with six estimators and thresholds."""
    folder = tmp_path_factory.mktemp("two")
    write_page(folder, spread_over_places(invent(n=200, estimators=[*NAMES, "mine"])))
    return folder / "index.html"


def visible_headlines(browser):
    return run(
        browser,
        "return [...document.querySelectorAll('h1')].filter((h) => h.checkVisibility())"
        ".map((h) => h.textContent)",
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_six_estimators_fit_on_the_first_screen(browser, two_by_two, theme):
    resize(browser, 1280, 800)
    visit(browser, two_by_two)
    run(browser, "document.documentElement.dataset.theme = arguments[0]", theme)
    bottom = "return document.querySelector('.verdicts').getBoundingClientRect().bottom"
    assert run(browser, bottom) <= 800
    assert count(browser, ".verdict:not([hidden]) tbody tr") == 6
    [headline] = visible_headlines(browser)
    assert headline.startswith("Did confidence follow what the model learned? ")
    contrast = run(
        browser,
        "const ground = getComputedStyle(document.querySelector('.verdicts')).backgroundColor;"
        "const all = (s) => [...document.querySelectorAll(s)].map((n) => getComputedStyle(n));"
        "return [[ground], all('.verdicts .word').map((s) => s.color),"
        "all('.verdicts .bar, .verdicts polyline').map((s) => s.stroke)]",
    )
    [background], words, bars = ([luminance_of(c) for c in set(found)] for found in contrast)
    for luminances, least in ((words, 4), (bars, 3)):  # WCAG 2.2: bold text, and pictures
        for luminance in luminances:
            low, high = sorted([background, luminance])
            assert (high + 0.05) / (low + 0.05) >= least
    assert len(bars) == 2


def luminance_of(colour):
    channels = [int(c) / 255 for c in colour[4:-1].split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_answers_of_an_estimator_are_stacked_on_a_narrow_screen(open_page, page):
    resize(open_page, 420, 900)
    visit(open_page, page)
    edges = run(
        open_page,
        "return [...document.querySelectorAll('.verdicts tbody tr:first-child > *')]"
        ".map((n) => [n.getBoundingClientRect().left, n.getBoundingClientRect().top])",
    )
    lefts, tops = zip(*edges, strict=True)
    assert len(set(lefts)) == 1 and list(tops) == sorted(set(tops))
    assert run(open_page, "return document.documentElement.scrollWidth") <= 420


def test_on_a_narrow_screen_numbers_of_flows_are_apart_and_a_cut_table_says_so(open_page, page):
    resize(open_page, 300, 900)
    visit(open_page, page)
    boxes = run(
        open_page,
        "return [...document.querySelectorAll('#knowledge svg text')]"
        ".filter((n) => /[▲▼]/.test(n.textContent)).map((n) => n.getBoundingClientRect())"
        ".map((b) => [b.left, b.right, b.top, b.bottom])",
    )
    assert len(boxes) == 2 * 3  # gained and lost between four checkpoints
    for i, (left, right, top, bottom) in enumerate(boxes):
        for other_left, other_right, other_top, other_bottom in boxes[:i]:
            is_beside = left >= other_right or right <= other_left
            assert is_beside or top >= other_bottom - 4 or bottom <= other_top + 4
    hint = "const m = document.getElementById('matrix'), hint = m.nextElementSibling;"
    hint += "return m.classList.contains('cut') && hint.checkVisibility() && hint.textContent"
    run(open_page, "document.getElementById('matrix').style.width = '120px'")
    wait_for_frames(open_page)
    assert run(open_page, hint) == "scroll for more →"
    run(open_page, "document.getElementById('matrix').scrollLeft = 1000")
    wait_for_frames(open_page)
    assert run(open_page, hint) is False


def test_the_choice_of_model_and_dataset_changes_the_verdict(browser, two_by_two):
    resize(browser, 1280, 800)
    visit(browser, two_by_two)
    assert count(browser, ".verdict") == 4
    assert len(visible_headlines(browser)) == 1
    choose(browser, "part", "2")
    open_page = "return [...document.querySelectorAll('.verdict')].filter((n) => !n.hidden)"
    assert run(browser, f"{open_page}.map((n) => n.dataset.part)") == ["2"]
    assert "N · Quiz" in run(browser, f"{open_page}[0].textContent")


def test_all_verdicts_are_printed(browser, two_by_two):
    visit(browser, two_by_two)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert len(visible_headlines(browser)) == 4
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_each_estimator_has_the_curves_of_both_checkpoints(browser, two_by_two):
    visit(browser, two_by_two)
    run(browser, "document.getElementById('cuts').scrollIntoView({behavior: 'instant'})")
    wait_for_frames(browser)
    assert count(browser, "#cuts svg[role=img]") == 5  # the baseline has no small pictures
    assert count(browser, "#labels svg[role=img]") == 5
    assert count(browser, "#shifts svg[role=img]") == 5
    lines = "#cuts .small:nth-child(2) path.series"
    assert (count(browser, lines), count(browser, f"{lines}.before")) == (4, 2)
    assert count(browser, "#reliability path.before") >= 4


@pytest.fixture(scope="module")
def one_estimator(tmp_path_factory):
    """The page of one estimator, and the question whose confident answer broke."""
    made = invent(estimators=["self_consistency"], tables=False)
    rows = made["made"].predictions
    right = rows.pivot_table(index="question_id", columns="checkpoint", values="correct").eq(1)
    broken = right.index[right["c2"] & ~right["c4"]][0]
    rows.loc[rows["question_id"] == broken, "confidence"] = 0.99
    folder = tmp_path_factory.mktemp("one")
    write_page(folder, made)
    return folder / "index.html", broken


def test_the_verdict_on_a_single_estimator_names_it(browser, one_estimator):
    visit(browser, one_estimator[0])
    assert count(browser, ".verdicts tbody tr") == 1
    [headline] = visible_headlines(browser)
    assert "Self consistency" in headline


def test_the_first_list_are_confident_answers_that_broke(browser, one_estimator):
    page, broken = one_estimator
    visit(browser, page)
    assert n_found(browser) == 1
    assert f"question {int(broken[1:])}?" in text_of(browser, "#list .row .q")
    assert "confidence .990 → .990" in text_of(browser, "#list .row .under")
    run(browser, "document.querySelectorAll('#lists button')[1].click()")
    assert n_found(browser) == 60
    run(browser, "document.querySelectorAll('#lists button')[0].click()")
    choose(browser, "search", "question 5?")  # a filter searches all questions
    assert n_found(browser) == 1
    assert text_of(browser, "#lists button[aria-pressed=true]") == "All questions"


def test_each_count_leads_to_its_questions(browser, one_estimator):
    visit(browser, one_estimator[0])
    links = (
        "return [...document.querySelectorAll('a[href^=\"#list\"]')].map((a) => a.textContent)"
    )
    texts = run(browser, links)
    assert len(texts) == 3 + 3 * 3  # gained, lost, broke; all, gained and lost of each pair
    for number, text in enumerate(texts):
        run(
            browser,
            "document.querySelectorAll('a[href^=\"#list\"]')[arguments[0]].click()",
            number,
        )
        wait_for_frames(browser)
        assert n_found(browser) == int(re.search(r"\d+", text)[0]), text


@pytest.mark.parametrize("width", [420, 1280])
def test_small_pictures_are_as_wide_as_their_card(browser, one_estimator, width):
    resize(browser, width, 800)
    visit(browser, one_estimator[0])
    widths = run(
        browser,
        "return ['reliability', 'shifts', 'pairs', 'risks'].map((id) => {"
        "const card = document.getElementById(id);"
        "const width = card.querySelector('svg[role=img]').viewBox.baseVal.width;"
        "return width / card.clientWidth })",
    )
    assert widths == pytest.approx([1] * 4, abs=0.01)


@pytest.mark.parametrize("width", [360, 1000, 2000])
def test_the_page_is_never_wider_than_the_window(open_page, page, width):
    resize(open_page, width, 900)
    visit(open_page, page, "#q=q00003")
    open_details(open_page)
    assert run(open_page, "return document.documentElement.scrollWidth") <= width


def test_the_page_of_own_predictions_has_charts_without_texts(tmp_path, browser):
    made = invent(with_texts=False, n_earlier=0)
    write_page(tmp_path, made)
    browser.get_log("browser")
    visit(browser, tmp_path / "index.html", "#q=q00007")
    assert text_of(browser, "#card .asked") == "q00007"
    assert count(browser, "#card svg[role=img]") == 1
    assert "predictions alone" in text_of(browser, "#about")
    assert browser.get_log("browser") == []


def test_many_estimators_become_rows_and_long_names_are_not_cut(tmp_path, browser):
    more = [f"semantic_entropy_{i}" for i in range(4)]
    made = invent(estimators=[*NAMES, *more])
    made["shown"].labels["datasets"]["quiz"] = "Cities and countries"
    write_page(tmp_path, made)
    resize(browser, 1200, 900)
    visit(browser, tmp_path / "index.html")
    assert count(browser, "#hero svg g[data-tip]") == len(NAMES)  # points

    run(browser, "document.querySelectorAll('#hero-controls button')[1].click()")
    wait_for_frames(browser)
    assert count(browser, "#hero svg g[data-tip]") == 3 * len([*NAMES, *more])

    cells = run(
        browser,
        "return [...document.querySelectorAll('#hero tbody td:nth-child(2)')]"
        ".map((n) => parseFloat(n.textContent.replace('−', '-')))",
    )
    assert cells == sorted(cells, reverse=True) and len(set(cells)) > 3

    dashes = run(
        browser,
        "location.hash = '#q=q00007'; return new Promise((done) => setTimeout(() => done("
        "[...document.querySelectorAll('#card path.series')]"
        ".map((n) => n.getAttribute('stroke-dasharray'))), 300))",
    )
    assert len(dashes) == 9 and len(set(dashes)) == 4  # solid lines, and dashes per variant
    assert "Cities and countries" in text_of(browser, "#accuracy-legend")
    assert "…" not in text_of(browser, "#knowledge")


def test_the_page_of_the_largest_study_is_small_and_fast(tmp_path, browser):
    more = ["oracle_1answer", "oracle_respective", "gcm", "gcm_posthoc", "linear_probe"]
    estimators = [*NAMES, *more, "sequence_probability", "mine"]
    size = {"n": 5000, "checkpoints": [f"c{k}" for k in range(7)], "estimators": estimators}
    made = invent(**size, n_earlier=0, tables=False)
    page = tmp_path / "index.html"
    write_page(tmp_path, made)
    assert page.stat().st_size < 15e6
    visit(browser, page)
    run(browser, "document.getElementById('clear').click()")  # shows all questions
    assert n_found(browser) == 5000
    paint = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert run(browser, paint) < 1500
    # The first filter also reads the columns.
    filters = [("search", "a"), ("search", "answer 49"), ("category", "1"), ("change", "flip")]
    for identifier, value in [*filters, ("who", "3")]:
        # Other processes of the machine only add time: the least of three counts.
        assert min(choose(browser, identifier, value) for _ in range(3)) < 100, identifier
    assert n_found(browser) < 5000
