"""Each metric of the full set and of contrast sets, for several runs at once.

A metric is a function here, named by its scope, and a line in `persistcal.evaluation.measures`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.measures import names
from persistcal.evaluation.metrics import Array, auc, balanced_gap, mean_gap, squared_error
from persistcal.evaluation.smooth_ece import smooth_ece


class FullSet(NamedTuple):
    """Confidences of one run of an estimator in the answers of all checkpoints.

    Attributes
    ----------
    confidence, correct : ndarray of shape (n_answers,)
        Checkpoint after checkpoint.
    checkpoints : list of slice
        The answers of each.
    """

    confidence: Array
    correct: NDArray[np.bool_]
    checkpoints: list[slice]


class OnContrastSet(NamedTuple):
    """Confidences of one run of an estimator in the answers to a contrast set.

    Attributes
    ----------
    earlier, later : ndarray of shape (n_questions,)
        Conditioned confidences in the two checkpoints' answers.
    sign : ndarray of shape (n_questions,)
        Of the confidence in the correct answer minus that in the incorrect one,
        before conditioning: −1, 0 or 1.
    improvement : bool ndarray of shape (n_questions,)
        Whether the later answer is the correct one.
    """

    earlier: Array
    later: Array
    sign: Array
    improvement: NDArray[np.bool_]

    @property
    def gap(self) -> Array:
        """Conditioned confidence in the correct answer minus that in the incorrect one."""
        return np.where(self.improvement, 1.0, -1.0) * (self.later - self.earlier)


class Mean(NamedTuple):
    """A metric that is a weighted mean, so that many are had from one product of matrices.

    Attributes
    ----------
    of : function of FullSet or OnContrastSet to ndarray of shape (n,)
        What is averaged.
    balanced : bool
        Whether improvements and regressions count alike, as in `balanced_gap`.
    """

    of: Callable[[Any], Array]
    balanced: bool = False


Metric = Mean | Callable[[Any, NDArray], Array]

full_brier = Mean(lambda run: squared_error(run.confidence, run.correct))
contrast_delta0_balanced = Mean(lambda run: run.sign, balanced=True)
contrast_delta0 = Mean(lambda run: run.sign)
contrast_delta_balanced = Mean(lambda run: run.gap, balanced=True)
contrast_delta = Mean(lambda run: run.gap)
contrast_brier = Mean(
    lambda run: (
        (
            squared_error(run.earlier, ~run.improvement)
            + squared_error(run.later, run.improvement)
        )
        / 2
    )
)


def full_auc(run: FullSet, weights: NDArray) -> Array:
    """AUC of the pooled answers of all checkpoints."""
    return auc(run.confidence, run.correct, weights=weights)


def full_smece(run: FullSet, weights: NDArray) -> Array:
    """SmoothECE, mean over checkpoints."""
    by_checkpoint = [
        smooth_ece(run.confidence[rows], run.correct[rows], weights=weights[rows])
        for rows in run.checkpoints
    ]
    return np.mean(by_checkpoint, axis=0)


def contrast_auc(run: OnContrastSet, weights: NDArray) -> Array:
    """AUC of both checkpoints' conditioned confidences together."""
    return auc(
        np.concatenate([run.earlier, run.later]),
        np.concatenate([~run.improvement, run.improvement]),
        weights=weights,
        rows=np.tile(np.arange(len(run.earlier)), 2),
    )


def contrast_smece(run: OnContrastSet, weights: NDArray) -> Array:
    """SmoothECE of the earlier checkpoint: over both, errors of opposite sign would cancel."""
    return smooth_ece(run.earlier, ~run.improvement, weights=weights)


FULL_METRICS: Mapping[str, Metric] = {name: globals()[f"full_{name}"] for name in names("full")}
CONTRAST_METRICS: Mapping[str, Metric] = {
    name: globals()[f"contrast_{name}"] for name in names("contrast")
}


def compute(
    metrics: Mapping[str, Metric], runs: Sequence[FullSet | OnContrastSet], weights: NDArray
) -> dict[str, Array]:
    """Compute metrics of several runs on the same questions: (n_runs, n_columns) each."""
    values = {
        name: np.array([metric(run, weights) for run in runs])
        for name, metric in metrics.items()
        if not isinstance(metric, Mean)
    }
    for balanced in (False, True):
        means = {
            name: metric.of
            for name, metric in metrics.items()
            if isinstance(metric, Mean) and metric.balanced == balanced
        }
        if not means:
            continue
        rows = np.array([of(run) for of in means.values() for run in runs])
        mean = (
            balanced_gap(rows, cast(OnContrastSet, runs[0]).improvement, weights=weights)
            if balanced
            else mean_gap(rows, weights=weights)
        )
        values |= zip(means, np.split(mean, len(means)), strict=True)
    return {name: values[name] for name in metrics}
