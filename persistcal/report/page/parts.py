"""What the page knows of one model and dataset, as arrays."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.answers.predictions import label_predictions, take_predictions
from persistcal.evaluation.arrange import ABSENT, AnswerArrays, arrange
from persistcal.evaluation.contrast import ContrastSet, Pairs, choose_pairs, contrast_sets


class Texts(NamedTuple):
    """The words behind the predictions of a part.

    Attributes
    ----------
    questions : DataFrame
        Table QUESTIONS of `persistcal.store.artifacts`.
    clusters, labels : mapping of str to DataFrame
        Tables CLUSTERS and LABELS by checkpoint.
    """

    questions: pd.DataFrame
    clusters: Mapping[str, pd.DataFrame]
    labels: Mapping[str, pd.DataFrame]


class Part(NamedTuple):
    """One model and dataset.

    Attributes
    ----------
    model, dataset : str
        Names.
    checkpoints : tuple of str
        Those whose correctness is known: earlier ones first, then the evaluation's.
    n_earlier : int
        How many of them come before the evaluation.
    answers : AnswerArrays
        The predictions at the evaluation checkpoints.
    correct : int8 ndarray of shape (n_checkpoints, n_questions)
        As in `AnswerArrays`, with the earlier checkpoints.
    pairs : list of ContrastSet
        Of the evaluation checkpoints.
    texts : Texts or None
        None where a study has only predictions.
    order : tuple of str
        Estimators as they are listed.
    """

    model: str
    dataset: str
    checkpoints: tuple[str, ...]
    n_earlier: int
    answers: AnswerArrays
    correct: NDArray[np.int8]
    pairs: list[ContrastSet]
    texts: Texts | None
    order: tuple[str, ...]

    @property
    def members(self) -> dict[tuple[str, str], list[NDArray[np.float64]]]:
        """The confidences of each (train_dataset, estimator), in the order of the study."""
        gathered = self.answers.estimators
        place = {name: i for i, name in enumerate(self.order)}
        ordered = sorted(gathered, key=lambda member: place.get(member[1], len(place)))
        return {member: gathered[member] for member in ordered}

    @property
    def key(self) -> str:
        """Name of the part in links."""
        return f"{self.model}/{self.dataset}"


def arrange_part(
    predictions: pd.DataFrame,
    *,
    model: str,
    dataset: str,
    earlier: Sequence[str],
    evaluation: Sequence[str],
    min_contrast: int,
    texts: Texts | None,
    order: Sequence[str] = (),
    pairs: Pairs = "all",
) -> Part:
    """Arrange what is known of one model and dataset.

    Parameters
    ----------
    predictions : DataFrame
        Table PREDICTIONS of `persistcal.store.artifacts`.
    model, dataset : str
        Names.
    earlier, evaluation : sequence of str
        Checkpoints in order. An earlier one is shown where its answers to the
        evaluated questions were judged.
    min_contrast : int
        Smallest contrast set that is used.
    texts : Texts or None
        Questions and answers, where the study has them.
    order : sequence of str
        Estimators as they are listed; others come after them.
    pairs : {"all", "adjacent", "first"} or sequence of (str, str), default="all"
        See `persistcal.evaluation.contrast.choose_pairs`.
    """
    answers = arrange(predictions, list(evaluation))
    rows, shown = [], []
    for checkpoint in earlier:
        if texts is None or checkpoint not in texts.labels:
            continue
        top = label_predictions(
            take_predictions(texts.questions, texts.clusters[checkpoint]),
            texts.labels[checkpoint],
        )
        row = np.full(len(answers.questions), ABSENT, np.int8)
        place = pd.Index(answers.questions).get_indexer(pd.Index(top["question_id"]))
        row[place[place >= 0]] = top["correct"].to_numpy()[place >= 0]
        if (row != ABSENT).any():
            rows.append(row)
            shown.append(checkpoint)
    return Part(
        model,
        dataset,
        (*shown, *answers.checkpoints),
        len(shown),
        answers,
        np.vstack([*rows, answers.correct]) if rows else answers.correct,
        contrast_sets(
            answers.correct,
            min_contrast=min_contrast,
            pairs=choose_pairs(pairs, answers.checkpoints),
        ),
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
        gathered.append(
            {
                "kept": int((was & now).sum()),
                "gained": int((~was & now).sum()),
                "lost": int((was & ~now).sum()),
                "unknown": int((~was & ~now).sum()),
            }
        )
    return gathered
