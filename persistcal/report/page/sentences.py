"""What a study says, in sentences that are true of its numbers.

"Above" and "below" are said only where the 95 % interval of the paired bootstrap of
the difference leaves out zero.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.measures import MEASURES
from persistcal.evaluation.replicates import Estimator, Replicates
from persistcal.report.page.tables import short

_TRIED = (("contrast", "delta0_balanced"), ("contrast", "auc"), ("full", "auc"))
ORACLE, NON_ORACLE = "oracle", "non_oracle"


class Difference(NamedTuple):
    """A difference between two estimators, with its 95 % bootstrap interval."""

    value: float
    lower: float
    upper: float

    @property
    def sign(self) -> int:
        """1: above; -1: below; 0: not told apart."""
        return int(self.lower > 0) - int(self.upper < 0)


class Comparison(NamedTuple):
    """Estimators on one measure, and their paired differences.

    Attributes
    ----------
    scope, metric : str
        The measure.
    value : dict of str to float
        By estimator.
    replicated : dict of str to ndarray
        The same on bootstrap replicates, in order of these.
    """

    scope: str
    metric: str
    value: dict[str, float]
    replicated: dict[str, NDArray[np.float64]]

    def difference(self, one: str, other: str) -> Difference:
        """Return how far `one` is above `other`."""
        drawn = self.replicated[one] - self.replicated[other]
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Difference(self.value[one] - self.value[other], float(low), float(high))


def compare(replicates: Replicates, estimators: Sequence[Estimator]) -> Comparison | None:
    """Compare estimators on the first measure that is defined for some of them.

    Parameters
    ----------
    replicates : Replicates
        The study's bootstrap of one model and dataset.
    estimators : sequence of (train_dataset, estimator)
        Those that are spoken of; no two of one name.

    Returns
    -------
    Comparison or None
        None where nothing is defined.
    """
    place = {member: i for i, member in enumerate(replicates.estimators)}
    chosen = [(member[1], place[member]) for member in estimators]
    for scope, metric in _TRIED:
        values = replicates.observed["odds", scope, metric]
        drawn = replicates.replicated["odds", scope, metric]
        there = {
            name: i
            for name, i in chosen
            if not np.isnan(values[i]) and not np.isnan(drawn[i]).any()
        }
        if there:
            return Comparison(
                scope,
                metric,
                {name: float(values[i]) for name, i in there.items()},
                {name: drawn[i] for name, i in there.items()},
            )
    return None


def sentence(comparison: Comparison, labels: Mapping[str, str]) -> str:
    """Return one sentence about the estimators of a comparison.

    Oracle against non-oracle training is the axis where the study has both; else it
    is the best estimator against the next. The others are placed beside these two.
    """
    values = comparison.value
    measure = MEASURES[comparison.metric].heading
    if comparison.scope == "full":
        measure = f"{measure} over all questions"
    elif comparison.metric == "auc":
        measure = f"{measure} on contrast sets"
    ranked = sorted(values, key=lambda name: -values[name])

    def name(estimator: str, first: bool = False) -> str:
        label = labels.get(estimator, estimator)
        # Only the capital of an ordinary word may go: GCM and CoCoA stay.
        if not first and label[:1].isupper() and label.split()[0][1:].islower():
            label = label[0].lower() + label[1:]
        return f"{label} ({short(values[estimator])})"

    if len(ranked) == 1:
        return f"{name(ranked[0], True)} is the only estimator with a {measure}."
    one, other = ranked[:2]
    if {ORACLE, NON_ORACLE} <= values.keys():
        one, other = ORACLE, NON_ORACLE
    gap = comparison.difference(one, other)
    interval = f"{short(abs(gap.value))} [{_interval(gap)}]"
    relation = {
        1: f"is above {name(other)} by {interval}",
        -1: f"is below {name(other)} by {interval}",
        0: f"cannot be told from {name(other)}: the difference of "
        f"{short(gap.value)} [{short(gap.lower)}, {short(gap.upper)}] may be zero",
    }[gap.sign]
    text = f"{name(one, True)} {relation} in {measure}"
    return "; ".join([text, *_others(comparison, one, other, ranked, name)]) + "."


def _interval(gap: Difference) -> str:
    ends = sorted([abs(gap.lower), abs(gap.upper)])
    return ", ".join(short(end) for end in ends)


def _others(
    comparison: Comparison,
    one: str,
    other: str,
    ranked: Sequence[str],
    name: Callable[[str], str],
) -> list[str]:
    """Place the other estimators beside the two; neighbours in rank share a clause."""
    places: dict[str, list[str]] = {}
    for estimator in ranked:
        if estimator in (one, other):
            continue
        signs = {e: comparison.difference(estimator, e).sign for e in (one, other)}
        untold = [e for e, sign in signs.items() if sign == 0]
        if len(untold) == 2:
            place = "cannot be told from either"
        elif untold:
            place = f"cannot be told from {name(untold[0])}"
        else:
            place = {2: "above both", 0: "between the two", -2: "below both"}[
                sum(signs.values())
            ]
        places.setdefault(place, []).append(name(estimator))
    return [
        f"{_list(names)} {place}"
        if place.startswith("cannot")
        else f"{_list(names)} {'is' if len(names) == 1 else 'are'} {place}"
        for place, names in places.items()
    ]


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
