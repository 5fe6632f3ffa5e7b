"""The table and the figure of a comparison, as a notebook shows them."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from persistcal.api.inputs import PLACE, check_table
from persistcal.evaluation.metrics import MEASURES
from persistcal.report.figures import full_vs_contrast_figure
from persistcal.report.grid import BEST_SET, Cell, fill_cells, lay_out

BLOCK = [*PLACE, "train_dataset"]
MEASURE = ["conditioning", "scope", "metric"]


def table(metrics: pd.DataFrame, tests: pd.DataFrame, *, conditioning: str = "odds") -> Styler:
    """Lay the metrics of all estimators out as the paper's tables do.

    Parameters
    ----------
    metrics, tests : DataFrame
        From `evaluate` and `compare`, of the same predictions.
    conditioning : {"odds", "fitted"}, default="odds"
        Conditioning of the contrast metrics.

    Returns
    -------
    pandas Styler
        A row per estimator and a column per metric. The best value is bold; values that cannot
        be distinguished from it by the simultaneous intervals of `compare` are underlined.
        `.data` contains the numbers.
    """
    check_table(
        "metrics",
        metrics,
        [*BLOCK, "estimator", *MEASURE, "seed", "value"],
        "what evaluate returns",
    )
    tested = [*BLOCK, *MEASURE, "best", "other", "difference", "significant"]
    check_table("tests", tests, tested, "the tests that compare returns")
    if conditioning not in set(metrics["conditioning"]):
        raise ValueError(f"conditioning is {conditioning!r}; give 'odds' or 'fitted'.")
    _check_same(metrics, tests)
    means = metrics[metrics["seed"] == "mean"]
    shown = means[means["conditioning"] == conditioning]
    columns = {
        "contrast": list(shown.loc[shown["scope"] == "contrast", "metric"].unique()),
        "full": list(means.loc[means["scope"] == "full", "metric"].unique()),
    }
    cells = pd.concat(
        fill_cells(
            metrics,
            tests,
            {
                "columns": columns,
                "blocks": [{}],
                "conditioning": conditioning,
                "marks": BEST_SET,
                "transfer": trained_on != dataset,
            },
            models=[model],
            datasets={dataset: [trained_on] if trained_on != dataset else []},
        )
        for model, dataset, trained_on in metrics[BLOCK]
        .drop_duplicates()
        .itertuples(index=False)
    )
    every = {"layout": "models_as_blocks", "blocks": [{}]}
    rows = {
        (*place, row.estimator): row.cells
        for place, of_place in cells.groupby(BLOCK, sort=False)
        for grid in lay_out(of_place, every, labels={})
        for row in grid.rows()
    }
    index = pd.MultiIndex.from_tuples(rows, names=[*BLOCK, "estimator"])
    across = pd.MultiIndex.from_tuples(
        [(scope, name) for scope, names in columns.items() for name in names],
        names=["scope", "metric"],
    )
    laid_out = pd.DataFrame(list(rows.values()), index=index, columns=across)
    css = laid_out.map(_css)
    values = laid_out.map(lambda cell: cell.value)
    return values.style.format("{:.3f}").apply(lambda _: css, axis=None)


def _css(cell: Cell) -> str:
    marks = ["font-weight: bold"] * cell.best + ["text-decoration: underline"] * cell.underlined
    return "; ".join(marks)


def _check_same(metrics: pd.DataFrame, tests: pd.DataFrame) -> None:
    """Refuse tests whose differences are not those of the metrics."""
    key = [*BLOCK, "estimator", *MEASURE]
    means = metrics[metrics["seed"] == "mean"].set_index(key)["value"]

    def values(column: str) -> np.ndarray:
        of = tests[[*BLOCK, column, *MEASURE]].itertuples(index=False, name=None)
        return means.reindex(list(of)).to_numpy()

    there = metrics.groupby(BLOCK)["estimator"].agg(set)
    tested = tests.groupby(BLOCK)[["best", "other"]].agg(set)
    lower = [name for name, measure in MEASURES.items() if measure.lower_is_better]
    sign = np.where(tests["metric"].isin(lower), -1, 1)
    difference = sign * (values("best") - values("other")) if len(tests) else np.empty(0)
    same = np.allclose(difference, tests["difference"], rtol=0, atol=1e-9, equal_nan=True)
    several = there[there.map(len) > 1]
    if not same or dict(several) != dict(tested["best"].combine(tested["other"], set.union)):
        raise ValueError(
            "metrics and tests are of different predictions: give what evaluate and compare "
            "return for the same predictions, checkpoints, min_contrast and pairs."
        )


def figure(intervals: pd.DataFrame) -> Figure:
    """Draw AUC on all questions against AUC on contrast sets, with 95 % intervals.

    The `intervals` are those of `compare`.
    """
    needed = [*BLOCK, "estimator", *MEASURE, "value", "lower_2_5pct", "upper_97_5pct"]
    check_table("intervals", intervals, needed, "the intervals that compare returns")
    named = {f"{kind}s": {v: v for v in intervals[kind]} for kind in [*PLACE, "estimator"]}
    return full_vs_contrast_figure(intervals, **named)
