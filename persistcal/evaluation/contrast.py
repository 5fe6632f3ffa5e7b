"""Contrast sets: the questions that one checkpoint answers correctly and another does not."""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import ABSENT
from persistcal.store.artifacts import CONTRAST_SETS

Listed = Sequence[Sequence[str]]
Pairs = Literal["all", "adjacent", "first"] | Listed | Mapping[str, Listed]


def control_model(model: str, models: Collection[str]) -> str | None:
    """Return the model of a control: the same model, or else the only one of `models`.

    >>> [control_model("a", models) for models in (["a", "b"], ["b"], ["b", "c"])]
    ['a', 'b', None]
    """
    if model in models:
        return model
    return next(iter(models)) if len(models) == 1 else None


class ContrastSet(NamedTuple):
    """Questions that exactly one of two checkpoints answers correctly, by their positions.

    `improvement` is True for questions that only the later checkpoint answers correctly, and
    False for regressions. `kept` is True if the set is large enough to be evaluated.
    """

    earlier: int
    later: int
    questions: NDArray[np.intp]
    improvement: NDArray[np.bool_]
    kept: bool

    @property
    def has_both_directions(self) -> bool:
        """Whether some questions were gained and some were lost."""
        return bool(self.improvement.any() and not self.improvement.all())

    def only(self, mask: NDArray[np.bool_]) -> "ContrastSet":
        """Return the contrast set restricted to the questions in `mask`."""
        questions, improvement = self.questions[mask], self.improvement[mask]
        return self._replace(questions=questions, improvement=improvement)


def choose_pairs(pairs: Pairs, checkpoints: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs of checkpoints for which contrast sets are built.

    "all" gives all pairs, "adjacent" each checkpoint with the next, and "first" the first
    checkpoint with each other one. A list or a mapping gives each listed pair with both ends in
    `checkpoints`; names of groups are ignored.

    >>> choose_pairs("adjacent", ["a", "b", "c"])
    [(0, 1), (1, 2)]
    >>> choose_pairs([["a", "c"], ["x", "y"]], ["a", "b", "c"])
    [(0, 2)]
    >>> choose_pairs({"tuned": [["a", "b"]], "any": [["a", "b"], ["a", "c"]]}, ["a", "b", "c"])
    [(0, 1), (0, 2)]
    """
    places = range(len(checkpoints))
    if pairs == "all":
        return list(combinations(places, 2))
    if pairs == "adjacent":
        return list(pairwise(places))
    if pairs == "first":
        return [(0, later) for later in places[1:]]
    if isinstance(pairs, Mapping):
        pairs = [pair for listed in pairs.values() for pair in listed]
    # The text "ab" would be taken as the pair of "a" and "b".
    if isinstance(pairs, str) or any(isinstance(p, str) or len(p) != 2 for p in pairs):
        raise ValueError(
            f"pairs is {pairs!r}, but it must be 'all', 'adjacent', 'first', or a list of "
            "pairs of checkpoints."
        )
    place = {name: number for number, name in enumerate(checkpoints)}
    chosen = [(place[a], place[b]) for a, b in pairs if a in place and b in place]
    for earlier, later in chosen:
        if earlier >= later:
            raise ValueError(
                f"pairs lists ({checkpoints[earlier]}, {checkpoints[later]}): name two "
                f"checkpoints, the earlier one first, in the order {', '.join(checkpoints)}."
            )
    return sorted(set(chosen))


def contrast_sets(
    correct: NDArray[np.int8],
    *,
    min_contrast: int,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> list[ContrastSet]:
    """Return the contrast sets of `pairs`, in order; by default of all pairs of checkpoints.

    Parameters
    ----------
    correct : int8 ndarray of shape (n_checkpoints, n_questions)
        As in `AnswerArrays`. A question counts for a pair only when both checkpoints answered
        it.
    min_contrast : int
        Sets of fewer questions are not kept.

    Examples
    --------
    >>> correct = np.array([[0, 1, 1, -1], [1, 0, 1, 1]], np.int8)
    >>> contrast_sets(correct, min_contrast=3)
    [ContrastSet(earlier=0, later=1, questions=array([0, 1]),
                 improvement=array([ True, False]), kept=False)]
    """
    sets = []
    for earlier, later in combinations(range(len(correct)), 2) if pairs is None else pairs:
        first, second = correct[earlier], correct[later]
        questions = np.flatnonzero((first != ABSENT) & (second != ABSENT) & (first != second))
        kept = len(questions) >= min_contrast
        sets.append(ContrastSet(earlier, later, questions, second[questions] == 1, kept))
    return sets


def arrange_answers(
    answers: Mapping[str, pd.DataFrame],
) -> tuple[NDArray[np.int8], NDArray[np.object_]]:
    """Return labels of shape (n_checkpoints, n_questions), and the ids of the questions.

    `answers` have columns question_id and correct. A question without a row was not answered.
    """
    columns = [table.set_index("question_id")["correct"] for table in answers.values()]
    together = pd.concat(columns, axis=1, keys=list(answers)).sort_index()
    labels = together.astype("Int8").fillna(ABSENT).to_numpy(np.int8).T
    return labels, together.index.to_numpy(object)


def describe_sets(sets: Sequence[ContrastSet], checkpoints: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the table CONTRAST_SETS but for model and dataset."""
    rows = []
    for pair in sets:
        counts = len(pair.questions), pair.improvement.sum(), (~pair.improvement).sum()
        place = checkpoints[pair.earlier], checkpoints[pair.later]
        rows.append((*place, *map(int, counts), pair.kept))
    columns = CONTRAST_SETS.but("model", "dataset", "same_answers")
    return pd.DataFrame(rows, columns=columns)
