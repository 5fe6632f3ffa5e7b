"""AUC: how well confidence ranks answers, or its change ranks gained and lost questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from persistcal.evaluation.metrics.base import SHARES, Metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from persistcal.evaluation.predictions import Array, Mask
    from persistcal.evaluation.runs import FullSet, OnContrastSet


class ChangeAUC(Metric):
    """AUC with which the change in confidence separates gained from lost questions.

    If the later checkpoint adds a constant to every confidence, Δ₀ᵇ changes and this AUC does
    not, because it compares changes with each other and not with 0.

    Both gained questions rise more than the lost one, although all of them rise:

    >>> import numpy as np
    >>> from persistcal.evaluation.runs import OnContrastSet
    >>> change = np.array([0.5, 0.25, 0.125])
    >>> run = OnContrastSet(np.zeros(3), change, change, np.array([True, True, False]))
    >>> float(ChangeAUC().contrast(run, np.ones(3)))
    1.0
    """

    name, heading, latex = "change_auc", "Change AUC", "Change AUC"
    draws = "directions"
    bounds = SHARES
    conditioned = False
    pseudo = 0.25  # half as much, because both directions act on one number

    def contrast(self, run: OnContrastSet, weights: NDArray) -> Array:
        """Return the AUC of the changes."""
        from persistcal.evaluation.weighted import auc

        return auc(run.change, run.improvement, weights=weights)

    def weighted(
        self,
        runs: Sequence[OnContrastSet],
        improvement: Mask,
        weights: Array,
        pseudo: Array,
        sizes: tuple[float, float],
    ) -> Array:
        """Return replicates under weights and pseudo-questions with changes of ±∞."""
        import numpy as np

        from persistcal.evaluation.draws import change_auc_replicates
        from persistcal.evaluation.threads import in_threads

        def measure(number: int) -> Array:
            of_run = pseudo if pseudo.ndim == 2 else pseudo[:, number]
            return change_auc_replicates(
                runs[number].change, improvement, weights, of_run, sizes
            )

        return np.array(in_threads(measure, range(len(runs)), size=weights.size))


class AUC(Metric):
    """AUC of the pooled answers of all checkpoints, or of both ends of a contrast set."""

    name, heading, latex = "auc", "AUC", "AUC"
    draws = "questions"
    bounds = SHARES

    def contrast(self, run: OnContrastSet, weights: NDArray) -> Array:
        """Return the AUC of both checkpoints' conditioned confidences together."""
        import numpy as np

        from persistcal.evaluation.weighted import auc

        return auc(
            np.concatenate([run.earlier, run.later]),
            np.concatenate([~run.improvement, run.improvement]),
            weights=weights,
            rows=np.tile(np.arange(len(run.earlier)), 2),
        )

    def full(self, run: FullSet, weights: NDArray) -> Array:
        """Return the AUC of the pooled answers of all checkpoints."""
        from persistcal.evaluation.weighted import auc

        return auc(run.confidence, run.correct, weights=weights)
