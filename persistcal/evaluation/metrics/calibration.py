"""Brier score, the mean squared error of confidences, and SmoothECE, which needs no bins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from persistcal.evaluation.metrics.base import Mean, Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from persistcal.evaluation.contrast import FullSet, OnContrastSet
    from persistcal.evaluation.predictions import Array


class Brier(Mean):
    """Brier score of the pooled answers, or of both ends of a contrast set."""

    name, heading, latex = "brier", "Brier", "BS"
    lower_is_better = True

    def contrast_values(self, run: OnContrastSet) -> Array:
        """Return each question's mean error over both checkpoints."""
        from persistcal.evaluation.weighted import squared_error

        errors = squared_error(run.earlier, ~run.improvement)
        return (errors + squared_error(run.later, run.improvement)) / 2

    def full_values(self, run: FullSet) -> Array:
        """Return the error of each answer."""
        from persistcal.evaluation.weighted import squared_error

        return squared_error(run.confidence, run.correct)


class SmoothECE(Metric):
    """SmoothECE: mean over checkpoints, or of the earlier end of a contrast set."""

    name, heading, latex = "smece", "ECE", "ECE"
    draws = "paper"
    no_interval = "biased upwards, so that simulated intervals are not valid"
    lower_is_better = True

    def contrast(self, run: OnContrastSet, weights: NDArray) -> Array:
        """Return it for the earlier checkpoint: over both, opposite errors would cancel."""
        from persistcal.evaluation.smooth_ece import smooth_ece

        return smooth_ece(run.earlier, ~run.improvement, weights=weights)

    def full(self, run: FullSet, weights: NDArray) -> Array:
        """Return the mean over checkpoints."""
        import numpy as np

        from persistcal.evaluation.smooth_ece import smooth_ece

        by_checkpoint = [
            smooth_ece(run.confidence[rows], run.correct[rows], weights=weights[rows])
            for rows in run.checkpoints
        ]
        return np.mean(by_checkpoint, axis=0)
