"""Tables that compare no estimators: each a function from rows to LaTeX and a CSV's rows."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pandas as pd

from persistcal.evaluation.metrics.registry import names
from persistcal.evaluation.proportions import wilson
from persistcal.evaluation.samples import LEVEL
from persistcal.report import latex
from persistcal.report.latex import (
    ENDS,
    MISSING,
    PAIR,
    PlainColumn,
    Printed,
    Row,
    escape,
    number,
    plain_table,
)
from persistcal.report.layout import DisplayNames, Names

# `revision`, `label` and `tokens`, if known, by model and checkpoint, in order;
# tokens seen in training are a number, or its digits as text
Described = Mapping[str, Mapping[str, Mapping[str, Any]]]

STATES_METRICS = ("accuracy", *names("full"))
UNITS = {12: "trillion", 9: "billion", 6: "million", 3: "thousand"}  # by power of ten
_CATEGORY_COLUMNS = 3
_EXAMPLES_PER_CATEGORY = 2
_REFERENCES_PRINTED = 5


def calibration(intervals: pd.DataFrame, *, labels: DisplayNames) -> Printed:
    """Print SmoothECE and the test of calibration of each estimator.

    SmoothECE of each estimator with its noise floor, the value of a calibrated estimator with
    these confidences, and the p-value of calibration.
    """
    errors = intervals[(intervals["metric"] == "smece") & (intervals["conditioning"] == "odds")]
    shown = ["value", "noise_floor", "p_calibrated"]
    key = ["model", "dataset", "train_dataset", "estimator"]
    full, contrast = (
        errors.loc[errors["scope"] == scope, [*key, *shown]].rename(
            columns={name: f"{scope}_{name}" for name in shown}
        )
        for scope in ("full", "contrast")
    )
    rows = full.merge(contrast, how="left", on=key)

    columns = [PlainColumn.estimator(labels)]
    columns += map(PlainColumn, ["ECE", "Floor", "$p$"] * 2, rows.columns[len(key) :], "rrrrrr")
    scopes = "All questions", "Contrast sets"
    above = latex.line(["", *(rf"\multicolumn{{3}}{{c}}{{{scope}}}" for scope in scopes)])
    caption = (
        "SmoothECE beside its noise floor, the mean SmoothECE of a calibrated estimator with "
        "the same confidences and as many questions, and the p-value of the hypothesis that "
        "the estimator is calibrated; on contrast sets conditioned by odds. SmoothECE is "
        "biased upwards and has no valid interval."
    )
    return plain_table(rows, columns, caption, "calibration", labels, above=[above])


def contrast_set_sizes(
    sets: pd.DataFrame,
    *,
    dataset: str,
    checkpoints: DisplayNames,
    min_contrast: int,
    models: Names,
    datasets: Names,
) -> Printed:
    """Print the sizes of the contrast sets of a dataset, a square per model.

    Questions that one checkpoint of {dataset} answers correctly and another one does not. Sets
    of fewer than {min_contrast} questions are dropped.
    """
    right = "row_wrong_column_right"
    forth = {"earlier": "row", "later": "column", "improvement": right}
    back = {"later": "row", "earlier": "column", "regression": right}
    of_dataset = sets[sets["dataset"] == dataset]
    directions = [of_dataset.rename(columns=names) for names in (forth, back)]
    columns = ["model", "dataset", "row", "column", "size", right, "kept", "same_answers"]
    rows = pd.concat(directions, ignore_index=True)[columns]
    if rows.empty:
        raise ValueError(f"no contrast set of dataset {dataset!r}")
    cells = {}
    for model, _, row, column, size, n, kept, _ in rows.itertuples(index=False):
        cell = f"{size} ({n})"
        cells[model, row, column] = cell if kept else rf"\textcolor{{gray}}{{{cell}}}"
    tabulars = []
    for model, of_model in checkpoints.items():
        lines = [
            latex.line([escape(name), *(cells.get((model, row, c), MISSING) for c in of_model)])
            for row, name in of_model.items()
        ]
        heads = [*map(escape, of_model.values())]
        tabulars.append(square(models.get(model, model), heads, lines))
    caption = (
        f"{datasets.get(dataset, dataset)}: sizes of the contrast sets of each pair "
        "of evaluation checkpoints, and in brackets how many of their questions the row's "
        "checkpoint gets wrong and the column's right."
    )
    if not rows["kept"].all():
        caption += f" Gray: not used, as smaller than {min_contrast}."
    if same := int(of_dataset["same_answers"].sum()):
        caption += (
            f" {same} of {of_dataset['size'].sum()} questions have the same answer twice: "
            "there the judge contradicts itself."
        )
    label = f"contrast-set-sizes-{dataset}"
    return Printed(latex.floating(latex.stacked(tabulars), caption, label), rows)


def square(model: str, heads: Sequence[str], rows: Sequence[str]) -> list[str]:
    """Return the tabular of a model, with a column per checkpoint."""
    head = [*latex.title(model, len(heads) + 1, ruled=True), latex.line(["", *heads])]
    return latex.tabular(f"l{'c' * len(heads)}", head, [rows])


def mean_rows(states: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of accuracies, and of the estimators' means over seeds."""
    return states[states["seed"].isin(["", "mean"])].drop(columns="seed")


def states(
    compared: pd.DataFrame, *, checkpoints: DisplayNames, labels: DisplayNames
) -> Printed:
    """Print the differences of each pair of checkpoints or models.

    Differences between two checkpoints of a model, or the last ones of two models, with 95 %
    intervals and p-values.
    """

    def difference(metric: str, line: Row) -> str:
        values = [row for row in line["rows"] if row["metric"] == metric]
        if not values:
            return ""
        style = r"\textbf{{{}}}" if values[0]["p_holm"] < LEVEL else "{}"
        low, high = (values[0][end] for end in ENDS)
        return latex.with_interval(values[0]["difference"], low, high, style)

    rows = mean_rows(compared)
    heads = ["Accuracy", *map(latex.metric_head, names("full"))]
    columns = [
        PlainColumn.pair(checkpoints),
        PlainColumn.estimator(labels),
        *map(PlainColumn, heads, [partial(difference, metric) for metric in STATES_METRICS]),
    ]
    caption = (
        "Differences between two checkpoints on the questions that both answered, the later "
        "one minus the earlier one, with 95 % intervals: accuracies, and AUC, Brier score and "
        "SmoothECE (without an interval) of each estimator on all questions. Bold: told from "
        "zero at 5 % (McNemar's exact test, or a bootstrap of groups if questions have groups; "
        "paired bootstrap), adjusted by Holm's method for the pairs of a model."
    )
    return plain_table(rows, columns, caption, "states", labels, shared=PAIR, shrink=True)


def unsaid(counts: pd.DataFrame, *, checkpoints: DisplayNames, labels: DisplayNames) -> Printed:
    """Answers without a readable stated confidence."""

    def checkpoint(row: Row) -> str:
        return escape(checkpoints[row["model"]].get(row["checkpoint"], row["checkpoint"]))

    columns = [
        PlainColumn.estimator(labels),
        PlainColumn("Checkpoint", checkpoint, "l"),
        PlainColumn("Answers", lambda row: f"{row['answers']:,}", "r"),
        PlainColumn("Without", lambda row: f"{row['unsaid']:,}", "r"),
    ]
    caption = (
        "Test answers, and how many of them have no readable stated confidence; these count as "
        "0.5."
    )
    shown = ["model", "dataset", "estimator", "checkpoint", "answers", "unsaid"]
    return plain_table(counts[shown], columns, caption, "unsaid", labels)


def checkpoint_rows(accuracies: pd.DataFrame, checkpoints: Described) -> pd.DataFrame:
    """Return accuracies in the study's order, with intervals, revisions, labels and tokens."""
    records = [
        {
            "model": model,
            "checkpoint": name,
            "revision": entry.get("revision", name),
            "label": entry.get("label", name),
            "tokens": entry.get("tokens", float("nan")),
        }
        for model, entries in checkpoints.items()
        for name, entry in entries.items()
    ]
    rows = pd.DataFrame(records).merge(accuracies, on=["model", "checkpoint"], how="inner")
    if rows.empty:
        raise ValueError("no accuracy of a checkpoint of this study")
    low, high = wilson(rows["accuracy"], rows["n"])
    return rows.astype({"tokens": float}).assign(lower_2_5pct=low, upper_97_5pct=high)


def checkpoints(
    accuracies: pd.DataFrame, *, described: Described, models: Names, datasets: Names
) -> Printed:
    """Training tokens of the checkpoints and their accuracy on the test questions."""
    rows = checkpoint_rows(accuracies, described)
    unit = next((u for u in UNITS if rows["tokens"].max() >= 10**u), 0)
    seen = "Training data"
    if unit:
        seen = rf"\shortstack{{{seen}\\({UNITS[unit]}s of tokens)}}"
    names = ["Short name", "Checkpoint", seen, *map(escape, datasets.values())]
    heads = [*latex.spanning([("Accuracy (%)", len(datasets))], n_before=3), latex.line(names)]
    groups = []
    for model, of_model in rows.groupby(rows["model"].astype(str), sort=False):
        group = latex.title(models.get(model, model), 3 + len(datasets), ruled=True)
        for _, of_checkpoint in of_model.groupby("checkpoint", sort=False):
            first = of_checkpoint.iloc[0]
            cells = {row["dataset"]: _accuracy(row) for row in of_checkpoint.to_dict("records")}
            tokens = described[model][first["checkpoint"]].get("tokens")
            names = [
                escape(first["label"]) if first["label"] != first["revision"] else "",
                rf"\texttt{{{escape(first['revision'])}}}",
            ]
            values = [cells.get(dataset, MISSING) for dataset in datasets]
            group.append(latex.line([*names, _tokens(tokens, unit), *values]))
        groups.append(group)
    lines = latex.tabular(f"cl{'c' * (1 + len(datasets))}", heads, groups)
    if (rows["split"] == "train").any():
        lines += ["", r"$^\dagger$ on the training questions"]
    caption = "Training data and accuracy of the checkpoints, with 95 % intervals."
    return Printed(latex.floating(lines, caption, "checkpoints"), rows)


def _tokens(stated: float | str | None, unit: int) -> str:
    """Return tokens in units of a power of ten; stated as text, with the digits stated."""
    if stated is None:
        return MISSING
    if isinstance(stated, str):
        return f"{Decimal(stated).scaleb(-unit):f}"
    return number(stated / 10**unit, 2)


def _accuracy(row: Mapping[Any, Any]) -> str:
    ends = latex.interval(100 * row["lower_2_5pct"], 100 * row["upper_97_5pct"], digits=1)
    dagger = r"$^\dagger$" * (row["split"] == "train")
    return rf"{number(100 * row['accuracy'], 1)}{dagger} {{\scriptsize {ends}}}"


def question_categories(questions: pd.DataFrame, *, dataset: str, datasets: Names) -> Printed:
    """Print the categories in alphabetical order.

    Categories of the questions of {dataset} that are asked, and how many there are of each.
    """
    asked = questions[~questions["excluded"] & questions["split"].isin(["train", "test"])]
    asked = asked[asked["category"] != ""]
    if asked.empty:
        raise ValueError(
            f"no question has a category; take {dataset!r} out of analyses.questions.categories"
        )
    counted = asked.assign(n_train=asked["split"] == "train", n_test=asked["split"] == "test")
    rows = counted.groupby("category", as_index=False)[["n_train", "n_test"]].sum()
    rows = rows.sort_values(
        "category", key=lambda names: names.str.casefold(), kind="stable", ignore_index=True
    )
    names = [escape(name) for name in rows["category"]]
    names += [""] * (-len(names) % _CATEGORY_COLUMNS)
    starts = range(0, len(names), _CATEGORY_COLUMNS)
    lines = [latex.line(names[start : start + _CATEGORY_COLUMNS]) for start in starts]
    name = datasets.get(dataset, dataset)
    table = latex.tabular("l" * _CATEGORY_COLUMNS, lines)
    caption = f"{name}: categories of the questions included in the evaluation."
    return Printed(latex.floating(table, caption, f"{dataset}-categories"), rows)


def question_examples(questions: pd.DataFrame, *, dataset: str, datasets: Names) -> Printed:
    """Two test questions of each category of {dataset}, with their reference answers."""
    asked = questions[(questions["split"] == "test") & ~questions["excluded"]]
    if asked.empty:
        raise ValueError(
            f"no test question; take {dataset!r} out of analyses.questions.examples"
        )
    ordered = asked.sort_values(["category", "index"], ignore_index=True)
    examples = ordered.groupby("category").head(_EXAMPLES_PER_CATEGORY)
    rows = pd.DataFrame(
        {
            "type": [name[:1].upper() + name[1:] for name in examples["category"]],
            "question": examples["question"],
            "references": examples["references"].map("; ".join),
        }
    )
    more = examples["references"].str.len() - _REFERENCES_PRINTED
    first = examples["references"].str[:_REFERENCES_PRINTED].map("; ".join)
    printed = rows.assign(
        references=first.where(more <= 0, first + more.map("; and {} more".format))
    )
    lines = latex.tabular(
        r"lp{0.42\linewidth}p{0.25\linewidth}",
        [latex.line(["Type", "Question", "Reference answer(s)"])],
        [[latex.line(map(escape, row)) for row in printed.to_numpy()]],
    )
    caption = f"{datasets.get(dataset, dataset)}: example questions."
    several = examples[examples["references"].str.len() > 1]
    if len(several) and several["any_of"].all():
        caption += (
            " Where several reference answers are given, an answer that matches any of them "
            "is accepted."
        )
    return Printed(latex.floating(lines, caption, f"{dataset}-examples"), rows)
