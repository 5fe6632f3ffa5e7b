"""The answers of one model and dataset as the page shows them, as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.answers.predictions import label_predictions, take_predictions
from persistcal.evaluation.arrange import ABSENT, AnswerArrays, arrange
from persistcal.evaluation.contrast import ContrastSet, Pairs, choose_pairs, contrast_sets
from persistcal.report.layout import DisplayNames, Member


class Texts(NamedTuple):
    """The words behind predictions: table QUESTIONS; by checkpoint CLUSTERS and LABELS."""

    questions: pd.DataFrame
    clusters: Mapping[str, pd.DataFrame]
    labels: Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Subject:
    """A model on a dataset: checkpoints in order, and the contrast sets that are used.

    A training checkpoint (`earlier`) is shown where its answers to the evaluated questions
    were judged.
    """

    model: str
    dataset: str
    earlier: Sequence[str]
    evaluation: Sequence[str]
    min_contrast: int
    pairs: Pairs = "all"

    def title(self, labels: DisplayNames) -> str:
        """Return the display names of model and dataset."""
        return title_of(self.model, self.dataset, labels)

    def name(self, member: Member, labels: DisplayNames) -> str:
        """Return the display name of an estimator, with a dataset that it was trained on."""
        train_dataset, estimator = member
        label = labels["estimators"].get(estimator, estimator)
        if train_dataset == self.dataset:
            return label
        return f"{label} ({labels['datasets'].get(train_dataset, train_dataset)})"


def title_of(model: str, dataset: str, labels: DisplayNames) -> str:
    """Return the display names of a model and a dataset."""
    name = labels["models"].get(model, model)
    return f"{name} · {labels['datasets'].get(dataset, dataset)}"


class Part(NamedTuple):
    """The answers to one dataset of one model.

    Attributes
    ----------
    subject : Subject
    checkpoints : tuple of str
        Those whose correctness is known: training ones first, then the evaluation's.
    n_earlier : int
        How many of them are training checkpoints.
    answers : AnswerArrays
        The predictions at the evaluation checkpoints.
    correct : int8 ndarray of shape (n_checkpoints, n_questions)
        As in `AnswerArrays`, with the training checkpoints.
    pairs : list of ContrastSet
        Of the evaluation checkpoints.
    texts : Texts or None
        None where a study has only predictions.
    order : tuple of str
        Estimators as they are listed; others come after them.
    """

    subject: Subject
    checkpoints: tuple[str, ...]
    n_earlier: int
    answers: AnswerArrays
    correct: NDArray[np.int8]
    pairs: list[ContrastSet]
    texts: Texts | None
    order: tuple[str, ...]

    @property
    def members(self) -> dict[Member, list[NDArray[np.float64]]]:
        """The confidences of each (train_dataset, estimator), in the order of the study."""
        gathered = self.answers.estimators
        rank = {name: i for i, name in enumerate(self.order)}
        ordered = sorted(gathered, key=lambda member: rank.get(member[1], len(rank)))
        return {member: gathered[member] for member in ordered}


def arrange_part(
    predictions: pd.DataFrame,
    subject: Subject,
    *,
    texts: Texts | None = None,
    order: Sequence[str] = (),
) -> Part:
    """Arrange rows of PREDICTIONS of one model and dataset, and its texts, as a `Part`."""
    answers = arrange(predictions, list(subject.evaluation))
    rows = {}
    for checkpoint in subject.earlier:
        if texts is None or checkpoint not in texts.labels:
            continue
        taken = take_predictions(texts.questions, texts.clusters[checkpoint])
        top = label_predictions(taken, texts.labels[checkpoint])
        row = np.full(len(answers.questions), ABSENT, np.int8)
        at = pd.Index(answers.questions).get_indexer(pd.Index(top["question_id"]))
        row[at[at >= 0]] = top["correct"].to_numpy()[at >= 0]
        if (row != ABSENT).any():
            rows[checkpoint] = row
    chosen = choose_pairs(subject.pairs, answers.checkpoints)
    return Part(
        subject,
        (*rows, *answers.checkpoints),
        len(rows),
        answers,
        np.vstack([*rows.values(), answers.correct]),
        contrast_sets(answers.correct, min_contrast=subject.min_contrast, pairs=chosen),
        texts,
        tuple(order),
    )


def flows(correct: NDArray[np.int8]) -> list[dict[str, int]]:
    """Count what happens to knowledge between neighbouring checkpoints.

    Parameters
    ----------
    correct : int8 ndarray of shape (n_checkpoints, n_questions)
        As in `Part`; a question counts where both neighbours answered it.

    Returns
    -------
    list of dict
        Per neighbours: questions `kept` (correct at both), `gained`, `lost`
        and `unknown` (correct at neither).

    Examples
    --------
    >>> flows(np.array([[1, 0, 1, 0, -1], [1, 1, 0, 0, 1]], np.int8))
    [{'kept': 1, 'gained': 1, 'lost': 1, 'unknown': 1}]
    """
    gathered = []
    for before, after in pairwise(correct):
        both = (before != ABSENT) & (after != ABSENT)
        was, now = before[both] == 1, after[both] == 1
        counts = {"kept": was & now, "gained": ~was & now, "lost": was & ~now}
        counts["unknown"] = ~was & ~now
        gathered.append({name: int(some.sum()) for name, some in counts.items()})
    return gathered
