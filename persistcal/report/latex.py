r"""Tables as LaTeX.

They need ``\usepackage{amsmath,amsfonts,booktabs,graphicx,xcolor}``. All labels and
captions are plain text and are escaped here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.report.layout import Section, columns

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
METRIC_HEADS = {
    "delta0_balanced": r"$\Delta_0^b$ $\scriptstyle\uparrow$",
    "delta0": r"$\Delta_0$ $\scriptstyle\uparrow$",
    "delta_balanced": r"$\Delta^b$ $\scriptstyle\uparrow$",
    "delta": r"$\Delta$ $\scriptstyle\uparrow$",
    "auc": r"AUC $\scriptstyle\uparrow$",
    "brier": r"BS $\scriptstyle\downarrow$",
    "smece": r"ECE $\scriptstyle\downarrow$",
}
_SCOPES = {"contrast": "Contrast", "full": "Full"}
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


def results_table(
    cells: pd.DataFrame,
    table: Mapping[str, Any],
    *,
    label: str,
    labels: Mapping[str, Mapping[str, str]],
) -> str:
    """Return the LaTeX of a table of results.

    Parameters
    ----------
    cells : DataFrame
        As from `persistcal.report.cells.fill_cells`.
    table : mapping
        Its description.
    label : str
        What ``tab:`` is put before.
    labels : mapping
        What is printed for each of `models`, `datasets` and, where a row has no
        label of its own, `estimators`; a key without a label is printed itself.
    """
    side_by_side = table["layout"] == "models_as_columns"
    models = list(dict.fromkeys(cells["model"]))
    metrics = [(scope, metric) for _, scope, metric in columns(table)]
    wide = [(model, *m) for model in models for m in metrics] if side_by_side else metrics
    scopes = [(_SCOPES[scope], len(names)) for scope, names in table["columns"].items()]

    lines = [rf"\begin{{tabular}}{{l{'c' * len(wide)}}}", r"\toprule"]
    if side_by_side:
        lines += spanning([(labels["models"].get(m, m), len(metrics)) for m in models])
    lines += spanning(scopes * (len(models) if side_by_side else 1))
    lines += [line(["Method", *(METRIC_HEADS[column[-1]] for column in wide)])]
    by_section = list(Section._fields)[1 if side_by_side else 0 :]
    for _, section in cells.groupby(by_section, sort=False):
        heading = _heading(section, cells, labels, side_by_side)
        for number_, block in enumerate(table["blocks"]):
            texts = _texts(section[section["block"] == number_], side_by_side)
            lines += [r"\midrule", r"\addlinespace[3pt]"][: 1 if number_ == 0 else 2]
            lines += _headline(heading, block.get("title", ""), len(wide))
            heading = ""
            for row in block.get("rows") or [{"estimator": e} for e in texts]:
                row_texts = texts[row["estimator"]]
                lines.append(
                    line([_row_label(row, labels), *(row_texts.get(c, MISSING) for c in wide)])
                )
    lines += [r"\bottomrule", r"\end{tabular}"]
    partly = bool(cells["pairs"].ne("").any())
    caption = table["caption"] + (PARTLY if partly else "")
    return floating(lines, caption=caption, label=label, shrink=len(wide) > 6)


def _texts(block: pd.DataFrame, with_model: bool) -> dict[str, dict[tuple[str, ...], str]]:
    """Return by estimator and column the printed cells of a block."""
    texts: dict[str, dict[tuple[str, ...], str]] = {}
    for cell in block.to_dict("records"):
        text = number(cell["value"])
        if cell["bold"]:
            text = rf"\textbf{{{text}}}"
        if cell["underline"]:
            text = rf"\underline{{{text}}}"
        if cell["pairs"] and cell["value"] == cell["value"]:
            text += rf"\,{{\scriptsize({cell['pairs'].replace(' of ', '/')})}}"
        column = (cell["scope"], cell["metric"])
        key = (cell["model"], *column) if with_model else column
        texts.setdefault(cell["estimator"], {})[key] = text
    return texts


def _row_label(row: Mapping[str, Any], labels: Mapping[str, Mapping[str, str]]) -> str:
    estimator = row["estimator"]
    text = escape(row.get("label") or labels.get("estimators", {}).get(estimator, estimator))
    return _SUB_ROW + text if row.get("indent", False) else text


def _heading(
    group: pd.DataFrame,
    cells: pd.DataFrame,
    labels: Mapping[str, Mapping[str, str]],
    side_by_side: bool,
) -> str:
    """Return what tells a section from the others: nothing where there is but one."""
    model, dataset, train_dataset = group[list(Section._fields)].iloc[0]
    parts = []
    if not side_by_side and cells["model"].nunique() > 1:
        parts.append(labels["models"].get(model, model))
    name = labels["datasets"].get(dataset, dataset)
    if train_dataset != dataset:
        parts.append(f"{labels['datasets'].get(train_dataset, train_dataset)} → {name}")
    elif cells["dataset"].nunique() > 1:
        parts.append(name)
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
