"""Table and figure of the named kinds of change: whether confidence follows each."""

from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from persistcal.evaluation.contrast import control_model
from persistcal.evaluation.metrics import MEASURES
from persistcal.evaluation.thresholds import BROKEN, KEPT, UNDECIDED
from persistcal.report.analysis_tables import chosen_rows, trained_name
from persistcal.report.drawing import (
    MATPLOTLIB_MARKERS,
    Look,
    add_legend,
    draw_marker,
    draw_reference,
    grid,
    house_style,
    in_legend_order,
    legend_handles,
    looks,
)
from persistcal.report.latex import (
    MISSING,
    Printed,
    escape,
    floating,
    interval,
    line,
    metric_head,
    number,
    tabular,
    title,
)
from persistcal.report.layout import DisplayNames, Names, place_title
from persistcal.report.registry import figure, table

PLACE = ["model", "dataset"]
ENDS = ["lower_2_5pct", "upper_97_5pct"]
ABOVE = ["above_lower_2_5pct", "above_upper_97_5pct"]
# The value of each metric for confidence that follows nothing
METRICS = {"delta0_balanced": 0.0, "change_auc": 0.5, "auc": 0.5}

NO_THRESHOLD = "none"
VERDICTS = [KEPT, UNDECIDED, BROKEN, NO_THRESHOLD]
# Columns of THRESHOLDS that are compared with a control: heading, digits
AT_THRESHOLD = {
    "coverage_change": ("Coverage change", 3),
    "confident_regressions": ("Confident regressions", 1),
}


def _shown(measured: pd.DataFrame, only: Sequence[str]) -> pd.DataFrame:
    """Return the chosen rows with intervals over seeds and questions, where there are seeds."""
    rows = chosen_rows(measured, only)
    over_seeds = rows[[f"seeds_{end}" for end in ENDS]].set_axis(ENDS, axis=1)
    rows = rows.assign(**over_seeds.combine_first(rows[ENDS]))
    above = rows[[f"above_seeds_{end}" for end in ENDS]].set_axis(ABOVE, axis=1)
    return rows.assign(**above.combine_first(rows[ABOVE]))


def _told_apart(styles: Mapping[str, Look]) -> dict[str, Look]:
    """Return styles with distinct markers, for print; families can share a marker."""
    looks: dict[str, Look] = {}
    for name, look in styles.items():
        taken = {used.marker for used in looks.values()}
        free = [m for m in MATPLOTLIB_MARKERS if m not in taken]
        marker = look.marker if look.marker in free or not free else free[0]
        looks[name] = look._replace(marker=marker)
    return looks


@table(
    "by_change",
    artifact="changes",
    caption="Kinds of change, and whether confidence follows each, with 95 % intervals.",
)
def by_change(measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames) -> Printed:
    """Tabulate `METRICS` of each estimator on each kind of change, with intervals."""
    rows = _shown(measured, only)
    has_control = rows["control"].ne("").any()
    columns = [("value", ENDS)] + ([("above_control", ABOVE)] if has_control else [])
    heads = ["Change", "Gained", "Lost", "Estimator"]
    heads += [
        metric_head(metric) + (" above control" if value == "above_control" else "")
        for metric in METRICS
        for value, _ in columns
    ]
    heads.append("In lost ones")
    groups = []
    for place, of_place in rows.groupby(PLACE, sort=False):
        lines = title(place_title(place, labels), len(heads))
        for change, of_change in of_place.groupby("change", sort=False):
            estimators = of_change.groupby(["train_dataset", "estimator"], sort=False)
            for number_of, (_, member_rows) in enumerate(estimators):
                records = member_rows.to_dict("records")
                by_metric = {row["metric"]: row for row in records}
                counts = [str(records[0][name]) for name in ("improvement", "regression")]
                cells = ["", "", ""] if number_of else [escape(str(change)), *counts]
                name = escape(trained_name(records[0], labels))
                values = [
                    _cell(by_metric[metric], *column)
                    for metric in METRICS
                    for column in columns
                ]
                lines.append(line([*cells, name, *values, _in_lost(records[0])]))
        groups.append(lines)
    caption = (
        "Kinds of change, with the questions that the later checkpoints gained and lost, and "
        "whether confidence follows each: balanced sign of its change, AUC with which the "
        "change separates gained from lost questions, and AUC on these questions alone, with "
        "95 % intervals over questions, and over seeds where an estimator has them (none if a "
        "pair gains or loses too few questions); and its mean in the answers to what is lost, "
        "before and after."
    )
    if has_control:
        controls = ", ".join(dict.fromkeys(escape(c) for c in rows["control"] if c))
        caption += (
            f" The control ({controls}) changes answers, but no knowledge. Differences from it "
            "have paired intervals; they are missing if a pair of the change or of the control "
            "has too few gained or lost questions (`evaluation.min_direction`)."
        )
    body = tabular("lrrl" + "c" * (len(heads) - 4), [line(heads)], groups)
    return Printed(floating(body, caption=caption, label="by-change", shrink=True), rows)


@table(
    "thresholds_by_change",
    artifact="thresholds",
    files="threshold_changes",
    caption="Kinds of change, and whether thresholds survive each.",
)
def thresholds_by_change(
    checked: pd.DataFrame,
    *,
    changes: Mapping[str, Sequence[Sequence[str]]],
    controls: Names,
    only: Sequence[str],
    labels: DisplayNames,
) -> Printed:
    """Count the verdicts on each estimator's thresholds, by kind of change.

    Parameters
    ----------
    checked : DataFrame
        Rows of the table THRESHOLDS with the columns model and dataset.
    changes : mapping of str to sequence of (str, str)
        The earlier and the later checkpoint of each pair, by kind of change.
    controls : mapping of str to str
        The control of each kind of change that has one.
    only : sequence of str
        Estimators to show.
    labels : mapping
        Display names of models, datasets and estimators.
    """
    kinds = pd.DataFrame(
        [(kind, *pair) for kind, pairs in changes.items() for pair in pairs],
        columns=["change", "earlier", "later"],
    )
    rows = kinds.merge(chosen_rows(checked, only), on=["earlier", "later"])
    verdicts = pd.Categorical(rows["verdict"].replace("", NO_THRESHOLD), VERDICTS)
    key = [*PLACE, "change", "train_dataset", "estimator"]
    rows = pd.concat([rows, pd.get_dummies(verdicts, dtype=int)], axis=1)
    grouped = rows.groupby(key, sort=False)
    means = {"precision": "later_precision", **{name: name for name in AT_THRESHOLD}}
    counted = grouped.agg(
        **{name: (name, "sum") for name in VERDICTS},
        **{name: (column, "mean") for name, column in means.items()},
    ).reset_index()
    counted.insert(3, "control", counted["change"].map(controls).fillna(""))
    for name in AT_THRESHOLD:
        counted[f"{name}_above_control"] = counted[name] - _of_controls(counted, name)
    heads = ["Change", "Estimator", *map(str.capitalize, VERDICTS), "Precision"]
    ends = {"": "", "_above_control": " above control"}
    if counted["control"].eq("").all():
        ends.pop("_above_control")
    shown = [
        (name + end, head + words, digits)
        for name, (head, digits) in AT_THRESHOLD.items()
        for end, words in ends.items()
    ]
    heads += [head for _, head, _ in shown]
    groups = []
    for place, of_place in counted.groupby(PLACE, sort=False):
        lines = title(place_title(place, labels), len(heads))
        for change, of_change in of_place.groupby("change", sort=False):
            for i, row in enumerate(of_change.to_dict("records")):
                cells = ["" if i else escape(str(change)), escape(trained_name(row, labels))]
                cells += [str(row[name]) for name in VERDICTS]
                cells.append(_mean(row["precision"]))
                cells += [_mean(row[name], digits) for name, _, digits in shown]
                lines.append(line(cells))
        groups.append(lines)
    caption = (
        "Thresholds that reach a precision on the earlier checkpoint of each change, by the "
        "verdict on the later one: counts over pairs of checkpoints and seeds. Means over the "
        "selected thresholds: precision on the later checkpoint, change in coverage, and "
        "confident answers that were right and are wrong now."
    )
    body = tabular("ll" + "r" * (len(heads) - 2), [line(heads)], groups)
    return Printed(
        floating(body, caption=caption, label="thresholds-by-change", shrink=True), counted
    )


def _of_controls(found: pd.DataFrame, name: str) -> list[float]:
    """Return a column at each row's control: of the same model, or of the only other one."""
    rows = found.to_dict("records")
    place = itemgetter("dataset", "train_dataset", "estimator")
    values: dict[Hashable, dict[str, float]] = {}  # by change and place, then by model
    for row in rows:
        values.setdefault((row["change"], *place(row)), {})[row["model"]] = row[name]
    of_control = [values.get((row["control"], *place(row)), {}) for row in rows]
    return [
        by_model.get(control_model(row["model"], by_model) or "", np.nan)
        for row, by_model in zip(rows, of_control, strict=True)
    ]


def _mean(value: float, digits: int = 3) -> str:
    return MISSING if value != value else number(value, digits)


def _cell(row: Mapping[Hashable, Any], value: str, ends: Sequence[str]) -> str:
    if row[value] != row[value]:
        return MISSING
    shown = number(row[value])
    low, high = (row[end] for end in ends)
    return shown if low != low else f"{shown} {interval(low, high)}"


def _in_lost(row: Mapping[Hashable, Any]) -> str:
    if not row["regression"]:
        return MISSING
    return rf"{number(row['lost_before'])} $\to$ {number(row['lost_after'])}"


@figure(
    "changes",
    artifact="changes",
    label="kinds of change",
    caption="Whether confidence follows each kind of change: Δ₀ᵇ and AUC on the questions "
    "whose correctness it changes, those that the later checkpoints gained (+) and lost (−). "
    "Bars are 95 % intervals over questions, and over seeds where an estimator has them. "
    "Dashed: confidence that follows nothing.",
)
@house_style()
def changes_figure(
    measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames
) -> Figure:
    """Draw `METRICS` of each kind of change: a row per change, a marker per estimator.

    For an estimator that was trained on several datasets, the first is drawn.
    """
    rows = _shown(measured, only)
    rows = rows.drop_duplicates([*PLACE, "change", "estimator", "metric"])
    drawn = in_legend_order(set(rows["estimator"]), labels["estimators"])
    styles = _told_apart(looks(drawn))
    places = list(rows.groupby(PLACE, sort=False))
    most = max(group["change"].nunique() for _, group in places)
    height = 0.6 + most * (0.1 + 0.1 * len(drawn))
    columns = [(metric, "value", ENDS) for metric in METRICS]
    if rows["above_control"].notna().any():
        columns.append(("delta0_balanced", "above_control", ABOVE))
    figure, panels = grid(len(places), len(columns), width=3.0, height=height, share_y="row")
    for panel, (place, group) in zip(panels, places, strict=True):
        changes = group.drop_duplicates("change").to_dict("records")
        positions = {row["change"]: number_of for number_of, row in enumerate(changes)}
        for axes, (metric, value, ends) in zip(panel, columns, strict=True):
            draw_reference(axes, METRICS[metric] if value == "value" else 0.0, upright=True)
            of_metric = group[group["metric"] == metric].dropna(subset=[value])
            for row in of_metric.to_dict("records"):
                style = styles[row["estimator"]]
                nth = drawn.index(row["estimator"]) - (len(drawn) - 1) / 2
                y = positions[row["change"]] + 0.8 * nth / max(1, len(drawn))
                reach = [row[end] for end in ends]
                axes.plot(reach, [y, y], color=style.light, linewidth=1.0, zorder=2)
                draw_marker(axes, row[value], y, style, size=20)
            for edge in range(1, len(changes)):
                axes.axhline(edge - 0.5, color="#d0d0d0", linewidth=0.6, zorder=0)
            axes.grid(visible=False, axis="y")
            above = "" if value == "value" else " above the control"
            axes.set_xlabel(f"Contrast-set {MEASURES[metric].heading}{above}")
        counted = [f"{r['change']}\n+{r['improvement']} −{r['regression']}" for r in changes]
        panel[0].set_yticks(range(len(changes)), counted)
        panel[0].set_ylim(len(changes) - 0.5, -0.5)
        panel[0].tick_params(axis="y", length=0)
        if len(places) > 1:
            panel[0].set_title(place_title(place, labels), loc="left")
    handles = legend_handles(styles, labels["estimators"], markersize=5, linestyle="")
    add_legend(figure, handles, columns=4)
    return figure
