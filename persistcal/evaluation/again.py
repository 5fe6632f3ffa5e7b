"""What a second ask of the same version shows: how many answers flip by themselves, and copies.

Two whole asks are crossed (`persistcal.evaluation.cross_asking`). An ask of one version, or of
a part of the questions, or that equals the first one, only measures how often a label flips by
itself. The claim then needs more than chance flips alone could give: if a share a of one
stratum and b of the other are chance flips that all look right, an AUC of nothing else is
:math:`1 - (1 - a)(1 - b)/2`. The shares are upper bounds, by the exact 95 % bound of the rate.

A cache, a seed or a resumed job can copy a part of the answers. High agreement within versions
alone shows nothing, because a real change gives it, too. Copies are shown if, among questions
that are right in both asks of a version, a tenth to nine tenths of the confidences are equal in
all digits and the others differ, although confidences have many values, and the equal ones are
not surely the higher ones, as those of frequent answers are.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from persistcal.evaluation.aligned import RatedSet, TwoAsks
from persistcal.evaluation.blocks import Member
from persistcal.evaluation.contrast import FourRows
from persistcal.evaluation.distributions import Z
from persistcal.evaluation.influence import area_influence
from persistcal.evaluation.knowledge import STATISTICS, Statistic
from persistcal.evaluation.predictions import ABSENT, ROUNDING, Array, Mask
from persistcal.evaluation.proportions import exact_interval

MANY_VALUES = 20  # confidences with fewer are often equal by chance
COPIED = (0.1, 0.9)  # shares of equal confidences that show copies beside other answers
LEAST = 5  # questions of both kinds that show them


class Repeats(NamedTuple):
    """Answers that a version gave twice, of which `flipped` have another label.

    `alike` and `alike_between` are shares of answers with an equal label and confidence, in two
    asks of a version and of two versions. `is_copied` is whether a part of them was copied.
    """

    n_answers: int = 0
    flipped: int = 0
    alike: float = np.nan
    alike_between: float = np.nan
    is_copied: bool = False

    @property
    def most_flips(self) -> float:
        """The upper end of the 95 % interval of the share of flips."""
        return exact_interval(self.flipped, self.n_answers, level=0.9)[1]


def compare_asks(two: TwoAsks, member: Member) -> Repeats:
    """Compare an estimator's answers in two asks, and in those of `further` pairs of asks."""
    first, second = two.whole
    (runs, again) = (np.array(answers.estimators[member]) for answers in two.whole)
    labels = first.correct, second.correct

    def same(earlier: int, later: int) -> tuple[Mask, Mask]:
        """Return which answers are known, and which of these are equal."""
        known = (labels[0][earlier] != ABSENT) & (labels[1][later] != ABSENT)
        close = np.abs(runs[:, earlier] - again[:, later]) <= ROUNDING
        return known, close.all(axis=0) & (labels[0][earlier] == labels[1][later])

    n_states = len(first.checkpoints)
    within = [same(k, k) for k in range(n_states)]
    between = [same(*pair) for pair in combinations(range(n_states), 2)]
    known, equal = (np.array(of) for of in zip(*within, strict=True))
    is_copied = any(
        _is_copied(runs[:, k].mean(axis=0)[right], equal[k][right])
        for k in range(n_states)
        for right in [known[k] & (labels[0][k] == 1) & (labels[1][k] == 1)]
    )
    further = [compare_asks(of, member) for of in two.further]
    return Repeats(
        int(known.sum()),
        int((known & (labels[0] != labels[1])).sum()),
        float(equal[known].mean()) if known.any() else np.nan,
        float(np.mean([e[k].mean() for k, e in between if k.any()] or [np.nan])),
        is_copied or any(of.is_copied for of in further),
    )


def _is_copied(confidence: Array, equal: Mask) -> bool:
    """Return whether some of the confidences in right answers were copied."""
    n, sides = len(equal), (confidence[equal], confidence[~equal])
    if min(map(len, sides)) < LEAST or not COPIED[0] <= equal.mean() <= COPIED[1]:
        return False
    counts = np.unique(confidence, return_counts=True)[1]
    if n**2 <= MANY_VALUES * np.sum(counts**2):
        return False
    area = area_influence(*sides, (len(sides[0]), len(sides[1])))
    error = sum(float(np.sum(side.questions**2)) for side in area) ** 0.5
    return area[0].value - Z * error <= 0.5


def reached_by_chance(sets: Sequence[RatedSet], repeats: Repeats) -> Mapping[str, float]:
    """Return the value of each statistic that chance flips alone could reach."""
    most = [_most_chance(rated, repeats.most_flips) for rated in sets]
    return {
        name: float(np.mean([_mean_of_areas(statistic, shares) for shares in most]))
        for name, statistic in STATISTICS.items()
    }


def _most_chance(rated: RatedSet, most_flips: float) -> dict[str, float]:
    """Return the largest share of chance flips in each stratum."""
    flips = most_flips * len(rated.pair.every) / 2  # in each direction
    shares = dict.fromkeys(FourRows._fields, 0.0)
    return shares | {
        name: min(1.0, flips / len(getattr(rated.pair, name))) for name in ("gained", "lost")
    }


def _mean_of_areas(statistic: Statistic, shares: Mapping[str, float]) -> float:
    areas = [1 - (1 - shares[a]) * (1 - shares[b]) / 2 for a, b in statistic.areas]
    return sum(areas) / len(areas)
