r"""AUCs of strata of questions, and the influence of each question on them.

The influence of a question on AUC(A, B) is the share of the other stratum that it wins, minus
the mean, over the size of its stratum [1]_. A replicate under weights w of questions is the AUC
plus :math:`\sum_q (w_q - 1) I_q`. It is linear, so AUCs of several asks, halvings and pairs of
checkpoints are averaged before any draw: twenty halvings cost twenty sorts, and no draws.

Two pseudo-questions per stratum, above and below all others, with weights from Gamma(¼), keep
the level of intervals with five questions in a stratum.

References
----------
.. [1] DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated
   Receiver Operating Characteristic Curves", Biometrics 1988.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from persistcal.evaluation.draws import PSEUDO_AUC
from persistcal.evaluation.predictions import Array, Mask


class Influence(NamedTuple):
    """A statistic and the influence of questions and of pseudo-questions on it.

    `value` is on the data, and `centre` with pseudo-questions. `questions` has a value per
    question. `pseudo` has two per stratum: the one above all others and the one below.
    """

    value: float
    centre: float
    questions: Array
    pseudo: Array

    @classmethod
    def mean(cls, parts: Sequence["Influence"]) -> "Influence":
        """Return the mean of statistics of the same questions."""
        columns = (np.mean(column, axis=0) for column in zip(*parts, strict=True))
        value, centre, questions, pseudo = columns
        return cls(float(value), float(centre), questions, pseudo)

    def lower(self, groups: NDArray[np.intp], level: float) -> float:
        """Return the normal approximation of the lower end of the interval at `level`."""
        in_groups = np.bincount(groups, self.questions)
        variance = np.sum(in_groups**2) + PSEUDO_AUC * np.sum(self.pseudo**2)
        return self.centre - float(ndtri(1 - level / 2) * np.sqrt(variance))


class Ranks(NamedTuple):
    """Ranks as shares of the number of confidences; tied ones share the range of a level."""

    middle: Array
    lowest: Array
    highest: Array


def ranks(confidence: Array) -> Ranks:
    """Return the ranks of confidences.

    >>> [of.tolist() for of in ranks(np.array([0.2, 0.9, 0.2, 0.5]))]
    [[0.25, 0.875, 0.25, 0.625], [0.0, 0.75, 0.0, 0.5], [0.5, 1.0, 0.5, 0.75]]
    """
    _, level, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    highest = np.cumsum(counts) / len(confidence)
    lowest = highest - counts / len(confidence)
    return Ranks(((lowest + highest) / 2)[level], lowest[level], highest[level])


def change_of_ranks(earlier: Array, later: Array) -> Array:
    """Return how far each confidence moved among those of its checkpoint: later minus earlier.

    It is 0 if each of both ranks is in the range of the other one's level. Otherwise many
    confidences of the same level would all seem to rise a little, or all to fall, because the
    sizes of levels differ by chance, and the ties that they are in both checkpoints were lost.

    >>> change_of_ranks(np.array([0.1, 0.5, 1.0, 1.0]), np.array([0.1, 0.9, 0.9, 0.9])).tolist()
    [0.0, 0.25, 0.0, 0.0]
    """
    before, after = ranks(earlier), ranks(later)
    within = (after.lowest <= before.middle) & (before.middle <= after.highest)
    within &= (before.lowest <= after.middle) & (after.middle <= before.highest)
    return np.where(within, 0.0, np.round(after.middle - before.middle, 9))


def area_influence(
    higher: Array, lower: Array, n_groups: tuple[int, int]
) -> tuple[Influence, Influence]:
    """Return AUC(higher, lower) with the influences of both strata, higher first.

    `n_groups` are the numbers of groups of questions in both strata; a pseudo-question weighs
    as a quarter of a group. Both results have the same value and centre.

    >>> first, second = area_influence(np.array([3.0, 2.0]), np.array([1.0, 2.0]), (2, 2))
    >>> first.value  # 3 > 1, 3 > 2, 2 > 1, and 2 = 2 counts half
    0.875
    """
    strata = higher, lower
    sizes = [len(values) / n for values, n in zip(strata, n_groups, strict=True)]
    extra = [PSEUDO_AUC * size for size in sizes]
    totals = [len(values) + 2 * weight for values, weight in zip(strata, extra, strict=True)]
    shares = _shares_below(higher, lower)
    wins = shares[0], 1 - shares[1]
    with_pseudo = [
        (wins[side] * len(strata[1 - side]) + extra[1 - side]) / totals[1 - side]
        for side in (0, 1)
    ]
    # a pseudo-question above all others ties with the other stratum's, and wins all else
    edges = [extra[1 - side] / 2 / totals[1 - side] for side in (0, 1)]
    centre = float((with_pseudo[0].sum() + extra[0]) / totals[0])
    above, below = (
        Influence(
            float(wins[0].mean()),
            centre,
            (n / (n - 1)) ** 0.5 * (with_pseudo[side] - centre) / totals[side],
            sizes[side] * (np.array([1 - edges[side], edges[side]]) - centre) / totals[side],
        )
        for side, n in enumerate(n_groups)
    )
    # the lower stratum wins with small values
    return above, below._replace(pseudo=below.pseudo[::-1])


def auc_influence(confidence: Array, correct: Mask) -> Array:
    """Return the influence of each answer on the AUC.

    >>> auc_influence(np.array([0.9, 0.2, 0.5]), np.array([True, True, False])).tolist()
    [0.25, -0.25, 0.0]
    """
    made = np.empty(len(confidence))
    right, wrong = _shares_below(confidence[correct], confidence[~correct])
    made[correct] = (right - right.mean()) / len(right)
    made[~correct] = (wrong.mean() - wrong) / len(wrong)
    return made


def _shares_below(*strata: Array) -> list[Array]:
    """Return for each value the share of the other stratum below it; equal ones count half."""
    orders = [np.argsort(values) for values in strata]
    # searches for ascending values are several times faster
    ascending = [values[order] for values, order in zip(strata, orders, strict=True)]
    shares = []
    for order, asked, others in zip(orders, ascending, ascending[::-1], strict=True):
        below, up_to = (np.searchsorted(others, asked, side) for side in ("left", "right"))
        shares.append(np.empty(len(asked)))
        shares[-1][order] = (below + up_to) / 2 / len(others)
    return shares
