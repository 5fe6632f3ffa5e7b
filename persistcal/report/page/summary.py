"""What the page says, in a few lines of plain text for the end of a run."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import pandas as pd

from persistcal.report.page import overview
from persistcal.report.page.study import Study
from persistcal.report.page.tables import result_grids

WIDTH = 100
MARKS = {"best": "*", "best near": "*", "near": "~", "": " "}


def summary(study: Study) -> str:
    """Return a study's sentences, its first table of results, and what is missing."""
    said = [f"{about['about']}: {about['text']}" for about in overview.sentences(study)]
    lines = [fill(text, WIDTH) for text in said]
    table = next((t for t in study.tables if t.description is not None), None)
    if table is not None and table.description is not None:
        shown = table.cells, table.description, study.intervals
        lines += [plain_text(grid) for grid in result_grids(*shown, labels=study.labels)]
        lines.append("* best, ~ not significantly worse (by block)")
    absent = overview.missing(study, [True] * len(study.parts))
    lines += [fill(f"Left out: {line}", WIDTH, subsequent_indent="  ") for line in absent]
    return "\n\n".join(lines) + "\n"


def plain_text(grid: dict[str, Any]) -> str:
    """Return a grid of `persistcal.report.page.tables.result_grids` as text.

    Examples
    --------
    >>> cell = {"value": 0.5, "text": ".500", "mark": "best", "interval": ""}
    >>> row = {"estimator": "a", "label": "Oracle", "indent": False, "cells": [cell, None]}
    >>> columns = [{"group": "All questions", "label": name} for name in ("AUC", "ECE")]
    >>> print(plain_text({"title": "M", "columns": columns, "blocks": [{"rows": [row]}]}))
    M
           All questions
                     AUC  ECE
    Oracle         .500*   –
    """
    rows = [row for block in grid["blocks"] for row in block["rows"]]
    frame = pd.DataFrame(
        [[_text(cell) for cell in row["cells"]] for row in rows],
        index=["  " * row["indent"] + row["label"] for row in rows],
        columns=pd.MultiIndex.from_tuples(_heads(grid["columns"])),
    )
    lines = frame.to_string(line_width=10**6).splitlines()
    return "\n".join([grid["title"], *(line.rstrip() for line in lines)])


def _heads(columns: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(column["group"], f"{column['label']} ") for column in columns]


def _text(cell: dict[str, Any] | None) -> str:
    return "– " if cell is None else cell["text"] + MARKS[cell["mark"]]
