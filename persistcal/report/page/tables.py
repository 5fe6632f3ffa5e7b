"""The study's tables as the page shows them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.evaluation.metrics import LOWER_IS_BETTER
from persistcal.report.layout import Description

METRICS = {
    "delta0_balanced": "Δ₀ᵇ",
    "delta0": "Δ₀",
    "delta_balanced": "Δᵇ",
    "delta": "Δ",
    "auc": "AUC",
    "brier": "Brier",
    "smece": "ECE",
}
SCOPES = {"contrast": "Contrast sets", "full": "All questions"}
MOST_ROWS = 300  # of a table that is no table of results: the CSV has the rest

Labels = Mapping[str, Mapping[str, str]]


def short(value: float) -> str:
    """Return a value as the tables print it: three digits, no zero before the point.

    Examples
    --------
    >>> short(0.4312), short(-0.05), short(1.0), short(-0.0001)
    ('.431', '−.050', '1.000', '.000')
    """
    text = f"{abs(value):.3f}"
    text = text.removeprefix("0") if text != "1.000" else text
    return f"−{text}" if value < 0 and float(text) else text


def result_grids(
    cells: pd.DataFrame,
    table: Description,
    intervals: pd.DataFrame,
    *,
    labels: Labels,
) -> list[dict[str, Any]]:
    """Return the grids of a table of results, one for each of its sections.

    Parameters
    ----------
    cells : DataFrame
        The table's CSV, as from `persistcal.report.cells.fill_cells`.
    table : mapping
        Its description, see `persistcal.report.layout`.
    intervals : DataFrame
        Table INTERVALS of `persistcal.artifacts`.
    labels : mapping
        Labels of `models`, `datasets` and `estimators`.

    Returns
    -------
    list of dict
        Each with `title`, `columns` (dicts of `group`, `label`, `lower_is_better`) and
        `blocks` (dicts of `title` and `rows`); a row has `label`, `indent`,
        `estimator` and `cells`: dicts of `value`, `text`, `mark` (best, near, both
        or nothing) and `interval`.
    """
    key = ["model", "dataset", "train_dataset", "estimator", "conditioning", "scope", "metric"]
    bounds = {
        tuple(row[:-2]): row[-2:]
        for row in intervals[[*key, "lower_2_5pct", "upper_97_5pct"]].itertuples(index=False)
    }
    side_by_side = table["layout"] == "models_as_columns"
    section = (
        ["dataset", "train_dataset"] if side_by_side else ["model", "dataset", "train_dataset"]
    )
    column = ["model", "scope", "metric"] if side_by_side else ["scope", "metric"]
    grids = []
    for _, group in cells.groupby(section, sort=False):
        heads = list(dict.fromkeys(group[column].itertuples(index=False, name=None)))
        blocks = []
        for place, block in group.groupby("block", sort=False):
            described = table["blocks"][int(str(place))]
            named = described.get("rows") or [
                {"estimator": name} for name in dict.fromkeys(block["estimator"])
            ]
            filled = {
                (cell["estimator"], *(cell[name] for name in column)): _cell(cell, bounds)
                for cell in block.to_dict("records")
            }
            rows = [
                {
                    "estimator": row["estimator"],
                    "label": row.get("label")
                    or labels["estimators"].get(row["estimator"], row["estimator"]),
                    "indent": row.get("indent", False),
                    "cells": [filled.get((row["estimator"], *head)) for head in heads],
                }
                for row in named
            ]
            blocks.append({"title": described.get("title", ""), "rows": rows})
        columns = [
            {
                "group": " · ".join(
                    [labels["models"].get(name, name) for name in head[:-2]]
                    + [SCOPES[head[-2]]]
                ),
                "label": METRICS[head[-1]],
                "lower_is_better": head[-1] in LOWER_IS_BETTER,
            }
            for head in heads
        ]
        title = _title(group.iloc[0], labels, with_model=not side_by_side)
        grids.append({"title": title, "columns": columns, "blocks": blocks})
    return grids


def _title(row: pd.Series, labels: Labels, *, with_model: bool) -> str:
    dataset = labels["datasets"].get(row["dataset"], row["dataset"])
    if row["train_dataset"] != row["dataset"]:
        trained = labels["datasets"].get(row["train_dataset"], row["train_dataset"])
        dataset = f"{dataset}, trained on {trained}"
    model = labels["models"].get(row["model"], row["model"])
    return f"{model} · {dataset}" if with_model else dataset


def _cell(cell: Mapping[Any, Any], bounds: Mapping[tuple, tuple]) -> dict[str, Any] | None:
    value = cell["value"]
    if value != value:
        return None
    about = (cell["estimator"], cell["conditioning"], cell["scope"], cell["metric"])
    place = (cell["model"], cell["dataset"])
    # A row that no training touches is stored under the dataset itself.
    low, high = bounds.get(
        (*place, cell["train_dataset"], *about),
        bounds.get((*place, cell["dataset"], *about), (float("nan"), float("nan"))),
    )
    interval = f"{short(low)} to {short(high)}" if low == low and high == high else ""
    partly = pairs if isinstance(pairs := cell.get("pairs"), str) else ""  # empty in the CSV
    return {
        "value": value,
        "text": short(value) + (f" ({partly.replace(' of ', '/')})" if partly else ""),
        "mark": " ".join(["best"] * cell["bold"] + ["near"] * cell["underline"]),
        "interval": "; ".join([interval] * bool(interval) + [f"{partly} pairs"] * bool(partly)),
    }


def plain_grid(frame: pd.DataFrame) -> dict[str, Any]:
    """Return any other table as it stands: `columns`, `rows` and how many are left out."""
    shown = frame.head(MOST_ROWS)
    numeric = [bool(pd.api.types.is_numeric_dtype(frame[name])) for name in frame.columns]
    rows = [
        [_plain(value, number) for value, number in zip(row, numeric, strict=True)]
        for row in shown.itertuples(index=False, name=None)
    ]
    columns = [
        {"label": str(name).replace("_", " "), "number": number}
        for name, number in zip(frame.columns, numeric, strict=True)
    ]
    return {"columns": columns, "rows": rows, "left_out": len(frame) - len(shown)}


def _plain(value: object, number: bool) -> dict[str, Any]:
    if value is None or value != value:
        return {"value": "", "text": "–"}
    if not number or not isinstance(value, (int, float)) or isinstance(value, bool):
        return {"value": str(value), "text": str(value)}
    if float(value).is_integer():
        return {"value": value, "text": f"{int(value):,}"}
    return {"value": value, "text": f"{value:.3f}".replace("-", "−")}


def heading(name: str, datasets: Sequence[str], labels: Labels) -> str:
    """Return a table's name as a heading.

    Examples
    --------
    >>> heading("contrast_set_sizes_quiz", ["quiz"], {"datasets": {"quiz": "Pub quiz"}})
    'Contrast set sizes: Pub quiz'
    """
    suffix = ""
    for dataset in datasets:
        if name.endswith(f"_{dataset}") or name.startswith(f"{dataset}_"):
            name = name.removesuffix(f"_{dataset}").removeprefix(f"{dataset}_")
            suffix = f": {labels['datasets'].get(dataset, dataset)}"
            break
    return (
        name.replace("_", " ").replace("gcm", "GCM").capitalize().replace("Gcm", "GCM") + suffix
    )
