"""The one claim about each estimator: whether its confidence followed the changes.

A claim is a word that rests on one basis. It is never the better of two tries:

- *cross*: two independent asks are crossed (`persistcal.evaluation.cross_asking`).
- *other examples*: beams after two sets of few-shot examples are crossed in the same way.
- *control*: Δ_K next to the same weights, asked again (`persistcal.evaluation.control`).
- *one ask*: answers that are known or declared to be deterministic, so that no flip is chance.
- *samples*: one ask of answers that can be samples. Chance flips move confidence, too, so
  nothing is said to have followed.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.cross_asking import METRICS, Directed, cross_ask
from persistcal.evaluation.metrics.registry import METRICS as REGISTERED
from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.predictions import Array, Ask
from persistcal.evaluation.replicates import Replicates
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import LEVEL, BySeed, claim_interval
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
CHANCE = {"delta0_balanced": 0.0, "change_auc": 0.5}  # of confidence that follows nothing
_COUNTS = ("improvement", "regression", "other_improvement", "other_regression")


class Bounds(NamedTuple):
    """A metric and its interval; NaN without one."""

    value: float
    lower: float
    upper: float

    def side(self, chance: float) -> int:
        """Return 1 if the interval is above `chance`, −1 if it is below, else 0.

        >>> [Bounds(0.6, *ends).side(0.5) for ends in ((0.51, 0.7), (0.4, 0.7), (0.3, 0.4))]
        [1, 0, -1]
        """
        return int(self.lower > chance) - int(self.upper < chance)


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


class MeasuredEstimator(NamedTuple):
    """The metrics of one estimator: values, replicates, values by seed, and noise of these."""

    value: Mapping[str, float]
    replicated: Mapping[str, Array]
    by_seed: Mapping[str, BySeed]
    noise: Mapping[str, float]

    @classmethod
    def of_cross_asking(cls, crossed: Directed, number: int) -> "MeasuredEstimator":
        """Return the metrics of the estimator at a position."""
        return cls(
            {name: float(crossed.observed[name][number]) for name in METRICS},
            {name: crossed.replicated[name][number] for name in METRICS},
            {name: crossed.by_seed[name][number] for name in METRICS},
            {name: float(crossed.noise[name][number]) for name in METRICS},
        )

    @classmethod
    def of_one_ask(cls, replicates: Replicates, number: int) -> "MeasuredEstimator":
        """Return the metrics of the estimator at a position."""
        keys = {name: MetricKey("odds", "contrast", name) for name in METRICS}
        return cls(
            {name: float(replicates.observed[key][number]) for name, key in keys.items()},
            {name: replicates.for_claims(key)[number] for name, key in keys.items()},
            {name: replicates.by_seed[key][number] for name, key in keys.items()},
            {name: float(replicates.noise[key][number]) for name, key in keys.items()},
        )

    def bounds(self, metric: str, level: float = LEVEL) -> Bounds:
        """Return a metric with its interval over questions, and over seeds if there are any.

        Few seeds give ends outside the metric's range. The range contains the truth, so
        clipping changes no level.
        """
        value = self.value[metric]
        sample = self.replicated[metric], self.by_seed[metric], self.noise[metric]
        ends = np.array(claim_interval(value, *sample, level))
        least, most = REGISTERED[metric].bounds or (-np.inf, np.inf)
        low, high = np.clip(ends, least, most).tolist()
        return Bounds(value, low, high)


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


def basis_of(crossed: Directed) -> str:
    """Return the basis of a claim by cross-asking."""
    return EXAMPLES if Ask.EXAMPLES in crossed.asks else CROSS


def table_of_claims(
    replicates: Replicates,
    crossed: Directed | None,
    counts: tuple[int, int],
    *,
    is_greedy: bool,
) -> pd.DataFrame:
    """Return the claims from the bootstrap of the usual answers and from cross-asking.

    `counts` are the gained and lost questions of the usual answers, see `make_claims`.
    """
    n_compared = len(replicates.estimators)
    rows: list[list[object]] = []
    for number, member in enumerate(replicates.estimators):
        asked = [
            (
                ONE_ASK,
                MeasuredEstimator.of_one_ask(replicates, number),
                [*counts, None, None, 0],
            )
        ]
        if crossed and member in crossed.estimators:
            measured = MeasuredEstimator.of_cross_asking(
                crossed, crossed.estimators.index(member)
            )
            by_role = [
                n for role in zip(crossed.gained, crossed.lost, strict=True) for n in role
            ]
            asked.append((CROSS, measured, [*by_role, crossed.n_left_out]))
        basis = ONE_ASK if is_greedy else SAMPLES
        if crossed and len(asked) > 1:
            basis = basis_of(crossed)
        for asks, measured, counted in asked:
            together = [measured.bounds(name, LEVEL / n_compared) for name in METRICS]
            claim = ["", ""]
            if asks == asked[-1][0]:
                claim = [basis, word_of(together[0], together[1], basis)]
            n_seeds = len(set(measured.by_seed[METRICS[0]]) - {0})
            for name, (_, *ends) in zip(METRICS, together, strict=True):
                measures = [name, *measured.bounds(name), *ends, n_compared, n_seeds]
                rows.append([*member, asks, *measures, *counted, *claim])
    table = pd.DataFrame(rows, columns=CLAIMS.but("model", "dataset"))
    return table.astype(dict.fromkeys(_COUNTS, "Int64"))
