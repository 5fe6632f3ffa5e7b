"""The cells of a table of results, and which of them are best."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

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
_COLUMN = ["conditioning", "scope", "metric"]


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
    models, datasets
        Of the study, in order; a dataset with the datasets that its estimators are trained
        on if not on itself.
    missing_ok : bool, default=False
        Whether a table without any value is a table all the same.

    Returns
    -------
    DataFrame
        Columns `model`, `dataset`, `train_dataset` (of the section), `block` (from 0),
        `estimator`, `conditioning`, `scope`, `metric`, `value` (NaN where missing), `bold`,
        `underline` and `pairs`: see `persistcal.report.grid.Cell`.

    Raises
    ------
    ValueError
        When no estimator of the table was evaluated, or a block was not tested.
    """
    means = metrics[metrics["seed"] == "mean"]
    key = ["train_dataset", "estimator", *_COLUMN]
    evaluated = {
        place: dict(
            zip(rows[key].itertuples(index=False, name=None), rows["value"], strict=True)
        )
        for place, rows in means.groupby(["model", "dataset"])
    }
    partly = _partly_defined(metrics)
    tests = {key: rows for key, rows in significance.groupby(["model", "dataset", "block"])}
    cells: list[dict[str, Any]] = []
    for section in sections(table, models, datasets):
        values = evaluated.get((section.model, section.dataset), {})
        available = list(dict.fromkeys(place[:2] for place in values))
        for number, block in enumerate(table["blocks"]):
            compared = present(members(block, section), available)
            name = block_name(compared, section.dataset)
            tested = tests.get((section.model, section.dataset, name))
            _check_tested(tested, compared, name, section.model, section.dataset)
            shown = members(block, section) if "rows" in block else compared
            for column in columns(table):
                of = {member: values.get((*member, *column), float("nan")) for member in shown}
                marks = _marks(of, column[2], _not_significant(tested, column))
                cells += [
                    {
                        **section._asdict(),
                        "block": number,
                        "estimator": member[1],
                        **dict(zip(_COLUMN, column, strict=True)),
                        "value": value,
                        "bold": marks[member][0],
                        "underline": marks[member][1],
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


def _check_tested(
    tests: pd.DataFrame | None, compared: Sequence[Member], name: str, model: str, dataset: str
) -> None:
    """Refuse a block whose test is missing, or is of other estimators."""
    if tests is None and len(compared) > 1:
        raise ValueError(
            f"The significance table has no block {name!r} for model {model!r} and dataset "
            f"{dataset!r}; test it again with the blocks of this table."
        )
    named = set() if tests is None else {*tests["best"], *tests["other"]}
    if not named <= {estimator for _, estimator in compared}:
        raise ValueError(f"The test of block {name!r} names other estimators than the block.")


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


def _not_significant(tests: pd.DataFrame | None, column: Sequence[str]) -> set[tuple[str, str]]:
    """Return the pairs (best, other) of a block that may be equal in `column`."""
    if tests is None:
        return set()
    rows = tests[(tests[_COLUMN] == list(column)).all(axis=1) & ~tests["significant"]]
    return set(zip(rows["best"], rows["other"], strict=True))


def _marks(
    values: Mapping[Member, float], metric: str, close: Collection[tuple[str, str]]
) -> dict[Member, tuple[bool, bool]]:
    """Return which values are bold, as the best, and underlined, as not significantly worse.

    The unrounded values decide; those within `TIE` of the best are all bold, and those
    of them that the test did not take for the best may be underlined as well, as in the
    paper. Where there is nothing to compare with, nothing is marked.
    """
    sign = -1 if MEASURES[metric].lower_is_better else 1
    there = {member: sign * value for member, value in values.items() if value == value}
    if len(there) < 2:
        return dict.fromkeys(values, (False, False))
    best = [member for member in there if there[member] >= max(there.values()) - TIE]
    near = {other for first, other in close if first in {estimator for _, estimator in best}}
    return {
        member: (member in best, member in there and member[1] in near) for member in values
    }


def as_csv(cells: pd.DataFrame, name: str) -> str:
    """Return the cells of the table `name` as CSV, with three decimals."""
    # Adding zero turns a rounded -0.0 into 0.0.
    rounded = cells.assign(value=cells["value"].round(3) + 0.0)
    rounded.insert(0, "table", name)
    return rounded.to_csv(index=False, float_format="%.3f")
