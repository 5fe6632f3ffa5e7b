"""Figures of a study: accuracy, metrics, distance, states and kinds of change."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle, product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from persistcal.evaluation.metrics.registry import METRICS
from persistcal.report import drawing
from persistcal.report.analysis_tables import (
    CHANGE_METRICS,
    OF_KNOWLEDGE_ENDS,
    chosen_rows,
    with_wider_intervals,
)
from persistcal.report.drawing import Panel
from persistcal.report.latex import ENDS, PLACE, PLACES
from persistcal.report.layout import DisplayNames, Names, pair_title, place_title
from persistcal.report.tables import (
    STATES_METRICS,
    UNITS,
    Described,
    checkpoint_rows,
    mean_rows,
)

EARLIER, EVALUATION = "#D81B60", "#1E88E5"  # the paper's colours
_MOST_DRAWN = 7  # estimators in the figure of states; more are hard to distinguish
_NO_ESTIMATOR = drawing.Look("", drawing.GRAY, drawing.GRAY, "circle", (), 0)
# Follows nothing, yet its contrast AUC is the share of gained questions
BASELINE = "end_correct"
# Panels: the measure, its title, and its value for confidence that follows nothing
_FOLLOWS, _CONTRAST = ("contrast", "delta0_balanced"), ("contrast", "auc")
_MEASURES = (
    (_FOLLOWS, "Δ₀ᵇ", 0.0),
    (_CONTRAST, "Contrast-set AUC", 0.5),
    (("full", "auc"), "Full-set AUC", 0.5),
)


def accuracy_figure(
    accuracies: pd.DataFrame,
    *,
    described: Described,
    evaluation: Mapping[str, Sequence[str]],
    models: Names,
    datasets: Names,
) -> Figure:
    """Draw accuracy over training with 95 % intervals: a panel per model, a line per dataset.

    Accuracy on the test questions over training. Estimators may learn from the training
    checkpoints and are evaluated on the evaluation checkpoints.

    `evaluation` maps each model to its evaluation checkpoints; the others are training
    checkpoints.
    """

    def draw(rows: pd.DataFrame, evaluated: Sequence[str], axes: Axes) -> None:
        places = _along_training(axes, rows)
        lines = rows.groupby("dataset", sort=False)
        for marker, (dataset, line) in zip(cycle(drawing.MARKERS), lines, strict=False):
            x = [places[checkpoint] for checkpoint in line["checkpoint"]]
            y = 100 * line["accuracy"]
            axes.plot(x, y, color=drawing.GRAY, linewidth=0.9, zorder=2)
            role = np.where(line["checkpoint"].isin(evaluated), EVALUATION, EARLIER)
            axes.scatter(x, y, c=role, marker=marker, s=22, linewidths=0, zorder=3)
            ends = 100 * line[ENDS]
            axes.vlines(x, *ends.to_numpy().T, color=drawing.GRAY, linewidth=0.7, zorder=2)
            axes.annotate(
                datasets.get(str(dataset), str(dataset)),
                (x[-1], y.iloc[-1]),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color="#333333",
                annotation_clip=False,
            )

    rows = checkpoint_rows(accuracies, described)
    panels = [
        Panel(
            partial(draw, rows[rows["model"] == name], evaluation[name]),
            models.get(name, name),
            y_label="" if number else "Accuracy (%)",
        )
        for number, name in enumerate(rows["model"].unique())
    ]
    roles = {"earlier checkpoint (training)": EARLIER, "evaluation checkpoint": EVALUATION}
    handles = [
        Line2D([], [], color=colour, marker="o", linestyle="", markersize=5, label=label)
        for label, colour in roles.items()
    ]
    return drawing.draw_panels([panels], width=2.9, height=2.6, handles=handles)


def _along_training(axes: Axes, rows: pd.DataFrame) -> dict[str, float]:
    """Return the x position of each checkpoint: tokens, or a number."""
    first = rows.drop_duplicates("checkpoint")
    if first["tokens"].isna().any():
        axes.set_xticks(range(len(first)), list(first["label"]))
        axes.set_xlabel("Checkpoint")
        return {
            checkpoint: float(place) for place, checkpoint in enumerate(first["checkpoint"])
        }
    largest = first["tokens"].max()
    unit, name = next(((10.0**u, n) for u, n in UNITS.items() if largest >= 10**u), (1.0, ""))
    axes.set_xlabel(f"Training data ({name} tokens)".replace("( ", "("))
    return dict(zip(first["checkpoint"], first["tokens"] / unit, strict=True))


def full_vs_contrast_figure(
    intervals: pd.DataFrame, *, models: Names, datasets: Names, estimators: Names
) -> Figure:
    """Draw the change AUC against the AUC on all questions, a point per estimator.

    How well the change of confidence separates gained from lost questions (change AUC), and how
    well confidence ranks right above wrong answers on all questions. A confidence that does not
    follow knowledge has a change AUC of 0.5, however good it is on all questions, if no answer
    flips by itself.

    Bars are 95 % bootstrap intervals. A panel is labelled "undefined" if no estimator has both
    values, for example because no contrast set is large enough.
    """
    defined = in_domain(intervals)
    full = defined.query("scope == 'full' and metric == 'auc'")
    contrast = defined.query("scope == 'contrast' and metric == 'change_auc'")
    key = ["model", "dataset", "estimator"]
    points = full.merge(contrast, on=key, suffixes=("_full", "_contrast"))
    styles = drawing.looks(drawing.in_legend_order(set(points["estimator"]), estimators))

    def draw(chosen: pd.DataFrame, axes: Axes) -> None:
        axes.axhline(0.5, **drawing.REFERENCE)
        axes.margins(y=0.14)  # room for the words
        axes.annotate(
            "chance, if no answer flips by itself",
            (1, 0.5),
            xycoords=("axes fraction", "data"),
            xytext=(0, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            color=drawing.GRAY,
            fontsize=7,
        )
        if chosen.empty:
            axes.text(0.5, 0.5, "undefined", transform=axes.transAxes, ha="center")
        for point in chosen.to_dict("records"):
            style = styles[point["estimator"]]
            x, y = point["value_full"], point["value_contrast"]
            across, along = (
                [point[f"{end}_{s}"] for end in ENDS] for s in ("full", "contrast")
            )
            for segment in ((across, [y, y]), ([x, x], along)):
                axes.plot(*segment, color=style.light, linewidth=0.9, alpha=0.7, zorder=2)
            drawing.draw_marker(axes, x, y, style, size=24)

    columns = [model for model in models if model in set(points["model"])] or list(models)
    rows = [d for d in datasets if d in set(points["dataset"])] or list(datasets)
    panels = [
        [
            Panel(
                partial(
                    draw, points[(points["model"] == model) & (points["dataset"] == dataset)]
                ),
                f"{models[model]}, {datasets[dataset]}",
                "AUC on all questions" if dataset == rows[-1] else "",
                "Change AUC" if model == columns[0] else "",
            )
            for model in columns
        ]
        for dataset in rows
    ]
    return drawing.draw_panels(
        panels,
        width=2.5,
        height=2.4,
        share_x=True,
        handles=drawing.legend_handles(styles, estimators, markersize=5, linestyle=""),
    )


def in_domain(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return the defined values, without fitted ones, of estimators trained in-domain."""
    return intervals[
        (intervals["conditioning"] == "odds")
        & (intervals["train_dataset"] == intervals["dataset"])
        & intervals["value"].notna()
    ]


def distance_figure(pairs: pd.DataFrame, *, models: Names, estimators: Names) -> Figure:
    """Draw metrics of change over the distance between checkpoints: a row of panels per model.

    How well estimators notice a change, over the distance of the two checkpoints of a pair:
    means over pairs of that distance, with one standard deviation to either side. Dashed:
    chance. For the contrast AUC, chance is the end-correct baseline.

    Means are over the datasets, too. Pairs that are not kept and estimators that were trained
    on another dataset are left out.
    """
    in_domain = pairs[(pairs["train_dataset"] == pairs["dataset"]) & pairs["kept"]]
    names = drawing.in_legend_order(set(in_domain["estimator"]), estimators)
    styles = drawing.looks(names)

    def draw(chosen: pd.DataFrame, metric: str, axes: Axes) -> None:
        if metric != "auc" or BASELINE not in styles:
            axes.axhline(CHANGE_METRICS[metric], **drawing.REFERENCE)
        for name, style in styles.items():
            of_name = chosen[chosen["estimator"] == name].groupby("distance")["value"]
            mean, spread = of_name.mean(), of_name.std()
            low, high = mean - spread, mean + spread
            axes.fill_between(mean.index, low, high, color=style.light, alpha=0.12, lw=0)
            look = drawing.line_look(style)
            axes.plot(mean.index, mean, markersize=3.5, linewidth=0.9, **look)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    titles = {"delta0_balanced": "Δ₀ᵇ", "change_auc": "Change AUC", "auc": "Contrast AUC"}
    groups = dict(list(in_domain.groupby(["model", "metric"])))
    panels = [
        [
            Panel(
                partial(draw, groups.get((model, metric), in_domain[:0]), metric),
                f"{models[model]}: {title}",
                "Checkpoints apart",
            )
            for metric, title in titles.items()
        ]
        for model in models
        if model in set(in_domain["model"])
    ]
    return drawing.draw_panels(
        panels,
        width=3.2,
        height=2.5,
        share_y=False,
        handles=drawing.legend_handles(styles, estimators, markersize=4, linewidth=0.9),
        reason="No contrast set is kept of what was trained on the evaluated dataset.",
    )


def intervals_figure(
    marks: pd.DataFrame,
    panels: Sequence[str],
    styles: Mapping[str, drawing.Look],
    *,
    handles: Sequence[Line2D],
    are_spread: bool = True,
) -> Figure:
    """Draw values with their intervals: a row of panels per place, and a line per `label`.

    `marks` has a row per value: its `place`, the `label` and the key `line` of its line, the
    `panel`, `estimator`, `value`, ENDS and `reference`. The estimators of a line are spread in
    the order of `styles`. Without a spread, each line is one estimator and has its colour.
    """
    names = [*styles] if are_spread else []

    def draw(shown: pd.DataFrame, labels: Mapping[Any, str], axes: Axes) -> None:
        positions = {line: position for position, line in enumerate(labels)}
        references = shown.drop_duplicates("line")
        middles = references["line"].map(positions).to_numpy(float)
        segments = np.add.outer(middles, [-0.5, 0.5, np.nan]).ravel()
        axes.plot(np.repeat(references["reference"], 3), segments, **drawing.REFERENCE)
        for mark in shown.dropna(subset=["value"]).to_dict("records"):
            name, y = mark["estimator"], float(positions[mark["line"]])
            if name in names:
                y += 0.8 * (names.index(name) - (len(names) - 1) / 2) / len(names)
            style = styles.get(name, _NO_ESTIMATOR)
            axes.plot([mark[end] for end in ENDS], [y, y], color=style.light, linewidth=1.0)
            drawing.draw_marker(axes, mark["value"], y, style, size=20)
        for edge in range(1, len(labels)) if are_spread else ():
            axes.axhline(edge - 0.5, color="#d0d0d0", linewidth=0.6, zorder=0)
        axes.grid(visible=False, axis="y")
        axes.set_yticks(range(len(labels)), list(labels.values()))
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        for tick, line in zip(axes.get_yticklabels(), labels, strict=False):
            tick.set_color("black" if are_spread else styles[line].light)

    rows, heights = [], []
    for place, group in marks.groupby("place", sort=False):
        labels = dict(zip(group["line"], group["label"], strict=True))
        heights.append(0.6 + len(labels) * (0.1 + 0.08 * max(1, len(names))))
        drawn = [partial(draw, group[group["panel"] == panel], labels) for panel in panels]
        titles = [str(place), *[""] * len(panels)]
        rows.append([Panel(*words) for words in zip(drawn, titles, panels, strict=False)])
    return drawing.draw_panels(
        rows,
        width=2.6,
        height=heights,
        share_x="col",
        share_y="row",
        handles=handles,
        reason="No two checkpoints answered a question in common.",
    )


def leaderboard_figure(
    intervals: pd.DataFrame, *, leaderboard: Names, models: Names, own_datasets: Names
) -> Figure:
    """Draw Δ₀ᵇ, contrast-set AUC and full-set AUC next to each other, with 95 % intervals.

    Every kind of confidence, the one that follows knowledge best on top: Δ₀ᵇ and AUC on
    questions whose correctness changes between checkpoints (contrast sets), and AUC on all
    questions (full set). Bars are 95 % bootstrap intervals of single estimators: the table of
    the same name marks those that cannot be distinguished from the best. Colours are families;
    on the dashed lines, confidence follows nothing, which for the contrast-set AUC is the
    end-correct baseline.

    Estimators without a Δ₀ᵇ are last, and those that were trained on another dataset are left
    out. Without the end-correct baseline, the reference of the contrast-set AUC is .5.
    """
    groups = {tuple(place): rows for place, rows in in_domain(intervals).groupby(PLACE)}
    marks = list[dict[Any, Any]]()
    for place in [place for place in product(models, own_datasets) if place in groups]:
        measured = {
            (row["estimator"], row["scope"], row["metric"]): row
            for row in groups[place].to_dict("records")
        }

        def follows(name: str, of: Mapping[Any, Any] = measured) -> float:
            return of[name, *_FOLLOWS]["value"] if (name, *_FOLLOWS) in of else -2.0

        title = f"{models[place[0]]}, {own_datasets[place[1]]}"
        for name in sorted(leaderboard, key=follows, reverse=True):
            for measure, panel, usual in _MEASURES:
                if mark := measured.get((name, *measure)):
                    baseline = measured.get((BASELINE, *_CONTRAST))
                    chance = baseline["value"] if baseline and measure == _CONTRAST else usual
                    words = {"line": name, "label": leaderboard[name], "panel": panel}
                    marks.append({**mark, **words, "place": title, "reference": chance})
    if not marks:
        raise ValueError("no estimator has a value on any of the study's datasets")
    drawn = {mark["estimator"] for mark in marks}
    styles = drawing.looks([name for name in leaderboard if name in drawn])
    # Only families of several estimators are named.
    colours = {look.family: look.light for look in styles.values() if look.variant}
    handles = [
        Line2D([], [], color=colour, linewidth=3, label=drawing.FAMILY_TITLES.get(name, name))
        for name, colour in colours.items()
    ]
    panels = [panel for _, panel, _ in _MEASURES]
    return intervals_figure(
        pd.DataFrame(marks), panels, styles, handles=handles, are_spread=False
    )


def states_figure(
    compared: pd.DataFrame,
    *,
    checkpoints: DisplayNames,
    labels: DisplayNames,
    only: Sequence[str],
) -> Figure:
    """Draw the differences of each pair of checkpoints: a row of panels per model and dataset.

    Differences between two checkpoints of a model, or the last ones of two models, on the
    questions that both answered: accuracy, and AUC, Brier score and SmoothECE of each estimator
    on all questions. Bars are 95 % intervals. Dashed: no difference.

    The figure shows the first seven of the estimators `only`, or of all if none of them occurs.
    """
    rows = mean_rows(compared)
    of_estimators = chosen_rows(rows[rows["estimator"] != ""], only)
    names = drawing.in_legend_order(set(of_estimators["estimator"]), labels["estimators"])
    styles = _distinct_looks(names[:_MOST_DRAWN])
    panels = {
        metric: f"Difference of {METRICS[metric].heading if metric in METRICS else 'Accuracy'}"
        for metric in STATES_METRICS
    }
    rows = rows[rows["estimator"].isin(["", *styles])]
    marks = rows.assign(
        place=[place_title(place, labels) for place in rows[PLACES].to_numpy()],
        line=rows["earlier"] + "\0" + rows["later"],
        label=[pair_title(row, checkpoints) for row in rows.to_dict("records")],
        panel=rows["metric"].map(panels),
        value=rows["difference"],
        reference=0.0,
    )
    handles = drawing.legend_handles(styles, labels["estimators"], markersize=5, linestyle="")
    return intervals_figure(marks, [*panels.values()], styles, handles=handles)


def _distinct_looks(names: Sequence[str]) -> dict[str, drawing.Look]:
    """Return looks with distinct markers, for print; families can share a marker."""
    distinct: dict[str, drawing.Look] = {}
    for name, look in drawing.looks(names).items():
        taken = {used.marker for used in distinct.values()}
        free = [marker for marker in drawing.MATPLOTLIB_MARKERS if marker not in taken]
        marker = look.marker if look.marker in free or not free else free[0]
        distinct[name] = look._replace(marker=marker)
    return distinct


def changes_figure(
    measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames
) -> Figure:
    """Draw metrics of each kind of change: a line per change, a marker per estimator.

    Whether confidence follows each kind of change: Δ₀ᵇ and AUC on the questions whose
    correctness it changes, those that the later checkpoints gained (+) and lost (−). Bars are
    95 % intervals over questions, and over seeds where an estimator has them. Dashed:
    confidence that follows nothing; for the contrast AUC, the end-correct baseline.

    For an estimator that was trained on several datasets, the first is drawn. On one pair, the
    contrast AUC of the end-correct baseline is the share of gained questions.
    """
    rows = with_wider_intervals(measured, only)
    rows = rows.drop_duplicates([*PLACE, "change", "estimator", "metric"])
    gained, lost = rows["improvement"], rows["regression"]
    of_end_correct = (gained / (gained + lost)).where(rows["n_pairs"] == 1)
    rows = rows.assign(
        place=[place_title(place, labels) for place in rows[PLACE].to_numpy()],
        line=rows["change"],
        label=[
            f"{name}\n+{n} −{m}"
            for name, n, m in zip(rows["change"], gained, lost, strict=True)
        ],
        panel="Contrast-set " + rows["metric"].map(lambda metric: METRICS[metric].heading),
        reference=of_end_correct.where(
            rows["metric"] == "auc", rows["metric"].map(CHANGE_METRICS)
        ),
    )
    drawn = [f"Contrast-set {METRICS[metric].heading}" for metric in CHANGE_METRICS]
    if rows["of_knowledge"].notna().any():
        drawn.append("Δ_K, beyond chance flips")
        moved = rows[rows["metric"] == "delta0_balanced"].drop(columns=["value", *ENDS])
        names = dict(zip(["of_knowledge", *OF_KNOWLEDGE_ENDS], ["value", *ENDS], strict=True))
        rows = pd.concat([rows, moved.rename(columns=names).assign(panel=drawn[-1])])
    styles = _distinct_looks(
        drawing.in_legend_order(set(rows["estimator"]), labels["estimators"])
    )
    handles = drawing.legend_handles(styles, labels["estimators"], markersize=5, linestyle="")
    return intervals_figure(rows, drawn, styles, handles=handles)
