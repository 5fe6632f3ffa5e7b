"""Tables and figures of changes: between checkpoints, by kind of change, after an audit."""

from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from persistcal.evaluation.claims import EXAMPLES
from persistcal.evaluation.contrast import control_model
from persistcal.evaluation.metrics.registry import METRICS, names
from persistcal.evaluation.thresholds import BROKEN, KEPT, UNDECIDED
from persistcal.report import drawing, latex
from persistcal.report.analysis_tables import chosen_rows, trained_name
from persistcal.report.latex import MISSING, PLACE, Printed, escape, interval, number
from persistcal.report.layout import DisplayNames, Names, place_title
from persistcal.report.phrases import possible_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDS = ["lower_2_5pct", "upper_97_5pct"]
PAIR = ["earlier", "later"]
LEVEL = 0.05

# Differences between two states
_STATES_PLACE = ["model", "other_model", "dataset"]
_STATES_METRICS = ("accuracy", *names("full"))
_MOST_DRAWN = 7  # estimators in the figure; more look alike
_CORRECTED_COUNTS = {
    "accuracy_earlier": "Accuracy of {earlier}",
    "accuracy_later": "Accuracy of {later}",
    "contrast_size": "Questions that changed",
    "improvement": "Improvements",
    "regression": "Regressions",
}

# Named kinds of change: the value of each metric for confidence that follows nothing
_CHANGE_METRICS = {"delta0_balanced": 0.0, "change_auc": 0.5, "auc": 0.5}
_OF_KNOWLEDGE = {"delta0_balanced": r"$\Delta_K$", "change_auc": r"AUC$_K$"}
_CROSSED_ENDS = ["crossed_lower_2_5pct", "crossed_upper_97_5pct"]
_OF_KNOWLEDGE_ENDS = ["of_knowledge_lower_2_5pct", "of_knowledge_upper_97_5pct"]
_NO_THRESHOLD = "none"
_VERDICTS = [KEPT, UNDECIDED, BROKEN, _NO_THRESHOLD]
# Columns of THRESHOLDS that are compared with a control: heading, digits
_AT_THRESHOLD = {
    "coverage_change": ("Coverage change", 3),
    "confident_regressions": ("Confident regressions", 1),
}


def mean_rows(states: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of accuracies, and of the estimators' means over seeds."""
    return states[states["seed"].isin(["", "mean"])].drop(columns="seed")


def pair_title(row: Mapping[Hashable, Any], checkpoints: DisplayNames) -> str:
    """Return the printed names of the two checkpoints of a row."""
    models = row["model"], row.get("other_model") or row["model"]
    labels = [checkpoints.get(model, {}) for model in models]
    return " → ".join(of.get(row[end], row[end]) for of, end in zip(labels, PAIR, strict=True))


def _with_interval(row: Mapping[Hashable, Any], value: str, ends: Sequence[str]) -> str:
    """Return a value and its interval, if it has one."""
    shown, low, high = number(row[value]), *(row[end] for end in ends)
    return shown if row[value] != row[value] or low != low else f"{shown} {interval(low, high)}"


def states(
    compared: pd.DataFrame, *, checkpoints: DisplayNames, labels: DisplayNames
) -> Printed:
    """Differences between two checkpoints, or two models, with their intervals."""

    def difference(row: Mapping[Hashable, Any]) -> str:
        value = number(row["difference"])
        if row["lower_2_5pct"] != row["lower_2_5pct"]:
            return value
        value = rf"\textbf{{{value}}}" if row["p_holm"] < LEVEL else value
        return f"{value} {interval(*(row[end] for end in ENDS))}"

    def cells(records: list[dict[Hashable, Any]]) -> tuple[list[str], list[str]]:
        name = records[0]["estimator"]
        values = {row["metric"]: difference(row) for row in records}
        own = [escape(labels["estimators"].get(name, name))]
        own += [values.get(metric, "") for metric in _STATES_METRICS]
        return [escape(pair_title(records[0], checkpoints))], own

    rows = mean_rows(compared)
    heads = ["Checkpoints", "Estimator", "Accuracy", *map(latex.metric_head, names("full"))]
    groups = latex.nested(
        rows,
        cells,
        PAIR,
        span=len(heads),
        labels=labels,
        place=_STATES_PLACE,
        inner=["estimator"],
    )
    caption = (
        "Differences between two checkpoints on the questions that both answered, the later "
        "one minus the earlier one, with 95 % intervals: accuracies, and AUC, Brier score and "
        "SmoothECE (without an interval) of each estimator on all questions. Bold: told from "
        "zero at 5 % (McNemar's exact test, or a bootstrap of groups if questions have groups; "
        "paired bootstrap), adjusted by Holm's method for the pairs of a model."
    )
    body = latex.tabular(f"ll{'c' * len(_STATES_METRICS)}", [latex.line(heads)], groups)
    return Printed(latex.floating(body, caption=caption, label="states", shrink=True), rows)


@drawing.house_style()
def states_figure(
    compared: pd.DataFrame,
    *,
    checkpoints: DisplayNames,
    labels: DisplayNames,
    only: Sequence[str],
) -> "Figure":
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
    places = list(rows.groupby(_STATES_PLACE, sort=False))
    height = 0.6 + 0.4 * max(group.groupby(PAIR).ngroups for _, group in places)
    figure, panels = drawing.grid(
        len(places), len(_STATES_METRICS), width=2.2, height=height, share_y="row"
    )
    for panel, (place, group) in zip(panels, places, strict=True):
        firsts = group.drop_duplicates(PAIR).to_dict("records")
        positions = {(row["earlier"], row["later"]): i for i, row in enumerate(firsts)}
        for axes, metric in zip(panel, _STATES_METRICS, strict=True):
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


def corrections(
    corrected: pd.DataFrame, *, checkpoints: DisplayNames, labels: DisplayNames
) -> Printed:
    """Numbers as judged and as corrected by an audit, with 95 % intervals."""

    def cells(row: Mapping[Hashable, Any]) -> list[str]:
        label = METRICS[row["metric"]].latex if row["estimator"] else ""
        if not row["estimator"]:
            of_model = checkpoints.get(row["model"], {})
            ends = {end: of_model.get(row[end], row[end]) for end in PAIR}
            label = escape(_CORRECTED_COUNTS[row["metric"]].format(**ends))
        digits = 0 if row["corrected"] > 1 else 3
        low, high = (row[end] for end in ENDS)
        bounds = MISSING if low != low or high != high else interval(low, high, digits)
        return [
            escape(labels["estimators"].get(row["estimator"], row["estimator"])),
            label,
            number(row["judged"], digits),
            f"{number(row['corrected'], digits)} {bounds}",
        ]

    groups = latex.by_place(corrected, cells, span=4, labels=labels)
    caption = (
        "Accuracies, questions whose correctness changed, and metrics on them, by the judge's "
        "labels and corrected by those of a person, with 95 % intervals over the questions and "
        "those of them that were audited."
    )
    heads = [latex.line(["Estimator", "Measure", "By the judge", "Corrected"])]
    body = latex.tabular("llrr", heads, groups)
    return Printed(latex.floating(body, caption=caption, label="corrections"), corrected)


def _with_wider_intervals(measured: pd.DataFrame, only: Sequence[str]) -> pd.DataFrame:
    """Return the chosen rows with intervals over seeds and questions, where there are seeds."""
    rows = chosen_rows(measured, only)
    over_seeds = rows[[f"seeds_{end}" for end in ENDS]].set_axis(ENDS, axis=1)
    return rows.assign(**over_seeds.combine_first(rows[ENDS]))


def by_change(measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames) -> Printed:
    """Tabulate metrics of each estimator on each kind of change, with intervals."""
    rows = _with_wider_intervals(measured, only)
    controls = ", ".join(dict.fromkeys(escape(c) for c in rows["control"] if c))
    is_crossed = bool(rows["crossed"].notna().any())
    claimed = [("of_knowledge", _OF_KNOWLEDGE_ENDS)] if controls else []
    claimed += [("crossed", _CROSSED_ENDS)] if is_crossed else []

    def cells(records: list[dict[Hashable, Any]]) -> tuple[list[str], list[str]]:
        first, by_metric = records[0], {row["metric"]: row for row in records}
        values = [
            _with_interval(by_metric[metric], "value", ENDS) for metric in _CHANGE_METRICS
        ]
        values += [
            _with_interval(by_metric[metric], value, ends)
            for value, ends in claimed
            for metric in _OF_KNOWLEDGE
        ]
        if claimed:
            values.append(escape(first["word"]) or MISSING)
        in_lost = MISSING
        if first["regression"]:
            in_lost = rf"{number(first['lost_before'])} $\to$ {number(first['lost_after'])}"
        change = [str(first[name]) for name in ("change", "improvement", "regression")]
        return [*map(escape, change)], [escape(trained_name(first, labels)), *values, in_lost]

    metric_heads = [latex.metric_head(metric) for metric in _CHANGE_METRICS]
    metric_heads += _OF_KNOWLEDGE.values() if controls else []
    metric_heads += [f"{latex.metric_head(m)}, crossed" for m in _OF_KNOWLEDGE if is_crossed]
    metric_heads += ["Claim"] if claimed else []
    heads = ["Change", "Gained", "Lost", "Estimator", *metric_heads, "In lost ones"]
    groups = latex.nested(rows, cells, ["change"], span=len(heads), labels=labels)
    caption = (
        "Kinds of change, with the questions that the later checkpoints gained and lost, and "
        "whether confidence follows each: balanced sign of its change, AUC with which the "
        "change separates gained from lost questions, and AUC on these questions alone, with "
        "95 % intervals over questions, and over seeds where an estimator has them (none if a "
        "pair gains or loses too few questions); and its mean in the answers to what is lost, "
        "before and after."
    )
    if controls:
        caption += (
            f" The control ({controls}) changes answers, but no knowledge. $\\Delta_K$ and "
            "AUC$_K$ are the metrics without its share of chance flips; they are missing if a "
            "direction is not shown to have more flips than the control, or has fewer than "
            "`evaluation.min_direction`."
        )
        if not is_crossed:
            caption += " The claim rests on their numerators."
    if is_crossed:
        caption += " Crossed metrics take the flips of one ask and the confidences of the other"
        caption += (
            ", after other few-shot examples: a check of robustness."
            if (rows["basis"] == EXAMPLES).any()
            else ", so that they are at chance if no knowledge changed."
        )
        caption += " The claim rests on them."
    body = latex.tabular("lrrl" + "c" * (len(heads) - 4), [latex.line(heads)], groups)
    return Printed(latex.floating(body, caption=caption, label="by-change", shrink=True), rows)


def thresholds_by_change(
    checked: pd.DataFrame,
    *,
    changes: Mapping[str, Sequence[Sequence[str]]],
    controls: Names,
    only: Sequence[str],
    labels: DisplayNames,
) -> Printed:
    """Count the verdicts on each estimator's thresholds, by kind of change.

    `changes` has the earlier and the later checkpoint of each pair, by kind of change, and
    `controls` the control of each kind of change that has one.
    """
    kinds = pd.DataFrame(
        [(kind, *pair) for kind, pairs in changes.items() for pair in pairs],
        columns=["change", *PAIR],
    )
    rows = kinds.merge(chosen_rows(checked, only), on=PAIR)
    verdicts = pd.Categorical(rows["verdict"].replace("", _NO_THRESHOLD), _VERDICTS)
    rows = pd.concat([rows, pd.get_dummies(verdicts, dtype=int)], axis=1)
    means = {"precision": "later_precision", **{name: name for name in _AT_THRESHOLD}}
    counted = (
        rows.groupby([*PLACE, "change", *latex.TRAINED], sort=False)
        .agg(
            **{name: (name, "sum") for name in _VERDICTS},
            **{name: (column, "mean") for name, column in means.items()},
        )
        .reset_index()
    )
    counted.insert(3, "control", counted["change"].map(controls).fillna(""))
    shown = {"precision": ("Precision", 3)}
    for name, (head, digits) in _AT_THRESHOLD.items():
        counted[f"{name}_above_control"] = counted[name] - _of_controls(counted, name)
        shown[name] = head, digits
        if counted["control"].ne("").any():
            shown[f"{name}_above_control"] = f"{head} above control", digits
    heads = ["Change", "Estimator", *map(str.capitalize, _VERDICTS)]
    heads += [head for head, _ in shown.values()]

    def cells(records: list[dict[Hashable, Any]]) -> tuple[list[str], list[str]]:
        [row] = records
        own = [escape(trained_name(row, labels)), *(str(row[name]) for name in _VERDICTS)]
        own += [number(row[name], digits) for name, (_, digits) in shown.items()]
        return [escape(str(row["change"]))], own

    groups = latex.nested(counted, cells, ["change"], span=len(heads), labels=labels)
    caption = (
        "Thresholds that reach a precision on the earlier checkpoint of each change, by the "
        "verdict on the later one: counts over pairs of checkpoints and seeds. Means over the "
        "selected thresholds: precision on the later checkpoint, change in coverage, and "
        "confident answers that were right and are wrong now. "
        f"{' '.join(possible_errors(rows['verdict']))}"
    ).replace("%", r"\%")
    body = latex.tabular("ll" + "r" * (len(heads) - 2), [latex.line(heads)], groups)
    tex = latex.floating(body, caption=caption, label="thresholds-by-change", shrink=True)
    return Printed(tex, counted)


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


def _with_distinct_markers(styles: Mapping[str, drawing.Look]) -> dict[str, drawing.Look]:
    """Return styles with distinct markers, for print; families can share a marker."""
    distinct: dict[str, drawing.Look] = {}
    for name, look in styles.items():
        taken = {used.marker for used in distinct.values()}
        free = [marker for marker in drawing.MATPLOTLIB_MARKERS if marker not in taken]
        marker = look.marker if look.marker in free or not free else free[0]
        distinct[name] = look._replace(marker=marker)
    return distinct


def _draw_end_correct(axes: "Axes", changes: Sequence[Mapping[Hashable, Any]]) -> None:
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
) -> "Figure":
    """Draw metrics of each kind of change: a row per change, a marker per estimator.

    For an estimator that was trained on several datasets, the first is drawn. The reference of
    the contrast AUC, for a change of one pair, is the end-correct baseline: it follows nothing,
    and its contrast AUC is the share of gained questions.
    """
    rows = _with_wider_intervals(measured, only)
    rows = rows.drop_duplicates([*PLACE, "change", "estimator", "metric"])
    drawn = drawing.in_legend_order(set(rows["estimator"]), labels["estimators"])
    styles = _with_distinct_markers(drawing.looks(drawn))
    places = list(rows.groupby(PLACE, sort=False))
    most = max(group["change"].nunique() for _, group in places)
    height = 0.6 + most * (0.1 + 0.1 * len(drawn))
    columns = [(metric, "value", ENDS) for metric in _CHANGE_METRICS]
    if rows["of_knowledge"].notna().any():
        columns.append(("delta0_balanced", "of_knowledge", _OF_KNOWLEDGE_ENDS))
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
                reference = _CHANGE_METRICS[metric] if is_value else 0.0
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
