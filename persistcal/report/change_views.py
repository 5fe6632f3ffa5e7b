"""Table and figure of the named kinds of change: whether confidence follows each."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from persistcal.evaluation.measures import MEASURES
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

PLACE = ["model", "dataset"]
ENDS = ["lower_2_5pct", "upper_97_5pct"]
# Of each metric its value where confidence follows nothing
METRICS = {"delta0_balanced": 0.0, "auc": 0.5}


def _shown(measured: pd.DataFrame, only: Sequence[str]) -> pd.DataFrame:
    """Return the chosen rows with intervals over seeds and questions, where there are seeds."""
    rows = chosen_rows(measured, only)
    over_seeds = rows[[f"seeds_{end}" for end in ENDS]].set_axis(ENDS, axis=1)
    return rows.assign(**over_seeds.combine_first(rows[ENDS]))


def _told_apart(styles: Mapping[str, Look]) -> dict[str, Look]:
    """Return styles whose markers differ, for print: families may share one."""
    found: dict[str, Look] = {}
    for name, look in styles.items():
        taken = {other.marker for other in found.values()}
        free = [m for m in MATPLOTLIB_MARKERS if m not in taken]
        ours = look.marker if look.marker in free or not free else free[0]
        found[name] = look._replace(marker=ours)
    return found


def by_change(measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames) -> Printed:
    """Δ₀ᵇ and contrast AUC of each estimator on each kind of change, with intervals."""
    rows = _shown(measured, only)
    heads = ["Change", "Gained", "Lost", "Estimator"]
    heads += [*map(metric_head, METRICS), "In lost ones"]
    groups = []
    for place, of_place in rows.groupby(PLACE, sort=False):
        lines = title(place_title(place, labels), len(heads))
        for change, of_change in of_place.groupby("change", sort=False):
            estimators = of_change.groupby(["train_dataset", "estimator"], sort=False)
            for number_of, (_, both) in enumerate(estimators):
                records = both.to_dict("records")
                cells = {row["metric"]: _cell(row) for row in records}
                counts = [str(records[0][name]) for name in ("improvement", "regression")]
                about = ["", "", ""] if number_of else [escape(str(change)), *counts]
                name = escape(trained_name(records[0], labels))
                values = [cells[metric] for metric in METRICS]
                lines.append(line([*about, name, *values, _in_lost(records[0])]))
        groups.append(lines)
    caption = (
        "Kinds of change, with the questions that the later checkpoints gained and lost, and "
        "whether confidence follows each: balanced sign of its change and AUC on these "
        "questions alone, with 95 % intervals over questions, and over seeds where an "
        "estimator has them; and its mean in the answers to what is lost, before and after."
    )
    body = tabular("lrrlccc", [line(heads)], groups)
    return Printed(floating(body, caption=caption, label="by-change", shrink=True), rows)


def _cell(row: Mapping[Hashable, Any]) -> str:
    if row["value"] != row["value"]:
        return MISSING
    return f"{number(row['value'])} {interval(*(row[end] for end in ENDS))}"


def _in_lost(row: Mapping[Hashable, Any]) -> str:
    if not row["regression"]:
        return MISSING
    return rf"{number(row['lost_before'])} $\to$ {number(row['lost_after'])}"


@house_style()
def changes_figure(measured: pd.DataFrame, *, only: Sequence[str], **labels: Names) -> Figure:
    """Draw Δ₀ᵇ and contrast AUC of each kind of change: a row each, a marker per estimator.

    Of an estimator that was trained on several datasets, the first is drawn.
    """
    rows = _shown(measured, only)
    rows = rows.drop_duplicates([*PLACE, "change", "estimator", "metric"])
    drawn = in_legend_order(set(rows["estimator"]), labels["estimators"])
    styles = _told_apart(looks(drawn))
    places = list(rows.groupby(PLACE, sort=False))
    most = max(group["change"].nunique() for _, group in places)
    height = 0.6 + most * (0.1 + 0.1 * len(drawn))
    figure, panels = grid(len(places), len(METRICS), width=3.0, height=height, share_y="row")
    for panel, (place, group) in zip(panels, places, strict=True):
        changes = group.drop_duplicates("change").to_dict("records")
        at = {row["change"]: number_of for number_of, row in enumerate(changes)}
        for axes, (metric, reference) in zip(panel, METRICS.items(), strict=True):
            draw_reference(axes, reference, upright=True)
            of_metric = group[group["metric"] == metric].dropna(subset=["value"])
            for row in of_metric.to_dict("records"):
                style = styles[row["estimator"]]
                nth = drawn.index(row["estimator"]) - (len(drawn) - 1) / 2
                y = at[row["change"]] + 0.8 * nth / max(1, len(drawn))
                ends = [row[end] for end in ENDS]
                axes.plot(ends, [y, y], color=style.light, linewidth=1.0, zorder=2)
                draw_marker(axes, row["value"], y, style, size=20)
            for edge in range(1, len(changes)):
                axes.axhline(edge - 0.5, color="#d0d0d0", linewidth=0.6, zorder=0)
            axes.grid(visible=False, axis="y")
            axes.set_xlabel(f"Contrast-set {MEASURES[metric].heading}")
        counted = [f"{r['change']}\n+{r['improvement']} −{r['regression']}" for r in changes]
        panel[0].set_yticks(range(len(changes)), counted)
        panel[0].set_ylim(len(changes) - 0.5, -0.5)
        panel[0].tick_params(axis="y", length=0)
        if len(places) > 1:
            panel[0].set_title(place_title(place, labels), loc="left")
    handles = legend_handles(styles, labels["estimators"], markersize=5, linestyle="")
    add_legend(figure, handles, columns=4)
    return figure
