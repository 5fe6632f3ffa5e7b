"""Sentences about estimators that claim no more than the numbers support.

An estimator is "above" or "below" another one only if the simultaneous 95 % interval of their
difference excludes 0, see `persistcal.evaluation.significance`.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation import claims as words
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.findings import NO, Finding
from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.replicates import Replicates
from persistcal.evaluation.samples import Sample, recipe_interval
from persistcal.evaluation.settings import EvaluationSettings, Member
from persistcal.evaluation.significance import TINY, Simultaneous, compare_estimators
from persistcal.report.layout import DisplayNames, trained_name
from persistcal.report.phrases import (
    calibration_sentence,
    following_sentence,
    joined,
    short,
    short_interval,
)

_TRIED = (("contrast", "delta0_balanced"), ("contrast", "auc"), ("full", "auc"))
_RELATIONS = {2: "above both", 0: "between the two", -2: "below both"}  # by the sum of signs
ORACLE, NON_ORACLE = "oracle", "non_oracle"
_OPEN = "cannot be distinguished from"
MOST = 3  # estimators with sentences on an update


class Standings(NamedTuple):
    """Samples of estimators on one measure, and all pairs compared.

    `compared` has the estimators in the order of `samples`. `constant` are estimators with the
    same value on all samples of questions. `fewest` are the gained and lost questions of the
    pair that has fewest of the rarer kind; an interval needs `min_direction` of each.
    """

    scope: str
    metric: str
    samples: dict[str, Sample]
    compared: Simultaneous
    constant: frozenset[str] = frozenset()
    fewest: tuple[int, int] | None = None
    min_direction: int = EvaluationSettings.min_direction

    @property
    def value(self) -> dict[str, float]:
        """The values of the estimators."""
        return {name: sample.value for name, sample in self.samples.items()}

    def pair(self, first: str, second: str) -> tuple[int, int]:
        """Return the positions of two estimators."""
        names = list(self.value)
        return names.index(first), names.index(second)

    def sign(self, first: str, second: str) -> int:
        """Return 1 if `first` is above `second`, −1 if it is below, else 0."""
        pair = self.pair(first, second)
        return int(self.compared.above[pair]) - int(self.compared.above[pair[::-1]])

    def is_tied(self, first: str, second: str) -> bool:
        """Return whether two estimators are equal on all samples of questions."""
        return bool(self.compared.tied[self.pair(first, second)])

    def interval(self, first: str, second: str) -> tuple[float, float]:
        """Return the simultaneous interval of how far `first` is above `second`."""
        pair = self.pair(first, second)
        return float(self.compared.lower[pair]), float(self.compared.upper[pair])

    def allowed(self, first: str, second: str) -> float:
        """Return the largest difference, in either direction, that the data allow."""
        return max(map(abs, self.interval(first, second)))

    def recipe_note(self, first: str, second: str) -> str:
        """Return a sentence if a difference is not shown for other training seeds."""
        one, other = self.samples[first], self.samples[second]
        n, low, high, _ = recipe_interval(
            one.value - other.value,
            one.draws - other.draws,
            [one.by_seed, other.by_seed],
            max(one.noise, other.noise),
        )
        if n == 1:
            return " One seed cannot show what training again would give."
        if low <= 0 <= high:
            return (
                " This holds for these seeds. With other seeds, the difference can be zero: "
                f"{short_interval(low, high)} over {n} seeds and the questions."
            )
        return ""


def compare(
    replicates: Replicates, estimators: Sequence[Member], settings: EvaluationSettings
) -> Standings | None:
    """Compare estimators with distinct names on the first measure that any of them defines.

    `replicates` are the study's bootstrap of one model and dataset.
    """
    for scope, metric in _TRIED:
        drawn = replicates[MetricKey("odds", scope, metric)]
        place = {member: i for i, member in enumerate(drawn.samples)}
        index = {e[1]: place[e] for e in estimators if not np.isnan(drawn.samples[e].value)}
        if index:
            return Standings(
                scope,
                metric,
                {e[1]: drawn.samples[e] for e in estimators if e[1] in index},
                compare_estimators(drawn, list(index.values()), metric),
                frozenset(name for name, i in index.items() if drawn.probes[i].std() <= TINY),
                drawn.fewest,
                settings.min_direction,
            )
    return None


def count_questions(pairs: Sequence[ContrastSet]) -> str:
    """Return how many questions the contrast sets of some pairs contain, by direction."""
    gained = sum(int(pair.improvement.sum()) for pair in pairs)
    lost = sum(int((~pair.improvement).sum()) for pair in pairs)
    among = f" in {len(pairs)} pairs of checkpoints" if len(pairs) > 1 else ""
    return f"{gained:,} gained and {lost:,} lost question{'' if lost == 1 else 's'}{among}"


def sentence(standings: Standings, labels: Mapping[str, str], questions: str = "") -> str:
    """Return one sentence about the estimators of a standings.

    Two estimators are compared: oracle and non-oracle training if the study has both, else the
    best one and the next one that differs from it. The others are placed relative to these two.
    `questions` describes the numbers of gained and lost questions of a contrast metric.
    """
    values = standings.value
    measure = METRICS[standings.metric].heading
    if standings.scope == "full":
        measure = f"{measure} over all questions"
    elif standings.metric == "auc":
        measure = f"{measure} on contrast sets"
    basis = f", on {questions}" if questions and standings.scope == "contrast" else ""
    ranked = sorted(values, key=lambda name: -values[name])

    def name(estimator: str, first: bool = False) -> str:
        label = labels.get(estimator, estimator)
        # Lower-case the first letter of ordinary words only: GCM and CoCoA stay.
        if not first and label[:1].isupper() and label.split()[0][1:].islower():
            label = label[0].lower() + label[1:]
        return f"{label} ({short(values[estimator])})"

    if len(ranked) == 1:
        [only] = ranked
        low, high = np.quantile(standings.samples[only].draws, [0.025, 0.975])
        interval = "" if np.isnan(low) else f" {short_interval(low, high)}"
        label = labels.get(only, only)
        return f"The {measure} of {label} is {short(values[only])}{interval}{basis}."
    first = ranked[0]
    second = next((e for e in ranked[1:] if not standings.is_tied(first, e)), ranked[1])
    if {ORACLE, NON_ORACLE} <= values.keys():
        first, second = ORACLE, NON_ORACLE
    text = _headline(
        standings, (first, second), (name(first, True), name(second)), measure + basis
    )
    # Estimators in the same place share a clause.
    places: dict[str, list[tuple[str, float]]] = {}
    for estimator in [e for e in ranked if e not in (first, second)]:
        signs = {e: standings.sign(estimator, e) for e in (first, second)}
        tied = [e for e in signs if standings.is_tied(estimator, e)]
        open_to = [e for e, sign in signs.items() if sign == 0]
        if tied and tied[0] in standings.constant:
            place = f"equal to {name(tied[0])} for any questions"
        elif tied:
            place = f"as {name(tied[0])}"
        elif open_to:
            place = f"{_OPEN} {'either' if len(open_to) == 2 else name(open_to[0])}"
        else:
            place = _RELATIONS[sum(signs.values())]
        allowed = max((standings.allowed(estimator, e) for e in open_to), default=0.0)
        places.setdefault(place, []).append((name(estimator), allowed))
    clauses = [text, *(_clause(members, place) for place, members in places.items())]
    note = standings.recipe_note(first, second) if standings.sign(first, second) else ""
    return "; ".join(clauses) + "." + note


def _headline(
    standings: Standings, pair: tuple[str, str], names: tuple[str, str], measure: str
) -> str:
    """Return the clause on two estimators with their display names."""
    (first, second), sign = pair, standings.sign(*pair)
    if sign:
        low, high = sorted(map(abs, standings.interval(first, second)))
        gap = short(abs(standings.value[first] - standings.value[second]))
        relation = "above" if sign > 0 else "below"
        interval = short_interval(low, high)
        return f"{names[0]} is {relation} {names[1]} by {gap} {interval} in {measure}"
    if standings.is_tied(first, second):
        if first in standings.constant:
            return f"{names[0]} and {names[1]} have equal {measure}, for any questions"
        return f"{names[0]} and {names[1]} rank the answers identically: equal {measure}"
    text = f"{names[0]} {_OPEN} {names[1]} in {measure}"
    allowed = standings.allowed(first, second)
    if np.isfinite(allowed):
        return f"{text}: the data allow a difference of up to {short(allowed)}"
    if np.isnan(standings.samples[first].draws).any():
        return f"{text}: {explain_missing_interval(standings)}"
    return f"{text}: the data give no interval of their difference"


def explain_missing_interval(standings: Standings) -> str:
    """Return why a metric that rests on gained and lost questions has no interval."""
    if not standings.fewest:
        return "some samples of these questions leave it undefined"
    gained, lost = standings.fewest
    return (
        f"a pair with {gained:,} gained and {lost:,} lost questions has too few for an "
        f"interval, which needs {standings.min_direction} of each"
    )


def _clause(members: Sequence[tuple[str, float]], place: str) -> str:
    names, allowed = zip(*members, strict=True)
    listed = joined(names)
    if place.startswith("as "):
        return f"{listed} {'ranks' if len(names) == 1 else 'rank'} the answers {place} does"
    if place.startswith(_OPEN):
        if not np.isfinite(allowed).all():
            return f"{listed} {place}"
        return f"{listed} {place} (difference of up to {joined([*map(short, allowed)])})"
    return f"{listed} {'is' if len(names) == 1 else 'are'} {place}"


def best_estimators(standings: Standings) -> list[str]:
    """Return the estimators that no other one is above in Δ₀ᵇ, the largest Δ₀ᵇ first."""
    best = compress(standings.value, standings.compared.in_best_set)
    is_balanced = standings.metric == "delta0_balanced"
    return sorted(best, key=lambda name: -standings.value[name]) if is_balanced else []


def follow_texts(
    names: Sequence[str],
    findings: Mapping[str, tuple[Finding, str]],
    accuracy: Finding,
    ends: Sequence[str],
    given: str,
) -> list[str]:
    """Return for each of the best estimators whether its confidence followed the changes.

    `names` are the best estimators, and `findings` has the finding about following, and the
    label, by name. The best estimators are chosen from the same data, so the intervals are
    simultaneous.
    """
    flips = [accuracy.evidence[way] for way in ("gained", "lost")]
    names = [name for name in names if findings[name][0].evidence]
    texts = [following_sentence(*findings[name], given, ends, flips) for name in names[:MOST]]
    if (more := len(names) - MOST) > 0:
        texts[-1] += f" {more} more cannot be distinguished from the best in Δ₀ᵇ."
    claims = [claim for claim, _ in findings.values() if claim.evidence]
    n_compared = max((claim.evidence["n_compared"] for claim in claims), default=1)
    has_interval = not all(np.isnan(c.lower) for c in claims)
    if n_compared > 1 and texts and has_interval:
        texts[-1] += f" The intervals of these claims hold for {n_compared} estimators at once."
    return texts


def calibration_texts(
    names: Sequence[str],
    findings: Mapping[str, tuple[Finding, str]],
    ends: Sequence[str],
    given: str,
) -> list[str]:
    """Describe the best estimators that are not calibrated at the later checkpoint."""
    return [
        calibration_sentence(*findings[name], given, ends)
        for name in names[:MOST]
        if findings[name][0].mark == NO
    ]


def control_text(change: str, control: str, rows: pd.DataFrame, labels: DisplayNames) -> str:
    """Return which estimators followed a kind of change beyond its control.

    `rows` are the rows of CHANGES about Δ₀ᵇ of one kind of change.
    """
    tested = rows[rows["beyond_lower_2_5pct"].notna()]
    if tested.empty:
        return (
            f"{change} cannot be compared with {control}: one of the two has too few "
            "gained or lost questions; ask more questions."
        )
    clauses = []
    for word in (words.FOLLOWED, words.NEW_STATE, words.LOST, words.AGAINST):
        names = []
        for row in tested[tested["word"] == word].to_dict("records"):
            names.append(trained_name(row, labels))
            if not np.isnan(value := row["of_knowledge"]):  # surely more flips than the control
                ends = [row[f"of_knowledge_{end}"] for end in ("lower_2_5pct", "upper_97_5pct")]
                names[-1] += f" (Δ_K {short(value)} {short_interval(*ends)})"
        if names:
            clauses.append(f"{joined(names)} {word}")
    text = "; ".join(clauses) or f"none of {len(tested)} estimators is shown to have followed"
    return f"{change}, next to {control}, where no knowledge changes: {text}."
