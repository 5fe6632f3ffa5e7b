"""Tables and figure of states against each other: differences and corrections."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from persistcal.evaluation.metrics import MEASURES, names
from persistcal.report.drawing import (
    GRAY,
    add_legend,
    draw_reference,
    grid,
    house_style,
    in_legend_order,
    legend_handles,
    line_look,
    looks,
    only_text,
)
from persistcal.report.latex import (
    MISSING,
    Printed,
    by_place,
    escape,
    floating,
    interval,
    line,
    metric_head,
    number,
    tabular,
    title,
)
from persistcal.report.layout import DisplayNames, place_title
from persistcal.report.registry import figure, table

PLACE = ["model", "other_model", "dataset"]
PAIR = ["earlier", "later"]
ENDS = ["lower_2_5pct", "upper_97_5pct"]
METRICS = ("accuracy", *names("full"))
MOST = 7  # estimators in the figure; more look alike
LEVEL = 0.05
COUNTS = {
    "accuracy_earlier": "Accuracy of {earlier}",
    "accuracy_later": "Accuracy of {later}",
    "contrast_size": "Questions that changed",
    "improvement": "Improvements",
    "regression": "Regressions",
}


def mean_rows(states: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of accuracies, and of the estimators' means over seeds."""
    return states[states["seed"].isin(["", "mean"])].drop(columns="seed")


def pair_title(row: Mapping[Hashable, Any], checkpoints: DisplayNames) -> str:
    """Return the printed names of the two checkpoints of a row."""
    models = row["model"], row.get("other_model") or row["model"]
    names_of = (checkpoints.get(model, {}) for model in models)
    ends = (labels.get(row[end], row[end]) for labels, end in zip(names_of, PAIR, strict=True))
    return " → ".join(ends)


@table(
    "states",
    artifact="states",
    caption="Differences between two checkpoints of a model, or the last ones of two models, "
    "with 95 % intervals and p-values.",
)
def states(
    compared: pd.DataFrame, *, checkpoints: DisplayNames, labels: DisplayNames
) -> Printed:
    """Differences between two checkpoints, or two models, with their intervals."""
    rows = mean_rows(compared)
    heads = ["Checkpoints", "Estimator", "Accuracy", *map(metric_head, names("full"))]
    groups = []
    for place, of_place in rows.groupby(PLACE, sort=False):
        lines = title(place_title(place, labels), len(heads))
        for _, of_pair in of_place.groupby(PAIR, sort=False):
            records = of_pair.to_dict("records")
            pair = escape(pair_title(records[0], checkpoints))
            cells = {(row["estimator"], row["metric"]): _difference(row) for row in records}
            for place_of, name in enumerate(dict.fromkeys(of_pair["estimator"])):
                printed = [cells.get((name, metric), "") for metric in METRICS]
                shown = escape(labels["estimators"].get(name, name))
                lines.append(line(["" if place_of else pair, shown, *printed]))
        groups.append(lines)
    caption = (
        "Differences between two checkpoints on the questions that both answered, the later "
        "one minus the earlier one, with 95 % intervals: accuracies, and AUC, Brier score and "
        "SmoothECE (without an interval) of each estimator on all questions. Bold: told from "
        "zero at 5 % (McNemar's exact test; paired bootstrap), adjusted by Holm's method for "
        "the pairs of a model."
    )
    body = tabular(f"ll{'c' * len(METRICS)}", [line(heads)], groups)
    return Printed(floating(body, caption=caption, label="states", shrink=True), rows)


def _difference(row: Mapping[Hashable, Any]) -> str:
    value = number(row["difference"])
    if row["lower_2_5pct"] != row["lower_2_5pct"]:
        return value
    value = rf"\textbf{{{value}}}" if row["p_holm"] < LEVEL else value
    return f"{value} {interval(*(row[end] for end in ENDS))}"


@figure(
    "states",
    artifact="states",
    label="states against each other",
    caption="Differences between two checkpoints of a model, or the last ones of two models, "
    "on the questions that both answered: accuracy, and AUC, Brier score and SmoothECE of "
    "each estimator on all questions. Bars are 95 % intervals. Dashed: no difference.",
)
@house_style()
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
        return only_text("No two checkpoints answered a question in common.")
    estimators = [name for name in rows["estimator"].unique() if name]
    chosen = [name for name in only if name in estimators] or estimators
    drawn = in_legend_order(set(chosen), labels["estimators"])[:MOST]
    styles = looks(drawn)
    places = list(rows.groupby(PLACE, sort=False))
    most = max(group.groupby(PAIR).ngroups for _, group in places)
    figure, panels = grid(
        len(places), len(METRICS), width=2.2, height=0.6 + 0.4 * most, share_y="row"
    )
    for panel, (place, group) in zip(panels, places, strict=True):
        pairs = list(dict.fromkeys(map(tuple, group[PAIR].to_numpy())))
        firsts = group.drop_duplicates(PAIR).to_dict("records")
        for axes, metric in zip(panel, METRICS, strict=True):
            draw_reference(axes, 0, upright=True)
            for name in [""] if metric == "accuracy" else drawn:
                matching = group[(group["metric"] == metric) & (group["estimator"] == name)]
                offset = (drawn.index(name) - (len(drawn) - 1) / 2) / 9 if name else 0.0
                look = line_look(styles[name]) if name else {"color": GRAY, "marker": "o"}
                for row in matching.dropna(subset=["difference"]).to_dict("records"):
                    y = pairs.index((row["earlier"], row["later"])) + offset
                    ends = [row[end] for end in ENDS]
                    axes.plot(ends, [y, y], color=look["color"], linewidth=0.9, alpha=0.7)
                    axes.plot([row["difference"]], [y], markersize=3.5, **look)
            heading = MEASURES[metric].heading if metric in MEASURES else "Accuracy"
            axes.set_xlabel(f"Difference of {heading}")
        titles = [pair_title(row, checkpoints) for row in firsts]
        panel[0].set_yticks(range(len(pairs)), titles)
        panel[0].set_ylim(len(pairs) - 0.5, -0.5)
        panel[0].set_title(place_title(place, labels), loc="left")
    handles = legend_handles(styles, labels["estimators"], markersize=4)
    add_legend(figure, handles, columns=4)
    return figure


@table(
    "corrections",
    artifact="corrections",
    caption="Numbers by the judge's labels, and corrected by a person's.",
)
def corrections(
    corrected: pd.DataFrame, *, checkpoints: DisplayNames, labels: DisplayNames
) -> Printed:
    """Numbers as judged and as corrected by an audit, with 95 % intervals."""

    def cells(row: Mapping[Hashable, Any]) -> list[str]:
        names_of = checkpoints.get(row["model"], {})
        if row["estimator"]:
            label = MEASURES[row["metric"]].latex
        else:
            ends = {end: names_of.get(row[end], row[end]) for end in PAIR}
            label = escape(COUNTS[row["metric"]].format(**ends))
        digits = 0 if row["corrected"] > 1 else 3
        low, high = (row[end] for end in ENDS)
        bounds = MISSING if low != low or high != high else interval(low, high, digits)
        return [
            escape(labels["estimators"].get(row["estimator"], row["estimator"])),
            label,
            number(row["judged"], digits),
            f"{number(row['corrected'], digits)} {bounds}",
        ]

    groups = by_place(corrected, cells, span=4, labels=labels)
    caption = (
        "Accuracies, questions whose correctness changed, and metrics on them, by the judge's "
        "labels and corrected by those of a person, with 95 % intervals over the questions and "
        "those of them that were audited."
    )
    heads = [line(["Estimator", "Measure", "By the judge", "Corrected"])]
    body = tabular("llrr", heads, groups)
    return Printed(floating(body, caption=caption, label="corrections"), corrected)
