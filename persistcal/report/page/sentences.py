"""Sentences about a study, which are true of its numbers.

"Above" and "below" are said only where the 95 % interval of the paired bootstrap of
the difference leaves out zero.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.measures import MEASURES
from persistcal.evaluation.power import multiple
from persistcal.evaluation.recipes import BySeed, recipe_interval
from persistcal.evaluation.replicates import Estimator, Replicates
from persistcal.report.page.tables import short

_TRIED = (("contrast", "delta0_balanced"), ("contrast", "auc"), ("full", "auc"))
_PLACES = {2: "above both", 0: "between the two", -2: "below both"}  # by the sum of signs
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


class Standings(NamedTuple):
    """Estimators' values of one measure, and the same on bootstrap replicates."""

    scope: str
    metric: str
    value: dict[str, float]
    replicated: dict[str, NDArray[np.float64]]
    by_seed: dict[str, BySeed]
    noise: dict[str, float]

    def drawn(self, one: str, other: str) -> NDArray[np.float64]:
        """Return how far `one` is above `other` on each replicate."""
        return self.replicated[one] - self.replicated[other]

    def difference(self, one: str, other: str) -> Difference:
        """Return how far `one` is above `other`."""
        low, high = np.quantile(self.drawn(one, other), [0.025, 0.975])
        return Difference(self.value[one] - self.value[other], float(low), float(high))

    def power(self, one: str, other: str) -> str:
        """Say which difference would have been told."""
        found = short(multiple() * float(self.drawn(one, other).std(ddof=1)))
        return f" A difference of {found} would be found in 80 % of such studies."

    def of_recipes(self, one: str, other: str) -> str:
        """Say where a difference holds for these adapters, but may not for their recipe."""
        difference = self.value[one] - self.value[other]
        sides = [self.by_seed[one], self.by_seed[other]]
        noise = max(self.noise[one], self.noise[other])
        n, low, high, _ = recipe_interval(difference, self.drawn(one, other), sides, noise)
        if n == 1:
            return " One seed says nothing of what training again would give."
        if low <= 0 <= high:
            return (
                f" That holds for these adapters; for their recipe it may be zero: "
                f"[{short(low)}, {short(high)}] over {n} seeds and the questions."
            )
        return ""


def compare(replicates: Replicates, estimators: Sequence[Estimator]) -> Standings | None:
    """Compare estimators, no two of one name, on the first measure that some of them define.

    `replicates` are the study's bootstrap of one model and dataset.
    """
    place = {member: i for i, member in enumerate(replicates.estimators)}
    chosen = [(member[1], place[member]) for member in estimators]
    for scope, metric in _TRIED:
        values = replicates.observed["odds", scope, metric]
        drawn = replicates.replicated["odds", scope, metric]
        by_seed = replicates.by_seed["odds", scope, metric]
        noise = replicates.noise["odds", scope, metric]
        defined = ~np.isnan(values) & ~np.isnan(drawn).any(axis=1)
        there = {name: i for name, i in chosen if defined[i]}
        if there:
            return Standings(
                scope,
                metric,
                {name: float(values[i]) for name, i in there.items()},
                {name: drawn[i] for name, i in there.items()},
                {name: by_seed[i] for name, i in there.items()},
                {name: float(noise[i]) for name, i in there.items()},
            )
    return None


def sentence(standings: Standings, labels: Mapping[str, str]) -> str:
    """Return one sentence about the estimators of a standings.

    Oracle against non-oracle training is the axis where the study has both; else it
    is the best estimator against the next. The others are placed beside these two.
    """
    values = standings.value
    measure = MEASURES[standings.metric].heading
    if standings.scope == "full":
        measure = f"{measure} over all questions"
    elif standings.metric == "auc":
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
    gap = standings.difference(one, other)
    low, high = sorted([abs(gap.lower), abs(gap.upper)])
    interval = f"{short(abs(gap.value))} [{short(low)}, {short(high)}]"
    relation = {
        1: f"is above {name(other)} by {interval}",
        -1: f"is below {name(other)} by {interval}",
        0: f"cannot be told from {name(other)}: the difference of "
        f"{short(gap.value)} [{short(gap.lower)}, {short(gap.upper)}] may be zero",
    }[gap.sign]
    text = f"{name(one, True)} {relation} in {measure}"
    others = [estimator for estimator in ranked if estimator not in (one, other)]
    # Neighbours in rank share a clause.
    places: dict[str, list[str]] = {}
    for estimator in others:
        signs = {e: standings.difference(estimator, e).sign for e in (one, other)}
        untold = [e for e, sign in signs.items() if sign == 0]
        if len(untold) == 2:
            place = "cannot be told from either"
        elif untold:
            place = f"cannot be told from {name(untold[0])}"
        else:
            place = _PLACES[sum(signs.values())]
        places.setdefault(place, []).append(name(estimator))
    clauses = [text, *(_clause(names, place) for place, names in places.items())]
    note = standings.of_recipes(one, other) if gap.sign else standings.power(one, other)
    return "; ".join(clauses) + "." + note


def _clause(names: Sequence[str], place: str) -> str:
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    if place.startswith("cannot"):
        return f"{listed} {place}"
    return f"{listed} {'is' if len(names) == 1 else 'are'} {place}"
