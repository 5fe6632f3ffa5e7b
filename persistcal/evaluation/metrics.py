"""Weighted AUC, Brier score, SmoothECE and gaps, on all questions and on contrast sets.

Weights are multiplicities of shape (n,), or (n, n_columns) for n_columns values at once, such
as bootstrap replicates. An undefined value is NaN; `persistcal.evaluation.evaluate` logs why.
To add a metric, write a function for each scope and an entry of `MEASURES`.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from persistcal.evaluation.predictions import Array, Mask
from persistcal.evaluation.smooth_ece import smooth_ece

CHUNK = 2**23  # weights that are held as floats at a time, if that leaves 8 columns


def as_columns(weights: ArrayLike | None, n: int) -> tuple[NDArray, NDArray]:
    """Return weights of n answers, by default ones, and the same as (n, n_columns)."""
    weight = np.ones(n) if weights is None else np.asarray(weights)
    return weight, weight[:, None] if weight.ndim == 1 else weight


def auc(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    rows: NDArray[np.intp] | None = None,
) -> Array:
    """Share of (correct, incorrect) pairs in which the correct one has the higher confidence.

    Parameters
    ----------
    confidence, correct : array-like of shape (n_answers,)
        Any score that grows with the chance of being correct; and 0 or 1.
    weights : array-like of shape (n_answers,) or (n_answers, n_columns), optional
        Multiplicities, at least 0.
    rows : int ndarray of shape (n_answers,), optional
        The row of `weights` of each answer, if not its own.

    Returns
    -------
    float or ndarray of shape (n_columns,)
        In [0, 1]; ties count half. NaN without both classes.

    References
    ----------
    .. [1] Hanley and McNeil, "The meaning and use of the area under a receiver operating
       characteristic (ROC) curve", Radiology 1982.

    Examples
    --------
    Of the pairs (.9, .4), (.9, .9), (.4, .4), (.4, .9) one is in order and two are ties:

    >>> float(auc([0.9, 0.4, 0.4, 0.9], [1, 1, 0, 0]))
    0.5
    """
    from persistcal.evaluation.loops import compilable, count_pairs

    stated, right = np.asarray(confidence, float), np.asarray(correct, bool)
    weight, columns = as_columns(weights, len(stated))
    order = np.lexsort((right, stated))
    level = np.cumsum(np.diff(stated[order], prepend=np.nan) != 0)
    won, pairs = np.empty((2, columns.shape[1]))
    placed = order if rows is None else rows[order]
    count_pairs(placed, right[order], level, compilable(columns), won, pairs)
    area = np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)
    return area.reshape(weight.shape[1:])[()]


def squared_error(confidence: ArrayLike, correct: ArrayLike) -> Array:
    """Squared difference between confidence and correctness. The mean is the Brier score.

    References
    ----------
    .. [1] Brier, "Verification of forecasts expressed in terms of probability", Monthly
       Weather Review 1950.

    Examples
    --------
    >>> float(mean_gap(squared_error([1.0, 0.5], [1, 0])))  # (0 + 0.25) / 2
    0.125
    """
    return (np.asarray(confidence, float) - np.asarray(correct, float)) ** 2


def mean_gap(gap: ArrayLike, *, weights: ArrayLike | None = None) -> Array:
    """Weighted mean: Δ for gaps p₊ − p₋, Δ₀ for their signs. NaN for an empty array.

    The result for gaps of shape (n_questions,) or (n_rows, n_questions) and `weights` of shape
    (n_questions,) or (n_questions, n_columns) has a value per row and column.

    >>> float(mean_gap([0.5, -0.25, 0.5]))
    0.25
    """
    values = np.asarray(gap, float)
    weight, columns = as_columns(weights, values.shape[-1])
    rows = np.concatenate([np.atleast_2d(values), np.ones((1, values.shape[-1]))])
    sums = np.empty((len(rows), columns.shape[1]))
    width = int(np.clip(CHUNK // max(1, len(columns)), 8, 64))
    for start in range(0, columns.shape[1], width):
        chunk = slice(start, start + width)
        sums[:, chunk] = rows @ columns[:, chunk].astype(float)
    total = sums[-1]
    undefined = np.full((len(rows) - 1, len(total)), np.nan)
    mean = np.divide(sums[:-1], total, out=undefined, where=total > 0)
    return mean.reshape(values.shape[:-1] + weight.shape[1:])[()]


def balanced_gap(
    gap: ArrayLike, improvement: ArrayLike, *, weights: ArrayLike | None = None
) -> Array:
    """Mean of two mean gaps, over improvements and over regressions, in [−1, 1].

    It is Δᵇ for gaps and Δ₀ᵇ for signs of gaps. An estimator that always prefers the later
    checkpoint has 0. Shapes are as in `mean_gap`; `improvement`, of shape (n_questions,), is
    True if the later checkpoint is correct. NaN unless there are both improvements and
    regressions.

    >>> float(balanced_gap([1, 1, 1, -1], [True, True, True, False]))
    0.0
    """
    values, improved = np.asarray(gap, float), np.asarray(improvement, bool)
    weight, _ = as_columns(weights, values.shape[-1])
    gained, lost = (
        mean_gap(values[..., chosen], weights=weight[chosen])
        for chosen in (improved, ~improved)
    )
    return (gained + lost) / 2


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


class Mean(NamedTuple):
    """A weighted mean; many of them are computed in one product of matrices.

    `values` returns the n values to average. If `balanced`, improvements and regressions have
    equal weight in total.
    """

    values: Callable[[Any], Array]
    balanced: bool = False


Metric = Mean | Callable[[Any, NDArray], Array]


def _full_error(run: FullSet) -> Array:
    return squared_error(run.confidence, run.correct)


def _contrast_error(run: OnContrastSet) -> Array:
    errors = squared_error(run.earlier, ~run.improvement)
    return (errors + squared_error(run.later, run.improvement)) / 2


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


def contrast_change_auc(run: OnContrastSet, weights: NDArray) -> Array:
    """AUC with which the change in confidence separates gained from lost questions.

    If the later checkpoint adds a constant to every confidence, Δ₀ᵇ changes and this AUC does
    not, because it compares changes with each other and not with 0.

    Both gained questions rise more than the lost one, although all of them rise:

    >>> change = np.array([0.5, 0.25, 0.125])
    >>> run = OnContrastSet(np.zeros(3), change, change, np.array([True, True, False]))
    >>> float(contrast_change_auc(run, np.ones(3)))
    1.0
    """
    return auc(run.change, run.improvement, weights=weights)


def contrast_smece(run: OnContrastSet, weights: NDArray) -> Array:
    """SmoothECE of the earlier checkpoint: over both, errors of opposite sign would cancel."""
    return smooth_ece(run.earlier, ~run.improvement, weights=weights)


class Measure(NamedTuple):
    """A metric: its name in tables and figures, and its function for each scope.

    A metric without `has_interval` has no interval and no test between estimators or
    checkpoints, because simulated ones are not valid (docs/validation.md). A metric with
    `both_directions` depends on gained and on lost questions, and needs enough of each.
    Intervals over seeds stay within `bounds`.
    """

    heading: str
    latex: str
    contrast: Metric | None = None
    full: Metric | None = None
    lower_is_better: bool = False
    has_interval: bool = True
    both_directions: bool = False
    bounds: tuple[float, float] | None = None

    @property
    def arrow(self) -> str:
        """The direction that is better."""
        return "↓" if self.lower_is_better else "↑"


_GAPS, _SHARES = (-1.0, 1.0), (0.0, 1.0)

MEASURES = {
    "delta0_balanced": Measure(
        "Δ₀ᵇ",
        r"$\Delta_0^b$",
        Mean(attrgetter("sign"), balanced=True),
        both_directions=True,
        bounds=_GAPS,
    ),
    "delta0": Measure("Δ₀", r"$\Delta_0$", Mean(attrgetter("sign")), bounds=_GAPS),
    "delta_balanced": Measure(
        "Δᵇ",
        r"$\Delta^b$",
        Mean(attrgetter("gap"), balanced=True),
        both_directions=True,
        bounds=_GAPS,
    ),
    "delta": Measure("Δ", r"$\Delta$", Mean(attrgetter("gap")), bounds=_GAPS),
    "change_auc": Measure(
        "Change AUC", "Change AUC", contrast_change_auc, both_directions=True, bounds=_SHARES
    ),
    "auc": Measure("AUC", "AUC", contrast_auc, full_auc, bounds=_SHARES),
    "brier": Measure(
        "Brier", "BS", Mean(_contrast_error), Mean(_full_error), lower_is_better=True
    ),
    "smece": Measure(
        "ECE", "ECE", contrast_smece, full_smece, lower_is_better=True, has_interval=False
    ),
}

CONTRAST_METRICS = {n: m.contrast for n, m in MEASURES.items() if m.contrast is not None}
FULL_METRICS = {n: m.full for n, m in MEASURES.items() if m.full is not None}


def names(scope: str) -> list[str]:
    """Return the metrics of a scope, "contrast" or "full", in the order of tables.

    >>> names("full")
    ['auc', 'brier', 'smece']
    """
    return list({"contrast": CONTRAST_METRICS, "full": FULL_METRICS}[scope])


def compute(
    metrics: Mapping[str, Metric], runs: Sequence[FullSet | OnContrastSet], weights: NDArray
) -> dict[str, Array]:
    """Compute metrics of several runs on the same questions: (n_runs, n_columns) each."""
    values = {
        name: np.array([metric(run, weights) for run in runs])
        for name, metric in metrics.items()
        if not isinstance(metric, Mean)
    }
    means = {name: metric for name, metric in metrics.items() if isinstance(metric, Mean)}
    for balanced in {mean.balanced for mean in means.values()}:
        chosen = {name: mean for name, mean in means.items() if mean.balanced == balanced}
        rows = np.array([mean.values(run) for mean in chosen.values() for run in runs])
        if balanced:
            improvement = cast(OnContrastSet, runs[0]).improvement
            averages = balanced_gap(rows, improvement, weights=weights)
        else:
            averages = mean_gap(rows, weights=weights)
        values |= zip(chosen, np.split(averages, len(chosen)), strict=True)
    return {name: values[name] for name in metrics}
