"""The study's tables as the page and its summary show them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.replicates import KEY, Replicates
from persistcal.evaluation.significance import compare_estimators
from persistcal.report.grid import Cell, Grid
from persistcal.report.layout import DisplayNames
from persistcal.report.phrases import short

SCOPES = {"contrast": "Contrast sets", "full": "All questions"}
Place = tuple[str, str]  # model and dataset
MOST_ROWS = 300  # in tables without estimators to compare; the CSV has all rows


def group_heads(grid: Grid) -> list[tuple[str, int]]:
    """Return the headings above the metrics' names, and over how many columns each is."""
    return [
        (" · ".join(filter(None, [model, SCOPES[scope]])), span)
        for (model, scope), span in grid.spans("model", "scope")
    ]


def shown(cell: Cell) -> tuple[str, str, str]:
    """Return a cell's text, its classes and its tooltip.

    The text has the number of pairs if the value is a mean over some pairs. The classes are
    best, near (not significantly worse), or both. The tooltip has the interval and the pairs.
    """
    text = "–"
    if cell.value == cell.value:
        text = short(cell.value) + (
            f" ({cell.pairs.replace(' of ', '/')})" if cell.pairs else ""
        )
    texts = [f"{cell.pairs} pairs"] if cell.pairs else []
    if cell.lower == cell.lower and cell.upper == cell.upper:
        texts.insert(0, f"95 % interval {short(cell.lower)} to {short(cell.upper)}")
    classes = " ".join(["best"] * cell.best + ["near"] * cell.underlined)
    return text, classes, "; ".join(texts)


def mark_best_sets(cells: pd.DataFrame, bootstraps: Mapping[Place, Replicates]) -> pd.DataFrame:
    """Return cells of a table of results, underlined if they are not shown to be worse.

    `bootstraps` are the replicates of each model and dataset. Estimators of a block and column
    are compared by simultaneous intervals, whatever marks the table has.
    """
    marked = cells.assign(underline=False)
    section, shown = ["model", "dataset", "train_dataset"], marked[marked["value"].notna()]
    for names, rows in shown.groupby([*section, *KEY, "block"], sort=False):
        if len(rows) == 1:
            continue
        model, dataset, train_dataset, *labels = map(str, names[:-1])
        key = MetricKey(*labels)
        drawn = bootstraps[model, dataset][key]
        # An estimator that no training touches is stored under the dataset itself.
        place = {
            name: i
            for trained_on in (dataset, train_dataset)
            for i, (other, name) in enumerate(drawn.samples)
            if other == trained_on
        }
        index = [place[name] for name in rows["estimator"]]
        sign = -1 if METRICS[key.metric].lower_is_better else 1
        best = int((sign * rows["value"]).to_numpy().argmax())
        near = compare_estimators(drawn, index, key.metric).near(best)
        marked.loc[rows.index, "underline"] = [verdict is True for verdict in near]
    return marked


def plain_text(grid: Grid) -> str:
    """Return a grid as text."""
    groups = [name for name, span in group_heads(grid) for _ in range(span)]
    names = [f"{column.measure.heading} " for column in grid.columns]
    frame = pd.DataFrame(
        [
            [shown(c)[0] + ("*" if c.best else "~" if c.underlined else " ") for c in row.cells]
            for row in grid.rows()
        ],
        index=["  " * row.indent + row.label for row in grid.rows()],
        columns=pd.MultiIndex.from_arrays([groups, names]),
    )
    lines = frame.to_string(line_width=10**6).splitlines()
    return "\n".join([grid.title, *(line.rstrip() for line in lines)])


def plain_grid(frame: pd.DataFrame) -> dict[str, Any]:
    """Return another table unchanged: `columns`, `rows` and the number of omitted rows."""
    numeric = [bool(pd.api.types.is_numeric_dtype(frame[name])) for name in frame.columns]
    rows = [
        [_plain(value, number) for value, number in zip(row, numeric, strict=True)]
        for row in frame.head(MOST_ROWS).itertuples(index=False, name=None)
    ]
    columns = [
        {"label": str(name).replace("_", " "), "number": number}
        for name, number in zip(frame.columns, numeric, strict=True)
    ]
    return {"columns": columns, "rows": rows, "left_out": len(frame) - len(rows)}


def _plain(value: object, number: bool) -> dict[str, Any]:
    if value is None or value != value:
        return {"value": "", "text": "–"}
    if not number or not isinstance(value, (int, float)) or isinstance(value, bool):
        return {"value": str(value), "text": str(value)}
    if float(value).is_integer():
        return {"value": value, "text": f"{int(value):,}"}
    return {"value": value, "text": f"{value:.3f}".replace("-", "−")}


def heading(name: str, datasets: Sequence[str], labels: DisplayNames) -> str:
    """Return a table's name as a heading.

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
