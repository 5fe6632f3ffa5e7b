"""Sentences about estimators that claim no more than the numbers support.

One estimator is "above" or "below" another only if the simultaneous 95 % interval of their
difference excludes 0, see `persistcal.evaluation.significance`.
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation import claims as words
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.evaluate import DECIMALS
from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.predictions import ABSENT
from persistcal.evaluation.proportions import StateDifference, compare_accuracies
from persistcal.evaluation.reliability import CheckpointCalibration
from persistcal.evaluation.replicates import Estimator, Replicates
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import (
    TINY,
    BySeed,
    Simultaneous,
    compare_estimators,
    recipe_interval,
)
from persistcal.report.analysis_tables import trained_name
from persistcal.report.change_views import ENDS, LEVEL
from persistcal.report.layout import DisplayNames
from persistcal.report.page.contents import Contents, Part
from persistcal.report.page.tables import short, short_interval

_TRIED = (("contrast", "delta0_balanced"), ("contrast", "auc"), ("full", "auc"))
_PLACES = {2: "above both", 0: "between the two", -2: "below both"}  # by the sum of signs
ORACLE, NON_ORACLE = "oracle", "non_oracle"
_OPEN = "cannot be distinguished from"
MOST = 3  # estimators with sentences on an update
MOST_OF_ALL = 0.9  # share of confidences that "nearly all" stands for
_ROLES = (("improvement", "regression"), ("other_improvement", "other_regression"))
# Words of claims after a singular and after a plural subject
_VERBS = {
    **{
        word: (word, word)
        for word in (words.FOLLOWED, words.IN_ORDER, words.MOVED, words.MOVED_IN_ORDER)
    },
    words.NOT_SHOWN: (f"is {words.NOT_SHOWN}", f"are {words.NOT_SHOWN}"),
    words.AGAINST: ("moved against the changes", "moved against the changes"),
    words.TOO_FEW: (
        "has too little data to show whether it followed",
        "have too little data to show whether they followed",
    ),
}


class Standings(NamedTuple):
    """Estimators' values of one measure, on bootstrap replicates too, and all pairs compared.

    `compared` has the estimators in the order of `value`. `constant` are estimators with the
    same value on all samples of questions. `fewest` are the gained and lost questions of the
    pair that has fewest of the rarer kind; an interval needs `min_direction` of each.
    """

    scope: str
    metric: str
    value: dict[str, float]
    replicated: dict[str, NDArray[np.float64]]
    by_seed: dict[str, BySeed]
    noise: dict[str, float]
    compared: Simultaneous
    constant: frozenset[str] = frozenset()
    fewest: tuple[int, int] | None = None
    min_direction: int = EvaluationSettings.min_direction

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
        difference = self.value[first] - self.value[second]
        drawn = self.replicated[first] - self.replicated[second]
        sides = [self.by_seed[first], self.by_seed[second]]
        noise = max(self.noise[first], self.noise[second])
        n, low, high, _ = recipe_interval(difference, drawn, sides, noise)
        if n == 1:
            return " One seed cannot show what training again would give."
        if low <= 0 <= high:
            return (
                " This holds for these seeds. With other seeds, the difference can be zero: "
                f"{short_interval(low, high)} over {n} seeds and the questions."
            )
        return ""


def compare(
    replicates: Replicates, estimators: Sequence[Estimator], settings: EvaluationSettings
) -> Standings | None:
    """Compare estimators with distinct names on the first measure that any of them defines.

    `replicates` are the study's bootstrap of one model and dataset.
    """
    place = {member: i for i, member in enumerate(replicates.estimators)}
    for scope, metric in _TRIED:
        key = MetricKey("odds", scope, metric)
        values, drawn = replicates.observed[key], replicates.for_claims(key)
        by_seed, noise = replicates.by_seed[key], replicates.noise[key]
        index = {e[1]: place[e] for e in estimators if not np.isnan(values[place[e]])}
        if index:
            replicated = replicates.replicated[key]
            return Standings(
                scope,
                metric,
                {name: float(values[i]) for name, i in index.items()},
                {name: drawn[i] for name, i in index.items()},
                {name: by_seed[i] for name, i in index.items()},
                {name: float(noise[i]) for name, i in index.items()},
                compare_estimators(replicates, list(index.values()), key),
                frozenset(name for name, i in index.items() if replicated[i].std() <= TINY),
                replicates.fewest.get(key),
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
        low, high = np.quantile(standings.replicated[only], [0.025, 0.975])
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
            place = _PLACES[sum(signs.values())]
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
    if np.isnan(standings.replicated[first]).any():
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
    listed = _join(names)
    if place.startswith("as "):
        return f"{listed} {'ranks' if len(names) == 1 else 'rank'} the answers {place} does"
    if place.startswith(_OPEN):
        if not np.isfinite(allowed).all():
            return f"{listed} {place}"
        return f"{listed} {place} (difference of up to {_join([*map(short, allowed)])})"
    return f"{listed} {'is' if len(names) == 1 else 'are'} {place}"


def _join(words: Sequence[str]) -> str:
    """Return words in one list.

    >>> _join("abc")
    'a, b and c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


class Update(NamedTuple):
    """The first and the last checkpoint of a model, by position and by display name."""

    earlier: int
    later: int
    earlier_name: str
    later_name: str


def choose_update(part: Part, labels: Mapping[str, str]) -> Update | None:
    """Return the first and the last checkpoint, or None if no pair is compared.

    If a study lists its pairs, return the first listed checkpoint and the last checkpoint in a
    pair with it. Pairs without changed questions are skipped if others are left.
    """
    if not part.pairs:
        return None
    names, earlier = part.answers.checkpoints, part.pairs[0].earlier
    later = len(names) - 1
    if not isinstance(part.subject.settings.pairs, str):
        pairs = [pair for pair in part.pairs if pair.earlier == earlier]
        later = max(pair.later for pair in [p for p in pairs if len(p.questions)] or pairs)
    return Update(earlier, later, labels[names[earlier]], labels[names[later]])


def changed_positions(part: Part, update: Update) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of the gained and of the lost questions."""
    earlier, later = part.answers.correct[[update.earlier, update.later]]
    gained, lost = (earlier == 0) & (later == 1), (earlier == 1) & (later == 0)
    return np.flatnonzero(gained), np.flatnonzero(lost)


def tested_accuracies(
    known: NDArray[np.int8], tested: Mapping[Any, Any] | None
) -> tuple[StateDifference, float]:
    """Compare two checkpoints' labels, and return the p-value for all pairs of the model, too.

    `tested` is the row of the table STATES, whose interval and test know groups of questions.
    Without it the p-value is not adjusted.
    """
    test = compare_accuracies(*known)
    if tested is None:
        return test, test.p_value
    lower, upper, p_value = (float(tested[end]) for end in (*ENDS, "p_value"))
    return test._replace(lower=lower, upper=upper, p_value=p_value), float(tested["p_holm"])


def change_text(part: Part, update: Update, tested: Mapping[Any, Any] | None) -> str:
    """Return how many questions were gained and lost, and the accuracies.

    For `tested` see `tested_accuracies`.
    """
    labels = part.answers.correct[[update.earlier, update.later]]
    labels = labels[:, (labels != ABSENT).all(axis=0)]
    if not labels.size:
        return f"{update.earlier_name} and {update.later_name} share no answered question."
    gained, lost = map(len, changed_positions(part, update))
    test, p_value = tested_accuracies(labels, tested)
    text = (
        f"From {update.earlier_name} to {update.later_name}, {gained + lost:,} of "
        f"{labels.shape[1]:,} answers changed between right and wrong: {gained:,} "
        f"question{'' if gained == 1 else 's'} gained, {lost:,} lost. "
    )
    values = f"from {short(test.earlier)} to {short(test.later)}"
    interval = short_interval(test.lower, test.upper)
    if p_value < LEVEL:
        way = "rises" if test.difference > 0 else "falls"
        return f"{text}Accuracy {way} {values}, by {short(abs(test.difference))} {interval}."
    adjusted = ", adjusted by Holm's method" if p_value > test.p_value else ""
    has_groups = len(np.unique(part.answers.groups)) < len(part.answers.groups)
    name = "bootstrap of groups" if has_groups else "McNemar's test"
    return (
        f"{text}Accuracy goes {values}; the difference of {short(test.difference)} {interval} "
        f"can be chance ({name}, p = {short(p_value)}{adjusted})."
    )


def best_estimators(standings: Standings) -> list[str]:
    """Return the estimators that no other one is above in Δ₀ᵇ, the largest Δ₀ᵇ first."""
    best = compress(standings.value, standings.compared.in_best_set)
    is_balanced = standings.metric == "delta0_balanced"
    return sorted(best, key=lambda name: -standings.value[name]) if is_balanced else []


def follow_texts(
    standings: Standings,
    claims: pd.DataFrame,
    part: Part,
    update: Update,
    chosen: Mapping[str, tuple[Estimator, str]],
) -> list[str]:
    """Return for each of the best estimators whether its confidence followed the changes.

    `claims` are rows of the table CLAIMS, and `chosen` contains each estimator and its label by
    name. The best estimators are chosen from the same data, so the intervals are simultaneous.
    """
    names = [n for n in best_estimators(standings) if claim_of(claims, chosen[n][0])]
    texts = [
        claim_text(claim_of(claims, chosen[name][0]), chosen[name][1], part, update)
        for name in names[:MOST]
    ]
    if (more := len(names) - MOST) > 0:
        texts[-1] += f" {more} more cannot be distinguished from the best in Δ₀ᵇ."
    n_compared = int(claims["n_compared"].max()) if len(claims) else 1
    if n_compared > 1 and texts and not claims["simultaneous_lower"].isna().all():
        texts[-1] += f" The intervals of these claims hold for {n_compared} estimators at once."
    return texts


Claim = Mapping[str, Mapping[Hashable, Any]]  # rows of CLAIMS by metric


def claims_about(study: Contents, part: Part) -> pd.DataFrame:
    """Return the rows of CLAIMS of a model and dataset."""
    rows, place = study.made.claims, [part.subject.model, part.subject.dataset]
    return rows[(rows[["model", "dataset"]] == place).all(axis=1)]


def claim_of(claims: pd.DataFrame, member: Estimator) -> Claim:
    """Return the rows on which the word for an estimator rests."""
    is_member = (claims[["train_dataset", "estimator"]] == list(member)).all(axis=1)
    rows = claims[is_member & claims["word"].ne("")].to_dict("records")
    return {str(row["metric"]): row for row in rows}


def claim_text(claim: Claim, label: str, part: Part, update: Update) -> str:
    """Return the sentence about one estimator."""
    order, balance = claim["change_auc"], claim["delta0_balanced"]
    word, basis, n_seeds = order["word"], order["basis"], int(order["n_seeds"])
    name, is_plural = name_recipe(label, n_seeds, part)
    said = f"{name} {_VERBS[word][is_plural]}"
    runs = part.members[order["train_dataset"], order["estimator"]]
    area = f"change AUC {short(order['value'])}"
    if not np.isnan(order["simultaneous_lower"]):
        area += f" {_ends(order)}"
    n_pairs = sum(pair.kept and pair.has_both_directions for pair in part.pairs)
    area += f" over {n_pairs} pairs of checkpoints" if n_pairs > 1 else ""
    if basis == words.ONE_ASK and word in (words.FOLLOWED, words.IN_ORDER):
        said += " (one ask)"
    if basis == words.EXAMPLES and word in (words.FOLLOWED, words.IN_ORDER):
        said += ", also under other examples"
    if word in (words.IN_ORDER, words.MOVED_IN_ORDER):
        text = f"{said}: {_common_shift(runs, part, update)} ({area}; .5 is chance)"
    elif basis in (words.CROSS, words.EXAMPLES) and word != words.TOO_FEW:
        asked = "twice" if basis == words.CROSS else "again after other examples"
        first, second = (f"{int(order[g]):,} and {int(order[x]):,}" for g, x in _ROLES)
        text = (
            f"{said}: asked {asked}, the confidence of one ask has a {area} and a Δ₀ᵇ of "
            f"{short(balance['value'])} {_ends(balance)} on the questions that the other ask "
            f"gains and loses ({first}; {second}); .5 and 0 are chance"
        )
    else:
        text = f"{said}: {_count_moves(runs, part, update)} ({area}; .5 is chance)"
    notes = []
    if word in (words.MOVED, words.MOVED_IN_ORDER):
        n_flips = sum(map(len, changed_positions(part, update)))
        notes.append(
            f"These {n_flips:,} flips may be chance: ask twice, give samples, name a control, "
            "or say that the answers are greedy"
        )
    if word == words.TOO_FEW:
        notes.append(_too_few(order, part.subject.settings.min_direction))
    if n_seeds > 1:
        notes.append(f"The interval is over {n_seeds} seeds and the questions")
    if left_out := order["left_out"]:
        notes.append(f"{left_out:,} answers have a label in one ask only and are left out")
    return ". ".join([text, *notes]) + "."


def _ends(row: Mapping[Hashable, Any]) -> str:
    return short_interval(row["simultaneous_lower"], row["simultaneous_upper"])


def _too_few(row: Mapping[Hashable, Any], min_direction: int) -> str:
    gained, lost = row["improvement"], row["regression"]
    if pd.isna(gained):
        return "No pair of checkpoints gains and loses questions"
    return (
        f"{gained:,} gained and {lost:,} lost questions give no interval, which needs "
        f"{min_direction} of each in each pair"
    )


def name_recipe(label: str, n_seeds: int, part: Part) -> tuple[str, bool]:
    """Return the subject of a claim, and whether it is plural.

    A single seed shows nothing about training again, so the claim names the adapters, or the
    predictions if these are all that was given.
    """
    if n_seeds != 1:
        return label, False
    if label[:1].isupper() and label.split()[0][1:].islower():
        label = label[0].lower() + label[1:]
    return f"These {'adapters' if part.texts else 'predictions'} of {label} (one seed)", True


def _common_shift(seeds: list[NDArray[np.float64]], part: Part, update: Update) -> str:
    """Describe how all confidences moved from the earlier to the later checkpoint."""
    ends = part.answers.correct[[update.earlier, update.later]]
    answered = (ends != ABSENT).all(axis=0)
    before, after = (np.concatenate([run[k, answered] for run in seeds]) for k in update[:2])
    change = np.round(after - before, DECIMALS)
    falls = change.mean() < 0
    share = float((change < 0 if falls else change > 0).mean())
    amount = "nearly all" if share >= MOST_OF_ALL else "most" if share > 0.5 else "some"
    fell, first, second = ("fell", "lost", "gained") if falls else ("rose", "gained", "lost")
    text = (
        f"{amount} confidences {fell} (mean {short(before.mean())} to {short(after.mean())}); "
        f"they {fell} further in {first} than in {second} questions"
    )
    return text + ("; old thresholds no longer fit" if share > 0.5 else "")


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
    for word in (words.FOLLOWED, words.IN_ORDER, words.AGAINST):
        named = [
            trained_name(row, labels) + _of_knowledge(row)
            for row in tested[tested["word"] == word].to_dict("records")
        ]
        if named:
            clauses.append(f"{_join(named)} {word}")
    text = "; ".join(clauses) or f"none of {len(tested)} estimators is shown to have followed"
    return f"{change}, next to {control}, where no knowledge changes: {text}."


def _of_knowledge(row: Mapping[Hashable, Any]) -> str:
    """Return Δ_K and its interval in brackets, if the change surely has more flips."""
    if np.isnan(row["of_knowledge"]):
        return ""
    ends = [row[f"of_knowledge_{end}"] for end in ("lower_2_5pct", "upper_97_5pct")]
    return f" (Δ_K {short(row['of_knowledge'])} {short_interval(*ends)})"


def _count_moves(seeds: list[NDArray[np.float64]], part: Part, update: Update) -> str:
    """Return in how many gains and losses the confidence moved the right way."""
    change = np.array([run[update.later] - run[update.earlier] for run in seeds])
    moved = np.sign(np.round(change, DECIMALS))
    gained, lost = changed_positions(part, update)
    right = (moved[:, gained] > 0).sum() / len(seeds), (moved[:, lost] < 0).sum() / len(seeds)
    equal = (moved[:, np.concatenate([gained, lost])] == 0).sum() / len(seeds)
    shares = f"{right[0]:,.0f} of {len(gained):,} gains and {right[1]:,.0f} of {len(lost):,}"
    return (
        f"from {update.earlier_name} to {update.later_name} its confidence moved the right way "
        f"in {shares} losses"
        + (f", and stayed equal in {equal:,.0f}" if equal else "")
        + (f" (means of {len(seeds)} seeds)" if len(seeds) > 1 else "")
    )


def calibration_texts(
    standings: Standings,
    part: Part,
    update: Update,
    chosen: Mapping[str, tuple[Estimator, str]],
) -> list[str]:
    """Describe the best estimators that are not calibrated at the later checkpoint, at 5 %."""
    texts = []
    for name in best_estimators(standings)[:MOST]:
        member, label = chosen[name]
        earlier, later = (part.calibration_at(member, k) for k in update[:2])
        if not later.p_calibrated < LEVEL:
            continue
        seeds = [series.seed for series in part.answers.confidence if series.member == member]
        subject, verdict = calibration_verdict(later, label, len(set(seeds) - {0}), part)
        texts.append(
            f"{subject} {verdict} at {update.later_name}: mean confidence "
            f"{short(later.confidence)}, accuracy {short(later.accuracy)} (SmoothECE "
            f"{short(later.value)}, noise floor {short(later.noise_floor)}; at "
            f"{update.earlier_name} {short(earlier.value)}, noise floor "
            f"{short(earlier.noise_floor)})."
        )
    return texts


def calibration_verdict(
    later: CheckpointCalibration, label: str, n_seeds: int, part: Part
) -> tuple[str, str]:
    """Return who is not calibrated, and how: a recipe only if its seeds agree.

    The test of calibration is about the given adapters. A bias is the recipe's if the interval
    of the mean confidence minus the accuracy, over seeds and questions, excludes 0.
    """
    way = "over" if later.confidence > later.accuracy else "under"
    if n_seeds > 1 and abs(later.confidence - later.accuracy) > later.bias_reach:
        return label, f"is {way}-confident"
    subject, is_plural = name_recipe(label, n_seeds, part)
    if n_seeds > 1:
        return (
            f"The {n_seeds} seeds of {label}",
            "are not calibrated, with no bias that they share,",
        )
    be = "are" if is_plural else "is"
    if later.p_mean < LEVEL:
        return subject, f"{be} {way}-confident"
    return subject, f"{be} not calibrated, with no shown bias on average,"
