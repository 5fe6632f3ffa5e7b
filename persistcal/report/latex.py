r"""Tables as LaTeX.

They need ``\usepackage{amsmath,amsfonts,booktabs,graphicx,xcolor}``. All labels and
captions are plain text and are escaped here.
"""

import re
from collections.abc import Iterable, Sequence

from persistcal.evaluation.measures import MEASURES
from persistcal.report.grid import Cell, Grid

PREAMBLE = r"% needs \usepackage{amsmath,amsfonts,booktabs,graphicx,xcolor}"
MISSING = "--"
PARTLY = " (1/3): mean over one of three pairs of checkpoints, as the others do not define it."

_GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "varepsilon",
    "ζ": "zeta",
    "η": "eta",
    "θ": "theta",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "varphi",
    "ω": "omega",
}
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
    **{letter: rf"$\{name}$" for letter, name in _GREEK.items()},
}
# A second line break would end the paragraph, in the middle of a command.
_SPACE = re.compile(r"[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(r"[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_LIGATURE = re.compile(r"-(?=-)|'(?=')|`(?=`)|,(?=,)|[?!](?=`)")  # dashes, quotes, ¿ and ¡
_SCOPES = {"contrast": "Contrast", "full": "Full"}
_ARROWS = {"↑": r"$\scriptstyle\uparrow$", "↓": r"$\scriptstyle\downarrow$"}
_SUB_ROW = r"\,\raisebox{0.5ex}{\(\llcorner\)} "


def escape(text: str) -> str:
    r"""Return `text` so that LaTeX prints it as it stands, in one line.

    A character that cannot be printed is a question mark.

    Examples
    --------
    >>> print(escape("R&D, 40% of step_1"))
    R\&D, 40\% of step\_1
    """
    printable = _UNPRINTABLE.sub("?", _SPACE.sub(" ", text))
    escaped = "".join(_SPECIAL.get(character, character) for character in printable)
    return _LIGATURE.sub(r"\g<0>{}", escaped)


def number(value: float, digits: int = 3) -> str:
    r"""Return `value` as it is printed, or a dash if there is none.

    Examples
    --------
    >>> number(0.12345), number(-0.0001), number(-0.25, 2), number(float("nan"))
    ('0.123', '0.000', '$-$0.25', '--')
    """
    if value != value:
        return MISSING
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return text.replace("-", "$-$")


def floating(tabular: Sequence[str], *, caption: str, label: str, shrink: bool = False) -> str:
    r"""Return the lines of a tabular inside a table with caption and label.

    `shrink` scales it to the width of the line.
    """
    body = list(tabular)
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
    measure = MEASURES[metric]
    return f"{measure.latex} {_ARROWS[measure.arrow]}"


def results_table(grids: Sequence[Grid], *, caption: str, label: str) -> str:
    """Return the LaTeX of a table of results.

    Parameters
    ----------
    grids : sequence of Grid
        Its sections, which have the same columns.
    caption : str
        Plain text.
    label : str
        What ``tab:`` is put before.
    """
    first = grids[0]
    width = len(first.columns)
    lines = [rf"\begin{{tabular}}{{l{'c' * width}}}", r"\toprule"]
    if first.columns[0].model:
        lines += spanning([(model, n) for (model,), n in first.spans("model")])
    lines += spanning([(_SCOPES[scope], n) for (_, scope), n in first.spans("model", "scope")])
    lines += [line(["Method", *(metric_head(column.metric) for column in first.columns)])]
    for grid in grids:
        heading = _heading(grid, grids)
        for place, block in enumerate(grid.blocks):
            lines += [r"\midrule", r"\addlinespace[3pt]"][: 1 if place == 0 else 2]
            lines += _headline(heading if place == 0 else "", block.title, width)
            for row in block.rows:
                name = _SUB_ROW * row.indent + escape(row.label)
                lines.append(line([name, *map(_text, row.cells)]))
    lines += [r"\bottomrule", r"\end{tabular}"]
    cells = [cell for grid in grids for row in grid.rows() for cell in row.cells]
    caption += PARTLY * any(cell.pairs for cell in cells)
    return floating(lines, caption=caption, label=label, shrink=width > 6)


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
    """Return what tells a section from the others: nothing where there is but one."""
    parts = [grid.model] if len({other.model for other in grids}) > 1 else []
    if grid.trained_on:
        parts.append(f"{grid.trained_on} → {grid.dataset}")
    elif len({other.dataset for other in grids}) > 1:
        parts.append(grid.dataset)
    return ", ".join(parts)


def _headline(heading: str, title: str, span: int) -> list[str]:
    """Return the line above a block: title of the block, heading of the section."""
    if not heading and not title:
        return []
    left = rf"\multicolumn{{1}}{{l}}{{\:\textit{{{escape(title)}}}}}" if title else ""
    lines = [line([left, rf"\multicolumn{{{span}}}{{c}}{{{escape(heading)}}}"])]
    rules = (r"\cmidrule(lr){1-1}" if title else "") + (
        rf"\cmidrule(lr){{2-{span + 1}}}" if heading else ""
    )
    return [*lines, rules]


def spanning(groups: Sequence[tuple[str, int]], *, before: int = 1) -> list[str]:
    """Return a line of headings over several columns each, and the rules below it.

    The first `before` columns have no heading.
    """
    heads, rules, start = [""] * before, [], before + 1
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
