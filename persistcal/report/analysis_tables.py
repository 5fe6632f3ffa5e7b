"""Tables of the analyses, of parts of the questions, of changes and of thresholds, as LaTeX."""

from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from persistcal.evaluation.claims import EXAMPLES
from persistcal.evaluation.contrast import control_model
from persistcal.evaluation.findings import threshold_finding
from persistcal.evaluation.metrics.registry import METRICS
from persistcal.evaluation.metrics.registry import names as metric_names
from persistcal.evaluation.thresholds import BROKEN, KEPT, UNDECIDED
from persistcal.report import latex
from persistcal.report.latex import (
    ENDS,
    MISSING,
    PAIR,
    PLACE,
    Printed,
    escape,
    interval,
    number,
)
from persistcal.report.layout import DisplayNames, Names, place_title
from persistcal.report.phrases import (
    exact_percent,
    phrase_word,
    possible_errors,
    reached,
    threshold_range,
)

_ATTRIBUTES = {
    "category": "Category",
    "group": "Group that the facts' weights go by",
    "popularity": "Decile of popularity",
    "first_letter": "First letter of the first name",
    "length": "Decile of length",
    "answer_rarity": "Answer: rarer among training references",
    "answer_length": "Answer: longer",
    "answer_popularity": "Answer: given less often by the checkpoint",
}


def confounds_table(rows: pd.DataFrame, *, labels: DisplayNames) -> str:
    """Return the scores of baselines that use group accuracies only."""

    def cells(row: Mapping[Hashable, Any]) -> list[str]:
        ends = row["lower_2_5pct"], row["upper_97_5pct"]
        return [
            escape(_ATTRIBUTES[row["attribute"]]),
            str(row["n_groups"]),
            number(row["delta0_balanced"]),
            MISSING if ends[0] != ends[0] else interval(*ends),
            number(row["contrast_auc"]),
            number(row["full_auc"]),
        ]

    auc = latex.metric_head("auc")
    heads = ["Known", "Groups", latex.metric_head("delta0_balanced"), escape("95 % interval")]
    heads += [f"Contrast {auc}", f"Full {auc}"]
    groups = latex.by_place(rows, cells, span=len(heads), labels=labels)
    caption = (
        "Baselines that know one attribute of a question, and each checkpoint's accuracy on "
        "the train questions that share it; or the text of the answer alone. An estimator "
        "whose score is no higher need not know more than the baseline."
    )
    body = latex.tabular("lrcccc", [latex.line(heads)], groups)
    return latex.floating(body, caption=caption, label="confounds")


def agreement_table(
    rows: pd.DataFrame, *, labels: DisplayNames, checkpoints: DisplayNames
) -> str:
    """Return how many lost answers two states have in common."""
    heads = ["Category", "Known", "Gone at first", "At second", "At both", "κ"]
    groups = []
    for place, group in rows.groupby([*PLACE, "first", "second"], sort=False):
        model, _, first, second = map(str, place)
        ends = f"{checkpoints[model][first]}, {checkpoints[model][second]}"
        lines = latex.title(f"{place_title(place[:2], labels)}: {ends}", len(heads))
        for row in group.to_dict("records"):
            n = row["known"]
            gone = [row[f"gone_{side}"] for side in ("first", "second", "both")]
            shares = [number(count / n if n else float("nan")) for count in gone]
            cells = [escape(row["category"] or "All"), str(n), *shares]
            lines.append(latex.line([*cells, number(row["kappa"])]))
        groups.append(lines)
    caption = (
        "Of the questions that the reference state answers correctly, the share that is gone "
        "at the first state, at the second and at both; κ is Cohen's, their agreement beyond "
        "chance in which are gone."
    )
    lines = latex.tabular("lrcccc", [latex.line(map(escape, heads))], groups)
    return latex.floating(lines, caption=caption, label="agreement")


def chosen_rows(measured: pd.DataFrame, only: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the estimators `only`, or all rows if none of them occurs."""
    chosen = measured["estimator"].isin(only)
    return measured[chosen] if chosen.any() else measured


def trained_name(row: Mapping[Hashable, Any], labels: DisplayNames) -> str:
    """Return an estimator's display name, with another dataset that it was trained on."""
    name = labels["estimators"].get(row["estimator"], row["estimator"])
    if (trained_on := row["train_dataset"]) == row["dataset"]:
        return name
    return f"{name} (trained on {labels['datasets'].get(trained_on, trained_on)})"


def by_part(
    measured: pd.DataFrame,
    by: Names,
    columns: Sequence[tuple[str, str]],
    *,
    only: Sequence[str] = (),
    labels: DisplayNames,
    caption: str,
    label: str,
) -> Printed:
    """Return metrics of each estimator per group; rows without `scope` are of contrast sets.

    `by` maps the columns that identify a group to their headings. The table shows the
    estimators `only`, or all if none of them occurs.
    """
    rows = chosen_rows(measured, only)
    index = [*PLACE, *by, "train_dataset", "estimator"]
    shown = [f"{scope}_{metric}" for scope, metric in columns]
    table = rows.reindex(columns=[*index, *shown])
    if len(rows):
        names = rows.get("scope", "contrast") + "_" + rows["metric"]
        places = pd.MultiIndex.from_frame(rows[index].drop_duplicates())
        values = rows.assign(metric=names).set_index([*index, "metric"])["value"]
        table = values.unstack("metric").reindex(places)[shown].reset_index()

    def cells(row: Mapping[Hashable, Any]) -> list[str]:
        of_part = [
            number(row[part]) if isinstance(row[part], float) else escape(str(row[part]))
            for part in by
        ]
        return [*of_part, escape(trained_name(row, labels)), *(number(row[m]) for m in shown)]

    n_before = len(by) + 1
    span = n_before + len(shown)
    groups = latex.by_place(table, cells, span=span, labels=labels)
    scopes = [scope for scope, _ in columns]
    spans = [(scope.capitalize(), scopes.count(scope)) for scope in dict.fromkeys(scopes)]
    heads = [*map(escape, by.values()), "Estimator"]
    heads += [latex.metric_head(metric) for _, metric in columns]
    body = latex.tabular(
        "l" * n_before + "c" * len(shown),
        [*latex.spanning(spans, n_before=n_before), latex.line(heads)],
        groups,
    )
    return Printed(latex.floating(body, caption=caption, label=label, shrink=True), table)


_COUNTS = {"improvement": "Gained", "regression": "Lost"}
_SIZES = {"n_answers": "Answers", "accuracy": "Accuracy", "n_contrast": "Contrast", **_COUNTS}
_FOLLOWS = [("contrast", metric) for metric in ("delta0_balanced", "change_auc", "auc")]
_OF_PAIRS = [*_FOLLOWS, ("contrast", "brier"), ("contrast", "smece")]
_OF_ANSWERS = [("contrast", "delta0_balanced"), ("contrast", "auc")]
_OF_SUBSETS = [*_FOLLOWS, *(("full", metric) for metric in metric_names("full"))]


def pairs(
    measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames, caption: str
) -> Printed:
    """Return metrics of each estimator on each pair of checkpoints."""
    by = {"earlier": "Earlier", "later": "Later", **_COUNTS, "kept": "Kept"}
    return by_part(
        measured, by, _OF_PAIRS, only=only, labels=labels, caption=caption, label="pairs"
    )


def min_contrast(
    measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames, caption: str
) -> Printed:
    """Return means of metrics over pairs, by the smallest size of a contrast set."""
    by = {"min_contrast": "At least", "kept": "Pairs", **_COUNTS, "chosen": "Chosen"}
    return by_part(
        measured, by, _OF_PAIRS, only=only, labels=labels, caption=caption, label="min_contrast"
    )


def subsets(measured: pd.DataFrame, *, labels: DisplayNames, caption: str) -> Printed:
    """Return metrics of each estimator on subsets of the questions."""
    measured = measured[measured["by"].isin(["all", "margin", "reference answer"])]
    by = {"by": "By", "group": "Group", **_SIZES, "flips": "Flips"}
    return by_part(measured, by, _OF_SUBSETS, labels=labels, caption=caption, label="subsets")


def by_answer(measured: pd.DataFrame, *, labels: DisplayNames, caption: str) -> Printed:
    """Return metrics of each estimator by the direction of a baseline of the answers' text."""
    attributes = ["answer rarity", "answer length", "answer popularity"]
    measured = measured[measured["by"].isin(attributes)]
    by = {"by": "By", "group": "Baseline", **_COUNTS}
    return by_part(measured, by, _OF_ANSWERS, labels=labels, caption=caption, label="by_answer")


def by_category(measured: pd.DataFrame, *, labels: DisplayNames, caption: str) -> Printed:
    """Return metrics of each estimator by the category of the questions."""
    measured = measured[measured["by"] == "category"]
    by = {"group": "Category", **_SIZES, "flips": "Flips"}
    return by_part(
        measured, by, _OF_SUBSETS, labels=labels, caption=caption, label="by_category"
    )


_CORRECTED_COUNTS = {
    "accuracy_earlier": "Accuracy of {earlier}",
    "accuracy_later": "Accuracy of {later}",
    "contrast_size": "Questions that changed",
    "improvement": "Improvements",
    "regression": "Regressions",
}

# Named kinds of change: the value of each metric for confidence that follows nothing
CHANGE_METRICS = {"delta0_balanced": 0.0, "change_auc": 0.5, "auc": 0.5}
_OF_KNOWLEDGE = {"delta0_balanced": r"$\Delta_K$", "change_auc": r"AUC$_K$"}
_CROSSED_ENDS = ["crossed_lower_2_5pct", "crossed_upper_97_5pct"]
OF_KNOWLEDGE_ENDS = ["of_knowledge_lower_2_5pct", "of_knowledge_upper_97_5pct"]
_NO_THRESHOLD = "none"
_VERDICTS = [KEPT, UNDECIDED, BROKEN, _NO_THRESHOLD]
# Columns of THRESHOLDS that are compared with a control: heading, digits
_AT_THRESHOLD = {
    "coverage_change": ("Coverage change", 3),
    "confident_regressions": ("Confident regressions", 1),
}


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


def _with_interval(row: Mapping[Hashable, Any], value: str, ends: Sequence[str]) -> str:
    """Return a value and its interval, if it has one."""
    shown, low, high = number(row[value]), *(row[end] for end in ends)
    return shown if row[value] != row[value] or low != low else f"{shown} {interval(low, high)}"


def with_wider_intervals(measured: pd.DataFrame, only: Sequence[str]) -> pd.DataFrame:
    """Return the chosen rows with intervals over seeds and questions, where there are seeds."""
    rows = chosen_rows(measured, only)
    over_seeds = rows[[f"seeds_{end}" for end in ENDS]].set_axis(ENDS, axis=1)
    return rows.assign(**over_seeds.combine_first(rows[ENDS]))


def by_change(measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames) -> Printed:
    """Tabulate metrics of each estimator on each kind of change, with intervals."""
    rows = with_wider_intervals(measured, only)
    controls = ", ".join(dict.fromkeys(escape(c) for c in rows["control"] if c))
    is_crossed = bool(rows["crossed"].notna().any())
    claimed = [("of_knowledge", OF_KNOWLEDGE_ENDS)] if controls else []
    claimed += [("crossed", _CROSSED_ENDS)] if is_crossed else []

    def cells(records: list[dict[Hashable, Any]]) -> tuple[list[str], list[str]]:
        first, by_metric = records[0], {row["metric"]: row for row in records}
        values = [_with_interval(by_metric[metric], "value", ENDS) for metric in CHANGE_METRICS]
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

    metric_heads = [latex.metric_head(metric) for metric in CHANGE_METRICS]
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
    """Return a column at each row's control, in the same model or the only other model."""
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
        lambda seeds: _threshold_cells(seeds, checkpoints, labels),
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


def _threshold_cells(
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
        phrase_word(found),
        "–".join(map(str, dict.fromkeys([lost[0], lost[-1]]))),
    ]
