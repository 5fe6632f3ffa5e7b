"""The grid of a table of results: sections, columns, rows and cells, laid out once for all."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pandas as pd

from persistcal.evaluation.measures import MEASURES, Measure
from persistcal.report.layout import Description, DisplayNames, Section

NAN = float("nan")
_CELL = [*Section._fields, "estimator", "conditioning", "scope", "metric"]


class Cell(NamedTuple):
    """One value with the ends of its 95 % interval; NaN where one is missing.

    A cell may be the best of its block, not significantly worse than the best (`underlined`),
    or both. `pairs` says how many pairs of checkpoints the value is a mean over, "1 of 3",
    where not all define it.
    """

    value: float
    best: bool = False
    underlined: bool = False
    pairs: str = ""
    lower: float = NAN
    upper: float = NAN


class Row(NamedTuple):
    """An estimator, and its cells in order of the columns."""

    estimator: str
    label: str
    indent: bool
    cells: list[Cell]


class Block(NamedTuple):
    """Rows that are compared with each other."""

    title: str
    rows: list[Row]


class Column(NamedTuple):
    """A metric on a scope; `model` is empty where its section is of one model."""

    model: str
    scope: str
    metric: str

    @property
    def measure(self) -> Measure:
        """Heading, arrow and so on of the metric."""
        return MEASURES[self.metric]


class Grid(NamedTuple):
    """One section of a table, with display names.

    `model` is empty where models stand side by side, and `trained_on` where estimators are
    trained on the dataset itself.
    """

    model: str
    dataset: str
    trained_on: str
    columns: list[Column]
    blocks: list[Block]

    @property
    def title(self) -> str:
        """Model, dataset and training set, in one line."""
        trained = f", trained on {self.trained_on}" if self.trained_on else ""
        return " · ".join(filter(None, [self.model, self.dataset + trained]))

    def spans(self, *names: str) -> list[tuple[tuple[str, ...], int]]:
        """Return neighbouring columns that share some of their fields, and how many."""
        shared = [tuple(getattr(column, name) for name in names) for column in self.columns]
        return [(key, len(list(some))) for key, some in groupby(shared)]

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all blocks."""
        for block in self.blocks:
            yield from block.rows


def lay_out(
    cells: pd.DataFrame,
    table: Description,
    *,
    labels: DisplayNames,
    intervals: pd.DataFrame | None = None,
) -> list[Grid]:
    """Lay a table of results out as grids, one for each of its sections.

    Parameters
    ----------
    cells : DataFrame
        As from `persistcal.report.cells.fill_cells`, or the table's CSV.
    table : mapping
        Its description, see `persistcal.report.layout`.
    labels : mapping
        Display names of `models`, `datasets` and, where a row has none of its own,
        `estimators`; a key without a name is printed itself.
    intervals : DataFrame, optional
        Table INTERVALS of `persistcal.store.artifacts`.
    """
    bounds = {} if intervals is None else _bounds(intervals)
    side_by_side = table["layout"] == "models_as_columns"

    def label(kind: str, key: str) -> str:
        return labels.get(kind, {}).get(key, key)

    def row(described: Mapping[str, Any], at: Mapping[Any, Cell], columns: Sequence) -> Row:
        name = described["estimator"]
        shown = [at.get((name, *column), Cell(NAN)) for column in columns]
        text = described.get("label") or label("estimators", name)
        return Row(name, text, described.get("indent", False), shown)

    grids = []
    for _, section in cells.groupby(list(Section._fields)[side_by_side:], sort=False):
        about = Section(*section[list(Section._fields)].iloc[0])
        heads = section[["model", "scope", "metric"]].drop_duplicates()
        columns = list(heads.itertuples(index=False, name=None))
        blocks = []
        for number, block in section.groupby("block", sort=False):
            described = table["blocks"][int(str(number))]
            every = [{"estimator": name} for name in block["estimator"].unique()]
            at = {
                (cell["estimator"], cell["model"], cell["scope"], cell["metric"]): _cell(
                    cell, bounds
                )
                for cell in block.to_dict("records")
            }
            rows = [row(one, at, columns) for one in described.get("rows", every)]
            blocks.append(Block(described.get("title", ""), rows))
        elsewhere = about.train_dataset != about.dataset
        grids.append(
            Grid(
                "" if side_by_side else label("models", about.model),
                label("datasets", about.dataset),
                label("datasets", about.train_dataset) if elsewhere else "",
                [
                    Column(label("models", model) if side_by_side else "", scope, metric)
                    for model, scope, metric in columns
                ],
                blocks,
            )
        )
    return grids


def _bounds(intervals: pd.DataFrame) -> dict[tuple[Any, ...], tuple[float, float]]:
    ends = zip(intervals["lower_2_5pct"], intervals["upper_97_5pct"], strict=True)
    return dict(zip(intervals[_CELL].itertuples(index=False, name=None), ends, strict=True))


def _cell(row: Mapping[Any, Any], bounds: Mapping[tuple[Any, ...], Sequence[float]]) -> Cell:
    # A row that no training touches is stored under the dataset itself.
    own = {**row, "train_dataset": row["dataset"]}
    first, second = (tuple(place[name] for name in _CELL) for place in (row, own))
    # Empty in the CSV, and missing where a paper's cells are laid out
    pairs = row.get("pairs")
    ends = bounds.get(first, bounds.get(second, (NAN, NAN)))
    shown = pairs if isinstance(pairs, str) else ""
    return Cell(row["value"], row["bold"], row["underline"], shown, *ends)
