"""One run of an estimator on the answers that a metric is about."""

from typing import NamedTuple

import numpy as np

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
    is the later confidence minus the earlier one before conditioning.
    """

    earlier: Array
    later: Array
    change: Array
    improvement: Mask

    @property
    def sign(self) -> Array:
        """Return 1 if the confidence follows the change, −1 if it moves against it, else 0."""
        return np.where(self.improvement, 1.0, -1.0) * np.sign(self.change)

    @property
    def gap(self) -> Array:
        """Conditioned confidence in the correct answer minus that in the incorrect answer."""
        return np.where(self.improvement, 1.0, -1.0) * (self.later - self.earlier)
