"""Figures of an update: each estimator's confidence at the first and at the last checkpoint."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from persistcal.evaluation.aligned import align
from persistcal.evaluation.predictions import ABSENT, AnswerArrays
from persistcal.evaluation.reliability import bootstrap_counts
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.report import curves, drawing
from persistcal.report.analysis_tables import chosen_rows
from persistcal.report.latex import PLACE
from persistcal.report.layout import DisplayNames, Names, place_title
from persistcal.report.phrases import exact_percent

N_REPLICATES = 200  # bootstrap replicates of a band
MOST_CURVES = 5  # estimators in a panel
_CERTIFIED: dict[str, Any] = {"facecolor": "#d8efe4", "linewidth": 0}
_ONE = "There is only one checkpoint, so nothing changed."
_DASHED = (0, (3, 2))  # lines of the first checkpoint
_COLOURS = {"gained": "#1a8f63", "lost": "#cf4436", "unchanged": "#8b8f98"}


class _Panel(NamedTuple):
    """An estimator on one model and dataset, with the names of both checkpoints."""

    axes: Axes
    answers: AnswerArrays
    runs: curves.Runs
    style: drawing.Look
    ends: tuple[str, str]


class _Chosen(NamedTuple):
    """The estimators to draw of one model and dataset, at most five."""

    title: str
    answers: AnswerArrays
    runs: Mapping[str, curves.Runs]
    ends: tuple[str, str]


def _choose(
    predictions: pd.DataFrame,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> list[_Chosen]:
    chosen = []
    rows = chosen_rows(predictions, only)
    for place, group in rows.groupby(PLACE, sort=False):
        model, dataset = map(str, place)
        names = checkpoints[model]
        if len(names) < 2:
            continue
        answers = align(group, list(names)).answers
        trained = sorted(answers.estimators, key=lambda member: member[0] != dataset)
        runs: dict[str, curves.Runs] = {}
        for member in trained:
            runs.setdefault(member[1], answers.estimators[member])
        drawn = drawing.in_legend_order(set(runs), labels["estimators"])[:MOST_CURVES]
        first, *_, last = names.values()
        shown = {name: runs[name] for name in drawn}
        title = place_title((model, dataset), labels)
        chosen.append(_Chosen(title, answers, shown, (first, last)))
    return chosen


def _panels(
    predictions: pd.DataFrame,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> tuple[Figure, list[_Panel]]:
    """Return a figure with a row per model and dataset, and a panel per estimator."""
    chosen = _choose(predictions, checkpoints, labels, only)
    if not chosen:
        return drawing.only_text(_ONE), []
    names = list(dict.fromkeys(chain.from_iterable(one.runs for one in chosen)))
    styles = drawing.looks(names)
    n_columns = max(len(one.runs) for one in chosen)
    figure, grid = drawing.grid(
        len(chosen), n_columns, width=2.4, height=2.3, share_x=True, share_y="row"
    )
    panels = []
    for line, one in zip(grid, chosen, strict=True):
        for axes, (name, runs) in zip(line, one.runs.items(), strict=False):
            title = labels["estimators"].get(name, name)
            is_named = len(chosen) > 1 and axes is line[0]
            axes.set_title(f"{one.title}\n{title}" if is_named else title, loc="left")
            axes.set_xlim(0, 1)
            panels.append(_Panel(axes, one.answers, runs, styles[name], one.ends))
        for axes in line[len(one.runs) :]:
            axes.set_visible(False)
    return figure, panels


def _line(panel: _Panel, k: int, **look: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the look of a line: dashed at the first checkpoint, solid at the last one."""
    style = {"linestyle": "solid"} if k else {"linestyle": _DASHED, "alpha": 0.8}
    return {"color": panel.style.light, "linewidth": 1.5, **style, **look}


def _end_handles(panels: Sequence[_Panel]) -> list[Artist]:
    """Return the legend's entries of both checkpoints, with their names if all share them."""
    named = {panel.ends for panel in panels}
    ends = next(iter(named)) if len(named) == 1 else ("first checkpoint", "last checkpoint")
    look: dict[str, Any] = {"color": drawing.GRAY, "linewidth": 1.5}
    return [
        Line2D([], [], label=ends[0], linestyle=_DASHED, **look),
        Line2D([], [], label=ends[1], **look),
    ]


@drawing.house_style()
def reliability_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> Figure:
    """Draw the reliability of the first and the last checkpoint in one panel per estimator.

    Accuracy is smoothed as in SmoothECE. The last checkpoint has a 95 % bootstrap band.
    """
    figure, panels = _panels(predictions, checkpoints, labels, only)
    if not panels:
        return figure
    for panel in panels:
        panel.axes.plot(
            [0, 1], [0, 1], color=drawing.GRAY, linewidth=0.7, linestyle=(0, (4, 3))
        )
        for k in (0, -1):
            correct = panel.answers.correct[k]
            known = correct != ABSENT
            groups = panel.answers.groups[known]
            counts = bootstrap_counts(groups, n_replicates=N_REPLICATES, seed=17)
            runs = [run[k, known] for run in panel.runs]
            _, points = curves.reliability_curve(runs, correct[known] == 1, counts)
            x, y, low, high = points.T
            panel.axes.plot(x, y, **_line(panel, k))
            if k:
                panel.axes.fill_between(x, low, high, color=panel.style.light, alpha=0.15, lw=0)
        panel.axes.set_ylim(0, 1)
        panel.axes.set_xlabel("Confidence")
    panels[0].axes.set_ylabel("Share of right answers")
    drawing.add_legend(figure, _end_handles(panels), columns=2)
    return figure


@drawing.house_style()
def threshold_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
    threshold: Mapping[str, float],
) -> Figure:
    """Draw precision and coverage of the first and the last checkpoint against the threshold.

    Vertical lines are the thresholds that the first checkpoint selects. Thresholds that the
    labels of the last checkpoint certify are shaded. `threshold` has `precision` and `delta`.
    """
    settings = EvaluationSettings(precision=threshold["precision"], delta=threshold["delta"])
    figure, panels = _panels(predictions, checkpoints, labels, only)
    if not panels:
        return figure
    for panel in panels:
        axes, answers, last = panel.axes, panel.answers, len(panel.answers.checkpoints) - 1
        certified = curves.certified_ranges(answers, panel.runs, last, settings)
        for low, high in certified:
            axes.axvspan(low, max(high, low + 0.005), zorder=0, **_CERTIFIED)
        drawing.draw_reference(axes, settings.precision)
        for cut in curves.selected_thresholds(answers, panel.runs, (0, last), settings):
            axes.axvline(cut, color="black", linewidth=0.9)
        for k in (0, last):
            cuts, precision, coverage = curves.threshold_curve(panel.runs, answers.correct, k).T
            axes.plot(cuts, precision, **_line(panel, k))
            axes.plot(cuts, coverage, **_line(panel, k, linewidth=0.7))
        axes.set_ylim(0, 1)
        axes.set_xlabel("Threshold")
    panels[0].axes.set_ylabel("Share")
    look: dict[str, Any] = {"color": drawing.GRAY}
    target = exact_percent(settings.precision)
    handles = [
        *_end_handles(panels),
        Line2D([], [], label="precision (right answers)", linewidth=1.5, **look),
        Line2D([], [], label="coverage (answered questions)", linewidth=0.7, **look),
        Line2D([], [], label="threshold of the first checkpoint", color="black", linewidth=0.9),
        Patch(label=f"certified for {target} at the last checkpoint", **_CERTIFIED),
    ]
    drawing.add_legend(figure, handles, columns=2)
    return figure


@drawing.house_style()
def shifts_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> Figure:
    """Draw histograms of confidence at both checkpoints: gained, lost and unchanged questions.

    Confidence that follows knowledge moves right in gained and left in lost questions.
    """
    figure, panels = _panels(predictions, checkpoints, labels, only)
    if not panels:
        return figure
    edges = np.arange(curves.N_BINS + 1) / curves.N_BINS
    for panel in panels:
        last, names = len(panel.answers.checkpoints) - 1, []
        found = curves.shifts(panel.runs, panel.answers.correct, 0, last)
        for row, (kind, (before, after)) in enumerate(found.items()):
            base = len(found) - 1 - row
            most = max(1.0, before.max(), after.max())
            heights = base + 0.85 * after / most
            panel.axes.stairs(
                heights, edges, baseline=base, fill=True, color=_COLOURS[kind], alpha=0.6
            )
            heights = base + 0.85 * before / most
            outline: dict[str, Any] = {"color": "black", "linewidth": 0.9}
            panel.axes.stairs(heights, edges, baseline=base, linestyle=_DASHED, **outline)
            panel.axes.axhline(base, color=drawing.GRAY, linewidth=0.6)
            names.append(f"{kind}\n{round(after.sum()):,}")
        panel.axes.set_yticks([base + 0.4 for base in range(len(found))], names[::-1])
        panel.axes.tick_params(axis="y", length=0, labelleft=True)
        panel.axes.grid(visible=False, axis="y")
        panel.axes.set_ylim(0, len(found))
        panel.axes.set_xlabel("Confidence")
    first, last_name = _end_handles(panels)
    filled = Patch(label=last_name.get_label(), facecolor=drawing.GRAY, alpha=0.6)
    drawing.add_legend(figure, [first, filled], columns=2)
    return figure


@drawing.house_style()
def label_curve_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
    threshold: Mapping[str, float],
) -> Figure:
    """Draw how many labels of the last checkpoint certify a threshold, and its coverage.

    Lines belong to an estimator's first seed, and each point to 50 random sheets of labels. The
    median coverage is drawn if at least half of the sheets certify a threshold.
    """
    settings = EvaluationSettings(precision=threshold["precision"], delta=threshold["delta"])
    chosen = _choose(predictions, checkpoints, labels, only)
    if not chosen:
        return drawing.only_text(_ONE)
    names = list(dict.fromkeys(chain.from_iterable(one.runs for one in chosen)))
    styles = drawing.looks(names)
    figure, grid = drawing.grid(len(chosen), 2, width=3.0, height=2.3)
    heads = {
        "certified": f"Sheets that certify {exact_percent(settings.precision)} precision",
        "coverage": "Coverage of the certified threshold",
    }
    for line, one in zip(grid, chosen, strict=True):
        last = len(one.answers.checkpoints) - 1
        for name, runs in one.runs.items():
            curve = curves.label_curve(one.answers, runs, last, settings)
            usual = curve[curve["certified"] >= 0.5]
            for axes, column, rows in zip(line, heads, (curve, usual), strict=True):
                look = drawing.line_look(styles[name])
                axes.plot(rows["n_labels"], rows[column], markersize=4, linewidth=1, **look)
        for axes, head in zip(line, heads.values(), strict=True):
            axes.set_xscale("log")
            axes.set_xticks(curve["n_labels"], curve["n_labels"], rotation=45)
            axes.set_xticks([], minor=True)
            axes.set_xlim(curve["n_labels"].min() * 0.9, curve["n_labels"].max() * 1.1)
            axes.set_ylim(-0.02, 1.02)
            axes.set_title(head, loc="left")
            axes.set_xlabel(f"Labelled answers of {one.ends[1]}")
        line[0].set_ylabel(one.title if len(chosen) > 1 else "Share")
    handles = drawing.legend_handles(styles, labels["estimators"], markersize=4)
    drawing.add_legend(figure, handles, columns=3)
    return figure


@drawing.house_style()
def risk_coverage_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> Figure:
    """Draw the risk–coverage curves of the first and the last checkpoint of each model.

    The risk at coverage k / n is the share of wrong answers among the k most confident of n
    answers, its expectation if confidences are equal, and the mean over seeds. `only` names the
    estimators to draw: the first five if there are more, of all if none has a row.
    """
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
                rows_of_name = at_end[at_end["estimator"] == name]
                if rows_of_name.empty:
                    continue
                answers = align(rows_of_name, [end]).answers
                runs = [run[0] for run in answers.confidence.values()]
                coverage, risk = curves.mean_curve(runs, answers.correct[0])
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
