"""Tables of the analyses, of parts of the questions, of changes and of thresholds, as LaTeX."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import itemgetter

import numpy as np
import pandas as pd

from persistcal.evaluation.claims import EXAMPLES
from persistcal.evaluation.contrast import control_model
from persistcal.evaluation.findings import Finding, threshold_finding
from persistcal.evaluation.metrics.registry import METRICS
from persistcal.evaluation.metrics.registry import names as metric_names
from persistcal.evaluation.thresholds import BROKEN, KEPT, UNDECIDED
from persistcal.report import latex
from persistcal.report.latex import (
    ENDS,
    MISSING,
    PAIR,
    PLACE,
    PlainColumn,
    Printed,
    Row,
    escape,
    interval,
    number,
    plain_table,
)
from persistcal.report.layout import DisplayNames, Names
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
    auc = latex.metric_head("auc")
    columns = [
        PlainColumn("Known", lambda row: escape(_ATTRIBUTES[row["attribute"]]), "l"),
        PlainColumn("Groups", "n_groups", "r"),
        PlainColumn(latex.metric_head("delta0_balanced"), "delta0_balanced"),
        PlainColumn(escape("95 % interval"), lambda row: interval(*(row[end] for end in ENDS))),
        PlainColumn(f"Contrast {auc}", "contrast_auc"),
        PlainColumn(f"Full {auc}", "full_auc"),
    ]
    caption = (
        "Baselines that know one attribute of a question, and each checkpoint's accuracy on "
        "the train questions that share it; or the text of the answer alone. An estimator "
        "whose score is no higher need not know more than the baseline."
    )
    return plain_table(rows, columns, caption, "confounds", labels).tex


def agreement_table(
    rows: pd.DataFrame, *, labels: DisplayNames, checkpoints: DisplayNames
) -> str:
    """Return how many lost answers two states have in common."""

    def share(name: str) -> Callable[[Row], str]:
        return lambda row: number(row[name] / row["known"] if row["known"] else np.nan)

    columns = [
        PlainColumn("Category", lambda row: escape(row["category"] or "All"), "l"),
        PlainColumn("Known", "known", "r"),
        PlainColumn("Gone at first", share("gone_first")),
        PlainColumn("At second", share("gone_second")),
        PlainColumn("At both", share("gone_both")),
        PlainColumn(escape("κ"), "kappa"),
    ]
    names = rows[["model", "dataset", "first", "second"]].itertuples(index=False)
    titled = [
        f"{labels['datasets'].get(d, d)}: {checkpoints[m][first]}, {checkpoints[m][second]}"
        for m, d, first, second in names
    ]
    caption = (
        "Of the questions that the reference state answers correctly, the share that is gone "
        "at the first state, at the second and at both; κ is Cohen's, their agreement beyond "
        "chance in which are gone."
    )
    shown = rows.assign(dataset=titled)
    return plain_table(shown, columns, caption, "agreement", labels).tex


def chosen_rows(measured: pd.DataFrame, only: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the estimators `only`, or all rows if none of them occurs."""
    mask = measured["estimator"].isin(only)
    return measured[mask] if mask.any() else measured


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

    printed = [PlainColumn(escape(head), part, "l") for part, head in by.items()]
    printed.append(PlainColumn.estimator(labels))
    spans = Counter(scope.capitalize() for scope, _ in columns).items()
    above = latex.spanning(list(spans), n_before=len(printed))
    heads = [latex.metric_head(metric) for _, metric in columns]
    printed += map(PlainColumn, heads, shown)
    return plain_table(table, printed, caption, label, labels, above=above, shrink=True)


_COUNTS = {"improvement": "Gained", "regression": "Lost"}
_SIZES = {"n_answers": "Answers", "accuracy": "Accuracy", "n_contrast": "Contrast", **_COUNTS}
_FOLLOWS = [("contrast", metric) for metric in ("delta0_balanced", "change_auc", "auc")]
_OF_PAIRS = [*_FOLLOWS, ("contrast", "brier"), ("contrast", "smece")]
_OF_ANSWERS = [("contrast", "delta0_balanced"), ("contrast", "auc")]
_OF_SUBSETS = [*_FOLLOWS, *(("full", metric) for metric in metric_names("full"))]


# Tables by parts of the questions: kinds of parts, headings of a part, and metrics
PARTS: Mapping[str, tuple[Sequence[str], Names, Sequence[tuple[str, str]]]] = {
    "pairs": (
        [],
        {"earlier": "Earlier", "later": "Later", **_COUNTS, "kept": "Kept"},
        _OF_PAIRS,
    ),
    "min_contrast": (
        [],
        {"min_contrast": "At least", "kept": "Pairs", **_COUNTS, "chosen": "Chosen"},
        _OF_PAIRS,
    ),
    "subsets": (
        ["all", "margin", "reference answer"],
        {"by": "By", "group": "Group", **_SIZES, "flips": "Flips"},
        _OF_SUBSETS,
    ),
    "by_answer": (
        ["answer rarity", "answer length", "answer popularity"],
        {"by": "By", "group": "Baseline", **_COUNTS},
        _OF_ANSWERS,
    ),
    "by_category": (
        ["category"],
        {"group": "Category", **_SIZES, "flips": "Flips"},
        _OF_SUBSETS,
    ),
}


def parts(
    measured: pd.DataFrame,
    *,
    name: str,
    only: Sequence[str],
    labels: DisplayNames,
    caption: str,
) -> Printed:
    """Return metrics of each estimator on pairs or parts of the questions, as `PARTS` says."""
    kinds, by, columns = PARTS[name]
    if kinds:
        measured, only = measured[measured["by"].isin(kinds)], ()
    words = {"caption": caption, "label": name}
    return by_part(measured, by, columns, only=only, labels=labels, **words)


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
    """Numbers by the judge's labels, and corrected by a person's."""

    def measure(row: Row) -> str:
        if row["estimator"]:
            return METRICS[row["metric"]].latex
        of_model = checkpoints.get(row["model"], {})
        ends = {end: of_model.get(row[end], row[end]) for end in PAIR}
        return escape(_CORRECTED_COUNTS[row["metric"]].format(**ends))

    def digits(row: Row) -> int:
        return 0 if row["corrected"] > 1 else 3

    def correction(row: Row) -> str:
        low, high = (row[end] for end in ENDS)
        n = digits(row)
        return f"{number(row['corrected'], n)} {interval(low, high, n)}"

    columns = [
        PlainColumn.estimator(labels),
        PlainColumn("Measure", measure, "l"),
        PlainColumn("By the judge", lambda row: number(row["judged"], digits(row)), "r"),
        PlainColumn("Corrected", correction, "r"),
    ]
    caption = (
        "Accuracies, questions whose correctness changed, and metrics on them, by the judge's "
        "labels and corrected by those of a person, with 95 % intervals over the questions and "
        "those of them that were audited."
    )
    return plain_table(corrected, columns, caption, "corrections", labels)


def with_wider_intervals(measured: pd.DataFrame, only: Sequence[str]) -> pd.DataFrame:
    """Return the chosen rows with intervals over seeds and questions, where there are seeds."""
    rows = chosen_rows(measured, only)
    over_seeds = rows[[f"seeds_{end}" for end in ENDS]].set_axis(ENDS, axis=1)
    return rows.assign(**over_seeds.combine_first(rows[ENDS]))


def by_change(measured: pd.DataFrame, *, only: Sequence[str], labels: DisplayNames) -> Printed:
    """Kinds of change, and whether confidence follows each, with 95 % intervals."""
    rows = with_wider_intervals(measured, only)
    controls = ", ".join(dict.fromkeys(escape(c) for c in rows["control"] if c))
    is_crossed = bool(rows["crossed"].notna().any())
    claimed = [("of_knowledge", OF_KNOWLEDGE_ENDS)] if controls else []
    claimed += [("crossed", _CROSSED_ENDS)] if is_crossed else []

    def of_metric(metric: str, value: str, ends: Sequence[str]) -> Callable[[Row], str]:
        def cell(line: Row) -> str:
            [row] = [row for row in line["rows"] if row["metric"] == metric]
            return latex.with_interval(row[value], *(row[end] for end in ends))

        return cell

    def in_lost(row: Row) -> str:
        means = number(row["lost_before"]), number(row["lost_after"])
        return r" $\to$ ".join(means) if row["regression"] else MISSING

    columns = [
        PlainColumn("Change", "change", "l", shared=True),
        PlainColumn("Gained", "improvement", "r", shared=True),
        PlainColumn("Lost", "regression", "r", shared=True),
        PlainColumn.estimator(labels),
    ]
    columns += [
        PlainColumn(latex.metric_head(metric), of_metric(metric, "value", ENDS))
        for metric in CHANGE_METRICS
    ]
    for value, ends in claimed:
        for metric, head in _OF_KNOWLEDGE.items():
            crossed_head = f"{latex.metric_head(metric)}, crossed"
            shown = crossed_head if value == "crossed" else head
            columns.append(PlainColumn(shown, of_metric(metric, value, ends)))
    if claimed:
        columns.append(PlainColumn("Claim", lambda row: escape(row["word"]) or MISSING))
    columns.append(PlainColumn("In lost ones", in_lost))
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
    words = caption, "by-change", labels
    return plain_table(rows, columns, *words, shared=["change"], shrink=True)


def thresholds_by_change(
    checked: pd.DataFrame,
    *,
    changes: Mapping[str, Sequence[Sequence[str]]],
    controls: Names,
    only: Sequence[str],
    labels: DisplayNames,
) -> Printed:
    """Count the verdicts on each estimator's thresholds, by kind of change.

    Kinds of change, and whether thresholds survive each.

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
    heads = {"precision": ("Precision", 3)}
    for name, (head, digits) in _AT_THRESHOLD.items():
        counted[f"{name}_above_control"] = counted[name] - _of_controls(counted, name)
        heads[name] = head, digits
        if counted["control"].ne("").any():
            heads[f"{name}_above_control"] = f"{head} above control", digits

    def rounded(name: str, digits: int) -> Callable[[Row], str]:
        return lambda row: number(row[name], digits)

    columns = [
        PlainColumn("Change", "change", "l", shared=True),
        PlainColumn.estimator(labels),
        *(PlainColumn(name.capitalize(), name, "r") for name in _VERDICTS),
        *(PlainColumn(head, rounded(name, n), "r") for name, (head, n) in heads.items()),
    ]
    caption = (
        "Thresholds that reach a precision on the earlier checkpoint of each change, by the "
        "verdict on the later one: counts over pairs of checkpoints and seeds. Means over the "
        "selected thresholds: precision on the later checkpoint, change in coverage, and "
        "confident answers that were right and are wrong now. "
        f"{' '.join(possible_errors(rows['verdict']))}"
    ).replace("%", r"\%")
    words = caption, "thresholds-by-change", labels
    return plain_table(counted, columns, *words, shared=["change"], shrink=True)


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

    Thresholds that reach a precision on the earlier checkpoint, and whether they keep it on the
    later one.

    `only` names the estimators to show. Values over several seeds are ranges.
    """
    rows = chosen_rows(checked, only)

    def of_finding(
        phrase: Callable[[Finding], str], missing: str = MISSING
    ) -> Callable[[Row], str]:
        def cell(line: Row) -> str:
            found = threshold_finding(line["rows"])
            return phrase(found) if found.evidence["verdict"] else missing

        return cell

    def coverages(found: Finding) -> str:
        return r" $\to$ ".join(threshold_range(found, f"{end}_coverage") for end in PAIR)

    def lost(found: Finding) -> str:
        counts = found.evidence["confident_regressions"]
        return "–".join(f"{n:.0f}" for n in dict.fromkeys([min(counts), max(counts)]))

    columns = [
        PlainColumn.pair(checkpoints),
        PlainColumn.estimator(labels),
        PlainColumn("Threshold", of_finding(lambda found: threshold_range(found, "threshold"))),
        PlainColumn("Precision", of_finding(lambda found: escape(reached(found)))),
        PlainColumn("Coverage", of_finding(coverages)),
        PlainColumn("Verdict", of_finding(phrase_word, "no threshold")),
        PlainColumn("Lost", of_finding(lost), "r"),
    ]
    target = exact_percent(rows["target"].iloc[0]) if len(rows) else "the target"
    caption = (
        f"Thresholds with a precision of at least {target} on the earlier checkpoint "
        "(Learn then Test), and what they reach on the later one: precision with an exact 95 % "
        "interval, coverage before and after, verdict (one-sided 5 %), and confident answers "
        "that were right and are wrong now. Ranges are over seeds. "
        f"{' '.join(possible_errors(rows['verdict']))}"
    ).replace("%", r"\%")
    return plain_table(rows, columns, caption, "thresholds", labels, shared=PAIR, shrink=True)
