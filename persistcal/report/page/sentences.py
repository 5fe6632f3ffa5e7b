"""Findings in sentences that claim no more than the numbers support.

An estimator is "above" or "below" another one only if the simultaneous 95 % interval of their
difference excludes 0, see `persistcal.evaluation.significance`.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation import claims as words
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.findings import CALIBRATION, FOLLOWING, NO, THRESHOLD, Finding
from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.predictions import ABSENT
from persistcal.evaluation.replicates import Replicates
from persistcal.evaluation.samples import LEVEL, Sample, recipe_interval
from persistcal.evaluation.settings import EvaluationSettings, Member
from persistcal.evaluation.significance import TINY, Simultaneous, compare_estimators
from persistcal.report.layout import DisplayNames, pair_title, place_title, trained_name
from persistcal.report.page.contents import Contents, Part
from persistcal.report.phrases import (
    accuracy_sentence,
    calibration_sentence,
    following_sentence,
    joined,
    possible_errors,
    short,
    short_interval,
    threshold_sentence,
)

_TRIED = (("contrast", "delta0_balanced"), ("contrast", "auc"), ("full", "auc"))
_RELATIONS = {2: "above both", 0: "between the two", -2: "below both"}  # by the sum of signs
ORACLE, NON_ORACLE = "oracle", "non_oracle"
_OPEN = "cannot be distinguished from"
MOST = 3  # estimators with sentences on an update


class Sentence(NamedTuple):
    """A text, and the model and dataset that it is about."""

    about: str
    text: str


def findings(study: Contents) -> list[Sentence]:
    """Return the sentences at the top of the page."""
    texts, tables = list(sentences(study)), study.rows
    if "states" in tables:
        texts += of_states(study, tables["states"])
    texts += of_thresholds(study)
    texts += of_controls(study)
    if "by_change" in tables:
        texts += of_changes(study, tables["by_change"])
    if "corrections" in tables:
        texts += of_audit(study, tables["corrections"])
    return texts


def sentences(study: Contents) -> Iterator[Sentence]:
    """Yield sentences per model, dataset and training set of estimators.

    The first sentences are about the change of answers, whether confidence followed, and
    calibration. The next ones compare the estimators.
    """
    controlled = set()  # models and datasets with claims next to a control
    if "by_change" in study.rows:
        rows = study.rows["by_change"]
        tested = rows.loc[rows["control"].fillna("").ne(""), ["model", "dataset"]]
        controlled = set(tested.itertuples(index=False, name=None))
    for part in study.parts:
        findings = part.findings
        title, dataset = part.subject.title(study.labels), part.subject.dataset
        members = list(part.members)
        stages = study.stages[part.subject.model]
        if findings:
            ends, accuracy = findings.update[2:], findings.accuracy
            yield Sentence(title, accuracy_sentence(accuracy, *ends))
        trained = list(dict.fromkeys(t for t, _ in members if t != dataset)) or [dataset]
        for train_dataset in trained if members else ():
            # Untrained estimators are shown next to adapters that were trained on another
            # dataset.
            names = {
                e: (t, e)
                for t, e in sorted(members, key=lambda m: m[0] == train_dataset)
                if t in (train_dataset, dataset) and (e in study.main or not study.main)
            }
            heading = title
            if len(trained) > 1 or train_dataset != dataset:
                name = study.labels["datasets"].get(train_dataset, train_dataset)
                heading += f", trained on {name}"
            compared = compare(part.replicates, list(names.values()), part.subject.settings)
            if not compared:
                yield Sentence(heading, "Nothing can be said: no measure is defined.")
                continue
            if findings:
                labels = study.labels["estimators"]
                following, calibrated = (
                    {e: (findings.of[q][m], labels.get(e, e)) for e, m in names.items()}
                    for q in (FOLLOWING, CALIBRATION)
                )
                best, texts = best_estimators(compared), []
                given = "adapters" if part.texts else "predictions"
                if (part.subject.model, dataset) not in controlled:
                    texts = follow_texts(best, following, accuracy, ends, given)
                texts += calibration_texts(best, calibrated, ends, given)
                yield from (Sentence(heading, text) for text in texts)
            usable = [pair for pair in part.pairs if pair.kept and pair.has_both_directions]
            questions = count_questions(usable) if usable else ""
            text = sentence(compared, study.labels["estimators"], questions)
            if compared.scope == "full":
                text += " No contrast set is large enough to say whether it follows knowledge."
            yield Sentence(heading, text)
        is_wrong = ~(part.correct == 1).any(axis=1)
        if wrong := [stages[name].label for name in compress(part.checkpoints, is_wrong)]:
            text = (
                f"No answer of {', '.join(wrong)} is correct; see whether answers and "
                "references have the same form."
            )
            yield Sentence(title, text)


def of_states(study: Contents, states: pd.DataFrame) -> Iterator[Sentence]:
    """Yield how many pairs of a model's checkpoints differ in accuracy, and which models do.

    `sentences` has the accuracies of the first and the last checkpoint.
    """
    checkpoints = {
        model: {name: stage.label for name, stage in entries.items()}
        for model, entries in study.stages.items()
    }
    accuracies = states[states["metric"] == "accuracy"].fillna({"other_model": ""})
    for place, group in accuracies.groupby(["model", "other_model", "dataset"], sort=False):
        pairs = group.to_dict("records")
        if place[1]:
            text = _of_pair(pairs[0], pair_title(pairs[0], checkpoints))
        else:
            text = f"{' '.join(_count_pairs(group))}."
        if place[1] or len(pairs) > 1:
            yield Sentence(place_title(place, study.labels), text)


def _of_pair(row: Mapping[Hashable, Any], pair: str) -> str:
    values = f"{short(row['earlier_value'])} to {short(row['later_value'])}"
    if row["p_holm"] >= LEVEL:
        return (
            f"The accuracies of {pair} ({values}) cannot be told apart: the difference of "
            f"{short(row['difference'])} {_interval(row)} may be zero (adjusted by Holm's "
            "method)."
        )
    way = "rises" if row["difference"] > 0 else "falls"
    difference = short(abs(row["difference"]))
    return f"Accuracy {way} from {pair}, {values}: by {difference} {_interval(row)}."


def _interval(row: Mapping[Hashable, Any], prefix: str = "") -> str:
    return short_interval(row[f"{prefix}lower_2_5pct"], row[f"{prefix}upper_97_5pct"])


def pairs_that_differ(study: Contents, part: Part) -> list[tuple[str, str]]:
    """Return how many pairs of checkpoints differ in accuracy, if there are several."""
    if "states" not in study.rows:
        return []
    rows = study.rows["states"].fillna({"other_model": ""})
    key = [part.subject.model, "", part.subject.dataset, "accuracy"]
    pairs = rows[(rows[["model", "other_model", "dataset", "metric"]] == key).all(axis=1)]
    return [_count_pairs(pairs)] if len(pairs) > 1 else []


def _count_pairs(pairs: pd.DataFrame) -> tuple[str, str]:
    n_different = int((pairs["p_holm"] < LEVEL).sum())
    return f"{n_different} of {len(pairs)} pairs", "of checkpoints differ in accuracy"


def of_thresholds(study: Contents) -> Iterator[Sentence]:
    """Yield sentences on the thresholds between the first and the last checkpoint."""
    verdicts: list[str] = []
    for part in study.parts:
        if not (findings := part.findings):
            continue
        checked = findings.of.get(THRESHOLD, {})
        for name, finding in [
            (e, finding) for (_, e), finding in checked.items() if e in study.main
        ]:
            label = study.labels["estimators"].get(name, name)
            text = threshold_sentence(finding, label, findings.update[2:])
            yield Sentence(part.subject.title(study.labels), text)
            verdicts += finding.evidence["verdict"]
    yield from (Sentence("", text) for text in possible_errors(verdicts))


def of_controls(study: Contents) -> Iterator[Sentence]:
    """Yield a sentence on each pair of states of the same weights: how much flips there."""
    for part in study.parts:
        names, correct = part.answers.checkpoints, part.answers.correct
        stages = study.stages[part.subject.model]
        controls = set(map(tuple, study.shown.controls.get(part.subject.model, ())))
        for pair in part.pairs:
            ends = names[pair.earlier], names[pair.later]
            if ends not in controls:
                continue
            n = int((correct[[pair.earlier, pair.later]] != ABSENT).all(axis=0).sum())
            first, second = (stages[name].label for name in ends)
            text = (
                f"{first} and {second} are the same weights, asked otherwise: the label of "
                f"{len(pair.questions):,} of {n:,} questions flips, without a change of "
                "knowledge. What estimators score on these is the control of what they score "
                "on other pairs."
            )
            yield Sentence(part.subject.title(study.labels), text)


def of_changes(study: Contents, rows: pd.DataFrame) -> Iterator[Sentence]:
    """Yield a sentence per kind of change with a control: which estimators followed it."""
    rows = rows[rows["control"].fillna("").ne("") & rows["metric"].eq("delta0_balanced")]
    for keys, group in rows.groupby(["model", "dataset", "change", "control"], sort=False):
        *place, change, control = map(str, keys)
        text = control_text(change, control, group, study.labels)
        yield Sentence(place_title(place, study.labels), text)


def of_audit(study: Contents, rows: pd.DataFrame) -> Iterator[Sentence]:
    """Yield a text per model and dataset about the results with a person's labels."""
    for part in study.parts:
        subject, stages = part.subject, study.stages[part.subject.model]
        of_part = (rows["model"] == subject.model) & (rows["dataset"] == subject.dataset)
        corrected = rows[of_part & rows["corrected"].notna()]
        if corrected.empty:
            continue
        [size] = corrected[corrected["metric"] == "contrast_size"].to_dict("records")
        low, high = (round(size[f"{end}pct"]) for end in ("lower_2_5", "upper_97_5"))
        text = (
            f"A person labelled {size['n_audited']:,} of {size['n_questions']:,} questions. By "
            f"these labels {round(size['corrected']):,} [{low:,}, {high:,}] changed between "
            f"{stages[size['earlier']].label} and {stages[size['later']].label}; by the "
            f"judge's {round(size['judged']):,}."
        )
        moved = corrected[
            (corrected["metric"] == "delta0_balanced") & corrected["estimator"].isin(study.main)
        ]
        outside = ~moved["judged"].between(moved["lower_2_5pct"], moved["upper_97_5pct"])
        for row in moved[outside].to_dict("records"):
            name = subject.name((row["train_dataset"], row["estimator"]), study.labels)
            text += (
                f" Δ₀ᵇ of {name} there is {short(row['corrected'])} {_interval(row)}, not "
                f"{short(row['judged'])} as judged."
            )
        yield Sentence(subject.title(study.labels), text)


class Difference(NamedTuple):
    """How far an estimator is above another one, with a simultaneous interval.

    `sign` is 1 if it is shown to be above, −1 below, else 0. Tied estimators are equal on all
    samples of questions.
    """

    sign: int
    is_tied: bool
    lower: float
    upper: float

    @property
    def allowed(self) -> float:
        """The largest difference, in either direction, that the data allow."""
        return max(map(abs, (self.lower, self.upper)))


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

    def pair(self, first: str, second: str) -> Difference:
        """Return how far `first` is above `second`."""
        names, found = list(self.samples), self.compared
        i, j = names.index(first), names.index(second)
        sign = int(found.above[i, j]) - int(found.above[j, i])
        ends = float(found.lower[i, j]), float(found.upper[i, j])
        return Difference(sign, bool(found.tied[i, j]), *ends)

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
    second = next((e for e in ranked[1:] if not standings.pair(first, e).is_tied), ranked[1])
    if {ORACLE, NON_ORACLE} <= values.keys():
        first, second = ORACLE, NON_ORACLE
    names = name(first, True), name(second)
    text = _headline(standings, (first, second), names, measure + basis)
    # Estimators in the same place share a clause.
    places: dict[str, list[tuple[str, float]]] = {}
    for estimator in [e for e in ranked if e not in (first, second)]:
        differences = {e: standings.pair(estimator, e) for e in (first, second)}
        tied = [e for e, difference in differences.items() if difference.is_tied]
        open_to = [e for e, difference in differences.items() if difference.sign == 0]
        if tied and tied[0] in standings.constant:
            place = f"equal to {name(tied[0])} for any questions"
        elif tied:
            place = f"as {name(tied[0])}"
        elif open_to:
            place = f"{_OPEN} {'either' if len(open_to) == 2 else name(open_to[0])}"
        else:
            place = _RELATIONS[sum(difference.sign for difference in differences.values())]
        allowed = max((differences[e].allowed for e in open_to), default=0.0)
        places.setdefault(place, []).append((name(estimator), allowed))
    clauses = [text, *(_clause(members, place) for place, members in places.items())]
    is_shown = standings.pair(first, second).sign
    return "; ".join(clauses) + "." + (standings.recipe_note(first, second) if is_shown else "")


def _headline(
    standings: Standings, pair: tuple[str, str], names: tuple[str, str], measure: str
) -> str:
    """Return the clause on two estimators with their display names."""
    (first, second), difference = pair, standings.pair(*pair)
    if difference.sign:
        interval = short_interval(*sorted(map(abs, (difference.lower, difference.upper))))
        gap = short(abs(standings.value[first] - standings.value[second]))
        relation = "above" if difference.sign > 0 else "below"
        return f"{names[0]} is {relation} {names[1]} by {gap} {interval} in {measure}"
    if difference.is_tied:
        if first in standings.constant:
            return f"{names[0]} and {names[1]} have equal {measure}, for any questions"
        return f"{names[0]} and {names[1]} rank the answers identically: equal {measure}"
    reason = "the data give no interval of their difference"
    if np.isfinite(difference.allowed):
        reason = f"the data allow a difference of up to {short(difference.allowed)}"
    elif np.isnan(standings.samples[first].draws).any():
        reason = explain_missing_interval(standings)
    return f"{names[0]} {_OPEN} {names[1]} in {measure}: {reason}"


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
