"""The cells of a table of results, and their layout as a grid for LaTeX, CSV and HTML."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pandas as pd

from persistcal.evaluation.metrics.registry import METRICS, Metric
from persistcal.evaluation.settings import Member, block_name, present
from persistcal.report.layout import (
    Description,
    DisplayNames,
    Section,
    columns,
    members,
    sections,
)

NAN = float("nan")
TIE = 1e-5  # values that differ by less are equal, as in the paper
PAPER, BEST_SET = "paper", "best_set"  # the test that underlines values near the best
_COLUMN = ["conditioning", "scope", "metric"]
_CELL = [*Section._fields, "estimator", *_COLUMN]
_SHOWN = ["estimator", "model", "scope", "metric"]


def fill_cells(
    metrics: pd.DataFrame,
    significance: pd.DataFrame,
    table: Description,
    *,
    models: Sequence[str],
    datasets: Mapping[str, Sequence[str]],
    missing_ok: bool = False,
) -> pd.DataFrame:
    """Return a row per cell: section, `block` (from 0), measure, value and marks.

    `models` and `datasets` are the study's, in order; `datasets` contains the other training
    datasets of each dataset. Missing values are NaN. A block without tests is refused, and a
    table without values unless `missing_ok`.
    """
    means = metrics[metrics["seed"] == "mean"]
    key = ["train_dataset", "estimator", *_COLUMN]
    evaluated = {
        place: dict(
            zip(rows[key].itertuples(index=False, name=None), rows["value"], strict=True)
        )
        for place, rows in means.groupby(["model", "dataset"])
    }
    key = ["model", "dataset", "scope", "metric"]
    partly: dict[tuple[str, ...], str] = {}  # how many pairs define a metric, if not all do
    if "pairs" in metrics:  # not in metrics that a paper prints
        counts = metrics[[*key, "pairs"]].drop_duplicates().itertuples(index=False, name=None)
        partly = {
            tuple(names): pairs
            for *names, pairs in counts
            if pairs and len(set(pairs.split(" of "))) > 1 and not pairs.startswith("0 ")
        }
    tests = {key: rows for key, rows in significance.groupby(["model", "dataset", "block"])}
    cells: list[dict[str, Any]] = []
    for section in sections(table, models, datasets):
        values = evaluated.get((section.model, section.dataset), {})
        available = list(dict.fromkeys(place[:2] for place in values))
        for number, block in enumerate(table["blocks"]):
            compared = present(members(block, section), available)
            name = block_name(compared, section.dataset)
            tested = tests.get((section.model, section.dataset, name))
            _check_tested(tested, compared, name, section)
            names = members(block, section) if "rows" in block else compared
            for column in columns(table):
                by_member = {member: values.get((*member, *column), NAN) for member in names}
                marks = table.get("marks", PAPER)
                best, underlined = _marks(by_member, tested, column, marks)
                cells += [
                    {
                        **section._asdict(),
                        "block": number,
                        "estimator": member[1],
                        **dict(zip(_COLUMN, column, strict=True)),
                        "value": value,
                        "bold": member in best,
                        "underline": member in underlined,
                        "pairs": partly.get((section.model, section.dataset, *column[1:]), ""),
                    }
                    for member, value in by_member.items()
                ]
    frame = pd.DataFrame(cells)
    if frame.empty or (frame["value"].isna().all() and not missing_ok):
        raise ValueError(
            "None of the table's estimators was evaluated for the models and datasets of "
            "this study; take the table out of study.tables or add its estimators."
        )
    return frame


def _check_tested(
    tests: pd.DataFrame | None, compared: Sequence[Member], name: str, section: Section
) -> None:
    """Refuse a block if its test is missing or compares other estimators."""
    if tests is None and len(compared) > 1:
        raise ValueError(
            f"The significance table has no block {name!r} for model {section.model!r} and "
            f"dataset {section.dataset!r}; test it again with the blocks of this table."
        )
    tested = set() if tests is None else {*tests["best"], *tests["other"]}
    if not tested <= {estimator for _, estimator in compared}:
        raise ValueError(f"The test of block {name!r} names other estimators than the block.")


def _marks(
    values: Mapping[Member, float],
    tests: pd.DataFrame | None,
    column: Sequence[str],
    marks: str,
) -> tuple[set[Member], set[Member]]:
    """Return the values of a block that are bold, as the best, and underlined, as near it.

    Unrounded values are compared. All values within `TIE` of the best are bold. A value is near
    the best if its test in `column` finds no difference: `marks` is "paper" for the paper's
    one-sided test or "best_set" for simultaneous intervals. If several values tie for best, one
    of them is the reference of the test and the others can be underlined, as in the paper. A
    single value is not marked.
    """
    sign = -1 if METRICS[column[2]].lower_is_better else 1
    defined = {member: sign * value for member, value in values.items() if value == value}
    if len(defined) < 2:
        return set(), set()
    best = {member for member in defined if defined[member] >= max(defined.values()) - TIE}
    if tests is None:
        return best, set()
    # Missing without a test: then nothing is near
    near = tests["significant"].eq(False) if marks == PAPER else tests["in_best_set"].eq(True)
    rows = tests[(tests[_COLUMN] == list(column)).all(axis=1) & near.fillna(False)]
    names = set(rows.loc[rows["best"].isin([name for _, name in best]), "other"])
    return best, {member for member in defined if member[1] in names}


def as_csv(cells: pd.DataFrame, name: str) -> str:
    """Return the cells of the table `name` as CSV, with three decimals."""
    # Adding zero turns a rounded -0.0 into 0.0.
    rounded = cells.assign(value=cells["value"].round(3) + 0.0)
    rounded.insert(0, "table", name)
    return rounded.to_csv(index=False, float_format="%.3f")


class Cell(NamedTuple):
    """A value with a 95 % interval; missing numbers are NaN.

    `best` marks the best of a block and `underlined` a value not shown to be worse. `pairs`
    counts the pairs in the mean, such as "1 of 3", if the metric is undefined on some pairs.
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
    def measure(self) -> Metric:
        """Heading, arrow and so on of the metric."""
        return METRICS[self.metric]


class Grid(NamedTuple):
    """A section of a table, with display names.

    `model` is empty if models are columns, and `trained_on` if estimators are trained on the
    dataset itself.
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
        """Return groups of neighbouring columns with equal fields `names`, and their sizes."""
        shared = [tuple(getattr(column, name) for name in names) for column in self.columns]
        return [(key, len(list(members))) for key, members in groupby(shared)]

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
    """Lay a table of results out as grids, one per section.

    `cells` are from `fill_cells` or the table's CSV. A key without a display name in `labels`
    is printed unchanged.
    """
    bounds: dict[tuple[Any, ...], tuple[float, float]] = {}
    if intervals is not None:
        ends = zip(intervals["lower_2_5pct"], intervals["upper_97_5pct"], strict=True)
        bounds = dict(zip(intervals[_CELL].itertuples(index=False), ends, strict=True))
    side_by_side = table["layout"] == "models_as_columns"

    def label(kind: str, key: str) -> str:
        return labels.get(kind, {}).get(key, key)

    grids = []
    for _, section in cells.groupby(list(Section._fields)[side_by_side:], sort=False):
        place = Section(*section[list(Section._fields)].iloc[0])
        heads = section[["model", "scope", "metric"]].drop_duplicates()
        columns = list(heads.itertuples(index=False, name=None))
        blocks = []
        for number, block in section.groupby("block", sort=False):
            described = table["blocks"][int(str(number))]
            shown = {
                tuple(cell[name] for name in _SHOWN): _cell(cell, bounds)
                for cell in block.to_dict("records")
            }
            all_rows = [{"estimator": name} for name in block["estimator"].unique()]
            rows = []
            for entry in described.get("rows", all_rows):
                name = entry["estimator"]
                text = entry.get("label") or label("estimators", name)
                values = [shown.get((name, *column), Cell(NAN)) for column in columns]
                rows.append(Row(name, text, entry.get("indent", False), values))
            blocks.append(Block(described.get("title", ""), rows))
        elsewhere = place.train_dataset != place.dataset
        grids.append(
            Grid(
                "" if side_by_side else label("models", place.model),
                label("datasets", place.dataset),
                label("datasets", place.train_dataset) if elsewhere else "",
                [
                    Column(label("models", model) if side_by_side else "", scope, metric)
                    for model, scope, metric in columns
                ],
                blocks,
            )
        )
    return grids


def _cell(
    row: Mapping[Any, Any], bounds: Mapping[tuple[Any, ...], tuple[float, float]]
) -> Cell:
    # A row that no training touches is stored under the dataset itself.
    row_in_domain = {**row, "train_dataset": row["dataset"]}
    first, second = (tuple(place[name] for name in _CELL) for place in (row, row_in_domain))
    ends = bounds.get(first, bounds.get(second, (NAN, NAN)))
    # Empty in the CSV, and missing where a paper's cells are laid out
    pairs = row.get("pairs")
    text = pairs if isinstance(pairs, str) else ""
    return Cell(row["value"], row["bold"], row["underline"], text, *ends)
