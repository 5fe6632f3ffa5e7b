"""The one claim about each estimator: whether its confidence followed the changes.

A claim is a word. It rests on the five statistics of `persistcal.evaluation.knowledge`. It has
one basis, and is never the better of two tries:

- *cross*: two independent asks are crossed, see `persistcal.evaluation.cross_asking`.
- *other examples*: beams after two sets of few-shot examples are crossed in the same way.
- *control*: an ask is compared with the rate of chance flips. The same weights that were asked
  again give this rate, or a second ask of some answers does.
- *one ask*: answers are known to be deterministic, such as beams of this project.
- *declared*: the user or a log declares that answers are deterministic.
- *samples*: answers can be samples. Chance flips also move confidence, so no estimator is
  claimed to have followed.
- *copies*: a part of the second ask is a copy of the first one, so the same holds.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation.aligned import Aligned, Member
from persistcal.evaluation.bootstrap import Bootstrap, Samples
from persistcal.evaluation.cross_asking import (
    Crossed,
    Repeats,
    compare_asks,
    cross_ask,
    reached_by_chance,
)
from persistcal.evaluation.knowledge import (
    CHANCE,
    EQUIVALENT,
    KNEW,
    KNOWS,
    NEEDED,
    WITHHOLDING,
    placebo_shares,
    sample_knowledge,
)
from persistcal.evaluation.metrics.registry import METRICS, MetricKey, statistics_of_change
from persistcal.evaluation.predictions import Ask, training_seeds
from persistcal.evaluation.replicates import Replicates
from persistcal.evaluation.samples import LEVEL, Bounds, Sample
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import CLAIMS, PLACEBOS

FOLLOWED = "followed"
IF_DECLARED = "followed, if no answer flips by itself (declared)"
MOVED = "moved with the labels"
NEW_STATE = "knows the new state only"
NOT_MOVED = "knows, and did not move"
LOST = "lost its knowledge"
AGAINST = "moved against"
STILL = "did not move"
NOT_SHOWN = "not shown"
TOO_FEW = "too few changed questions"

CROSS, EXAMPLES, CONTROL = "cross", "other examples", "control"
ONE_ASK, DECLARED, SAMPLES, COPIES = "one ask", "declared", "samples", "copies"
WORDS_IF_ALL = {SAMPLES: MOVED, COPIES: MOVED, DECLARED: IF_DECLARED}  # else `FOLLOWED`
BEYOND, PLACEBO = "beyond_control", "placebo"
BALANCE, ORDER = "delta0_balanced", "change_auc"  # next to a control, and behind `LOST`
_COUNTS = ("improvement", "regression", "other_improvement", "other_regression")


class Word(NamedTuple):
    """A word, and the first test that failed, or the placebo that earns the word."""

    word: str
    lacking: str = ""


def word_of(
    bounds: Mapping[str, Bounds],
    basis: str,
    *,
    chance: Mapping[str, float] | None = None,
    beyond: Bounds | None = None,
    placebo: str = "",
) -> Word:
    """Return the word for an estimator.

    Parameters
    ----------
    bounds : mapping of str to Bounds
        The statistics of knowledge, and the change AUC; for a control the numerator of AUC_K,
        plus ½.
    basis : {"cross", "other examples", "control", "one ask", "declared", "samples", "copies"}
        The basis of the intervals.
    chance : mapping of str to float, optional
        The value of each statistic that chance flips can reach, by default ½.
    beyond : Bounds, optional
        The numerator of Δ_K, which *moved* needs to be above 0 next to a control.
    placebo : str
        The placebo that earns the word, if any.

    Examples
    --------
    A later confidence that is constant: the earlier one knew, the later one does not.

    >>> above, at_chance = Bounds(0.8, 0.7, 0.9), Bounds(0.5, 0.4, 0.6)
    >>> names = ("knew", "knew_changed", "moved", "knows", "knows_changed", "change_auc")
    >>> bounds = dict.fromkeys(names, above)
    >>> word_of(bounds | {"knows": at_chance, "knows_changed": at_chance}, "cross")
    Word(word='lost its knowledge', lacking='knows')
    >>> word_of(bounds, "samples").word, word_of(bounds, "cross").word
    ('moved with the labels', 'followed')
    """
    if np.isnan(bounds["moved"].lower):
        return Word(TOO_FEW)
    passed = {n: bounds[n].side((chance or {}).get(n, CHANCE)) > 0 for n in NEEDED}
    moved = passed["moved"] and (beyond is None or beyond.side(0.0) > 0)
    knew, knows = (all(passed[name] for name in names) for names in (KNEW, KNOWS))
    lacking = next((name for name in NEEDED if not passed[name]), "" if moved else BEYOND)
    is_still = abs(bounds["moved"].lower - CHANCE) <= EQUIVALENT
    is_still &= abs(bounds["moved"].upper - CHANCE) <= EQUIVALENT
    if not lacking:
        if placebo:
            return Word(NOT_SHOWN, f"{PLACEBO}: {placebo}")
        return Word(WORDS_IF_ALL.get(basis, FOLLOWED))
    if moved and knows and not knew:
        return Word(NEW_STATE, lacking)
    if knew and knows and is_still:
        return Word(NOT_MOVED, "moved")
    if knew and bounds[ORDER].side(CHANCE) > 0 and not knows:
        return Word(LOST, lacking)
    if bounds["moved"].side(CHANCE) < 0:
        return Word(AGAINST, "moved")
    return Word(STILL, "moved") if is_still else Word(NOT_SHOWN, lacking)


class Claims(NamedTuple):
    """The tables CLAIMS and PLACEBOS, but for model and dataset."""

    claims: pd.DataFrame
    placebos: pd.DataFrame


class Known(NamedTuple):
    """The statistics of knowledge of estimators, and the shares of placebos with the word.

    `by_chance` are the values of the statistics that chance flips can reach.
    """

    samples: dict[str, Samples]
    placebos: dict[Member, dict[str, float]]
    by_chance: Mapping[str, float]


def _measure_knowledge(
    data: Aligned, settings: EvaluationSettings, asks: str, n_compared: int
) -> Known:
    """Measure the statistics of knowledge of all estimators by one ask, or crossed.

    Statistics without an interval have no placebos.
    """
    if asks == CROSS and data.crossed:
        sets, placebo_sets = data.crossed.rated(), data.crossed.rated_alone()
        answers = data.crossed.answers[0]
    else:
        sets = [rated for rated in data.rated() if rated.pair.has_both_directions]
        placebo_sets, answers = sets, data.answers
    samples = sample_knowledge(sets, Bootstrap(answers, settings))
    has_interval = not np.isnan(next(iter(samples["moved"].values())).draws).any()
    placebos: dict[Member, dict[str, float]] = {}
    by_chance: Mapping[str, float] = {}
    if placebo_sets and has_interval:
        placebos = placebo_shares(placebo_sets, answers, settings, LEVEL / n_compared)
    if data.flips[0] and sets:
        by_chance = reached_by_chance(sets, Repeats(*data.flips))
    return Known(samples, placebos, by_chance)


class AskedEstimator(NamedTuple):
    """An estimator in one ask or in crossed asks, and the basis of its word.

    `counts` are gained and lost questions, the same of the other role, and answers left out.
    `repeats` are the answers that were given twice.
    """

    member: Member
    asks: str
    samples: dict[str, Sample]
    basis: str
    counts: tuple[int | None, ...]
    repeats: Repeats


def make_claims(
    data: Aligned, replicates: Replicates, settings: EvaluationSettings, *, determinism: str
) -> Claims:
    """Return the claims about all estimators of one model and dataset, and their placebos.

    Rows of CLAIMS are Δ₀ᵇ and change AUC by one ask, and by crossed asks if there are two. The
    last of these decides the word. It also has rows of the statistics of knowledge.
    Bonferroni's method makes the intervals of a metric simultaneous for all estimators.

    Parameters
    ----------
    data : Aligned
        The answers, of one or more asks.
    replicates : Replicates
        The bootstrap of the usual answers.
    determinism : {"", "declared", "known"}
        Whether answers are declared or known to be deterministic.
    """
    crossed = cross_ask(data.crossed, settings) if data.crossed else None
    counts = [pair.counts for pair in data.kept if pair.has_both_directions]
    gained, lost = sum(n.gained for n in counts), sum(n.lost for n in counts)
    basis = {"known": ONE_ASK, "declared": DECLARED}.get(determinism, SAMPLES)
    repeats = Repeats(*data.flips)
    if repeats.n_answers and basis != ONE_ASK:
        basis = CONTROL
    metrics = statistics_of_change()
    usual = {name: replicates[MetricKey("odds", "contrast", name)].samples for name in metrics}
    members = list(usual[metrics[0]])
    cases: list[AskedEstimator] = []
    for member in members:
        samples = {name: usual[name][member] for name in metrics}
        of_usual = gained, lost, None, None, 0
        cases.append(AskedEstimator(member, ONE_ASK, samples, basis, of_usual, repeats))
        if data.crossed and crossed and member in crossed.samples[metrics[0]]:
            samples = {name: crossed.samples[name][member] for name in metrics}
            roles = zip(crossed.gained, crossed.lost, strict=True)
            of_roles = (*(n for role in roles for n in role), crossed.n_left_out)
            has_second_ask = crossed.asks[1] <= Ask.MOST
            given_twice = compare_asks(data.crossed, member) if has_second_ask else repeats
            cases.append(
                AskedEstimator(member, CROSS, samples, basis_of(crossed), of_roles, given_twice)
            )
    if any(row.repeats.is_copied for row in cases):
        cases = [row._replace(basis=COPIES) if row.asks == CROSS else row for row in cases]
    decisive = {row.member: row for row in cases}  # the last one, crossed if there are two asks
    known_by_asks = {
        asks: _measure_knowledge(data, settings, asks, len(members))
        for asks in dict.fromkeys(row.asks for row in decisive.values())
    }
    rows: list[list[object]] = []
    placebos: list[list[object]] = []
    for row in cases:
        samples, word = row.samples, Word("")
        chance: Mapping[str, float] = {}
        if row is decisive[row.member]:
            knowledge = known_by_asks[row.asks]
            samples = samples | {n: s[row.member] for n, s in knowledge.samples.items()}
            shares = knowledge.placebos.get(row.member, {})
            together = {n: bounds_of(n, s, LEVEL / len(members)) for n, s in samples.items()}
            earned = next((name for name in WITHHOLDING if shares.get(name)), "")
            chance = knowledge.by_chance if row.basis == CONTROL else {}
            word = word_of(together, row.basis, chance=chance, placebo=earned)
            placebos += [[*row.member, name, share] for name, share in shares.items()]
        n_halvings = 1 + len(data.crossed.further) if data.crossed and row.asks == CROSS else 1
        for name, sample in samples.items():
            n_seeds = len(training_seeds(sample.by_seed))
            ends = bounds_of(name, sample, LEVEL / len(members))[1:]
            numbers = [*bounds_of(name, sample), *ends, len(members), n_seeds, n_halvings]
            claim = [
                *row.repeats[:4],
                chance.get(name, np.nan),
                row.basis if word.word else "",
                *word,
            ]
            rows.append([*row.member, row.asks, name, *numbers, *row.counts, *claim])
    table = pd.DataFrame(rows, columns=CLAIMS.but("model", "dataset"))
    return Claims(
        table.astype(dict.fromkeys(_COUNTS, "Int64")),
        pd.DataFrame(placebos, columns=PLACEBOS.but("model", "dataset")),
    )


def basis_of(crossed: Crossed) -> str:
    """Return the basis of a claim by cross-asking."""
    return EXAMPLES if Ask.EXAMPLES in crossed.asks else CROSS


def bounds_of(metric: str, sample: Sample, level: float = LEVEL) -> Bounds:
    """Return a sample's value and interval, clipped to the metric's range.

    Few seeds give ends outside the range. The range contains the truth, so clipping changes no
    level.
    """
    range_ = METRICS[metric].bounds if metric in METRICS else (0.0, 1.0)
    low, high = np.clip(sample.interval(level), *(range_ or (-np.inf, np.inf))).tolist()
    return Bounds(sample.value, low, high)
