"""Figures of a study: accuracy, metrics, distance, states and kinds of change."""

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import cycle
from typing import Any

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
    with_wider_intervals,
)
from persistcal.report.latex import ENDS, PAIR, PLACE
from persistcal.report.layout import DisplayNames, Names, place_title
from persistcal.report.tables import (
    STATES_METRICS,
    STATES_PLACE,
    UNITS,
    Described,
    checkpoint_rows,
    mean_rows,
    pair_title,
)

EARLIER, EVALUATION = "#D81B60", "#1E88E5"  # the paper's colours
_MOST_DRAWN = 7  # estimators in the figure of states; more are hard to distinguish

# Panels: the measure, its title, and its value for confidence that follows nothing
_FOLLOWS = ("contrast", "delta0_balanced")
_CONTRAST = ("contrast", "auc")
BASELINE = (
    "end_correct"  # follows nothing, yet its contrast AUC is the share of gained questions
)
_PANELS = (
    (_FOLLOWS, "Δ₀ᵇ", 0.0),
    (_CONTRAST, "Contrast-set AUC", 0.5),
    (("full", "auc"), "Full-set AUC", 0.5),
)


@drawing.house_style()
def accuracy_figure(
    accuracies: pd.DataFrame,
    *,
    described: Described,
    evaluation: Mapping[str, Sequence[str]],
    models: Names,
    datasets: Names,
) -> Figure:
    """Draw accuracy over training with 95 % intervals: a panel per model, a line per dataset.

    `evaluation` maps each model to its evaluation checkpoints; the others are training
    checkpoints.
    """
    rows = checkpoint_rows(accuracies, described)
    names = list(dict.fromkeys(rows["model"]))
    figure, panels = drawing.grid(1, len(names), width=2.9, height=2.6)
    for name, axes in zip(names, panels[0], strict=True):
        of_model = rows[rows["model"] == name]
        places = _along_training(axes, of_model)
        lines = of_model.groupby("dataset", sort=False)
        for marker, (dataset, line) in zip(cycle(drawing.MARKERS), lines, strict=False):
            x = [places[checkpoint] for checkpoint in line["checkpoint"]]
            y = 100 * line["accuracy"]
            axes.plot(x, y, color=drawing.GRAY, linewidth=0.9, zorder=2)
            evaluated = line["checkpoint"].isin(evaluation[name])
            role = [EVALUATION if is_evaluated else EARLIER for is_evaluated in evaluated]
            axes.scatter(x, y, c=role, marker=marker, s=22, linewidths=0, zorder=3)
            ends = 100 * line[["lower_2_5pct", "upper_97_5pct"]]
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
        axes.set_title(models.get(name, name), loc="left")
    panels[0][0].set_ylabel("Accuracy (%)")
    roles = {"earlier checkpoint (training)": EARLIER, "evaluation checkpoint": EVALUATION}
    handles = [
        Line2D([], [], color=colour, marker="o", linestyle="", markersize=5, label=label)
        for label, colour in roles.items()
    ]
    drawing.add_legend(figure, handles, columns=2)
    return figure


def _along_training(axes: Axes, rows: pd.DataFrame) -> dict[str, float]:
    """Return the x position of each checkpoint: tokens, or a number."""
    tokens = dict(zip(rows["checkpoint"], rows["tokens"], strict=True))
    largest = max(tokens.values())
    if any(math.isnan(count) for count in tokens.values()):
        labels = dict(zip(rows["checkpoint"], rows["label"], strict=True))
        axes.set_xticks(range(len(labels)), list(labels.values()))
        axes.set_xlabel("Checkpoint")
        return {checkpoint: float(place) for place, checkpoint in enumerate(labels)}
    unit, name = next(((10.0**u, n) for u, n in UNITS.items() if largest >= 10**u), (1.0, ""))
    axes.set_xlabel(f"Training data ({name} tokens)".replace("( ", "("))
    return {checkpoint: count / unit for checkpoint, count in tokens.items()}


@drawing.house_style()
def full_vs_contrast_figure(
    intervals: pd.DataFrame, *, models: Names, datasets: Names, estimators: Names
) -> Figure:
    """Draw the change AUC against the AUC on all questions, a point per estimator.

    Without a second ask, the line of chance holds if no answer flips by itself. Bars are 95 %
    bootstrap intervals. A panel is labelled "undefined" if no estimator has both
    values, for example because no contrast set is large enough.
    """
    defined = in_domain(intervals)
    full = defined.query("scope == 'full' and metric == 'auc'")
    contrast = defined.query("scope == 'contrast' and metric == 'change_auc'")
    key = ["model", "dataset", "estimator"]
    points = full.merge(contrast, on=key, suffixes=("_full", "_contrast"))
    names = drawing.in_legend_order(set(points["estimator"]), estimators)
    styles = drawing.looks(names)
    columns = [model for model in models if model in set(points["model"])] or list(models)
    rows = [d for d in datasets if d in set(points["dataset"])] or list(datasets)
    figure, panels = drawing.grid(len(rows), len(columns), width=2.5, height=2.4, share_x=True)
    for line, dataset in zip(panels, rows, strict=True):
        for axes, model in zip(line, columns, strict=True):
            chosen = points[(points["model"] == model) & (points["dataset"] == dataset)]
            drawing.draw_reference(axes, 0.5)
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
                for scope, across in (("full", True), ("contrast", False)):
                    ends = [point[f"lower_2_5pct_{scope}"], point[f"upper_97_5pct_{scope}"]]
                    segment = (ends, [y, y]) if across else ([x, x], ends)
                    axes.plot(*segment, color=style.light, linewidth=0.9, alpha=0.7, zorder=2)
                drawing.draw_marker(axes, x, y, style, size=24)
            axes.set_title(f"{models[model]}, {datasets[dataset]}", loc="left")
        line[0].set_ylabel("Change AUC")
    for axes in panels[-1]:
        axes.set_xlabel("AUC on all questions")
    handles = drawing.legend_handles(styles, estimators, markersize=5, linestyle="")
    drawing.add_legend(figure, handles, columns=2 * len(columns))
    return figure


def in_domain(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return the defined values, without fitted ones, of estimators trained in-domain."""
    return intervals[
        (intervals["conditioning"] == "odds")
        & (intervals["train_dataset"] == intervals["dataset"])
        & intervals["value"].notna()
    ]


@drawing.house_style()
def leaderboard_figure(
    intervals: pd.DataFrame, *, leaderboard: Names, models: Names, own_datasets: Names
) -> Figure:
    """Draw Δ₀ᵇ, contrast-set AUC and full-set AUC next to each other, with 95 % intervals.

    A row per estimator of `leaderboard`, in order of Δ₀ᵇ, undefined ones last. Estimators that
    were trained on another dataset are left out. Colours are families. The reference of the
    contrast-set AUC is the end-correct baseline, or .5 if it was not evaluated.
    """
    defined = in_domain(intervals)
    rows = defined[defined["estimator"].isin(leaderboard)]
    groups = {tuple(map(str, place)): group for place, group in rows.groupby(PLACE)}
    places = [(m, d) for m in models for d in own_datasets if (m, d) in groups]
    if not places:
        raise ValueError("no estimator has a value on any of the study's datasets")
    evaluated = {name for place in places for name in groups[place]["estimator"]}
    styles = drawing.looks(drawing.in_legend_order(evaluated, leaderboard))
    ranked = []  # estimators that have a value, the highest Δ₀ᵇ first, undefined ones last
    for place in places:
        follows = {n: of[0] for n, of in _measured(groups[place], _FOLLOWS).items()}
        present = set(groups[place]["estimator"])
        order = {name: -follows.get(name, -2.0) for name in styles if name in present}
        ranked.append(sorted(order, key=order.__getitem__))
    heights = [0.19 * len(names) + 0.5 for names in ranked]
    figure = Figure(figsize=(8.4, sum(heights) + 0.5), layout="constrained")
    panels = figure.subplots(
        len(places), len(_PANELS), sharex="col", squeeze=False, height_ratios=heights
    )
    for line, place, names in zip(panels, places, ranked, strict=True):
        at_place = defined[(defined[PLACE] == list(place)).all(axis=1)]
        baseline = _measured(at_place, _CONTRAST).get(BASELINE)
        for axes, (measure, title, reference) in zip(line, _PANELS, strict=True):
            chance = baseline[0] if baseline and measure == _CONTRAST else reference
            drawing.draw_reference(axes, chance, upright=True)
            measured = _measured(groups[place], measure)
            for height, name in enumerate(names):
                if name in measured:
                    value, *ends = measured[name]
                    colour = styles[name].light
                    axes.plot(ends, [height, height], color=colour, linewidth=1.1, zorder=2)
                    drawing.draw_marker(axes, value, height, styles[name], size=20)
            axes.set_ylim(len(names) - 0.4, -0.6)
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
            axes.set_yticks([])
            axes.set_title(title)
        line[0].set_yticks(range(len(names)), [leaderboard[name] for name in names])
        line[0].tick_params(axis="y", length=0)
        for label, name in zip(line[0].get_yticklabels(), names, strict=True):
            label.set_color(styles[name].light)
        if len(places) > 1:
            line[0].set_title(f"{models[place[0]]}, {own_datasets[place[1]]}", loc="left")
    # Only families of several estimators are named.
    colours = {look.family: look.light for look in styles.values() if look.variant}
    titles = {family: drawing.FAMILY_TITLES.get(family, family) for family in colours}
    handles = [
        Line2D([], [], color=colour, linewidth=3, label=titles[family])
        for family, colour in colours.items()
    ]
    drawing.add_legend(figure, handles, columns=4)
    return figure


def _measured(rows: pd.DataFrame, measure: tuple[str, str]) -> dict[str, list[float]]:
    """Return the value of a (scope, metric), and its interval's ends, by estimator."""
    chosen = rows[(rows["scope"] == measure[0]) & (rows["metric"] == measure[1])]
    columns = ["estimator", "value", "lower_2_5pct", "upper_97_5pct"]
    return {name: bounds for name, *bounds in chosen[columns].itertuples(index=False)}


# Light enough for black numbers and lines, and in order of brightness for all readers.
@drawing.house_style()
def distance_figure(pairs: pd.DataFrame, *, models: Names, estimators: Names) -> Figure:
    """Draw metrics of change over the distance between checkpoints: a row of panels per model.

    Lines are means over the pairs of a distance and the datasets, bands one standard
    deviation to either side where a distance has several pairs. Pairs that are not kept are
    left out, and so are estimators that were trained on another dataset than the evaluated one.
    The reference of the contrast AUC is the line of the end-correct baseline, if it is drawn.
    """
    in_domain = pairs[(pairs["train_dataset"] == pairs["dataset"]) & pairs["kept"]]
    if in_domain.empty:
        return drawing.only_text(
            "No contrast set is kept of what was trained on the evaluated dataset."
        )
    names = drawing.in_legend_order(set(in_domain["estimator"]), estimators)
    styles = drawing.looks(names)
    rows = [model for model in models if model in set(in_domain["model"])]
    titles = {"delta0_balanced": "Δ₀ᵇ", "change_auc": "Change AUC", "auc": "Contrast AUC"}
    figure, panels = drawing.grid(len(rows), len(titles), width=3.2, height=2.5, share_y=False)
    for line, model in zip(panels, rows, strict=True):
        for axes, (metric, title) in zip(line, titles.items(), strict=True):
            chosen = in_domain[(in_domain["model"] == model) & (in_domain["metric"] == metric)]
            if metric != "auc" or BASELINE not in styles:
                drawing.draw_reference(axes, 0.0 if metric == "delta0_balanced" else 0.5)
            for name, style in styles.items():
                of_name = chosen[chosen["estimator"] == name].groupby("distance")["value"]
                mean, spread = of_name.mean(), of_name.std()
                low, high = mean - spread, mean + spread
                axes.fill_between(mean.index, low, high, color=style.light, alpha=0.12, lw=0)
                look = drawing.line_look(style)
                axes.plot(mean.index, mean, markersize=3.5, linewidth=0.9, **look)
            axes.set_title(f"{models[model]}: {title}", loc="left")
            axes.set_xlabel("Checkpoints apart")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    handles = drawing.legend_handles(styles, estimators, markersize=4, linewidth=0.9)
    drawing.add_legend(figure, handles, columns=3)
    return figure


@drawing.house_style()
def states_figure(
    compared: pd.DataFrame,
    *,
    checkpoints: DisplayNames,
    labels: DisplayNames,
    only: Sequence[str],
) -> Figure:
    """Draw the differences of each pair of checkpoints: a row of panels per model and dataset.

    The figure shows the first seven of the estimators `only`, or of all if none of them occurs.
    """
    rows = mean_rows(compared)
    if rows.empty:
        return drawing.only_text("No two checkpoints answered a question in common.")
    estimators = [name for name in rows["estimator"].unique() if name]
    chosen = [name for name in only if name in estimators] or estimators
    drawn = drawing.in_legend_order(set(chosen), labels["estimators"])[:_MOST_DRAWN]
    styles = drawing.looks(drawn)
    places = list(rows.groupby(STATES_PLACE, sort=False))
    height = 0.6 + 0.4 * max(group.groupby(PAIR).ngroups for _, group in places)
    figure, panels = drawing.grid(
        len(places), len(STATES_METRICS), width=2.2, height=height, share_y="row"
    )
    for panel, (place, group) in zip(panels, places, strict=True):
        firsts = group.drop_duplicates(PAIR).to_dict("records")
        positions = {(row["earlier"], row["later"]): i for i, row in enumerate(firsts)}
        for axes, metric in zip(panel, STATES_METRICS, strict=True):
            drawing.draw_reference(axes, 0, upright=True)
            for name in [""] if metric == "accuracy" else drawn:
                matching = group[(group["metric"] == metric) & (group["estimator"] == name)]
                offset = (drawn.index(name) - (len(drawn) - 1) / 2) / 9 if name else 0.0
                look: dict[str, Any] = {"color": drawing.GRAY, "marker": "o"}
                if name:
                    look = drawing.line_look(styles[name])
                for row in matching.dropna(subset=["difference"]).to_dict("records"):
                    y = positions[row["earlier"], row["later"]] + offset
                    ends = [row[end] for end in ENDS]
                    axes.plot(ends, [y, y], color=look["color"], linewidth=0.9, alpha=0.7)
                    axes.plot([row["difference"]], [y], markersize=3.5, **look)
            heading = METRICS[metric].heading if metric in METRICS else "Accuracy"
            axes.set_xlabel(f"Difference of {heading}")
        panel[0].set_yticks(
            range(len(firsts)), [pair_title(row, checkpoints) for row in firsts]
        )
        panel[0].set_ylim(len(firsts) - 0.5, -0.5)
        panel[0].set_title(place_title(place, labels), loc="left")
    handles = drawing.legend_handles(styles, labels["estimators"], markersize=4)
    drawing.add_legend(figure, handles, columns=4)
    return figure


def _with_distinct_markers(styles: Mapping[str, drawing.Look]) -> dict[str, drawing.Look]:
    """Return styles with distinct markers, for print; families can share a marker."""
    distinct: dict[str, drawing.Look] = {}
    for name, look in styles.items():
        taken = {used.marker for used in distinct.values()}
        free = [marker for marker in drawing.MATPLOTLIB_MARKERS if marker not in taken]
        marker = look.marker if look.marker in free or not free else free[0]
        distinct[name] = look._replace(marker=marker)
    return distinct


def _draw_end_correct(axes: Axes, changes: Sequence[Mapping[Hashable, Any]]) -> None:
    """Draw the contrast AUC of the end-correct baseline in each row of one pair."""
    for row, change in enumerate(changes):
        gained, lost = change["improvement"], change["regression"]
        if change["n_pairs"] == 1 and gained + lost:
            share = gained / (gained + lost)
            look: dict[str, Any] = {"color": drawing.GRAY, "linewidth": 0.9}
            axes.plot([share] * 2, [row - 0.5, row + 0.5], linestyle=(0, (4, 3)), **look)


@drawing.house_style()
def changes_figure(
    measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames
) -> Figure:
    """Draw metrics of each kind of change: a row per change, a marker per estimator.

    For an estimator that was trained on several datasets, the first is drawn. The reference of
    the contrast AUC, for a change of one pair, is the end-correct baseline: it follows nothing,
    and its contrast AUC is the share of gained questions.
    """
    rows = with_wider_intervals(measured, only)
    rows = rows.drop_duplicates([*PLACE, "change", "estimator", "metric"])
    drawn = drawing.in_legend_order(set(rows["estimator"]), labels["estimators"])
    styles = _with_distinct_markers(drawing.looks(drawn))
    places = list(rows.groupby(PLACE, sort=False))
    most = max(group["change"].nunique() for _, group in places)
    height = 0.6 + most * (0.1 + 0.1 * len(drawn))
    columns = [(metric, "value", ENDS) for metric in CHANGE_METRICS]
    if rows["of_knowledge"].notna().any():
        columns.append(("delta0_balanced", "of_knowledge", OF_KNOWLEDGE_ENDS))
    figure, panels = drawing.grid(
        len(places), len(columns), width=3.0, height=height, share_y="row"
    )
    for panel, (place, group) in zip(panels, places, strict=True):
        changes = group.drop_duplicates("change").to_dict("records")
        positions = {row["change"]: i for i, row in enumerate(changes)}
        for axes, (metric, value, ends) in zip(panel, columns, strict=True):
            is_value = value == "value"
            if metric == "auc":
                _draw_end_correct(axes, changes)
            else:
                reference = CHANGE_METRICS[metric] if is_value else 0.0
                drawing.draw_reference(axes, reference, upright=True)
            of_metric = group[group["metric"] == metric].dropna(subset=[value])
            for row in of_metric.to_dict("records"):
                style = styles[row["estimator"]]
                nth = drawn.index(row["estimator"]) - (len(drawn) - 1) / 2
                y = positions[row["change"]] + 0.8 * nth / max(1, len(drawn))
                reach = [row[end] for end in ends]
                axes.plot(reach, [y, y], color=style.light, linewidth=1.0, zorder=2)
                drawing.draw_marker(axes, row[value], y, style, size=20)
            for edge in range(1, len(changes)):
                axes.axhline(edge - 0.5, color="#d0d0d0", linewidth=0.6, zorder=0)
            axes.grid(visible=False, axis="y")
            axes.set_xlabel(
                f"Contrast-set {METRICS[metric].heading}"
                if is_value
                else "Δ_K, beyond chance flips"
            )
        counted = [f"{r['change']}\n+{r['improvement']} −{r['regression']}" for r in changes]
        panel[0].set_yticks(range(len(changes)), counted)
        panel[0].set_ylim(len(changes) - 0.5, -0.5)
        panel[0].tick_params(axis="y", length=0)
        if len(places) > 1:
            panel[0].set_title(place_title(place, labels), loc="left")
    handles = drawing.legend_handles(styles, labels["estimators"], markersize=5, linestyle="")
    drawing.add_legend(figure, handles, columns=4)
    return figure
