"""The one claim about each estimator: whether its confidence followed the changes.

A claim is a word that rests on one basis. It is never the better of two tries:

- *cross*: two independent asks are crossed (`persistcal.evaluation.cross_asking`).
- *other examples*: beams after two sets of few-shot examples are crossed in the same way.
- *control*: Δ_K next to the same weights, asked again (`persistcal.evaluation.control`).
- *one ask*: answers that are known or declared to be deterministic, so that no flip is chance.
- *samples*: one ask of answers that can be samples. Chance flips move confidence, too, so
  nothing is said to have followed.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.cross_asking import Crossed, cross_ask
from persistcal.evaluation.metrics.registry import METRICS, MetricKey, statistics_of_change
from persistcal.evaluation.predictions import Ask
from persistcal.evaluation.replicates import Replicates
from persistcal.evaluation.samples import LEVEL, Bounds, Sample
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import CLAIMS

FOLLOWED = "followed"
IN_ORDER = "followed in order only"
MOVED = "moved with the labels"
MOVED_IN_ORDER = "moved with the labels, in order only"
NOT_SHOWN = "not shown to have followed"
AGAINST = "moved against"
TOO_FEW = "too few changed questions"

CROSS, CONTROL, ONE_ASK, SAMPLES = "cross", "control", "one ask", "samples"
EXAMPLES = "other examples"
BALANCE, ORDER = "delta0_balanced", "change_auc"  # the metrics behind a word
_COUNTS = ("improvement", "regression", "other_improvement", "other_regression")


def word_of(balance: Bounds, order: Bounds, basis: str) -> str:
    """Return the word for an estimator.

    Parameters
    ----------
    balance : Bounds
        Δ₀ᵇ: whether confidence rises in gained and falls in lost questions. For a control the
        numerator of Δ_K.
    order : Bounds
        The change AUC: whether confidence changes more favourably in gained than in lost
        questions. It is not affected by a shift of all confidences. For a control the
        numerator of AUC_K, plus ½.
    basis : {"cross", "other examples", "control", "one ask", "samples"}
        What the intervals rest on.

    Examples
    --------
    All confidences fell, but further in lost questions:

    >>> word_of(Bounds(0.03, -0.1, 0.2), Bounds(0.62, 0.51, 0.73), "one ask")
    'followed in order only'
    >>> word_of(Bounds(0.3, 0.1, 0.5), Bounds(0.7, 0.6, 0.8), "samples")
    'moved with the labels'
    """
    in_balance, in_order = balance.side(0.0), order.side(0.5)
    if np.isnan(balance.lower) and np.isnan(order.lower):
        return TOO_FEW
    leading = in_balance if basis == CONTROL else in_order
    if leading < 0:
        return AGAINST
    if in_order <= 0 and not (basis == CONTROL and in_balance > 0):
        return NOT_SHOWN
    if basis == SAMPLES:
        return MOVED if in_balance > 0 else MOVED_IN_ORDER
    return FOLLOWED if in_balance > 0 else IN_ORDER


def make_claims(
    data: Aligned, replicates: Replicates, settings: EvaluationSettings, *, is_greedy: bool
) -> pd.DataFrame:
    """Return the claims about all estimators of one model and dataset.

    The result has the columns of the table CLAIMS but for model and dataset: rows of Δ₀ᵇ and
    change AUC by one ask, and by cross-asking if there are two. The estimator's word is in the
    rows that it rests on. Bonferroni's method makes the intervals of a metric simultaneous for
    all estimators.

    Parameters
    ----------
    data : Aligned
        The answers, of one or two asks.
    replicates : Replicates
        The bootstrap of the usual answers.
    is_greedy : bool
        Whether answers are known or declared to be deterministic.
    """
    crossed = cross_ask(data.crossed, settings) if data.crossed else None
    counts = [pair.counts for pair in data.kept if pair.has_both_directions]
    gained, lost = sum(of.gained for of in counts), sum(of.lost for of in counts)
    return table_of_claims(replicates, crossed, (gained, lost), is_greedy=is_greedy)


def basis_of(crossed: Crossed) -> str:
    """Return the basis of a claim by cross-asking."""
    return EXAMPLES if Ask.EXAMPLES in crossed.asks else CROSS


class Asked(NamedTuple):
    """The statistics of change of one estimator as it was asked, with their counts."""

    asks: str
    samples: dict[str, Sample]
    basis: str  # if the word rests on these asks
    counts: tuple[int | None, ...]


def table_of_claims(
    replicates: Replicates,
    crossed: Crossed | None,
    counts: tuple[int, int],
    *,
    is_greedy: bool,
) -> pd.DataFrame:
    """Return the claims from the bootstrap of the usual answers and from cross-asking.

    `counts` are the gained and lost questions of the usual answers, see `make_claims`.
    """
    metrics = statistics_of_change()
    of_change = {name: replicates[MetricKey("odds", "contrast", name)] for name in metrics}
    members = of_change[metrics[0]].members
    rows: list[tuple[object, ...]] = []
    for member in members:
        once = {name: of.samples[member] for name, of in of_change.items()}
        basis = ONE_ASK if is_greedy else SAMPLES
        asked = [Asked(ONE_ASK, once, basis, (*counts, None, None, 0))]
        if crossed and member in crossed.samples[metrics[0]]:
            samples = {name: crossed.samples[name][member] for name in metrics}
            (first, second), (first_lost, second_lost) = crossed.gained, crossed.lost
            counted = first, first_lost, second, second_lost, crossed.n_left_out
            asked.append(Asked(CROSS, samples, basis_of(crossed), counted))
        for of in asked:
            claim = "", ""
            together = {n: bounds_of(n, s, LEVEL / len(members)) for n, s in of.samples.items()}
            if of is asked[-1]:
                word = word_of(together[BALANCE], together[ORDER], of.basis)
                claim = of.basis, word
            for name, sample in of.samples.items():
                n_seeds = len(set(sample.by_seed) - {0})
                ends = *bounds_of(name, sample), *together[name][1:]
                numbers = *ends, len(members), n_seeds, *of.counts
                rows.append((*member, of.asks, name, *numbers, *claim))
    table = pd.DataFrame(rows, columns=CLAIMS.but("model", "dataset"))
    return table.astype(dict.fromkeys(_COUNTS, "Int64"))


def bounds_of(metric: str, sample: Sample, level: float = LEVEL) -> Bounds:
    """Return a sample's value and interval inside the metric's range."""
    return sample.bounds(level, METRICS[metric].bounds)
