"""Tables about a study's checkpoints and contrast sets, as LaTeX."""

from collections.abc import Hashable, Mapping
from decimal import Decimal
from typing import Any

import pandas as pd

from persistcal.report.latex import MISSING, escape, floating, line, number, spanning

_UNITS = {12: "trillions", 9: "billions", 6: "millions", 3: "thousands"}


def contrast_matrix(sets: pd.DataFrame) -> pd.DataFrame:
    """Return contrast sets seen from either checkpoint of a pair.

    Parameters
    ----------
    sets : DataFrame
        Rows of `persistcal.store.artifacts.CONTRAST_SETS` of one dataset.

    Returns
    -------
    DataFrame
        Columns `model`, `dataset`, `row` and `column` (checkpoints), `size`,
        `row_wrong_column_right`, `kept`; two rows per pair.
    """
    forth = sets.rename(
        columns={"earlier": "row", "later": "column", "improvement": "row_wrong_column_right"}
    )
    back = sets.rename(
        columns={"later": "row", "earlier": "column", "regression": "row_wrong_column_right"}
    )
    names = ["model", "dataset", "row", "column", "size", "row_wrong_column_right", "kept"]
    return pd.concat([forth[names], back[names]], ignore_index=True)


def contrast_table(
    matrix: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Mapping[str, str]],
    models: Mapping[str, str],
    dataset: str,
    min_contrast: int,
    label: str,
) -> str:
    """Return the LaTeX of the contrast-set sizes of one dataset.

    Parameters
    ----------
    matrix : DataFrame
        As from `contrast_matrix`.
    checkpoints : mapping
        By model the labels of its evaluation checkpoints, in order.
    models : mapping
        Labels of the models.
    dataset : str
        Label of the dataset.
    min_contrast : int
        Smallest contrast set that is used.
    label : str
        What ``tab:`` is put before.
    """
    cells = {
        (cell["model"], cell["row"], cell["column"]): _contrast_cell(cell)
        for cell in matrix.to_dict("records")
    }
    lines = []
    for model, names in checkpoints.items():
        span = len(names) + 1
        heads = [escape(name) for name in names.values()]
        lines += [
            rf"\begin{{tabular}}{{l{'c' * len(names)}}}",
            r"\toprule",
            rf"\multicolumn{{{span}}}{{c}}{{\textit{{{escape(models.get(model, model))}}}}} \\",
            rf"\cmidrule(lr){{1-{span}}}",
            line(["", *heads]),
            r"\midrule",
        ]
        for head, row in zip(heads, names, strict=True):
            lines.append(line([head, *(cells.get((model, row, c), MISSING) for c in names)]))
        lines += [r"\bottomrule", r"\end{tabular}", "", r"\vspace{5pt}"]
    caption = (
        f"{dataset}: sizes of the contrast sets of each pair of evaluation checkpoints, and in "
        "brackets how many of their questions the row's checkpoint gets wrong and the "
        "column's right."
    )
    if not matrix["kept"].all():
        caption += f" Gray: not used, as smaller than {min_contrast}."
    return floating(lines[:-2], caption=caption, label=label)


def _contrast_cell(cell: Mapping[Hashable, Any]) -> str:
    text = f"{cell['size']} ({cell['row_wrong_column_right']})"
    return text if cell["kept"] else rf"\textcolor{{gray}}{{{text}}}"


def checkpoint_rows(
    accuracies: pd.DataFrame, checkpoints: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> pd.DataFrame:
    """Return accuracies in the study's order, with what is known of each checkpoint.

    Parameters
    ----------
    accuracies : DataFrame
        Table `persistcal.store.artifacts.ACCURACIES`.
    checkpoints : mapping
        By model and checkpoint, in order, a mapping that may have `revision`,
        `label` and `tokens` (seen in training, a number or its digits as text).

    Returns
    -------
    DataFrame
        The rows of `accuracies` with `revision`, `label` and `tokens` added.
    """
    known = [
        {
            "model": model,
            "checkpoint": name,
            "revision": entry.get("revision", name),
            "label": entry.get("label", name),
            "tokens": entry.get("tokens", float("nan")),
        }
        for model, entries in checkpoints.items()
        for name, entry in entries.items()
    ]
    frame = pd.DataFrame(known).merge(accuracies, on=["model", "checkpoint"], how="inner")
    return frame.astype({"tokens": float})


def checkpoints_table(
    rows: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Mapping[str, Mapping[str, Any]]],
    models: Mapping[str, str],
    datasets: Mapping[str, str],
    label: str,
) -> str:
    """Return the LaTeX of training tokens and accuracies of all checkpoints.

    Parameters
    ----------
    rows : DataFrame
        As from `checkpoint_rows`.
    checkpoints : mapping
        As for `checkpoint_rows`.
    models, datasets : mapping
        Labels; the datasets in order.
    label : str
        What ``tab:`` is put before.
    """
    unit = next((u for u in _UNITS if rows["tokens"].max() >= 10**u), 0)
    seen = (
        rf"\shortstack{{Training data\\({_UNITS[unit]} of tokens)}}"
        if unit
        else "Training data"
    )
    heads = [escape(label) for label in datasets.values()]
    span = 3 + len(datasets)
    lines = [
        rf"\begin{{tabular}}{{cl{'c' * (1 + len(datasets))}}}",
        r"\toprule",
        *spanning([("Accuracy (%)", len(datasets))], before=3),
        line(["Short name", "Checkpoint", seen, *heads]),
    ]
    for model, of_model in rows.groupby(rows["model"].astype(str), sort=False):
        name = escape(models.get(model, model))
        lines += [
            r"\midrule",
            rf"\multicolumn{{{span}}}{{c}}{{\textit{{{name}}}}} \\",
            rf"\cmidrule(lr){{1-{span}}}",
        ]
        for _, one in of_model.groupby("checkpoint", sort=False):
            first = one.iloc[0]
            cells = {row["dataset"]: _accuracy_cell(row) for row in one.to_dict("records")}
            lines.append(
                line(
                    [
                        escape(first["label"]) if first["label"] != first["revision"] else "",
                        rf"\texttt{{{escape(first['revision'])}}}",
                        _tokens(checkpoints[model][first["checkpoint"]].get("tokens"), unit),
                        *(cells.get(dataset, MISSING) for dataset in datasets),
                    ]
                )
            )
    lines += [r"\bottomrule", r"\end{tabular}"]
    caption = "Training data and accuracy of the checkpoints."
    if (rows["split"] == "train").any():
        lines += ["", r"$^\dagger$ on the training questions"]
    return floating(lines, caption=caption, label=label)


def _tokens(stated: float | str | None, unit: int) -> str:
    """Return tokens in units of a power of ten, stated as text with the digits stated.

    >>> _tokens("1.10e+12", 12), _tokens("2.7e+12", 12), _tokens(2.7e12, 12), _tokens(None, 12)
    ('1.10', '2.7', '2.70', '--')
    """
    if stated is None:
        return MISSING
    if isinstance(stated, str):
        return f"{Decimal(stated).scaleb(-unit):f}"
    return number(stated / 10**unit, 2)


def _accuracy_cell(row: Mapping[Hashable, Any]) -> str:
    dagger = r"$^\dagger$" if row["split"] == "train" else ""
    return number(100 * row["accuracy"], 1) + dagger
