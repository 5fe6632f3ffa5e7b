"""The documentation names files, options, keys and tests that exist."""

import ast
import copy
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jsonschema
import pytest
import yaml
from programs import python
from snakemake.cli import get_argument_parser
from snakemake.utils import update_config

import persistcal
from persistcal.models.prompts import few_shot_prefix, question_suffix
from study.config_files import over_defaults
from study.schema import load_schema
from tools import docs_numbers, docs_site, pages, plain_english

ROOT = Path(__file__).parents[2]


def test_the_reference_of_the_config_is_that_of_the_schema():
    text = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    assert text == pages.config_page(), "run `make config-readme`"
    assert len(re.findall(r"^\| `", text, flags=re.MULTILINE)) > 150
    assert not re.findall(r"^\| `[^|]*\|[^|]*\|[^|]*\| +\|$", text, flags=re.MULTILINE)


VALIDATOR = jsonschema.Draft202012Validator(load_schema())
FLAGS = ("-c1", "-c2")
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "config" / "README.md"]


def test_files_and_targets_that_the_documentation_names_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    folders = (
        "benchmarks|config|docs|envs|persistcal|profiles|resources|study|tests|tools|workflow"
    )
    named = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if page.name != "CHANGELOG.md":  # it also names removed files and targets
            assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets, page
            named += re.findall(rf"`((?:{folders})/[\w./-]+)`", text)
    assert len(named) > 60
    assert not [file for file in named if not (ROOT / file).exists()]


def test_printed_numbers_are_the_results():
    pages = docs_numbers.printed_numbers()
    problems = {
        page: docs_numbers.check((ROOT / page).read_text(encoding="utf-8"), names)[1]
        for page, names in pages.items()
    }
    assert len(pages) > 5
    assert not {page: errors for page, errors in problems.items() if errors}


def test_the_tour_names_lines_of_at_most_ten_functions_a_way():
    text = docs_numbers.TOUR.read_text(encoding="utf-8")
    assert text == docs_numbers.with_lines(text)
    assert [len(docs_numbers.PLACE.findall(way)) for way in text.split("\n## ")[1:]] == [10, 10]


@pytest.mark.parametrize(
    ("block", "names", "corrected", "n_problems"),
    [
        pytest.param(
            "95 % of **.222** [.15, .29], −.01, 1,240 and 49 % [45, 53] in version 0.2 (`.5`)",
            "{a,b}.x n share -",
            None,
            0,
            id="right",
        ),
        pytest.param("0.3 [.14, .2905]", "a.x", "0.2 [.15, .2905]", 1, id="wrong decimals"),
        pytest.param("| −.01 | .22 |", "{a,b}.x", "| .22 | −.01 |", 2, id="swapped"),
        pytest.param("0.1, .22", "a.x", None, 2, id="a name is missing, so none is corrected"),
        pytest.param(".22 and .7", "a.x", None, 1, id="a decimal without a name"),
        pytest.param("1,241 questions, of 800", "n", None, 1, id="another whole number"),
        pytest.param("1 of .52", "half", None, 0, id="a whole number before the result"),
        pytest.param("49.4 %", "share", "49.5 %", 1, id="a wrong percentage"),
        pytest.param("48 %", "share", None, 1, id="a wrong whole percentage"),
        pytest.param("−.015 [.1, .2]", "b.x", None, 1, id="a result without an interval"),
        pytest.param(".22", "c.x", None, 1, id="a result that is missing"),
        pytest.param("none", "a.x", None, 1, id="a result that is not printed"),
    ],
)
def test_wrong_numbers_are_mended(block, names, corrected, n_problems, tmp_path, monkeypatch):
    monkeypatch.setattr(docs_numbers, "DATA", tmp_path)
    docs_numbers.read.cache_clear()
    rows = "a.x,0.2221,0.148,0.2905\nb.x,-0.0149,,\nn,1240,,\nshare,0.4949,0.45,0.531\n"
    rows += "half,0.52,,\n"
    (tmp_path / "t.csv").write_text(f"name,value,low,high\n{rows}", encoding="utf-8")

    page, problems = docs_numbers.check(f"# A\n\n{block}\n\nB\n", {block[:4]: f"t.csv {names}"})

    assert len(problems) == n_problems
    if n_problems == 0 or corrected:
        assert page == f"# A\n\n{corrected or block}\n\nB\n"


@pytest.mark.parametrize("page", ["other text", "B 1\n\nB 2"])
def test_numbers_without_their_block_are_found(page):
    assert len(docs_numbers.check(page, {"B": "t.csv a.x"})[1]) == 1


def test_results_are_copied_and_counted_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(docs_numbers, "ROOT", tmp_path)
    rows = "who,of,v,end\na,x,0.5,0.25\na,y,,\nb,x,2,1\n"
    (tmp_path / "t.csv").write_text(rows, encoding="utf-8")
    source = {"file": "t.csv", "where": "who == 'a'", "name": "{who}.{of}", "value": "v"}
    chosen = docs_numbers.choose(source | {"low": "end"})
    assert chosen.loc["a.x", ["value", "low"]].tolist() == [0.5, 0.25] and len(chosen) == 1
    counted = docs_numbers.choose({"file": "t.csv", "name": "rows.{who}"})["value"]
    assert counted.to_dict() == {"rows.a": 2, "rows.b": 1}


def linked_pages(page):
    """Return the files that a page links, without addresses and anchors."""
    links = re.findall(r"\]\(([^)#]+)[)#]", page.read_text(encoding="utf-8"))
    return [(page.parent / link).resolve() for link in links if "://" not in link]


def test_links_of_the_documentation_lead_to_files():
    missing = [(page.name, link) for page in PAGES for link in linked_pages(page)]
    assert not [(name, link) for name, link in missing if not link.exists()]


def test_every_page_is_at_most_two_clicks_from_the_readme():
    first = set(linked_pages(ROOT / "README.md"))
    second = {link for page in first if page.suffix == ".md" for link in linked_pages(page)}
    assert {page.resolve() for page in ROOT.glob("docs/*.md")} <= first | second


def code_blocks(kind):
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for code in re.findall(rf"^```{kind}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
            yield page, code


def test_configs_of_the_documentation_have_known_keys():
    shown = [(page, code) for page, code in code_blocks("yaml") if "executor:" not in code]
    assert len(shown) > 15
    defaults = over_defaults({}, ROOT)
    for page, code in shown:
        config = copy.deepcopy(defaults)
        update_config(config, yaml.safe_load(code))
        errors = [error.message for error in VALIDATOR.iter_errors(config)]
        # A guide can show some keys of an entry that lacks others.
        errors = [error for error in errors if "is a required property" not in error]
        assert not errors, f"{page}: {errors}\n{code}"


def test_options_and_configs_of_snakemake_that_the_documentation_names_exist():
    options = get_argument_parser()._option_string_actions
    shown = " ".join(code.replace("\\\n", " ") for _, code in code_blocks("sh"))
    lines = re.findall(r"\bsnakemake (-[^\n#]*|[\w/.]+ -[^\n#]*)", shown)
    inline = [re.findall(r"`snakemake ([^`…]*)", p.read_text(encoding="utf-8")) for p in PAGES]
    for line in [*lines, *(line for lines_of_page in inline for line in lines_of_page)]:
        words = [word.partition("=")[0] for word in line.split()]
        assert {word for word in words if re.match("--?[a-z]", word)} <= {*options, *FLAGS}, (
            line
        )
        files = [word for word in words if re.match(r"(config|profiles)/", word)]
        assert all((ROOT / file).exists() for file in files), line
        profiles = [value for name, value in pairwise(line.split()) if name == "--profile"]
        for profile in profiles:  # PATH is the reader's; a page explains how to write others
            folder = ROOT / re.sub("(PATH|path/to)/", "", profile)
            assert "mine" in profile or (folder / "profile.yaml").exists(), line


class Links(HTMLParser):
    """The links of an HTML page, and the anchors to which others can lead."""

    def __init__(self, page):
        super().__init__()
        self.anchors, self.links = set(), set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.anchors |= {value for name, value in attrs if name in ("id", "name")}
        self.links |= {value for name, value in attrs if name in ("href", "src") and value}


def dead_links(site):
    """Return page and link of each link that leads to no file or no anchor of the site."""
    pages = {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}
    for page, found in pages.items():
        for link in sorted(found.links):
            address = urlsplit(link)
            path = (page.parent / unquote(address.path)).resolve() if address.path else page
            anchors = pages[path].anchors if path in pages else {address.fragment}
            # the script of a study's page reads the fragments of its lists
            is_ours = not (address.scheme or address.netloc or address.fragment[:5] == "list=")
            if is_ours and not (
                path.is_file() and {unquote(address.fragment)} <= {"", *anchors}
            ):
                yield page.relative_to(site), link


def test_the_site_opens_as_files_with_all_its_links_and_the_public_functions(tmp_path):
    docs_site.main(tmp_path / "pages")
    words = ["-m", "mkdocs", "build", "-q", "-d", tmp_path / "site"]
    environment = {"PAGES": str(tmp_path / "pages"), "NO_MKDOCS_2_WARNING": "1"}
    assert not python(*words, folder=ROOT, **environment)
    assert not list(dead_links(tmp_path / "site"))
    text = (tmp_path / "site" / "reference.html").read_text(encoding="utf-8")
    public = [getattr(persistcal, name) for name in persistcal.__all__]
    functions = [f"{function.__module__}.{function.__name__}" for function in public]
    headings = re.findall(r'<h2 id="([\w.]+)"', text)
    assert headings[: len(functions)] == functions and len(headings) < len(functions) + 4
    commands = (tmp_path / "site" / "command.html").read_text(encoding="utf-8")
    assert "<code>--fail-if" in commands and 'id="persistcal-plan"' in commands
    assert "https://unpkg.com" not in commands  # nothing is fetched when a page is read


def test_dead_links_and_anchors_of_a_site_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h2 id="x"><a href="b.html#y">, <a href="#x">, <img src="c.png">'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#x"> <a href="https://example.org/none">')
    assert [link for _, link in dead_links(tmp_path)] == ["b.html#y", "c.png"]


PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


def test_the_protocol_names_existing_functions():
    named = re.findall(r"`([\w/]+\.py): ([\w, ]+)`", " ".join(PROTOCOL.split()))
    assert len(named) > 50
    for file, names in named:
        body = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        defined = {getattr(node, "name", None) for node in body}
        assert defined >= set(names.split(", ")), file


def test_the_protocol_names_existing_keys():
    documented = set(re.findall(r"^\| `([^`]+)` ", pages.config_page(), flags=re.MULTILINE))
    switches = [line.split(" | ")[-1] for line in PROTOCOL.splitlines() if line[:2] == "| "]
    listed = re.findall(r"Keys?: ((?:`[^`]+`,? ?)+)", " ".join(PROTOCOL.split()))
    keys = re.findall(r"`([^`:]+)(?:: \w+)?`", " ".join([*listed, *switches]))
    assert len(keys) > 60
    assert set(keys) <= documented, set(keys) - documented


@pytest.mark.parametrize("page", ["docs/validation.md", "SECURITY.md"])
def test_tests_that_a_promise_names_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) == text.count("::") > 10
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {getattr(node, "name", None) for node in tree.body}, f"{file}::{name}"


def test_questions_are_asked_as_documented():
    text = (ROOT / "docs" / "your-models.md").read_text(encoding="utf-8")
    cities = {"Lyon": "France", "Porto": "Portugal"}
    examples = [(f"Which country is {name} in?", country) for name, country in cities.items()]
    shown = few_shot_prefix(examples) + question_suffix("Which country is Quito in?")
    assert f"```\n{shown}\n```" in text


def test_habits_of_prose_and_names_are_counted(tmp_path, capsys, monkeypatch):
    """Two habits in 90 words are 22.2 per 1,000; a riddle among three names is 333.3."""
    words = " ".join(["word"] * 83)
    file = tmp_path / "module.py"
    file.write_text(
        f'"""Of each pair whose end is empty."""\n# {words}\ndef find(of): n = of\n'
    )
    listed = plain_english.subprocess.CompletedProcess([], 0, f"{file}\n")
    monkeypatch.setattr(plain_english.subprocess, "run", lambda *_, **__: listed)
    plain_english.main([])
    *hits, rates, worst = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in hits] == ["of, first", "whose"]
    assert rates == "Habits per 1,000: 22.2 words, 333.3 names"
    assert worst.split() == ["22.2", str(file)]


def test_tests_with_too_many_habits_or_riddles_fail_the_check(tmp_path, monkeypatch):
    """A riddle among two names is 500 per 1,000."""
    (tmp_path / "tests").mkdir()
    file = tmp_path / "tests" / "test_a.py"
    listed = plain_english.subprocess.CompletedProcess([], 0, "tests/test_a.py\n")
    monkeypatch.setattr(plain_english.subprocess, "run", lambda *_, **__: listed)
    monkeypatch.chdir(tmp_path)
    file.write_text("def test_a_sum(): total = 1\n")
    plain_english.main([])
    file.write_text("def test_a_sum(): said = 1\n")
    with pytest.raises(SystemExit, match=r"tests: 0\.0 words, 500\.0 names"):
        plain_english.main([])
