r"""Bootstrap replicates of the metrics that need both gained and lost questions.

The lost questions determine half of Δ₀ᵇ. A bootstrap that keeps the class sizes never varies a
single lost question and varies a few too little, so its intervals are too narrow. These
replicates are a Bayesian bootstrap [1]_ with pseudo-questions:

- Each question has a weight from the exponential distribution. Pairs of checkpoints, estimators
  and seeds share the weights, so that differences stay paired.
- Each direction has two pseudo-questions with weights from Gamma(1/2): in one the confidence
  follows the change by the largest possible amount, in the other it moves against the change by
  the same amount. For signs
  without ties and one pair this is Jeffreys' interval of the share of each direction [2]_.
  Each estimator has separate weights, which depend on its name and the seed. Its training seeds
  and all pairs share the weights.
- The mean over n questions of a direction is spread by :math:`\sqrt{(n + 2) / n}` about its
  centre, because the pseudo-questions reduce its variance to the variance over n + 2 questions.

The largest possible sign is 1; the largest possible gap is the largest gap in the contrast set.
For the change AUC the pseudo-questions have changes of ±∞ and weights from Gamma(1/4), because
both directions act on one number. The change AUC is not spread. docs/validation.md shows how
often the intervals contain the truth.

References
----------
.. [1] Rubin, "The Bayesian Bootstrap", The Annals of Statistics 1981.
.. [2] Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion", Statistical
   Science 2001.
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.draws import Component
from persistcal.evaluation.metrics import OnContrastSet, auc

Array = NDArray[np.float64]
PSEUDO = 0.5  # expected weight of a pseudo-question; a question has 1
PSEUDO_AUC = PSEUDO / 2  # expected weight of a pseudo-question of the change AUC
MIN_DIRECTION = 5  # gained, and lost, questions that an interval needs by default


def question_weights(
    n_questions: int, kept: NDArray[np.intp], replicates: range, *, seed: int
) -> Array:
    """Draw the weights of `kept`, some of all questions: (n_kept, n_replicates).

    The weights of replicate b depend only on (seed, b).
    """
    generators = (np.random.default_rng([seed, b, 1]) for b in replicates)
    drawn = [rng.standard_exponential(n_questions)[kept] for rng in generators]
    return np.stack(drawn, axis=1)


def pseudo_weights(
    names: Sequence[str], n_replicates: int, *, seed: int, expected: float
) -> Array:
    """Draw the weights of pseudo-questions: (4, n_replicates).

    The rows are gained questions with and against the change, then lost questions with and
    against it. Their expected value is `expected`, `PSEUDO` or `PSEUDO_AUC`. The weights depend
    on `names`, the names of the estimator and the contrast sets.
    """
    digest = hashlib.sha256("\n".join(names).encode()).digest()
    rng = np.random.default_rng([seed, 2, *digest[:16]])
    return rng.standard_gamma(expected, (4, n_replicates))


def balanced_replicates(
    values: Array, improvement: NDArray[np.bool_], weights: Array, pseudo: Array
) -> Array:
    """Replicate the mean over gained questions averaged with the mean over lost ones.

    Parameters
    ----------
    values : ndarray of shape (n_runs, n_questions)
        Signs or gaps in [−1, 1], positive if the confidence follows the change.
    improvement : bool ndarray of shape (n_questions,)
        True for gained questions.
    weights : ndarray of shape (n_questions, n_replicates)
    pseudo : ndarray of shape (4, n_replicates)
        As from `pseudo_weights`.

    Returns
    -------
    ndarray of shape (n_runs, n_replicates)
    """
    extent = np.abs(values).max(axis=1, keepdims=True)
    total = 0.0
    for rows, (favourable, contrary) in ((improvement, pseudo[:2]), (~improvement, pseudo[2:])):
        n, row_weights = np.count_nonzero(rows), weights[rows]
        mean = values[:, rows] @ row_weights + extent * (favourable - contrary)
        mean /= row_weights.sum(axis=0) + favourable + contrary
        centre = values[:, rows].sum(axis=1, keepdims=True) / (n + 2 * PSEUDO)
        total = total + np.clip(centre + np.sqrt((n + 2) / n) * (mean - centre), -1, 1)
    return np.asarray(total) / 2


def change_auc_replicates(
    change: Array, improvement: NDArray[np.bool_], weights: Array, pseudo: Array
) -> Array:
    """Replicate the AUC with which changes separate gained from lost: (n_replicates,).

    `change` of shape (n_questions,) belongs to one run; see `balanced_replicates` for the other
    parameters.
    """
    gained, lost = weights[improvement].sum(axis=0), weights[~improvement].sum(axis=0)
    up, down, lost_down, lost_up = pseudo
    won = auc(change, improvement, weights=weights) * gained * lost
    won += (
        up * lost + gained * lost_down + up * lost_down + (up * lost_up + down * lost_down) / 2
    )
    return won / ((gained + up + down) * (lost + lost_down + lost_up))


def replicate_run(
    runs: Sequence[OnContrastSet], part: Component, weights: Array, pseudo: Sequence[Array]
) -> Iterator[tuple[str, Array]]:
    """Yield the name and the replicates, (n_runs, n_replicates), of each metric of a pair.

    `pseudo` has weights for means and for the change AUC.
    """
    improvement = np.arange(len(part.questions)) < part.n_first
    signs, gaps = np.array([run.sign for run in runs]), np.array([run.gap for run in runs])
    yield "delta0_balanced", balanced_replicates(signs, improvement, weights, pseudo[0])
    yield "delta_balanced", balanced_replicates(gaps, improvement, weights, pseudo[0])
    yield (
        "change_auc",
        np.array(
            [change_auc_replicates(r.change, improvement, weights, pseudo[1]) for r in runs]
        ),
    )
