"""Thresholds as a release gate, as a table and as a figure."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.aligned import align
from persistcal.evaluation.findings import threshold_finding
from persistcal.report import curves, drawing, latex
from persistcal.report.analysis_tables import chosen_rows, trained_name
from persistcal.report.latex import MISSING, PLACE, Printed, escape
from persistcal.report.layout import DisplayNames, Names, place_title
from persistcal.report.phrases import (
    answer_to,
    exact_percent,
    possible_errors,
    reached,
    threshold_range,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CURVES = 5  # estimators in a panel


def thresholds(
    checked: pd.DataFrame,
    *,
    only: Sequence[str],
    checkpoints: DisplayNames,
    labels: DisplayNames,
) -> Printed:
    """Print the threshold of each estimator and pair of checkpoints, with its verdict.

    `only` names the estimators to show. Values over several seeds are ranges.
    """
    rows = chosen_rows(checked, only)
    heads = ["Checkpoints", "Estimator", "Threshold", "Precision", "Coverage", "Verdict"]
    heads.append("Lost")
    groups = latex.nested(
        rows,
        lambda seeds: _cells(seeds, checkpoints, labels),
        ["earlier", "later"],
        span=len(heads),
        labels=labels,
    )
    target = exact_percent(rows["target"].iloc[0]) if len(rows) else "the target"
    caption = (
        f"Thresholds with a precision of at least {target} on the earlier checkpoint "
        "(Learn then Test), and what they reach on the later one: precision with an exact 95 % "
        "interval, coverage before and after, verdict (one-sided 5 %), and confident answers "
        "that were right and are wrong now. Ranges are over seeds. "
        f"{' '.join(possible_errors(rows['verdict']))}"
    ).replace("%", r"\%")
    body = latex.tabular("llccccr", [latex.line(heads)], groups)
    return Printed(latex.floating(body, caption=caption, label="thresholds", shrink=True), rows)


def _cells(
    rows: list[dict[Hashable, Any]], checkpoints: DisplayNames, labels: DisplayNames
) -> tuple[list[str], list[str]]:
    """Return the cells of one estimator on one pair of checkpoints."""
    names = checkpoints.get(rows[0]["model"], {})
    ends = (rows[0][end] for end in ("earlier", "later"))
    pair = [escape(" → ".join(names.get(end, end) for end in ends))]
    name = escape(trained_name(rows[0], labels))
    found = threshold_finding(rows)
    lost = sorted(map(int, found.evidence["confident_regressions"]))
    if not lost:
        return pair, [name, *[MISSING] * 3, "no threshold", MISSING]
    coverage = (threshold_range(found, f"{end}_coverage") for end in ("earlier", "later"))
    return pair, [
        name,
        threshold_range(found, "threshold"),
        escape(reached(found)),
        r" $\to$ ".join(coverage),
        answer_to(found).word,
        "–".join(map(str, dict.fromkeys([lost[0], lost[-1]]))),
    ]


@drawing.house_style()
def risk_coverage_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> "Figure":
    """Draw the risk–coverage curves of the first and the last checkpoint of each model.

    The risk at coverage k / n is the share of wrong answers among the k most confident of n
    answers, its expectation if confidences are equal, and the mean over seeds. `only` names the
    estimators to draw: the first five if there are more, of all if none has a row.
    """
    from matplotlib.lines import Line2D

    rows = chosen_rows(predictions, only)
    drawn = drawing.in_legend_order(set(rows["estimator"]), labels["estimators"])[:MOST_CURVES]
    styles = drawing.looks(drawn)
    places = list(rows.groupby(PLACE, sort=False))
    n_columns = min(3, len(places))
    figure, panels = drawing.grid(
        -(-len(places) // n_columns), n_columns, width=2.9, height=2.5
    )
    axes_in_order = [axes for row in panels for axes in row]
    for axes, (place, group) in zip(axes_in_order, places, strict=False):
        names = list(checkpoints[str(place[0])])
        for end, width, alpha in ((names[0], 0.9, 0.6), (names[-1], 1.7, 1.0)):
            at_end = group[group["checkpoint"] == end]
            for name in drawn:
                coverage, risk = _mean_curve(at_end[at_end["estimator"] == name])
                color = drawing.line_look(styles[name])["color"]
                style = "-" if end == names[-1] else "--"
                axes.plot(coverage, risk, style, color=color, linewidth=width, alpha=alpha)
        axes.set_title(place_title(place, labels), loc="left")
        axes.set_xlabel("Coverage")
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
    for axes in axes_in_order[len(places) :]:
        axes.set_visible(False)
    for row in panels:
        row[0].set_ylabel("Risk (share of wrong answers)")
    handles = drawing.legend_handles(styles, labels["estimators"], marker="", linestyle="-")
    ends = [f"{end} checkpoint" for end in ("first", "last")]
    if len(checkpoints) == 1:
        [names] = ([*named.values()] for named in checkpoints.values())
        ends = [f"{end}: {name}" for end, name in zip(ends, (names[0], names[-1]), strict=True)]
    handles += [
        Line2D([], [], color=drawing.GRAY, linestyle="--", linewidth=0.9, label=ends[0]),
        Line2D([], [], color=drawing.GRAY, linestyle="-", linewidth=1.7, label=ends[1]),
    ]
    drawing.add_legend(figure, handles, columns=2 * n_columns)
    return figure


def _mean_curve(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coverages and mean risks over the runs of one estimator at one checkpoint."""
    if rows.empty:
        return np.empty(0), np.empty(0)
    answers = align(rows, [str(rows["checkpoint"].iloc[0])]).answers
    runs = [run[0] for run in answers.confidence.values()]
    return curves.mean_curve(runs, answers.correct[0])
