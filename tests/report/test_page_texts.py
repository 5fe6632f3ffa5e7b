"""Whatever a text says, the page shows it as text: its elements are the same."""

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_study import invent, write_page

from persistcal.report.page import compose
from persistcal.report.page.compose import packed, render

HOSTILE = [
    "</script><script>x()</script>",
    "<!--",
    "]]>",
    "' onload='x()",
    "{{ 7 * 7 }}",
    "\u202e",
]
ANY_TEXT = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=60))


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, [name for name, _ in attributes]))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return the data of a small page: `view`, `study` and `explorer`."""
    folder, seen = tmp_path_factory.mktemp("texts"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compose, "render", lambda *given: seen.extend(given) or render(*given))
        write_page(folder, invent(n=12))
    return seen


def with_text(view, text):
    """Return what is shown without a script, with `text` in place of each text."""
    grids = [
        grid._replace(
            blocks=[
                block._replace(rows=[row._replace(label=text) for row in block.rows])
                for block in grid.blocks
            ]
        )
        for grid in view["tables"][0]["grids"]
    ]
    table = {**view["tables"][0], "heading": text, "caption": text, "grids": grids}
    return {
        **view,
        "title": text,
        "lede": text,
        "sentences": [{"about": text, "text": text} for _ in view["sentences"]],
        "tables": [table, *view["tables"][1:]],
        "about": [(text, text) for _ in view["about"]],
        "missing": [text for _ in view["missing"]],
        "config": text,
    }


def elements(shown, text):
    view, study, explorer = shown
    explorer = {**explorer, "texts": [text for _ in explorer["texts"]]}
    return Elements(render(with_text(view, text), study, explorer))


@pytest.fixture(scope="module")
def usual(shown):
    return elements(shown, "usual")


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(text=ANY_TEXT)
def test_any_text_leaves_the_elements_as_they_are(shown, usual, text):
    page = elements(shown, text)
    assert page.tags == usual.tags
    # jinja2 leaves NUL and carriage returns alone, which a reader of HTML may replace
    assert usual.texts.count("usual") > 5
    assert page.texts.count(text) >= usual.texts.count("usual") or text.strip() != text


@given(text=ANY_TEXT)
def test_what_the_script_is_handed_is_letters_and_digits_only(text):
    held = packed({"texts": [text], text: json.dumps(text)})
    assert held.isascii() and held.replace("+", "").replace("/", "").rstrip("=").isalnum()
