"""Arbitrary texts, also hostile ones, never change the elements of the page."""

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
    """The tags of a page with names of attributes, and the texts."""

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
def page_data(tmp_path_factory):
    """Return the data of a small page: `view`, `study` and `explorer`."""
    folder, data = tmp_path_factory.mktemp("texts"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compose, "render", lambda *given: data.extend(given) or render(*given))
        write_page(folder, invent(n=12))
    return data


def with_text(view, text):
    """Return the part of the data that needs no script, with every text replaced."""
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


def elements(page_data, text):
    view, study, explorer = page_data
    explorer = {**explorer, "texts": [text for _ in explorer["texts"]]}
    return Elements(render(with_text(view, text), study, explorer))


@pytest.fixture(scope="module")
def usual(page_data):
    return elements(page_data, "usual")


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(text=ANY_TEXT)
def test_any_text_is_shown_without_changing_the_elements(page_data, usual, text):
    page = elements(page_data, text)
    assert page.tags == usual.tags
    # An HTML parser can replace NUL and carriage returns, which jinja2 does not escape.
    assert usual.texts.count("usual") > 5
    assert page.texts.count(text) >= usual.texts.count("usual") or text.strip() != text


@given(text=ANY_TEXT)
def test_data_for_the_script_contains_only_letters_and_digits(text):
    data = packed({"texts": [text], text: json.dumps(text)})
    assert data.isascii() and data.replace("+", "").replace("/", "").rstrip("=").isalnum()
