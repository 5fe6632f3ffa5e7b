"""Reliability diagrams: accuracy as a smooth function of confidence, with a bootstrap band.

The smoothing kernel is SmoothECE's, with a bandwidth equal to the SmoothECE, as in `relplot`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.draws import question_blocks
from persistcal.evaluation.smooth_ece import (
    COARSEST,
    N_BANDWIDTHS,
    Array,
    mesh,
    n_grid_points,
    place,
    smooth_ece,
    smoothing_at,
)

N_POINTS = 51  # on the curve, evenly spread over [0, 1]


class Reliability(NamedTuple):
    """A reliability diagram, at the points `confidence`.

    `accuracy` is the smoothed share of correct answers over all runs, with a pointwise 95 %
    bootstrap interval. `support` is the smoothed number of answers of a run: an answer has
    weight 1 at its confidence, and less with distance. `smece` is the mean over the runs.
    """

    smece: float
    confidence: Array
    accuracy: Array
    lower: Array
    upper: Array
    support: Array


def bootstrap_counts(n: int, *, n_replicates: int, seed: int) -> NDArray[np.float64]:
    """Return how often each of n questions is in each replicate, (n, n_replicates).

    The first n of the sequence of `draws.question_blocks`: an ordinary bootstrap.

    >>> bootstrap_counts(5, n_replicates=3, seed=0).sum(axis=0)
    array([5., 5., 5.])
    """
    return np.stack(
        [
            np.bincount(next(question_blocks(n, seed, replicate))[:n], minlength=n).astype(
                float
            )
            for replicate in range(n_replicates)
        ],
        axis=1,
    )


def reliability(
    runs: Sequence[Array], correct: Array, *, counts: NDArray[np.float64]
) -> Reliability:
    """Draw the reliability of an estimator's answers at one checkpoint.

    All replicates use the same bandwidth, at least 11/1024, so that the curve of a well
    calibrated estimator is not noise.

    Parameters
    ----------
    runs : sequence of ndarray of shape (n_answers,)
        The confidences of each seed.
    counts : ndarray of shape (n_answers, n_replicates)
        Multiplicities of a bootstrap, as from `bootstrap_counts`.
    """
    smece = float(np.mean([smooth_ece(run, correct) for run in runs]))
    k = int(np.clip(np.ceil(smece * N_BANDWIDTHS), COARSEST, N_BANDWIDTHS))
    points = mesh(k)
    chosen = np.linspace(0, len(points) - 1, N_POINTS).round().astype(int)
    read = smoothing_at(points[chosen], k)

    def smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the values of the answers near each point, over runs."""
        return sum(
            read @ (place(run, np.ones(len(run)), n_grid_points(k)) @ values) for run in runs
        )

    columns = np.column_stack([np.ones(len(correct)), counts])
    mass, right = smooth(columns), smooth(columns * correct[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = right / mass
    # Near few answers some replicates are undefined; the others still give a band.
    reached = (mass[:, 1:] > 0).any(axis=1)
    band = np.full((2, N_POINTS), np.nan)
    band[:, reached] = np.nanquantile(shares[reached, 1:], [0.025, 0.975], axis=1)
    height = N_BANDWIDTHS / k / np.sqrt(2 * np.pi)
    return Reliability(
        smece, points[chosen], shares[:, 0], band[0], band[1], mass[:, 0] / height / len(runs)
    )
