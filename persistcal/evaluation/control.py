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

from persistcal.evaluation import draws
from persistcal.evaluation.aligned import rate
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.draws import count_groups, group_sizes
from persistcal.evaluation.predictions import AnswerArrays, Array, Mask
from persistcal.evaluation.replicates import blocks, noise_of_seeds
from persistcal.evaluation.runs import OnContrastSet
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import BySeed, claim_interval, seeds_reach
from persistcal.evaluation.weighted import auc

METRICS = {"delta0_balanced": 0.0, "change_auc": 0.5}  # and the value of no knowledge
TAILS = [0.025, 0.975]


class Controlled(NamedTuple):
    """Numerator and denominator of Δ_K or AUC_K, for one estimator.

    `numerator` is 0 if knowledge does not count, and `drawn`, (n_replicates,), has replicates
    of it. `by_seed` has the numerator of each seed, and `noise` the variance between seeds that
    comes from the questions. The estimate is `top / bottom`, both with
    replicates. `surplus` is True if both directions surely have more flips than the control.
    """

    numerator: float
    drawn: Array
    by_seed: BySeed
    noise: float
    top: float
    tops: Array
    bottom: float
    bottoms: Array
    surplus: bool

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the numerator over questions and seeds."""
        return claim_interval(self.numerator, self.drawn, self.by_seed, self.noise)

    def estimate(self) -> tuple[float, float, float]:
        """Return the ratio and its 95 % Fieller interval over questions and seeds.

        All are NaN without a surplus of flips, and if the interval is unbounded.
        """
        if not self.surplus:
            return np.nan, np.nan, np.nan
        reach = seeds_reach(self.by_seed, self.noise)
        low, high = fieller(self.top, self.bottom, self.tops, self.bottoms, reach)
        return (np.nan,) * 3 if np.isnan(low) else (self.top / self.bottom, low, high)


def fieller(
    top: float, bottom: float, tops: Array, bottoms: Array, reach: float = 0.0
) -> tuple[float, float]:
    """Return the 95 % Fieller interval of top / bottom; NaN if it is unbounded.

    The interval contains each ratio θ for which top − θ bottom can be 0: its square is at most
    1.96² times its variance over replicates, plus the squared half-width over seeds, `reach`.

    >>> rng = np.random.default_rng(0)
    >>> low, high = fieller(2.0, 4.0, 2 + rng.normal(0, 0.1, 9999), np.full(9999, 4.0))
    >>> round(low, 2), round(high, 2)  # (2 ± 1.96 × .1) / 4
    (0.45, 0.55)
    """
    if np.isnan(tops).any():
        return np.nan, np.nan
    of_top, both, of_bottom = np.cov(tops, bottoms)[[0, 0, 1], [0, 1, 1]] * 1.959964**2
    of_top += reach**2
    square, cross, constant = bottom**2 - of_bottom, top * bottom - both, top**2 - of_top
    inside = cross**2 - square * constant
    if square <= 0 or inside < 0:
        return np.nan, np.nan
    root = np.sqrt(inside)
    return float((cross - root) / square), float((cross + root) / square)


class _Set(NamedTuple):
    """One contrast set in the order of its component: gained questions first."""

    part: draws.Component
    runs: list[OnContrastSet]
    n_asked: int  # questions with two answers

    @property
    def gained(self) -> Mask:
        return self.part.is_first


def compare_with_control(
    change: Sequence[ContrastSet],
    control: Sequence[ContrastSet],
    answers: AnswerArrays,
    settings: EvaluationSettings,
) -> dict[str, list[Controlled]] | None:
    """Return Δ_K and AUC_K of each estimator, by metric; None with too few flips.

    `change` and `control` are contrast sets of some checkpoints in `answers`. Several sets of a
    change are averaged, and so are several of the control. Each set of the change needs
    `min_direction` gained and lost questions, in different groups, and so do all sets of the
    control together.
    """
    changed, repeated = (
        [_arranged(pair, answers) for pair in pairs] for pairs in (change, control)
    )
    if not changed or not repeated:
        return None
    enough = [count_groups(s.part, answers.groups) for s in changed]
    in_control = np.sum([count_groups(s.part, answers.groups) for s in repeated], axis=0)
    if min(*map(min, enough), *in_control) < settings.min_direction:
        return None
    n_runs, n_replicates, seed = (
        len(answers.confidence),
        settings.n_replicates,
        settings.seed,
    )
    asked = np.unique(np.concatenate([s.part.questions for s in (*changed, *repeated)]))
    one = np.ones((len(asked), 1))
    values = _measure(changed, repeated, asked, one, None, answers)
    drawn = {name: np.empty((n_runs, n_replicates)) for name in values}
    sets = str([(s.part.n_first, s.part.questions.tolist()) for s in (*changed, *repeated)])
    pseudo = [
        [
            draws.pseudo_weights((*member, sets), n_replicates, seed=seed, expected=expected)
            for expected in (draws.PSEUDO, draws.PSEUDO_AUC)
        ]
        for member in answers.rows
    ]
    for block in blocks(n_replicates, 8 * (8 * len(asked))):
        columns = slice(block.start, block.stop)
        weights = draws.question_weights(answers.groups, asked, block, seed=seed)
        chosen = [[kind[:, columns] for kind in of_member] for of_member in pseudo]
        for name, of_runs in _measure(
            changed, repeated, asked, weights, chosen, answers
        ).items():
            drawn[name][:, columns] = of_runs
    surplus = bool(np.quantile(drawn["least_surplus"][0], TAILS[0]) > 0)
    seeds = [series.seed for series in answers.confidence]
    found: dict[str, list[Controlled]] = {metric: [] for metric in METRICS}
    for metric, controlled in found.items():
        names = [f"{metric} {quantity}" for quantity in ("numerator", "top", "bottom")]
        for numbers in answers.rows.values():
            value = [float(values[name][numbers, 0].mean()) for name in names]
            replicated = [drawn[name][numbers].mean(axis=0) for name in names]
            by_seed = {seeds[i]: float(values[names[0]][i, 0]) for i in numbers}
            controlled.append(
                Controlled(
                    value[0],
                    replicated[0],
                    by_seed,
                    noise_of_seeds(values[names[0]][numbers, 0], drawn[names[0]][numbers]),
                    value[1],
                    replicated[1],
                    value[2],
                    replicated[2],
                    surplus,
                )
            )
    return found


def _arranged(pair: ContrastSet, answers: AnswerArrays) -> _Set:
    runs = rate(pair, answers.confidence.values()).runs
    return _Set(pair.part, runs, len(pair.every))


def _measure(
    changed: Sequence[_Set],
    repeated: Sequence[_Set],
    asked: NDArray[np.intp],
    weights: Array,
    pseudo: Sequence[Sequence[Array]] | None,
    answers: AnswerArrays,
) -> dict[str, Array]:
    """Return each quantity under weights of the questions `asked`, (n_runs, n_columns).

    Without `pseudo` the values are those of the data.
    """
    n_runs, shape = len(answers.confidence), (len(answers.confidence), weights.shape[1])
    names = [f"{m} {part}" for m in METRICS for part in ("numerator", "top", "bottom")]
    total = {name: np.zeros(shape) for name in names}
    least = np.full(shape[1], np.inf)
    place = np.searchsorted
    of_control = [weights[place(asked, s.part.questions)] for s in repeated]
    for of in changed:
        own = weights[place(asked, of.part.questions)]
        # each flip of the control counts half in each direction
        scales = [of.n_asked / s.n_asked / len(repeated) / 2 for s in repeated]
        scaled = np.concatenate(
            [scale * w for scale, w in zip(scales, of_control, strict=True)]
        )
        flips = scaled.sum(axis=0)
        sizes = group_sizes(of.part, answers.groups)
        in_class = [own[of.gained].sum(axis=0), own[~of.gained].sum(axis=0)]
        least = np.minimum(least, np.minimum(*in_class) - flips)
        # scaling of the ratio: observed numbers, so that its parts are linear in the weights
        n_seen = [np.count_nonzero(of.gained), np.count_nonzero(~of.gained)]
        seen_flips = sum(scale * s.part.size for scale, s in zip(scales, repeated, strict=True))
        for member, numbers in enumerate(answers.rows.values()):
            of_member = None if pseudo is None else pseudo[member]
            for i in numbers:
                signs = np.concatenate([s.runs[i].sign for s in repeated])
                by_chance = signs @ scaled
                means = _direction_means(of.runs[i].sign, of.gained, own, of_member, sizes)
                numerator, top, bottom = np.zeros((3, shape[1]))
                for mean, n, seen in zip(means, in_class, n_seen, strict=True):
                    numerator = numerator + (mean - by_chance / n) / 2
                    surplus = max(seen - seen_flips, 1e-9)
                    top = top + (n * mean - by_chance) / surplus / 2
                    bottom = bottom + (n - flips) / surplus / 2
                total["delta0_balanced numerator"][i] += numerator
                total["delta0_balanced top"][i] += top
                total["delta0_balanced bottom"][i] += bottom
                moves = np.concatenate(
                    [np.where(s.gained, 1, -1) * s.runs[i].change for s in repeated]
                )
                shares = flips / in_class[0], flips / in_class[1]
                top = _corrected_auc(of, i, own, moves, scaled, shares, of_member, sizes)
                bottom = (1 - shares[0]) * (1 - shares[1])
                total["change_auc numerator"][i] += top - bottom / 2
                total["change_auc top"][i] += top
                total["change_auc bottom"][i] += bottom
    averages = {name: values / len(changed) for name, values in total.items()}
    return averages | {"least_surplus": np.broadcast_to(least, (n_runs, shape[1]))}


def _direction_means(
    signs: Array,
    gained: Mask,
    weights: Array,
    pseudo: Sequence[Array] | None,
    sizes: tuple[float, float],
) -> list[Array]:
    """Return the weighted mean sign in gained and in lost questions, with pseudo-questions."""
    if pseudo is None:
        return [
            signs[rows] @ weights[rows] / weights[rows].sum(axis=0)
            for rows in (gained, ~gained)
        ]
    means = draws.direction_replicates(signs[None], gained, weights, pseudo[0], sizes)
    return [of_run for [of_run] in means]


def _corrected_auc(
    of: _Set,
    run: int,
    weights: Array,
    moves: Array,
    scaled: Array,
    shares: tuple[Array, Array],
    pseudo: Sequence[Array] | None,
    sizes: tuple[float, float],
) -> Array:
    """Return the numerator of AUC_K; `moves` are the control's changes in gained direction."""
    change, gained = of.runs[run].change, of.gained
    if pseudo is None:
        own = auc(change, gained, weights=weights)
    else:
        own = draws.change_auc_replicates(change, gained, weights, pseudo[1], sizes)

    def area(up: Array, of_up: Array, down: Array, of_down: Array) -> Array:
        labels = np.repeat([True, False], [len(up), len(down)])
        both = np.concatenate([of_up, of_down])
        return auc(np.concatenate([up, down]), labels, weights=both)

    with_lost = area(moves, scaled, change[~gained], weights[~gained])
    with_gained = area(change[gained], weights[gained], -moves, scaled)
    alone = area(moves, scaled, -moves, scaled)
    a, b = shares
    return own - a * with_lost - b * with_gained + a * b * alone
