"""Contrast sets: the questions that one checkpoint answers correctly and another does not."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.arrange import ABSENT


class ContrastSet(NamedTuple):
    """The contrast set of two checkpoints.

    Attributes
    ----------
    earlier, later : int
        Positions of the checkpoints.
    questions : int ndarray of shape (n,)
        Positions of the questions that exactly one of the two answers correctly.
    improvement : bool ndarray of shape (n,)
        Whether the later checkpoint is the correct one; else a regression.
    kept : bool
        Whether the set is large enough to be evaluated.
    """

    earlier: int
    later: int
    questions: NDArray[np.intp]
    improvement: NDArray[np.bool_]
    kept: bool


def contrast_sets(correct: NDArray[np.int8], *, min_contrast: int) -> list[ContrastSet]:
    """Return the contrast sets of all pairs of checkpoints, in order.

    Parameters
    ----------
    correct : int8 ndarray of shape (n_checkpoints, n_questions)
        As in `persistcal.evaluation.arrange.Answers`. A question counts for a pair
        only when both checkpoints answered it.
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
    for earlier, later in combinations(range(len(correct)), 2):
        first, second = correct[earlier], correct[later]
        questions = np.flatnonzero((first != ABSENT) & (second != ABSENT) & (first != second))
        kept = len(questions) >= min_contrast
        sets.append(ContrastSet(earlier, later, questions, second[questions] == 1, kept))
    return sets
