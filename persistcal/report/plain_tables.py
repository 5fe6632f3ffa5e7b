"""Tables that compare no estimators: each a function from rows to LaTeX and a CSV's rows.

`workflow/rules/report.smk` has an entry for each: the function, what it reads, its settings.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from persistcal.report.analysis_tables import similarity_table
from persistcal.report.question_tables import (
    categories_table,
    category_rows,
    example_questions,
    example_rows,
    examples_table,
)
from persistcal.report.study_tables import (
    checkpoint_rows,
    checkpoints_table,
    contrast_matrix,
    contrast_table,
)

Labels = Mapping[str, Mapping[str, str]]


class Printed(NamedTuple):
    """A table as LaTeX, and its rows as the CSV has them."""

    tex: str
    rows: pd.DataFrame


def contrast_set_sizes(
    sets: pd.DataFrame,
    *,
    dataset: str,
    checkpoints: Mapping[str, Mapping[str, str]],
    min_contrast: int,
    labels: Labels,
) -> Printed:
    """Sizes of the contrast sets of one dataset."""
    matrix = contrast_matrix(sets[sets["dataset"] == dataset])
    if matrix.empty:
        raise ValueError(f"no contrast set of dataset {dataset!r}")
    tex = contrast_table(
        matrix,
        checkpoints=checkpoints,
        models=labels["models"],
        dataset=labels["datasets"].get(dataset, dataset),
        min_contrast=min_contrast,
        label=f"contrast-set-sizes-{dataset}",
    )
    return Printed(tex, matrix)


def checkpoints(
    accuracies: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Mapping[str, Mapping[str, Any]]],
    labels: Labels,
) -> Printed:
    """Training tokens and accuracies of all checkpoints."""
    rows = checkpoint_rows(accuracies, checkpoints)
    if rows.empty:
        raise ValueError("no accuracy of a checkpoint of this study")
    tex = checkpoints_table(
        rows,
        checkpoints=checkpoints,
        models=labels["models"],
        datasets=labels["datasets"],
        label="checkpoints",
    )
    return Printed(tex, rows)


def weight_similarity(
    similarities: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Mapping[str, str]],
    labels: Labels,
) -> Printed:
    """Cosine similarities of the checkpoints' weights."""
    tex = similarity_table(
        similarities,
        checkpoints=checkpoints,
        models=labels["models"],
        label="weight-similarity",
    )
    return Printed(tex, similarities)


def question_categories(questions: pd.DataFrame, *, dataset: str, labels: Labels) -> Printed:
    """Categories of the questions of one dataset that are asked."""
    rows = category_rows(questions)
    if rows.empty:
        raise ValueError(
            f"no question has a category; take {dataset!r} out of analyses.questions.categories"
        )
    name = labels["datasets"].get(dataset, dataset)
    return Printed(categories_table(rows, dataset=name, label=f"{dataset}-categories"), rows)


def question_examples(questions: pd.DataFrame, *, dataset: str, labels: Labels) -> Printed:
    """Two test questions of each category of one dataset."""
    examples = example_questions(questions)
    if examples.empty:
        raise ValueError(
            f"no test question; take {dataset!r} out of analyses.questions.examples"
        )
    name = labels["datasets"].get(dataset, dataset)
    tex = examples_table(examples, dataset=name, label=f"{dataset}-examples")
    return Printed(tex, example_rows(examples))
