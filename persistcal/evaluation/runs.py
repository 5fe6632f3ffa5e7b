"""One run of an estimator on the answers that a metric is about."""

from typing import NamedTuple

import numpy as np

from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.predictions import Array, Mask


class FullSet(NamedTuple):
    """Confidences of one run of an estimator in all answers, (n_answers,), and their labels.

    The answers are sorted by checkpoint, in the order of `checkpoints`.
    """

    confidence: Array
    correct: Mask
    checkpoints: list[slice]


class OnContrastSet(NamedTuple):
    """Confidences of one run in the answers to a contrast set, (n_questions,) each.

    `earlier` and `later` are conditioned confidences in the two checkpoints' answers. `change`
    is the later confidence minus the earlier one before conditioning. `pair` is the contrast
    set, and `stated` the run's confidences, (n_checkpoints, all questions), for metrics that
    compare changed with unchanged questions.
    """

    earlier: Array
    later: Array
    change: Array
    improvement: Mask
    pair: ContrastSet | None = None
    stated: Array = np.empty((0, 0))

    @property
    def before(self) -> Array:
        """The earlier checkpoint's confidence in each of `pair.every`."""
        assert self.pair
        return self.stated[self.pair.earlier, self.pair.every]

    @property
    def after(self) -> Array:
        """The later checkpoint's confidence in each of `pair.every`."""
        assert self.pair
        return self.stated[self.pair.later, self.pair.every]

    @property
    def sign(self) -> Array:
        """Return 1 if the confidence follows the change, −1 if it moves against it, else 0."""
        return np.where(self.improvement, 1.0, -1.0) * np.sign(self.change)

    @property
    def gap(self) -> Array:
        """Conditioned confidence in the correct answer minus that in the incorrect answer."""
        return np.where(self.improvement, 1.0, -1.0) * (self.later - self.earlier)
