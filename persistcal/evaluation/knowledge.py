r"""Three questions about a confidence: *knew*, *moved*, *knows*.

A question is gained (G: wrong, then right), lost (L), still wrong (W) or still right (R).
Gained questions begin low and lost ones high. Every later number, even a constant, then moves
the right way, which raises change AUC. Unchanged questions are therefore the controls of both
directions. :math:`c_1` and :math:`c_2` are the confidences, and d is the difference of their
mid-ranks, each within its checkpoint. AUC(x; A, B) is the probability that x is larger in A
than in B; ties count ½.

- *knew*: ½ [AUC(c₁; R, G) + AUC(c₁; L, W)], and among changed questions AUC(c₁; L, G).
- *moved*: ½ [AUC(d; G, W) + AUC(d; R, L)].
- *knows*: ½ [AUC(c₂; G, W) + AUC(c₂; R, L)], and among changed questions AUC(c₂; G, L).

All are ½ by chance. A constant, random or shuffled later confidence fails *knows*. A number per
question, such as difficulty or a copied confidence, has a and 1 − a among changed questions,
and fails *knew* or *knows*. Mid-ranks make *moved* blind to shifts and scales. A single false
claim remains, if the earlier confidence has knowledge, the later confidence orders only
difficulty, and gained questions are easier than lost ones.

Statistics of several contrast sets (pairs of checkpoints, roles of two asks, halvings) are
averages of influence values, see `persistcal.evaluation.influence`.

Placebos replace a confidence by one without knowledge of the change:

- *mean rank*: the later confidence is the mean of the question's ranks at both checkpoints.
- *same scale*: the later confidence is the earlier one on the later one's scale.
- *later shuffled* and *earlier shuffled*: one end is shuffled over questions, 20 times. Groups
  of questions move together, and all asks and seeds have the same order.

If *same scale* earns the word, the word is withheld. The other shares are printed only. At most
2.5 % of the shuffles earn the word. *Mean rank* contains the later knowledge: it earns the word
of 38 to 92 % of true followers with a less noisy later confidence, and finds the false claim
above in at most 1 % of studies.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.aligned import RatedSet
from persistcal.evaluation.bootstrap import KEY_DECIMALS, Bootstrap, Samples, blocks
from persistcal.evaluation.contrast import FourRows
from persistcal.evaluation.draws import PSEUDO_AUC
from persistcal.evaluation.influence import Influence, area_influence, change_of_ranks, ranks
from persistcal.evaluation.predictions import AnswerArrays, Array
from persistcal.evaluation.settings import EvaluationSettings, Member

STRATA = FourRows._fields
N_SHUFFLES = 20
MEAN_RANK, SAME_SCALE = "mean rank", "same scale"
LATER, EARLIER = "later shuffled", "earlier shuffled"
WITHHOLDING = (SAME_SCALE,)  # placebos that withhold a word if they earn it
AT_ONCE = 2_000  # replicates


class Statistic(NamedTuple):
    """The mean of AUCs of the earlier or later confidence, or of the change of ranks.

    Each of `areas` names the stratum with the higher values, then the other one.
    """

    heading: str
    rated: Literal["earlier", "later", "change"]
    areas: tuple[tuple[str, str], ...]


STATISTICS = {
    "knew": Statistic(
        "Knew", "earlier", (("stayed_right", "gained"), ("lost", "stayed_wrong"))
    ),
    "knew_changed": Statistic("Knew (changed)", "earlier", (("lost", "gained"),)),
    "moved": Statistic(
        "Moved", "change", (("gained", "stayed_wrong"), ("stayed_right", "lost"))
    ),
    "knows": Statistic(
        "Knows", "later", (("gained", "stayed_wrong"), ("stayed_right", "lost"))
    ),
    "knows_changed": Statistic("Knows (changed)", "later", (("gained", "lost"),)),
    "moved_gained": Statistic("Moved (gained)", "change", (("gained", "stayed_wrong"),)),
    "moved_lost": Statistic("Moved (lost)", "change", (("stayed_right", "lost"),)),
}
KNEW, KNOWS = ("knew", "knew_changed"), ("knows", "knows_changed")
NEEDED = (*KNEW, "moved", *KNOWS)  # to have followed, each above chance
CHANCE = 0.5
EQUIVALENT = 0.05  # an interval of *moved* within ½ ± this shows that nothing moved
# The statistics that a replaced later or earlier confidence changes, fastest first
NEW = ("knows_changed", "knows", "moved")
OLD = ("knew_changed", "knew", "moved")
# Takes the number of a set and the confidences of both checkpoints in it
Replacement = Callable[[int, Array, Array], tuple[Array, Array]]


def sample_knowledge(sets: Sequence[RatedSet], bootstrap: Bootstrap) -> dict[str, Samples]:
    """Measure each estimator by the statistics, plain means over contrast sets.

    Replicates are NaN if a stratum of a pair of checkpoints has fewer than `min_direction`
    groups, a mean over asks and halvings, and values are NaN if a set has fewer than two.
    """
    answers, groups = bootstrap.answers, bootstrap.answers.groups
    shape = len(answers.confidence), bootstrap.n_replicates
    strata = [_count_groups(rated, groups) for rated in sets]
    values = {name: np.full(shape[0], np.nan) for name in STATISTICS}
    drawn = {name: np.full(shape, np.nan) for name in STATISTICS}
    if min((min(counts.values()) for counts in strata), default=0) >= 2:
        influences = {
            name: [
                Influence.mean(
                    [
                        influence_of(name, rated, counts, groups, *rated.runs[run].ends)
                        for rated, counts in zip(sets, strata, strict=True)
                    ]
                )
                for run in range(shape[0])
            ]
            for name in STATISTICS
        }
        values = {
            name: np.array([part.value for part in runs]) for name, runs in influences.items()
        }
        by_pair: dict[tuple[int, int], list[list[int]]] = {}
        for (pair, _), counts in zip(sets, strata, strict=True):
            by_pair.setdefault((pair.earlier, pair.later), []).append([*counts.values()])
        fewest = min(np.mean(counts, axis=0).min() for counts in by_pair.values())
        if fewest >= bootstrap.settings.min_direction:
            strata_of = (getattr(pair, name) for pair, _ in sets for name in STRATA)
            drawn = _replicate(influences, bootstrap, bootstrap.is_large(strata_of))
    return {name: bootstrap.samples(values[name], drawn[name]) for name in STATISTICS}


def _count_groups(rated: RatedSet, groups: NDArray[np.intp]) -> dict[str, int]:
    return {name: len(np.unique(groups[getattr(rated.pair, name)])) for name in STRATA}


def influence_of(
    name: str,
    rated: RatedSet,
    n_groups: Mapping[str, int],
    groups: NDArray[np.intp],
    earlier: Array,
    later: Array,
) -> Influence:
    """Return a statistic of confidences in the questions of one contrast set."""
    statistic = STATISTICS[name]
    if statistic.rated == "change":
        confidence = change_of_ranks(earlier, later)
    else:
        confidence = earlier if statistic.rated == "earlier" else later
    questions, pseudo = np.zeros(len(groups)), np.zeros((len(STRATA), 2))
    value = centre = 0.0
    share = 1 / len(statistic.areas)
    for area in statistic.areas:
        rows = [getattr(rated.pair.rows, stratum) for stratum in area]
        counts = n_groups[area[0]], n_groups[area[1]]
        sides = area_influence(confidence[rows[0]], confidence[rows[1]], counts)
        value, centre = value + share * sides[0].value, centre + share * sides[0].centre
        for stratum, side in zip(area, sides, strict=True):
            questions[getattr(rated.pair, stratum)] += share * side.questions
            pseudo[STRATA.index(stratum)] += share * side.pseudo
    return Influence(value, centre, questions, pseudo.ravel())


def _replicate(
    influences: Mapping[str, Sequence[Influence]], bootstrap: Bootstrap, is_large: bool
) -> dict[str, Array]:
    """Return replicates of the statistics of all runs, (n_runs, n_replicates) each.

    Weights of an estimator's pseudo-questions are keyed by the values of its statistics, so
    that names have no effect.
    """
    of_runs = [part for parts in influences.values() for part in parts]
    n_runs, n_replicates = len(of_runs) // len(influences), bootstrap.n_replicates
    drawn = np.empty((len(of_runs), n_replicates))
    questions = np.array([part.questions for part in of_runs])
    centre = np.array([part.centre for part in of_runs]) - questions.sum(axis=1)
    for runs in bootstrap.answers.rows.values():
        rows = [k * n_runs + run for k in range(len(influences)) for run in runs]
        values = np.round([of_runs[row].value for row in rows], KEY_DECIMALS)
        key = hashlib.sha256(values.tobytes()).digest()
        rng = np.random.default_rng([bootstrap.settings.seed, 3, *key[:16]])
        pseudo = rng.standard_gamma(PSEUDO_AUC, (2 * len(STRATA), n_replicates)) - PSEUDO_AUC
        drawn[rows] = np.array([of_runs[row].pseudo for row in rows]) @ pseudo
    positions = np.arange(len(bootstrap.answers.groups))
    if is_large:
        drawn += (centre + questions.sum(axis=1))[:, None]
        drawn += bootstrap.linear((positions, column) for column in questions)
    at_once = min(AT_ONCE, len(blocks(n_replicates, 16 * len(positions))[0]))
    for start in () if is_large else range(0, n_replicates, at_once):
        block = range(start, min(start + at_once, n_replicates))
        weights = bootstrap.weights(positions, block)
        drawn[:, block.start : block.stop] += centre[:, None] + questions @ weights
    by_statistic = np.clip(drawn, 0, 1).reshape(-1, n_runs, n_replicates)
    return dict(zip(influences, by_statistic, strict=True))


def placebo_shares(
    sets: Sequence[RatedSet], answers: AnswerArrays, settings: EvaluationSettings, level: float
) -> dict[Member, dict[str, float]]:
    """Return for each estimator the share of each placebo's trials that earn the word.

    `level` is for two-sided intervals, which are normal approximations here.
    """
    groups, seed = answers.groups, settings.seed
    strata = [_count_groups(rated, groups) for rated in sets]
    orders = [
        [_shuffled(groups[rated.pair.every], ranks) for rated in sets]
        for ranks in (
            np.random.default_rng([seed, 4, number]).permutation(1 + groups.max(initial=0))
            for number in range(N_SHUFFLES)
        )
    ]

    def is_earned(
        runs: Sequence[int], names: Sequence[str], replace: Replacement | None = None
    ) -> bool:
        """Return whether the statistics are all above chance; the first failure ends it."""
        for name in names:
            influences = []
            for k, (rated, counts) in enumerate(zip(sets, strata, strict=True)):
                for run in runs:
                    ends = rated.runs[run].ends
                    ends = replace(k, *ends) if replace else ends
                    influences.append(influence_of(name, rated, counts, groups, *ends))
            if Influence.mean(influences).lower(groups, level) <= CHANCE:
                return False
        return True

    shares_by_member = {}
    for member, runs in answers.rows.items():
        knew, knows = is_earned(runs, KNEW), is_earned(runs, KNOWS)
        by_mean = knew and is_earned(
            runs, NEW, lambda _, a, b: (a, ranks(a).middle + ranks(b).middle)
        )
        by_scale = knew and is_earned(runs, NEW, lambda _, a, b: (a, _on_scale(a, b)))
        by_later = [
            knew and is_earned(runs, NEW, partial(_shuffle, LATER, order)) for order in orders
        ]
        by_earlier = [
            knows and is_earned(runs, OLD, partial(_shuffle, EARLIER, order))
            for order in orders
        ]
        shares_by_member[member] = {
            MEAN_RANK: float(by_mean),
            SAME_SCALE: float(by_scale),
            LATER: sum(by_later) / N_SHUFFLES,
            EARLIER: sum(by_earlier) / N_SHUFFLES,
        }
    return shares_by_member


def _on_scale(earlier: Array, later: Array) -> Array:
    """Return the later confidences in the order of the earlier ones."""
    positions = np.ceil(ranks(earlier).highest * len(later) - 0.5).astype(int) - 1
    return np.sort(later)[positions]


def _shuffle(
    name: str, orders: Sequence[NDArray[np.intp]], number: int, earlier: Array, later: Array
) -> tuple[Array, Array]:
    """Shuffle one end of a contrast set in its order."""
    order = orders[number]
    return (earlier, later[order]) if name == LATER else (earlier[order], later)


def _shuffled(groups: NDArray[np.intp], rank_of_group: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the position of the confidence that each question gets; groups stay together."""
    order = np.empty(len(groups), np.intp)
    order[np.argsort(groups, kind="stable")] = np.argsort(rank_of_group[groups], kind="stable")
    return order
