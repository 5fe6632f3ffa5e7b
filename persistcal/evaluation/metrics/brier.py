"""Brier score: the mean squared difference between confidence and correctness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from persistcal.evaluation.metrics.base import Mean

if TYPE_CHECKING:
    from persistcal.evaluation.predictions import Array
    from persistcal.evaluation.runs import FullSet, OnContrastSet


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
