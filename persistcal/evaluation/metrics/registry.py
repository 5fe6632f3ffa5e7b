"""All metrics, one class each, in the order of the columns of tables. A new one is put here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from persistcal.evaluation.metrics.base import (
    GAPS,
    METRICS,
    SHARES,
    BalancedMean,
    Corrected,
    Mean,
    Metric,
    MetricKey,
    Scope,
    names,
    statistics_of_change,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from persistcal.evaluation.contrast import FullSet, OnContrastSet
    from persistcal.evaluation.draws import Pseudo
    from persistcal.evaluation.metrics.base import ChanceFlips
    from persistcal.evaluation.predictions import Array

__all__ = ["METRICS", "Mean", "Metric", "MetricKey", "Scope", "names", "statistics_of_change"]


class BalancedSign(BalancedMean):
    """Δ₀ᵇ: an estimator that always prefers the later checkpoint has 0."""

    name, heading, latex = "delta0_balanced", "Δ₀ᵇ", r"$\Delta_0^b$"
    bounds = GAPS
    conditioned = False
    chance = 0.0

    def contrast_values(self, run: OnContrastSet) -> Array:
        """Return 1 if the confidence follows the change, −1 if it moves against it, else 0."""
        import numpy as np

        return np.where(run.improvement, 1.0, -1.0) * np.sign(run.change)


class Sign(Mean):
    """Δ₀."""

    name, heading, latex = "delta0", "Δ₀", r"$\Delta_0$"
    bounds = GAPS
    conditioned = False
    contrast_values = BalancedSign.contrast_values


class BalancedGap(BalancedMean):
    """Δᵇ."""

    name, heading, latex = "delta_balanced", "Δᵇ", r"$\Delta^b$"
    bounds = GAPS

    def contrast_values(self, run: OnContrastSet) -> Array:
        """Return the confidence in the correct answer minus that in the incorrect one."""
        import numpy as np

        return np.where(run.improvement, 1.0, -1.0) * (run.later - run.earlier)


class Gap(Mean):
    """Δ."""

    name, heading, latex = "delta", "Δ", r"$\Delta$"
    bounds = GAPS
    contrast_values = BalancedGap.contrast_values


class ChangeAUC(Metric):
    """AUC with which the change in confidence separates gained from lost questions.

    If the later checkpoint adds a constant to every confidence, Δ₀ᵇ changes and this AUC does
    not, because it compares changes with each other and not with 0.

    Both gained questions rise more than the lost one, although all of them rise:

    >>> import numpy as np
    >>> from persistcal.evaluation.contrast import OnContrastSet
    >>> change = np.array([0.5, 0.25, 0.125])
    >>> run = OnContrastSet(np.zeros(3), change, change, np.array([True, True, False]))
    >>> float(ChangeAUC().contrast(run, np.ones(3)))
    1.0
    """

    name, heading, latex = "change_auc", "Change AUC", "Change AUC"
    draws = "directions"
    bounds = SHARES
    conditioned = False
    chance = 0.5
    pseudo = 0.25  # half as much, because both directions act on one number

    def contrast(self, run: OnContrastSet, weights: NDArray) -> Array:
        """Return the AUC of the changes."""
        from persistcal.evaluation.weighted import auc

        return auc(run.change, run.improvement, weights=weights)

    def influence(self, run: Any, scope: Scope) -> Array:  # noqa: ANN401
        """Return the influence of each change."""
        from persistcal.evaluation.influence import auc_influence

        return auc_influence(run.change, run.improvement)

    def weighted(self, runs: Sequence[OnContrastSet], weights: Array, pseudo: Pseudo) -> Array:
        """Return replicates under weights and pseudo-questions with changes of ±∞."""
        import numpy as np

        from persistcal.evaluation.draws import change_auc_replicates
        from persistcal.evaluation.weighted import in_threads

        def measure(number: int) -> Array:
            run, of_run = runs[number], pseudo._replace(weights=pseudo.weights[:, number])
            return change_auc_replicates(run.change, run.improvement, weights, *of_run)

        return np.array(in_threads(measure, range(len(runs)), size=weights.size))

    def beyond(
        self, run: OnContrastSet, weights: Array, chance: ChanceFlips, pseudo: Pseudo | None
    ) -> Corrected:
        """Return the AUC without pairs in which a flip is by chance."""
        import numpy as np

        from persistcal.evaluation.draws import change_auc_replicates
        from persistcal.evaluation.weighted import auc

        change, gained, flips = run.change, run.improvement, chance.weights.sum(axis=0)
        if pseudo is None:
            own = auc(change, gained, weights=weights)
        else:
            own = change_auc_replicates(change, gained, weights, *pseudo)

        def area(up: Array, of_up: Array, down: Array, of_down: Array) -> Array:
            labels = np.repeat([True, False], [len(up), len(down)])
            both = np.concatenate([of_up, of_down])
            return auc(np.concatenate([up, down]), labels, weights=both)

        # the control's changes towards gained, and mirrored towards lost
        moves = np.concatenate(
            [np.where(of.improvement, 1, -1) * of.change for of in chance.runs]
        )
        of_moves = chance.weights
        with_lost = area(moves, of_moves, change[~gained], weights[~gained])
        with_gained = area(change[gained], weights[gained], -moves, of_moves)
        alone = area(moves, of_moves, -moves, of_moves)
        a, b = (flips / weights[rows].sum(axis=0) for rows in (gained, ~gained))
        dividend = own - a * with_lost - b * with_gained + a * b * alone
        divisor = (1 - a) * (1 - b)
        return Corrected(dividend - divisor * self.chance, dividend, divisor)


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

    def influence(self, run: Any, scope: Scope) -> Array:  # noqa: ANN401
        """Return the influence of each answer, or of a question's two answers."""
        import numpy as np

        from persistcal.evaluation.influence import auc_influence

        if scope == "full":
            return auc_influence(run.confidence, run.correct)
        stated = np.concatenate([run.earlier, run.later])
        right = np.concatenate([~run.improvement, run.improvement])
        return auc_influence(stated, right).reshape(2, -1).sum(axis=0)


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
