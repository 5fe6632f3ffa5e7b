r"""Tables as LaTeX.

They need ``\usepackage{amsmath,amsfonts,booktabs,graphicx,xcolor}``. All labels and
captions are plain text and are escaped here.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from persistcal.evaluation.metrics.registry import METRICS
from persistcal.report.grid import Cell, Grid
from persistcal.report.layout import DisplayNames, pair_title, place_title, trained_name

PREAMBLE = r"% needs \usepackage{amsmath,amsfonts,booktabs,graphicx,xcolor}"
MISSING = "--"
PLACE = ["model", "dataset"]
PLACES = ["model", "other_model", "dataset"]
TRAINED = ["train_dataset", "estimator"]
PAIR = ["earlier", "later"]
ENDS = ["lower_2_5pct", "upper_97_5pct"]
PARTLY = " (1/3): mean over one of three pairs of checkpoints, as the others do not define it."

_GREEK = (
    "alpha beta gamma delta varepsilon zeta eta theta kappa lambda mu pi rho sigma tau varphi "
    "omega"
)
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{c: "\\" + c for c in "&%$#_{}"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "→": r"$\to$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "Δ": r"$\Delta$",
    **{c: rf"$\{name}$" for c, name in zip("αβγδεζηθκλμπρστφω", _GREEK.split(), strict=True)},
}
# A second line break would end the paragraph, in the middle of a command.
_SPACE = re.compile(r"[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(r"[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_LIGATURE = re.compile(r"-(?=-)|'(?=')|`(?=`)|,(?=,)|[?!](?=`)")  # dashes, quotes, ¿ and ¡
_SCOPES = {"contrast": "Contrast", "full": "Full"}
_ARROWS = {"↑": r"$\scriptstyle\uparrow$", "↓": r"$\scriptstyle\downarrow$"}
_SUB_ROW = r"\,\raisebox{0.5ex}{\(\llcorner\)} "


class Printed(NamedTuple):
    """A table as LaTeX and as rows for CSV."""

    tex: str
    rows: pd.DataFrame


def escape(text: str) -> str:
    """Return `text` escaped for LaTeX, in one line; "?" replaces unprintable characters."""
    printable = _UNPRINTABLE.sub("?", _SPACE.sub(" ", text))
    escaped = "".join(_SPECIAL.get(character, character) for character in printable)
    return _LIGATURE.sub(r"\g<0>{}", escaped)


def number(value: float, digits: int = 3) -> str:
    """Return the printed form of `value`, or `MISSING` for NaN."""
    if value != value:
        return MISSING
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return text.replace("-", "$-$")


def interval(low: float, high: float, digits: int = 3) -> str:
    """Return the printed form of an interval, or `MISSING` if an end is missing."""
    if low != low or high != high:
        return MISSING
    return f"[{number(low, digits)}, {number(high, digits)}]"


def with_interval(value: float, low: float, high: float, style: str = "{}") -> str:
    """Return a value and its interval, if it has one."""
    shown = number(value)
    if value != value or low != low:
        return shown
    return f"{style.format(shown)} {interval(low, high)}"


def tabular(
    columns: str, heads: Sequence[str], groups: Iterable[Sequence[str]] = ()
) -> list[str]:
    """Return the lines of a tabular, with a rule above each group of rows."""
    body = [text for rows in groups for text in (r"\midrule", *rows)]
    begin = rf"\begin{{tabular}}{{{columns}}}"
    return [begin, r"\toprule", *heads, *body, r"\bottomrule", r"\end{tabular}"]


def title(text: str, span: int, *, ruled: bool = False) -> list[str]:
    """Return a line in italics above `span` columns, with a rule below it."""
    rules = [rf"\cmidrule(lr){{1-{span}}}"] if ruled else []
    return [rf"\multicolumn{{{span}}}{{c}}{{\textit{{{escape(text)}}}}} \\", *rules]


Row = dict[Hashable, Any]


class PlainColumn(NamedTuple):
    """A column of a plain table: a heading in LaTeX, the cell of a line, and a side.

    `cell` names a value, or is a function of the line. If several lines share a value, only the
    first one prints the cell of a `shared` column.
    """

    head: str
    cell: str | Callable[[Row], str]
    side: str = "c"
    shared: bool = False

    @classmethod
    def estimator(cls, labels: DisplayNames) -> "PlainColumn":
        """Return the column of the names of estimators."""
        return cls("Estimator", lambda row: escape(trained_name(row, labels)), "l")

    @classmethod
    def pair(cls, checkpoints: DisplayNames) -> "PlainColumn":
        """Return the column of the two checkpoints of a line, which several lines can share."""
        return cls("Checkpoints", lambda row: escape(pair_title(row, checkpoints)), "l", True)

    def text(self, of_line: Row) -> str:
        """Return the cell of a line."""
        if not isinstance(self.cell, str):
            return self.cell(of_line)
        value = of_line[self.cell]
        return number(value) if isinstance(value, float) else escape(str(value))


def plain_table(
    rows: pd.DataFrame,
    columns: Sequence[PlainColumn],
    caption: str,
    label: str,
    labels: DisplayNames,
    *,
    shared: Sequence[str] = (),
    above: Sequence[str] = (),
    shrink: bool = False,
) -> Printed:
    """Print a table that compares no estimators, with a title for each model and dataset.

    Each row is a line. With names of `shared` columns, each estimator is a line instead: the
    estimator's first row, with all rows of the estimator as `rows`. Lines with equal values in
    these columns follow each other. `above` are lines above the headings.
    """
    place = [name for name in PLACES if name in rows]
    lines: list[Row] = rows.to_dict("records")
    if shared:
        key = [*place, *shared, *(name for name in TRAINED if name in rows)]
        lines = [{**of[0], "rows": of} for of in _grouped(lines, key)]
    groups = []
    for of_place in _grouped(lines, place):
        names = [of_place[0][name] for name in place]
        texts = title(place_title(names, labels), len(columns))
        for of_value in _grouped(of_place, shared) if shared else ([each] for each in of_place):
            for n, of_line in enumerate(of_value):
                cells = ("" if n and each.shared else each.text(of_line) for each in columns)
                texts.append(line(cells))
        groups.append(texts)
    heads = [*above, line(column.head for column in columns)]
    body = tabular("".join(column.side for column in columns), heads, groups)
    return Printed(floating(body, caption, label, shrink=shrink), rows)


def _grouped(lines: Sequence[Row], names: Sequence[str]) -> list[list[Row]]:
    """Return the lines with equal values together, in order of the first ones."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for of_line in lines:
        groups.setdefault(tuple(of_line[name] for name in names), []).append(of_line)
    return list(groups.values())


def stacked(tabulars: Iterable[Sequence[str]]) -> list[str]:
    """Return tabulars below each other."""
    lines = [text for lines in tabulars for text in [*lines, "", r"\vspace{5pt}"]]
    return lines[:-2]


def floating(body: Sequence[str], caption: str, label: str, *, shrink: bool = False) -> str:
    """Return a table with caption and label, scaled to the width of the line by `shrink`."""
    if shrink:
        body = [r"\resizebox{\linewidth}{!}{%", *body, "}"]
    lines = [
        PREAMBLE,
        r"\begin{table}[t]",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{tab:{label}}}",
        r"\centering",
        r"\medskip",
        r"\small",
        r"\renewcommand{\arraystretch}{1.2}",
        *body,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def metric_head(metric: str) -> str:
    """Return the heading of a metric's column."""
    return f"{METRICS[metric].latex} {_ARROWS[METRICS[metric].arrow]}"


def results_table(grids: Sequence[Grid], *, caption: str, label: str) -> str:
    """Return the LaTeX of a table of results; all sections have the same columns."""
    first = grids[0]
    width = len(first.columns)
    heads = [line(["Method", *(metric_head(column.metric) for column in first.columns)])]
    scopes = [(_SCOPES[scope], n) for (_, scope), n in first.spans("model", "scope")]
    heads = spanning(scopes) + heads
    if first.columns[0].model:
        heads = spanning([(model, n) for (model,), n in first.spans("model")]) + heads
    blocks = [
        [
            *([r"\addlinespace[3pt]"] if place else []),
            *_headline(block.title, "" if place else _heading(grid, grids), width),
            *(
                line([_SUB_ROW * row.indent + escape(row.label), *map(_text, row.cells)])
                for row in block.rows
            ),
        ]
        for grid in grids
        for place, block in enumerate(grid.blocks)
    ]
    cells = [cell for grid in grids for row in grid.rows() for cell in row.cells]
    caption += PARTLY * any(cell.pairs for cell in cells)
    lines = tabular(f"l{'c' * width}", heads, blocks)
    return floating(lines, caption, label, shrink=width > 6)


def _text(cell: Cell) -> str:
    text = number(cell.value)
    if cell.best:
        text = rf"\textbf{{{text}}}"
    if cell.underlined:
        text = rf"\underline{{{text}}}"
    if cell.pairs and cell.value == cell.value:
        text += rf"\,{{\scriptsize({cell.pairs.replace(' of ', '/')})}}"
    return text


def _heading(grid: Grid, grids: Sequence[Grid]) -> str:
    """Return the parts of a section's title that differ between sections."""
    parts = [grid.model] if len({each_grid.model for each_grid in grids}) > 1 else []
    if grid.trained_on:
        parts.append(f"{grid.trained_on} → {grid.dataset}")
    elif len({each_grid.dataset for each_grid in grids}) > 1:
        parts.append(grid.dataset)
    return ", ".join(parts)


def _headline(block: str, section: str, span: int) -> list[str]:
    """Return the line above a block: the block's title, and the section's heading."""
    if not block and not section:
        return []
    left = rf"\multicolumn{{1}}{{l}}{{\:\textit{{{escape(block)}}}}}" if block else ""
    rules = r"\cmidrule(lr){1-1}" * bool(block)
    rules += rf"\cmidrule(lr){{2-{span + 1}}}" * bool(section)
    return [line([left, rf"\multicolumn{{{span}}}{{c}}{{{escape(section)}}}"]), rules]


def spanning(groups: Sequence[tuple[str, int]], *, n_before: int = 1) -> list[str]:
    """Return headings over several columns, after `n_before` empty ones, and their rules."""
    heads, rules, start = [""] * n_before, [], n_before + 1
    for name, width in groups:
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(name)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [line(heads), "".join(rules)]


def line(cells: Iterable[str]) -> str:
    """Return one row of a tabular."""
    row = " & ".join(cells)
    # After the line break of the row before, these would be its arguments.
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"
