r"""Change of confidence beyond chance flips: Δ_K and AUC_K of a change next to a control.

A control asks the same weights again, so that all its flips are chance. A change flips C
questions, of which S flip by chance: its :math:`\Delta = ((C - S)\,\Delta_K + S\,\Delta_S)/C`
mixes knowledge and chance. The control estimates S and :math:`\Delta_S`, hence
:math:`\Delta_K`.

For each direction d, gained or lost, the change has :math:`n_d` questions with mean sign
:math:`m_d`. The control, scaled to the same number of questions, has :math:`s` questions in
each direction with mean sign :math:`\mu`; both are averaged over its directions, because asking
again has no direction. The numerator :math:`N_d = n_d m_d - s \mu` has mean 0 if knowledge does
not count. The claim rests on

.. math:: \tfrac12 \sum_d N_d / n_d,

with the same weights of questions in change and control. The ratio
:math:`\Delta_K = \tfrac12 \sum_d N_d / (n_d - s)` has a Fieller interval [1]_. It is given only
if the change surely has more flips than the control: the lower end of the 95 % interval of each
:math:`n_d - s` is above 0.

The change AUC is corrected in the same way. With :math:`a = s / n_+`, :math:`b = s / n_-`, the
changes of confidence in gained (G) and lost (L) questions, and those of the control
(:math:`S_+` and its mirror image :math:`S_-`),

.. math:: AUC_K = \frac{AUC(G, L) - a\,AUC(S_+, L) - b\,AUC(G, S_-) + ab\,AUC(S_+, S_-)}
    {(1 - a)(1 - b)}.

Both assume that chance flips are as frequent in the change as in the control. An update that
sharpens answers has fewer.

References
----------
.. [1] Fieller, "Some Problems in Interval Estimation", Journal of the Royal Statistical
   Society B 1954.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.aligned import Aligned, RatedSet, rate
from persistcal.evaluation.bootstrap import Bootstrap, blocks
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.draws import Pseudo, count_groups, group_sizes
from persistcal.evaluation.metrics.base import ChanceFlips
from persistcal.evaluation.metrics.registry import METRICS, statistics_of_change
from persistcal.evaluation.predictions import Array
from persistcal.evaluation.samples import Sample
from persistcal.evaluation.settings import EvaluationSettings, Member

TAIL = 0.025


class Ratio(NamedTuple):
    """A metric beyond the chance flips of a control, for one estimator.

    `excess` is 0 if knowledge does not count. The metric of changed knowledge is `dividend`
    divided by `divisor`. `has_surplus` is True if both directions surely have more flips than
    the control.
    """

    excess: Sample
    dividend: Sample
    divisor: Sample
    has_surplus: bool

    def estimate(self) -> tuple[float, float, float]:
        """Return the ratio and its 95 % Fieller interval over questions and seeds.

        All are NaN without a surplus of flips, and if the interval is unbounded.
        """
        if not self.has_surplus:
            return np.nan, np.nan, np.nan
        half_width = self.excess.half_width_over_seeds()
        low, high = fieller(self.dividend, self.divisor, half_width)
        ratio = self.dividend.value / self.divisor.value
        return (np.nan,) * 3 if np.isnan(low) else (ratio, low, high)


def fieller(dividend: Sample, divisor: Sample, half_width: float = 0.0) -> tuple[float, float]:
    """Return the 95 % Fieller interval of a ratio; NaN if it is unbounded.

    The interval contains each ratio θ for which dividend − θ divisor can be 0: its square is at
    most 1.96² times its variance over replicates, plus the squared `half_width` over seeds.

    >>> rng = np.random.default_rng(0)
    >>> dividend = Sample(2.0, 2 + rng.normal(0, 0.1, 9999), {})
    >>> low, high = fieller(dividend, Sample(4.0, np.full(9999, 4.0), {}))
    >>> round(low, 2), round(high, 2)  # (2 ± 1.96 × .1) / 4
    (0.45, 0.55)
    """
    if np.isnan(dividend.draws).any():
        return np.nan, np.nan
    variances = np.cov(dividend.draws, divisor.draws) * 1.959964**2
    of_dividend, both, of_divisor = variances[[0, 0, 1], [0, 1, 1]]
    of_dividend += half_width**2
    square, cross = divisor.value**2 - of_divisor, dividend.value * divisor.value - both
    inside = cross**2 - square * (dividend.value**2 - of_dividend)
    if square <= 0 or inside < 0:
        return np.nan, np.nan
    root = np.sqrt(inside)
    return float((cross - root) / square), float((cross + root) / square)


def compare_with_control(
    change: Aligned, control: Aligned, settings: EvaluationSettings
) -> dict[str, dict[Member, Ratio]]:
    """Return each metric beyond the control for each estimator; nothing with too few flips.

    `change` and `control` are the same answers with other pairs of checkpoints. Several sets of
    a change are averaged, and so are several of the control. Each set of the change needs
    `min_direction` gained and lost questions, in different groups, and so do all sets of the
    control together.
    """
    answers = change.answers
    bootstrap, pairs = Bootstrap(answers, settings), list(change.sets)
    groups = [count_groups(pair.part, answers.groups) for pair in control.sets]
    in_control = np.sum(groups, axis=0) if groups else [0]
    if min(in_control) < settings.min_direction or not bootstrap.has_both_directions(pairs):
        return {}
    changed, repeated = (
        [rate(pair, answers.confidence.values()) for pair in data.sets]
        for data in (change, control)
    )
    every = [*pairs, *control.sets]
    asked = np.unique(np.concatenate([pair.changed for pair in every]))
    metrics = [name for name in statistics_of_change() if METRICS[name].has_beyond]
    pseudo = {
        name: {m: bootstrap.pseudo(m, every, METRICS[name].pseudo) for m in answers.rows}
        for name in metrics
    }
    n_runs = len(answers.confidence)

    def measure(weights: Array, block: slice | None) -> dict[str, Array]:
        """Return (3, n_runs, n_columns) of each metric; on the data without a block."""
        values = {name: np.zeros((3, n_runs, weights.shape[1])) for name in metrics}
        for rated in changed:
            of_change = weights[np.searchsorted(asked, rated.pair.changed)]
            scales = _scales(rated.pair, repeated)
            scaled = np.concatenate(
                [
                    scale * weights[np.searchsorted(asked, r.pair.changed)]
                    for scale, r in zip(scales, repeated, strict=True)
                ]
            )
            sizes = group_sizes(rated.pair.part, answers.groups)
            n_seen = sum(
                scale * r.pair.counts.changed for scale, r in zip(scales, repeated, strict=True)
            )
            for i, series in enumerate(answers.confidence):
                chance = ChanceFlips([r.runs[i] for r in repeated], scaled, n_seen)
                for name in metrics:
                    extra = None
                    if block:
                        extra = Pseudo(pseudo[name][series.member][:, block], sizes)
                    values[name][:, i] += METRICS[name].beyond(
                        rated.runs[i], of_change, chance, extra
                    )
        return {name: sums / len(changed) for name, sums in values.items()}

    values = measure(np.ones((len(asked), 1)), None)
    drawn = {name: np.empty((3, n_runs, settings.n_replicates)) for name in metrics}
    least = np.empty(settings.n_replicates)
    for part in blocks(settings.n_replicates, 8 * (8 * len(asked))):
        columns = slice(part.start, part.stop)
        weights = bootstrap.weights(asked, part)
        for name, of_runs in measure(weights, columns).items():
            drawn[name][:, :, columns] = of_runs
        least[columns] = _least_surplus(pairs, repeated, asked, weights)
    has_surplus = bool(np.quantile(least, TAIL) > 0)
    made = {}
    for name in metrics:
        excess, dividend, divisor = (
            bootstrap.samples(of_runs[:, 0], of_drawn)
            for of_runs, of_drawn in zip(values[name], drawn[name], strict=True)
        )
        made[name] = {
            m: Ratio(excess[m], dividend[m], divisor[m], has_surplus) for m in answers.rows
        }
    return made


def _scales(pair: ContrastSet, repeated: Sequence[RatedSet]) -> list[float]:
    """Return how much each flip of a control counts in each direction of a change."""
    return [len(pair.every) / len(rated.pair.every) / len(repeated) / 2 for rated in repeated]


def _least_surplus(
    pairs: Sequence[ContrastSet],
    repeated: Sequence[RatedSet],
    asked: NDArray[np.intp],
    weights: Array,
) -> Array:
    """Return by how many flips the direction with the fewest exceeds the control."""

    def sum_of(questions: NDArray[np.intp]) -> Array:
        return weights[np.searchsorted(asked, questions)].sum(axis=0)

    flips = [sum_of(rated.pair.changed) for rated in repeated]
    return np.min(
        [
            np.minimum(sum_of(pair.gained), sum_of(pair.lost))
            - sum(s * f for s, f in zip(_scales(pair, repeated), flips, strict=True))
            for pair in pairs
        ],
        axis=0,
    )
