"""The one claim about each estimator: whether its confidence followed the changes.

A claim is a word. It rests on the five statistics of `persistcal.evaluation.knowledge`, and on
one basis, which is never the better of two tries:

- *cross*: two independent asks are crossed (`persistcal.evaluation.cross_asking`).
- *other examples*: beams after two sets of few-shot examples are crossed in the same way.
- *control*: one ask, next to asks of the same weights again, which give the rate of flips, or
  to a second ask of some answers (`persistcal.evaluation.cross_asking`).
- *one ask*: answers that are known to be deterministic, such as beams of this project.
- *declared*: one ask that the user or a log declares to be deterministic.
- *samples*: one ask of answers that can be samples. Chance flips move confidence, too, so
  nothing is said to have followed.
- *copies*: two asks, of which one is partly a copy of the other, so this is true of it, too.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation.aligned import Aligned, Member, RatedSet
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
from persistcal.evaluation.predictions import AnswerArrays, Ask
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
        What the intervals rest on.
    chance : mapping of str to float, optional
        The value of each statistic that chance flips alone can reach, by default ½.
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
    at = {name: (chance or {}).get(name, CHANCE) for name in NEEDED}
    passed = {name: bounds[name].side(at[name]) > 0 for name in NEEDED}
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

    `by_chance` are the values of the statistics that chance flips alone can reach.
    """

    samples: dict[str, Samples]
    placebos: dict[Member, dict[str, float]]
    by_chance: Mapping[str, float] = {}


def knowledge_of(
    sets: Sequence[RatedSet],
    placebo_sets: Sequence[RatedSet],
    answers: AnswerArrays,
    settings: EvaluationSettings,
    *,
    n_compared: int,
) -> Known:
    """Measure the statistics of knowledge of all estimators of `answers`.

    `sets` are rated by the runs of `answers`, and placebos are evaluated on `placebo_sets`.
    There is none without an interval.
    """
    bootstrap = Bootstrap(answers, settings)
    samples = sample_knowledge(sets, bootstrap)
    drawn = next(iter(samples["moved"].values())).draws
    if not placebo_sets or np.isnan(drawn).any():
        return Known(samples, {})
    return Known(samples, placebo_shares(placebo_sets, answers, settings, LEVEL / n_compared))


class AskedEstimator(NamedTuple):
    """An estimator as it was asked, with the basis that its word would have, and counts.

    `counts` are gained and lost questions, those of the other role, and answers left out.
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

    Rows of CLAIMS are Δ₀ᵇ and change AUC by one ask, and by cross-asking if there are two. The
    asks on which the estimator's word rests have the word, and rows of the statistics of
    knowledge, too. Bonferroni's method makes the intervals of a metric simultaneous for all
    estimators.

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
    gained, lost = sum(of.gained for of in counts), sum(of.lost for of in counts)
    once = {"known": ONE_ASK, "declared": DECLARED}.get(determinism, SAMPLES)
    part = Repeats(*data.flips)
    if part.n_answers and once != ONE_ASK:
        once = CONTROL
    metrics = statistics_of_change()
    of_change = {name: replicates[MetricKey("odds", "contrast", name)] for name in metrics}
    members = list(of_change[metrics[0]].samples)
    asked: list[AskedEstimator] = []
    for member in members:
        own = {name: of.samples[member] for name, of in of_change.items()}
        asked.append(
            AskedEstimator(member, ONE_ASK, own, once, (gained, lost, None, None, 0), part)
        )
        if data.crossed and crossed and member in crossed.samples[metrics[0]]:
            own = {name: crossed.samples[name][member] for name in metrics}
            roles = zip(crossed.gained, crossed.lost, strict=True)
            counted = (*(n for role in roles for n in role), crossed.n_left_out)
            both = compare_asks(data.crossed, member) if crossed.asks[1] <= Ask.MOST else part
            asked.append(AskedEstimator(member, CROSS, own, basis_of(crossed), counted, both))
    if any(of.repeats.is_copied for of in asked):
        asked = [of._replace(basis=COPIES) if of.asks == CROSS else of for of in asked]
    decisive = {of.member: of for of in asked}  # the last one, crossed if there are two asks
    known = {
        asks: _knowledge(data, settings, asks, len(members))
        for asks in dict.fromkeys(of.asks for of in decisive.values())
    }
    rows: list[list[object]] = []
    placebos: list[list[object]] = []
    for of in asked:
        samples, word = of.samples, Word("")
        chance: Mapping[str, float] = {}
        if of is decisive[of.member]:
            found = known[of.asks]
            samples = samples | {name: by[of.member] for name, by in found.samples.items()}
            shares = found.placebos.get(of.member, {})
            together = {n: bounds_of(n, s, LEVEL / len(members)) for n, s in samples.items()}
            earned = next((name for name in WITHHOLDING if shares.get(name)), "")
            chance = found.by_chance if of.basis == CONTROL else {}
            word = word_of(together, of.basis, chance=chance, placebo=earned)
            placebos += [[*of.member, name, share] for name, share in shares.items()]
        n_halvings = 1 + len(data.crossed.further) if data.crossed and of.asks == CROSS else 1
        for name, sample in samples.items():
            n_seeds = len(set(sample.by_seed) - {0})
            ends = bounds_of(name, sample, LEVEL / len(members))[1:]
            numbers = [*bounds_of(name, sample), *ends, len(members), n_seeds, n_halvings]
            claim = [
                *of.repeats[:4],
                chance.get(name, np.nan),
                of.basis if word.word else "",
                *word,
            ]
            rows.append([*of.member, of.asks, name, *numbers, *of.counts, *claim])
    table = pd.DataFrame(rows, columns=CLAIMS.but("model", "dataset"))
    return Claims(
        table.astype(dict.fromkeys(_COUNTS, "Int64")),
        pd.DataFrame(placebos, columns=PLACEBOS.but("model", "dataset")),
    )


def _knowledge(
    data: Aligned, settings: EvaluationSettings, asks: str, n_compared: int
) -> Known:
    """Measure the statistics of knowledge of all estimators by one ask, or crossed."""
    if asks == CROSS and data.crossed:
        sets, placebo_sets = data.crossed.rated(), data.crossed.rated_alone()
        answers = data.crossed.answers[0]
    else:
        sets = [rated for rated in data.rated() if rated.pair.has_both_directions]
        placebo_sets, answers = sets, data.answers
    found = knowledge_of(sets, placebo_sets, answers, settings, n_compared=n_compared)
    if not data.flips[0] or not sets:
        return found
    return found._replace(by_chance=reached_by_chance(sets, Repeats(*data.flips)))


def basis_of(crossed: Crossed) -> str:
    """Return the basis of a claim by cross-asking."""
    return EXAMPLES if Ask.EXAMPLES in crossed.asks else CROSS


def bounds_of(metric: str, sample: Sample, level: float = LEVEL) -> Bounds:
    """Return a sample's value and interval inside the metric's range."""
    return sample.bounds(level, METRICS[metric].bounds if metric in METRICS else (0.0, 1.0))
