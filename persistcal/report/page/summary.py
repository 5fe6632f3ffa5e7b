"""What the page says, in a few lines of plain text for the end of a run."""

from textwrap import fill

import pandas as pd

from persistcal.report.grid import Cell, Grid, lay_out
from persistcal.report.page import overview
from persistcal.report.page.study import Study
from persistcal.report.page.tables import group_heads, printed

WIDTH = 100


def summary(study: Study) -> str:
    """Return a study's sentences, its first table of results, and what is missing."""
    said = [f"{about['about']}: {about['text']}" for about in overview.sentences(study)]
    lines = [fill(text, WIDTH) for text in said]
    table = next((t for t in study.tables if t.description is not None), None)
    if table is not None and table.description is not None:
        grids = lay_out(table.cells, table.description, labels=study.labels)
        lines += [plain_text(grid) for grid in grids]
        lines.append("* best, ~ not significantly worse (by block)")
    absent = overview.missing(study, [True] * len(study.parts))
    lines += [fill(f"Left out: {line}", WIDTH, subsequent_indent="  ") for line in absent]
    return "\n\n".join(lines) + "\n"


def plain_text(grid: Grid) -> str:
    """Return a grid as text.

    Examples
    --------
    >>> from persistcal.report.grid import Block, Column, Row
    >>> cells = [Cell(0.5, best=True), Cell(float("nan"))]
    >>> columns = [Column("", "full", "auc"), Column("", "full", "smece")]
    >>> blocks = [Block("", [Row("a", "Oracle", False, cells)])]
    >>> print(plain_text(Grid("M", "D", "", columns, blocks)))
    M · D
           All questions
                     AUC  ECE
    Oracle         .500*   –
    """
    groups = [name for name, span in group_heads(grid) for _ in range(span)]
    names = [f"{column.measure.heading} " for column in grid.columns]
    frame = pd.DataFrame(
        [list(map(_text, row.cells)) for row in grid.rows()],
        index=["  " * row.indent + row.label for row in grid.rows()],
        columns=pd.MultiIndex.from_arrays([groups, names]),
    )
    lines = frame.to_string(line_width=10**6).splitlines()
    return "\n".join([grid.title, *(line.rstrip() for line in lines)])


def _text(cell: Cell) -> str:
    return printed(cell) + ("*" if cell.best else "~" if cell.underlined else " ")
