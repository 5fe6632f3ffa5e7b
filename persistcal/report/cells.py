"""The cells of a table of results, and which of them are best."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from persistcal.evaluation.measures import MEASURES
from persistcal.report.layout import (
    Description,
    Member,
    block_name,
    columns,
    members,
    present,
    sections,
)

TIE = 1e-5  # values as close as this are equal, as in the paper
Column = tuple[str, str, str]  # conditioning, scope, metric


class Marks(NamedTuple):
    """How a cell is printed."""

    bold: bool = False
    underline: bool = False


def fill_cells(
    metrics: pd.DataFrame,
    significance: pd.DataFrame,
    table: Description,
    *,
    models: Sequence[str],
    datasets: Mapping[str, Sequence[str]],
    missing_ok: bool = False,
) -> pd.DataFrame:
    """Return the cells of a table, one row each.

    Parameters
    ----------
    metrics, significance : DataFrame
        Tables `persistcal.store.artifacts.METRICS` and `SIGNIFICANCE`.
    table : mapping
        Its description, see `persistcal.report.layout`.
    models : sequence of str
        Models of the study, in order.
    datasets : mapping
        Datasets of the study, in order, each with what its estimators are trained
        on if not on itself.
    missing_ok : bool, default=False
        Whether a table without any value is a table all the same.

    Returns
    -------
    DataFrame
        Columns `model`, `dataset`, `train_dataset` (of the section), `block` (from
        0), `estimator`, `conditioning`, `scope`, `metric`, `value` (NaN: there is
        none), `bold` (best of its block), `underline` (not significantly worse than
        the best; of several best that may be so too), `pairs` (of checkpoints that
        `value` is a mean over, "1 of 3"; empty where none of them is left out).

    Raises
    ------
    ValueError
        When no estimator of the table was evaluated, or a block was not tested.
    """
    evaluated, partly = _values(metrics), _partly_defined(metrics)
    tests = {key: rows for key, rows in significance.groupby(["model", "dataset", "block"])}
    cells: list[dict[str, Any]] = []
    for section in sections(table, models, datasets):
        values = evaluated.get((section.model, section.dataset), {})
        for number, block in enumerate(table["blocks"]):
            compared = present(members(block, section), list(values))
            name = block_name(compared, section.dataset)
            tested = tests.get((section.model, section.dataset, name))
            if tested is None and len(compared) > 1:
                raise ValueError(
                    f"The significance table has no block {name!r} for model "
                    f"{section.model!r} and dataset {section.dataset!r}; "
                    "test it again with the blocks of this table."
                )
            if tested is not None and not _estimators(tested) <= {name for _, name in compared}:
                raise ValueError(
                    f"The test of block {name!r} names other estimators than the block."
                )
            shown = members(block, section) if "rows" in block else compared
            for column in columns(table):
                of = {
                    member: values.get(member, {}).get(column, float("nan")) for member in shown
                }
                marks = _marks(of, column[2], _not_significant(tested, column))
                cells += [
                    {
                        **section._asdict(),
                        "block": number,
                        "estimator": member[1],
                        **dict(zip(("conditioning", "scope", "metric"), column, strict=True)),
                        "value": value,
                        "bold": marks[member].bold,
                        "underline": marks[member].underline,
                        "pairs": partly.get((section.model, section.dataset, *column[1:]), ""),
                    }
                    for member, value in of.items()
                ]
    frame = pd.DataFrame(cells)
    if frame.empty or (frame["value"].isna().all() and not missing_ok):
        raise ValueError(
            "None of the table's estimators was evaluated for the models and datasets of "
            "this study; take the table out of study.tables or add its estimators."
        )
    return frame


def _values(
    metrics: pd.DataFrame,
) -> dict[tuple[str, str], dict[Member, dict[Column, float]]]:
    """Return the means over seeds by (model, dataset), estimator and column."""
    values: dict[tuple[str, str], dict[Member, dict[Column, float]]] = {}
    for row in metrics[metrics["seed"] == "mean"].to_dict("records"):
        study = values.setdefault((row["model"], row["dataset"]), {})
        estimator = study.setdefault((row["train_dataset"], row["estimator"]), {})
        estimator[row["conditioning"], row["scope"], row["metric"]] = row["value"]
    return values


def _partly_defined(metrics: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """Return how many pairs define a metric where not all do, by model, dataset and metric."""
    if "pairs" not in metrics:  # those that a paper prints
        return {}
    rows = metrics[["model", "dataset", "scope", "metric", "pairs"]].drop_duplicates()
    return {
        tuple(place): pairs
        for *place, pairs in rows.itertuples(index=False, name=None)
        if pairs and len(set(pairs.split(" of "))) > 1 and not pairs.startswith("0 ")
    }


def _estimators(tests: pd.DataFrame) -> set[str]:
    return {*tests["best"], *tests["other"]}


def _not_significant(tests: pd.DataFrame | None, column: Column) -> set[tuple[str, str]]:
    """Return the pairs (best, other) of a block that may be equal in `column`."""
    if tests is None:
        return set()
    conditioning, scope, metric = column
    rows = tests[
        (tests["conditioning"] == conditioning)
        & (tests["scope"] == scope)
        & (tests["metric"] == metric)
        & ~tests["significant"]
    ]
    return set(zip(rows["best"], rows["other"], strict=True))


def _marks(
    values: Mapping[Member, float], metric: str, close: Collection[tuple[str, str]]
) -> dict[Member, Marks]:
    """Mark the best of `values` bold, and underline those not significantly worse.

    The unrounded values decide; those within `TIE` of the best are all bold, and those
    of them that the test did not take for the best may be underlined as well, as in the
    paper. Where there is nothing to compare with, nothing is marked.
    """
    sign = -1 if MEASURES[metric].lower_is_better else 1
    there = {member: sign * value for member, value in values.items() if value == value}
    if len(there) < 2:
        return dict.fromkeys(values, Marks())
    best = [member for member in there if there[member] >= max(there.values()) - TIE]
    near = {other for first, other in close if first in {estimator for _, estimator in best}}
    return {
        member: Marks(member in best, member in there and member[1] in near)
        for member in values
    }
