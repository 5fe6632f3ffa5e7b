"""Tables of the analyses, and of metrics on parts of the questions, as LaTeX."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.evaluation.metrics.registry import names as metric_names
from persistcal.report import latex
from persistcal.report.latex import MISSING, PLACE, Printed, escape, interval, number
from persistcal.report.layout import DisplayNames, Names, place_title

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
