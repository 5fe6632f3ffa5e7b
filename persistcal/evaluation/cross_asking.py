r"""Second asks: crossed asks, how many answers flip by themselves, and copied answers.

Cross-asking gives metrics of change that are at chance if no knowledge changed.

A checkpoint that samples its answers gives some questions a right answer once and a wrong one
the next time. The contrast set of two asks selects such questions, and the confidence in the
given answer moves with them, because the more probable answer is right more often. Therefore
Δ₀ᵇ and change AUC are above chance although no knowledge has changed.

Cross-asking needs two independent asks, A and B, of each checkpoint. Ask A gives answers,
labels and the contrast set, and ask B the confidence, in B's own answers. Then the roles are
exchanged, and both statistics are averaged:

.. math:: T = \tfrac12 (T_{AB} + T_{BA}).

If both checkpoints have the same distribution of answers and confidences for each question,
then B's pair of confidences is exchangeable given A. Therefore Δ₀ᵇ has the mean 0 and the
change AUC has the mean ½, whatever A selects. Both roles have the same weights of questions in
each replicate, because their statistics share the questions.

Beams have no independent second ask. To ask again after other few-shot examples checks
robustness: the examples are common to all questions, so the null is not exact.

An ask of one version, or of a part of the questions, cannot be crossed, nor can an ask that
equals the first one. It only measures how often a label flips by itself. A claim then needs
more than chance flips could give. If a share a of one stratum and b of the other are
chance flips that all look right, their AUC is :math:`1 - (1 - a)(1 - b)/2`. The shares come
from the upper end of the exact 95 % interval of the rate of flips.

A cache, a seed or a resumed job can copy a part of the answers. High agreement within a version
alone shows no copies, because a real change gives it, too. The answers that are right in both
asks of a version show copies if

- confidences have many values,
- a tenth to nine tenths of them are equal in all digits, and the others differ, and
- the equal ones are not surely higher. Frequent answers have equal and high confidences.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from persistcal.evaluation.aligned import RatedSet, TwoAsks
from persistcal.evaluation.bootstrap import Bootstrap, Samples
from persistcal.evaluation.influence import area_influence
from persistcal.evaluation.knowledge import STATISTICS
from persistcal.evaluation.metrics.registry import statistics_of_change
from persistcal.evaluation.predictions import ABSENT, ROUNDING, Array, Ask, Mask
from persistcal.evaluation.proportions import Z, exact_interval
from persistcal.evaluation.settings import EvaluationSettings, Member

MANY_VALUES = 20  # confidences with fewer values are often equal by chance
COPIED = (0.1, 0.9)  # shares of equal confidences that show copies
LEAST = 5  # questions of both kinds that show copies


class Crossed(NamedTuple):
    """The statistics of change of estimators, by two crossed asks.

    `gained` and `lost` are numbers of questions in each role, summed over pairs. `n_left_out`
    counts answers that have a label in a single ask.
    """

    samples: dict[str, Samples]
    gained: tuple[int, int]
    lost: tuple[int, int]
    n_left_out: int = 0
    asks: tuple[int, int] = (Ask.WHOLE, Ask.AGAIN)


def cross_ask(two: TwoAsks, settings: EvaluationSettings) -> Crossed:
    """Cross-ask the estimators of two asks.

    A pair of checkpoints counts if the contrast sets of both roles have `min_contrast`
    questions, and needs `min_direction` gained and lost ones in both roles.
    """
    bootstrap = Bootstrap(two.answers[0], settings)
    samples = bootstrap.apply(statistics_of_change(), two.rated())
    counts = np.array([[role.counts[1:] for role in roles] for roles in two.kept], int)
    gained, lost = counts.reshape(-1, 2, 2).sum(axis=0).T.tolist()
    return Crossed(samples, tuple(gained), tuple(lost), two.n_left_out, two.asks)


class Repeats(NamedTuple):
    """Answers that a version gave twice, and the number with another label, `flipped`.

    `alike` and `alike_between` are shares of answers with an equal label and confidence, in two
    asks of a version and of two versions. `is_copied` is True if a part was copied.
    """

    n_answers: int = 0
    flipped: int = 0
    alike: float = np.nan
    alike_between: float = np.nan
    is_copied: bool = False


def compare_asks(two: TwoAsks, member: Member) -> Repeats:
    """Compare an estimator's answers in two asks; copies also count in `further` asks."""
    first, second = two.whole
    stated, again = (np.array(answers.estimators[member]) for answers in two.whole)

    def compare(earlier: int, later: int) -> tuple[Mask, Mask]:
        """Return which questions have both answers, and which of these answers are equal."""
        labels = first.correct[earlier], second.correct[later]
        is_close = np.abs(stated[:, earlier] - again[:, later]) <= ROUNDING
        is_equal = is_close.all(axis=0) & (labels[0] == labels[1])
        has_both = (labels[0] != ABSENT) & (labels[1] != ABSENT)
        return has_both, has_both & is_equal

    versions = range(len(first.checkpoints))
    has_both, is_equal = np.array([compare(k, k) for k in versions]).swapaxes(0, 1)
    between = [compare(*pair) for pair in combinations(versions, 2)]
    is_right = has_both & (first.correct == 1) & (second.correct == 1)
    copied_here = any(
        _is_copied(stated[:, k].mean(axis=0)[is_right[k]], is_equal[k][is_right[k]])
        for k in versions
    )
    return Repeats(
        int(has_both.sum()),
        int((has_both & (first.correct != second.correct)).sum()),
        float(is_equal[has_both].mean()) if has_both.any() else np.nan,
        float(np.mean([equal[both].mean() for both, equal in between if both.any()] or np.nan)),
        copied_here or any(compare_asks(asks, member).is_copied for asks in two.further),
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
    """Return the value of each statistic that chance flips could reach."""
    most_flips = exact_interval(repeats.flipped, repeats.n_answers, level=0.9)[1]
    largest_shares = []  # of chance flips among gained and lost questions, for each set
    for pair in (rated.pair for rated in sets):
        flips = most_flips * len(pair.every) / 2  # in each direction
        changed = {"gained": pair.gained, "lost": pair.lost}
        largest_shares.append({k: min(1.0, flips / len(rows)) for k, rows in changed.items()})
    return {
        name: float(
            np.mean(
                [
                    sum(1 - (1 - share.get(a, 0)) * (1 - share.get(b, 0)) / 2 for a, b in areas)
                    / len(areas)
                    for share in largest_shares
                ]
            )
        )
        for name, (_, _, areas) in STATISTICS.items()
    }
