"""All that the page is made of."""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from persistcal.evaluation.replicates import Replicates
from persistcal.report.layout import Description
from persistcal.report.page.analyses import Analyses
from persistcal.report.page.parts import Part

Labels = Mapping[str, Mapping[str, str]]


class Checkpoint(NamedTuple):
    """What is printed for a checkpoint, and how much training it had seen (if known)."""

    label: str
    tokens: float | None


class StudyTable(NamedTuple):
    """A table of the study.

    Attributes
    ----------
    name : str
        Of its files.
    csv, tex : str
        Their content; `tex` may be empty.
    cells : DataFrame
        The CSV as a table.
    description : mapping or None
        For a table of results, see `persistcal.report.layout`.
    """

    name: str
    csv: str
    tex: str
    cells: pd.DataFrame
    description: Description | None


class Study(NamedTuple):
    """All that the page is made of.

    Attributes
    ----------
    parts : list of Part
        A model and dataset each.
    n_confidences : int
        How many predictions there are.
    replicates : list of Replicates
        Of each part, the study's bootstrap.
    main : list of str
        Estimators that the page speaks of; the others are a click away.
    checkpoints : mapping
        By model and name, earlier ones first.
    accuracies : DataFrame
        Table ACCURACIES of `persistcal.store.artifacts`; empty where there is none.
    intervals : DataFrame
        Table INTERVALS of `persistcal.store.artifacts`.
    min_contrast : mapping
        By dataset.
    tables : list of StudyTable
        In order.
    analyses : Analyses
        Those that the study has.
    labels : mapping
        Labels of `models`, `datasets` and `estimators`.
    seed : int
        Of the bootstrap and of samples.
    """

    parts: list[Part]
    n_confidences: int
    replicates: list[Replicates]
    main: list[str]
    checkpoints: Mapping[str, Mapping[str, Checkpoint]]
    accuracies: pd.DataFrame
    intervals: pd.DataFrame
    min_contrast: Mapping[str, int]
    tables: list[StudyTable]
    analyses: Analyses
    labels: Labels
    seed: int


def part_label(part: Part, labels: Labels) -> str:
    """Return what is printed for a model and dataset."""
    model = labels["models"].get(part.model, part.model)
    return f"{model} · {labels['datasets'].get(part.dataset, part.dataset)}"


def member_label(member: tuple[str, str], dataset: str, labels: Labels) -> str:
    """Return what is printed for (train_dataset, estimator) on a dataset."""
    train_dataset, estimator = member
    label = labels["estimators"].get(estimator, estimator)
    if train_dataset == dataset:
        return label
    return f"{label} ({labels['datasets'].get(train_dataset, train_dataset)})"
