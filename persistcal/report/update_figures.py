"""Figures of an update: each estimator's confidence at the first and at the last checkpoint."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from persistcal.evaluation.aligned import align
from persistcal.evaluation.predictions import AnswerArrays
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.report import curves, drawing
from persistcal.report.analysis_tables import chosen_rows
from persistcal.report.drawing import Look, Panel
from persistcal.report.latex import PLACE
from persistcal.report.layout import DisplayNames, Names, place_title
from persistcal.report.phrases import exact_percent

MOST_CURVES = 5  # estimators in a panel
_CERTIFIED: dict[str, Any] = {"facecolor": "#d8efe4", "linewidth": 0}
_ONE = "There is only one checkpoint, so nothing changed."
_DASHED = (0, (3, 2))  # lines of the first checkpoint
_COLOURS = {"gained": "#1a8f63", "lost": "#cf4436", "unchanged": "#8b8f98"}


class _Place(NamedTuple):
    """A model's answers to a dataset, at most five estimators, and both checkpoints' names."""

    title: str
    answers: AnswerArrays
    runs: Mapping[str, curves.Runs]
    ends: tuple[str, str]


def _choose(
    predictions: pd.DataFrame,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> tuple[list[_Place], dict[str, Look]]:
    """Return the places with two checkpoints, and the looks of their estimators."""
    places = []
    for place, group in chosen_rows(predictions, only).groupby(PLACE, sort=False):
        model, dataset = map(str, place)
        names = checkpoints[model]
        if len(names) < 2:
            continue
        answers = align(group, list(names)).answers
        runs: dict[str, curves.Runs] = {}
        for member in sorted(answers.estimators, key=lambda member: member[0] != dataset):
            runs.setdefault(member[1], answers.estimators[member])
        drawn = drawing.in_legend_order(set(runs), labels["estimators"])[:MOST_CURVES]
        first, *_, last = names.values()
        kept_runs = {name: runs[name] for name in drawn}
        places.append(_Place(place_title(place, labels), answers, kept_runs, (first, last)))
    return places, drawing.looks(chain.from_iterable(place.runs for place in places))


def _line(k: int, style: Look | None = None, **look: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the look of a line: dashed at the first checkpoint, solid at the last one."""
    end = {"linestyle": "solid"} if k else {"linestyle": _DASHED, "alpha": 0.8}
    return {"color": style.light if style else drawing.GRAY, "linewidth": 1.5, **end, **look}


def _end_handles(places: Iterable[_Place]) -> list[Line2D]:
    """Return the legend's entries of both checkpoints, with their names if all share them."""
    titles = {place.ends for place in places}
    ends = next(iter(titles)) if len(titles) == 1 else ("first checkpoint", "last checkpoint")
    return [Line2D([], [], label=name, **_line(k)) for k, name in enumerate(ends)]


def _draw_by_estimator(
    draw: Callable[[AnswerArrays, curves.Runs, Look, Axes], None],
    chosen: tuple[Sequence[_Place], Mapping[str, Look]],
    labels: DisplayNames,
    *,
    x_label: str,
    y_label: str = "",
    handles: Sequence[Any],
) -> Figure:
    """Return a figure with a row per model and dataset, and a panel per estimator."""
    places, styles = chosen
    rows = []
    for place in places:
        row: list[Panel] = []
        for name, runs in place.runs.items():
            title, is_first = labels["estimators"].get(name, name), not row
            if is_first and len(places) > 1:
                title = f"{place.title}\n{title}"
            drawn = partial(draw, place.answers, runs, styles[name])
            row.append(Panel(drawn, title, x_label, y_label * is_first))
        rows.append(row)
    return drawing.draw_panels(
        rows,
        width=2.4,
        height=2.3,
        handles=handles if rows else (),
        share_x=True,
        share_y="row",
        reason=_ONE,
    )


def reliability_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> Figure:
    """Draw the reliability of the first and the last checkpoint in one panel per estimator.

    Is an answer right as often as its confidence says? Accuracy about each confidence, smoothed
    as in SmoothECE, mean over seeds. Dashed: a model's first evaluation checkpoint; solid: its
    last one, with a 95 % band. On the diagonal, confidence is calibrated. At most five
    estimators are drawn.
    """

    def draw(answers: AnswerArrays, runs: curves.Runs, style: Look, axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], **drawing.REFERENCE)
        for k in (0, -1):
            rated = answers.rate(k, runs)
            _, points = curves.reliability_curve(rated)
            x, y, low, high = points.T
            axes.plot(x, y, **_line(k, style))
            if k:
                axes.fill_between(x, low, high, color=style.light, alpha=0.15, lw=0)
        axes.set(xlim=(0, 1), ylim=(0, 1))

    chosen = _choose(predictions, checkpoints, labels, only)
    words = {"x_label": "Confidence", "y_label": "Share of right answers"}
    return _draw_by_estimator(draw, chosen, labels, **words, handles=_end_handles(chosen[0]))


def threshold_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
    threshold: Mapping[str, float],
) -> Figure:
    """Draw precision and coverage of the first and the last checkpoint against the threshold.

    What each threshold gives: the share of right answers among those at or above it (precision,
    thick) and the share of questions that are answered (coverage, thin), means over seeds.
    Dashed: a model's first evaluation checkpoint; solid: its last one. Vertical: the thresholds
    that the first checkpoint selects. Shaded: thresholds that the labels of the last checkpoint
    certify, by Learn then Test. At most five estimators are drawn.

    `threshold` has `precision` and `delta`.
    """
    settings = EvaluationSettings(precision=threshold["precision"], delta=threshold["delta"])

    def draw(answers: AnswerArrays, runs: curves.Runs, style: Look, axes: Axes) -> None:
        last = len(answers.checkpoints) - 1
        for low, high in curves.certified_ranges(answers, runs, last, settings):
            axes.axvspan(low, max(high, low + 0.005), zorder=0, **_CERTIFIED)
        axes.axhline(settings.precision, **drawing.REFERENCE)
        for cut in curves.selected_thresholds(answers, runs, (0, last), settings):
            axes.axvline(cut, color="black", linewidth=0.9)
        for k in (0, last):
            cuts, precision, coverage = curves.threshold_curve(answers.rate(k, runs)).T
            axes.plot(cuts, precision, **_line(k, style))
            axes.plot(cuts, coverage, **_line(k, style, linewidth=0.7))
        axes.set(xlim=(0, 1), ylim=(0, 1))

    chosen = _choose(predictions, checkpoints, labels, only)
    target = exact_percent(settings.precision)
    handles = [
        *_end_handles(chosen[0]),
        Line2D([], [], label="precision (right answers)", **_line(1)),
        Line2D([], [], label="coverage (answered questions)", **_line(1, linewidth=0.7)),
        Line2D([], [], label="threshold of the first checkpoint", color="black", linewidth=0.9),
        Patch(label=f"certified for {target} at the last checkpoint", **_CERTIFIED),
    ]
    words = {"x_label": "Threshold", "y_label": "Share"}
    return _draw_by_estimator(draw, chosen, labels, **words, handles=handles)


def shifts_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> Figure:
    """Draw histograms of confidence at both checkpoints: gained, lost and unchanged questions.

    Did confidence move the right way? Confidence at a model's first evaluation checkpoint
    (dashed) and at its last one (filled), in questions that were gained, lost or unchanged.
    Confidence that follows knowledge moves to the right in gained and to the left in lost
    questions. At most five estimators are drawn.
    """

    def draw(answers: AnswerArrays, runs: curves.Runs, _: Look, axes: Axes) -> None:
        edges, names = np.arange(curves.N_BINS + 1) / curves.N_BINS, []
        histograms = curves.shifts(runs, answers.correct, 0, len(answers.checkpoints) - 1)
        for base, (kind, ends) in enumerate(reversed(histograms.items())):
            before, after = (base + 0.85 * end / max(1.0, *map(np.max, ends)) for end in ends)
            look: dict[str, Any] = {"color": _COLOURS[kind], "alpha": 0.6}
            axes.stairs(after, edges, baseline=base, fill=True, **look)
            outline: dict[str, Any] = {"color": "black", "linewidth": 0.9}
            axes.stairs(before, edges, baseline=base, linestyle=_DASHED, **outline)
            axes.axhline(base, color=drawing.GRAY, linewidth=0.6)
            names.append(f"{kind}\n{round(ends[1].sum()):,}")
        axes.set_yticks([base + 0.4 for base in range(len(names))], names)
        axes.tick_params(axis="y", length=0, labelleft=True)
        axes.grid(visible=False, axis="y")
        axes.set(xlim=(0, 1), ylim=(0, len(names)))

    chosen = _choose(predictions, checkpoints, labels, only)
    first, last = _end_handles(chosen[0])
    filled = Patch(label=last.get_label(), facecolor=drawing.GRAY, alpha=0.6)
    return _draw_by_estimator(
        draw, chosen, labels, x_label="Confidence", handles=[first, filled]
    )


def label_curve_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
    threshold: Mapping[str, float],
) -> Figure:
    """Draw how many labels of the last checkpoint certify a threshold, and its coverage.

    How many labelled answers of a model's last evaluation checkpoint certify a threshold: the
    share of random sheets of each size that certify one, and the median share of questions that
    it answers. An estimator's first seed; at most five estimators are drawn.

    Each point belongs to 50 random sheets of labels. The median coverage is drawn if at least
    half of the sheets certify a threshold.
    """
    settings = EvaluationSettings(precision=threshold["precision"], delta=threshold["delta"])
    places, styles = _choose(predictions, checkpoints, labels, only)

    def draw(measured: Mapping[str, pd.DataFrame], column: str, axes: Axes) -> None:
        for name, curve in measured.items():
            shown = curve if column == "certified" else curve[curve["certified"] >= 0.5]
            look = drawing.line_look(styles[name])
            axes.plot(shown["n_labels"], shown[column], markersize=4, linewidth=1, **look)
        sizes = next(iter(measured.values()))["n_labels"]
        axes.set_xscale("log")
        axes.set_xticks(sizes, sizes, rotation=45)
        axes.set_xticks([], minor=True)
        axes.set(xlim=(sizes.min() * 0.9, sizes.max() * 1.1), ylim=(-0.02, 1.02))

    titles = {
        "certified": f"Sheets that certify {exact_percent(settings.precision)} precision",
        "coverage": "Coverage of the certified threshold",
    }
    rows = []
    for place in places:
        last = len(place.answers.checkpoints) - 1
        measured = {
            name: curves.label_curve(place.answers, runs, last, settings)
            for name, runs in place.runs.items()
        }
        x_label, y_labels = f"Labelled answers of {place.ends[1]}", [place.title, ""]
        rows.append(
            [
                Panel(partial(draw, measured, column), title, x_label, y_label)
                for (column, title), y_label in zip(titles.items(), y_labels, strict=True)
            ]
        )
    return drawing.draw_panels(
        rows,
        width=3.0,
        height=2.3,
        handles=drawing.legend_handles(styles, labels["estimators"], markersize=4),
        reason=_ONE,
    )


def risk_coverage_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> Figure:
    """Draw the risk–coverage curves of the first and the last checkpoint of each model.

    Share of wrong answers among the most confident ones (risk) over their share of all answers
    (coverage), means over seeds. Dashed: a model's first evaluation checkpoint; solid: its last
    one. Lower is better. At most five estimators are drawn.

    The risk at coverage k / n is the share of wrong answers among the k most confident of n
    answers, its expectation if confidences are equal, and the mean over seeds. `only` names the
    estimators to draw: the first five if there are more, of all if none has a row.
    """
    places, styles = _choose(predictions, checkpoints, labels, only)

    def draw(place: _Place, axes: Axes) -> None:
        for k in (0, -1):
            for name, runs in place.runs.items():
                coverage, risk = curves.mean_curve(place.answers.rate(k, runs)).T
                axes.plot(coverage, risk, **_line(k, styles[name]))
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)

    panels = [
        Panel(
            partial(draw, place),
            place.title,
            "Coverage",
            "" if number % 3 else "Risk (share of wrong answers)",
        )
        for number, place in enumerate(places)
    ]
    handles = drawing.legend_handles(styles, labels["estimators"], marker="", linestyle="-")
    return drawing.draw_panels(
        [panels[start : start + 3] for start in range(0, len(panels), 3)],
        width=2.9,
        height=2.5,
        handles=[*handles, *_end_handles(places)] if places else (),
        reason=_ONE,
    )
