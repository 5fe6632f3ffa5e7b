"""Thresholds on confidence: select one on a checkpoint, and check it on a later one.

A user answers only if the confidence reaches a threshold, so that a chosen share of the answers
is correct. `select_threshold` finds such a threshold with a guarantee. `check_threshold` tests
it at a later checkpoint, and `explain_change` counts the questions behind a change.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from persistcal.evaluation.aligned import Aligned, Subject
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.predictions import AnswerArrays, Array, Mask, drop_noise
from persistcal.evaluation.proportions import (
    binomial_cdf,
    binomial_quantile,
    compare_accuracies,
    exact_interval,
)
from persistcal.evaluation.selective import selective_rows
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import (
    CONFIDENT_REGRESSIONS,
    SELECTIVE,
    THRESHOLD_CELLS,
    THRESHOLDS,
)

MOST_CANDIDATES = 100  # thresholds that are tested
STARTS = (1 / 8, 1 / 4, 1 / 2, 1)  # coverages that start the sequences of tests
KEPT, BROKEN, UNDECIDED = "kept", "broken", "undecided"
LEVEL = 0.05  # one-sided level of a verdict
POWER = 0.8  # of `labels_to_decide`
MOST_LABELS = 10_000_000
MOST_TRIED = 2_000  # numbers of labels
Row = dict[str, Any]


class Selection(NamedTuple):
    """A threshold, and the answers with at least that confidence on the selection data."""

    threshold: float
    n_answered: int
    n_correct: int
    n_questions: int

    @property
    def coverage(self) -> float:
        """Share of questions that are answered."""
        return self.n_answered / self.n_questions

    @property
    def precision(self) -> float:
        """Share of the given answers that are correct."""
        return self.n_correct / self.n_answered if self.n_answered else np.nan


class Check(NamedTuple):
    """Precision at a threshold with its exact 95 % interval, and a verdict on a target.

    If the precision is the observed one, a check of `n_to_decide` labelled answers above the
    threshold decides the verdict with a probability of 80 %: 0 if it is decided, infinite if no
    number up to ten million is enough.
    """

    answered: Selection
    lower: float
    upper: float
    verdict: str
    n_to_decide: float


def check_target(precision: float, delta: float = 0.1) -> None:
    """Refuse a target or an error probability outside (0, 1)."""
    for name, value, usual in (("precision", precision, 0.9), ("delta", delta, 0.1)):
        if not 0 < value < 1:
            raise ValueError(
                f"{name} is {value}; give a number between 0 and 1, such as {usual}."
            )


def answer_above(threshold: float, confidence: ArrayLike, correct: ArrayLike) -> Selection:
    """Count the answers, and the correct ones, with at least the threshold's confidence."""
    labels = np.asarray(correct, bool)
    answered = np.asarray(confidence, float) >= threshold
    n_correct = int(labels[answered].sum())
    return Selection(float(threshold), int(answered.sum()), n_correct, len(labels))


def select_threshold(
    confidence: ArrayLike, correct: ArrayLike, *, precision: float, delta: float = 0.1
) -> Selection | None:
    """Select the lowest threshold that reaches a precision, with a guarantee.

    Learn then Test [1]_ by multi-start fixed-sequence testing. For a threshold t with n(t)
    answers, k(t) of them wrong, the p-value is P[Binomial(n(t), 1 − precision) ≤ k(t)]. Each of
    four sequences starts at the highest of the `candidates` that answers 1/8, 1/4, 1/2 or all
    of the questions, and walks down, at level delta / 4, until the first p-value above this
    level.

    Candidates and starts depend on the confidences and not on the labels. Given the
    confidences, labels are independent, and the binomial tail bounds the tail of a sum of
    unequal probabilities [2]_. Therefore the level is valid for the mean probability that an
    accepted answer is correct. It is not proved for the precision among all possible questions,
    because the candidates are random; docs/validation.md has the simulated level.

    Parameters
    ----------
    confidence, correct : array-like of shape (n_questions,)
        Confidence in [0, 1] and whether the answer is correct, 0 or 1.
    precision : float
        Smallest share of correct answers among the answers at or above the threshold.
    delta : float, default=0.1
        Largest probability that the accepted answers, by their chances of being correct, do
        not reach the precision.

    Returns
    -------
    Selection or None
        None if no threshold passes the test.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test: Calibrating predictive
       algorithms to achieve risk control", Annals of Applied Statistics 2025.
       https://arxiv.org/abs/2110.01052
    .. [2] Hoeffding, "On the Distribution of the Number of Successes in Independent Trials",
       Annals of Mathematical Statistics 1956.

    Examples
    --------
    35 correct answers at .95: with a precision of .9 their probability is .9³⁵ = .0250, which
    is above .1 / 4 = .025 by .00003. For 36 answers it is .0225.

    >>> select_threshold([0.95] * 35, [1] * 35, precision=0.9) is None
    True
    >>> select_threshold([0.95] * 36, [1] * 36, precision=0.9).threshold
    0.95
    """
    tested, passed = certified_candidates(confidence, correct, precision=precision, delta=delta)
    return answer_above(tested[passed][0], confidence, correct) if passed.any() else None


def certified_candidates(
    confidence: ArrayLike, correct: ArrayLike, *, precision: float, delta: float = 0.1
) -> tuple[Array, Mask]:
    """Return the `candidates`, and which of them pass the tests of `select_threshold`.

    With a probability of at least 1 − delta all that pass reach the precision.
    """
    check_target(precision, delta)
    stated, labels = np.asarray(confidence, float), np.asarray(correct, bool)
    tested = candidates(stated)
    n_answered, n_correct = count_above(tested, stated, labels)
    p_values = binomial_cdf(n_answered - n_correct, n_answered, round(1 - precision, 12))
    return tested, passing(p_values.__getitem__, n_answered, delta)


def candidates(confidence: ArrayLike) -> Array:
    """Return the thresholds that can be selected: distinct confidences, lowest first.

    More than 100 distinct confidences are reduced to 100 equally spaced ranks of the answers.
    Only the order of the confidences matters, so they can be crowded anywhere.

    >>> candidates([0.2, 0.9, 0.9, 0.9999]).tolist()
    [0.2, 0.9, 0.9999]
    """
    stated = np.sort(np.asarray(confidence, float))
    distinct = np.unique(stated)
    if len(distinct) <= MOST_CANDIDATES:
        return distinct
    return np.unique(stated[len(stated) * np.arange(MOST_CANDIDATES) // MOST_CANDIDATES])


def passing(
    p_value: Callable[[int], float], n_answered: NDArray[np.intp], delta: float
) -> Mask:
    """Return which of the `candidates` pass multi-start fixed-sequence testing.

    Candidates are in ascending order, and `p_value` is called for each tested one.
    `n_answered` determines where the sequences of tests begin: at shares of the answers to all
    questions.
    """
    passed = np.zeros(len(n_answered), bool)
    for share in STARTS:
        last = int(np.flatnonzero(n_answered >= share * n_answered[0])[-1])
        while last >= 0 and (passed[last] or p_value(last) <= delta / len(STARTS)):
            passed[last] = True
            last -= 1
    return passed


def count_above(
    thresholds: Array, confidence: Array, correct: Mask
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Count the answers at or above each threshold, and the correct ones."""
    order = np.argsort(confidence, kind="stable")
    below = np.searchsorted(confidence[order], thresholds, side="left")
    correct_below = np.concatenate([[0], np.cumsum(correct[order])])
    return len(confidence) - below, correct_below[-1] - correct_below[below]


def least_abstention(
    confidence: ArrayLike, correct: ArrayLike, *, precision: float
) -> Selection | None:
    """Return the lowest threshold with an observed precision of at least the target.

    It has no guarantee: it shows how far a sample is from `select_threshold`. Returns None if
    no threshold with an answer reaches the target.
    """
    stated, labels = np.asarray(confidence, float), np.asarray(correct, bool)
    observed = candidates(stated)
    n_answered, n_correct = count_above(observed, stated, labels)
    reached = n_correct >= precision * n_answered
    if not reached.any():
        return None
    return answer_above(float(observed[int(np.argmax(reached))]), stated, labels)


def check_threshold(
    threshold: float, confidence: ArrayLike, correct: ArrayLike, *, precision: float
) -> Check:
    """Test whether a threshold reaches a precision on other answers.

    The verdict is "kept" if the one-sided 5 % lower bound of the precision is at least the
    target, "broken" if the upper bound is below the target, else "undecided". Bounds and
    interval are exact (Clopper and Pearson [1]_).

    The threshold must have been selected on other answers than these, see `select_threshold`
    for the parameters.

    References
    ----------
    .. [1] Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the
       case of the binomial", Biometrika 1934.

    Examples
    --------
    All of 40 answers are correct: the lower bound is .05 ^ (1 / 40) = .928.

    >>> check_threshold(0.5, [0.8] * 40, [1] * 40, precision=0.9).verdict
    'kept'
    """
    check_target(precision)
    answered = answer_above(threshold, confidence, correct)
    n, k = answered.n_answered, answered.n_correct
    if not n:
        return Check(answered, np.nan, np.nan, UNDECIDED, np.inf)
    verdict = decide(k, n, precision)
    needed = _labels_to_decide(k / n, n, precision) if verdict == UNDECIDED else 0.0
    return Check(answered, *exact_interval(k, n), verdict, needed)


def decide(k: float, n: float, precision: float) -> str:
    """Return the verdict if k of n answers above the threshold are right."""
    lower, upper = exact_interval(k, n, level=1 - 2 * LEVEL)
    return KEPT if lower >= precision else BROKEN if upper < precision else UNDECIDED


def chance_to_decide(rate: float, sizes: NDArray[np.intp], precision: float) -> Array:
    """Return the probability that a check of each size decides as `rate` is correct.

    Of n answers, k are enough for "kept" if P[Binomial(n, precision) ≥ k] ≤ 5 %.
    """
    if rate > precision:
        most = binomial_quantile(1 - LEVEL, sizes, precision)
        return 1 - binomial_cdf(most, sizes, rate)
    most = binomial_quantile(LEVEL, sizes, precision)
    most = np.where(binomial_cdf(most, sizes, precision) <= LEVEL, most, most - 1)
    return binomial_cdf(most, sizes, rate)


def _labels_to_decide(rate: float, n: int, precision: float) -> float:
    """Return how many answers decide the verdict in 80 %, and so do all larger numbers.

    The probability rises with the number of answers, but like a saw. Therefore all numbers near
    the first sufficient one are tried.
    """
    sizes = np.unique(np.geomspace(n + 1, MOST_LABELS, 400).astype(np.intp))
    fails = np.flatnonzero(chance_to_decide(rate, sizes, precision) < POWER)
    if len(fails) and fails[-1] == len(sizes) - 1:
        return np.inf
    bound = int(sizes[fails[-1] + 1]) if len(fails) else n + 1
    ends = max(n + 1, int(0.9 * bound)), int(1.1 * bound) + 100
    near = np.unique(np.linspace(*ends, MOST_TRIED).astype(np.intp))
    fails = np.flatnonzero(chance_to_decide(rate, near, precision) < POWER)
    return float(near[fails[-1]] + 1 if len(fails) else near[0])


class QuestionCount(NamedTuple):
    """Questions by who answers them above the threshold, and whether each answer is correct."""

    answered: str  # "both", "earlier", "later" or "neither"
    earlier_correct: bool
    later_correct: bool
    n_questions: int


def explain_change(
    earlier: Mask, later: Mask, earlier_correct: Mask, later_correct: Mask
) -> list[QuestionCount]:
    """Count questions by who answers, and who is correct.

    `earlier` and `later` are True for the questions that each checkpoint answers above the
    threshold. All arrays have the shape (n_questions,). The number of wrong answers changes by

        both: correct → wrong, minus both: wrong → correct,
        plus only later: wrong, minus only earlier: wrong.

    >>> both = np.array([True, True, False])
    >>> cells = explain_change(both, ~both | both, both, ~both)
    >>> [tuple(cell) for cell in cells if cell.n_questions]
    [('both', True, False, 2), ('later', False, True, 1)]
    """
    groups = {
        "both": earlier & later,
        "earlier": earlier & ~later,
        "later": later & ~earlier,
        "neither": ~earlier & ~later,
    }
    cells = []
    for name, group in groups.items():
        for first, second in product((True, False), repeat=2):
            is_in_cell = group & (earlier_correct == first) & (later_correct == second)
            cells.append(QuestionCount(name, first, second, int(is_in_cell.sum())))
    return cells


def precision_difference(
    earlier: Mask,
    later: Mask,
    earlier_correct: Mask,
    later_correct: Mask,
    *,
    n_replicates: int,
    seed: int,
) -> tuple[float, float, float]:
    """Return how much the precision changes, later − earlier, with a 95 % interval.

    Takes the arrays of `explain_change` and resamples questions in pairs. The interval is NaN
    if a checkpoint answers nothing, in the data or in a replicate. It describes two fixed sets
    of answers. The earlier precision is optimistic: these answers selected the threshold.
    """
    columns = [earlier, earlier & earlier_correct, later, later & later_correct]
    table = np.stack(columns, axis=1).astype(float)  # (n_questions, 4)
    kinds, counts = np.unique(table, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(table), counts / len(table), size=n_replicates)
    sums = np.concatenate([counts[None], drawn]) @ kinds
    with np.errstate(invalid="ignore", divide="ignore"):
        change = sums[:, 3] / sums[:, 2] - sums[:, 1] / sums[:, 0]
    low = high = np.nan
    if not np.isnan(change).any():
        low, high = np.quantile(change[1:], [0.025, 0.975]).tolist()
    return float(change[0]), low, high


def labelled_questions(
    answers: AnswerArrays, checkpoints: Sequence[int], *, seed: int
) -> NDArray[np.intp]:
    """Return one random question of each group that the given checkpoints all answered.

    Binomial tests need independent labels, which questions that share a fact or a document do
    not have. The result has positions in ascending order.
    """
    questions = answers.answered_by_all(checkpoints)
    order = np.random.default_rng(seed).permutation(len(questions))
    _, first = np.unique(answers.groups[questions[order]], return_index=True)
    return questions[np.sort(order[first])]


class ThresholdTables(NamedTuple):
    """Tables of thresholds and of selective prediction."""

    thresholds: pd.DataFrame
    threshold_cells: pd.DataFrame
    confident_regressions: pd.DataFrame
    selective: pd.DataFrame


def check_thresholds(
    subjects: Mapping[Subject, Aligned], answers: pd.DataFrame, settings: EvaluationSettings
) -> ThresholdTables:
    """Select a threshold on each earlier checkpoint and check it on the later one.

    `answers` is the table ANSWERS, for the texts of regressions. A pair is evaluated on the
    questions that both checkpoints answered, one of each group.

    `thresholds` has a row per pair, estimator and training seed. If no threshold reaches the
    precision, `threshold` is NaN, the verdict is empty, and `least_abstention` shows the
    smallest share of withheld answers with an observed precision of at least the target. A
    pair without a common question has such a row, too, with `n_questions` 0.
    `threshold_cells` has the counts of `explain_change`. `confident_regressions` lists the
    questions that both checkpoints answer above the threshold, the earlier one correctly and
    the later one not. `selective` has AURC, AUGRC and PRR.
    """
    check_target(settings.precision, settings.delta)
    rows: dict[str, list[Row]] = {name: [] for name in ThresholdTables._fields}
    for (model, dataset), data in subjects.items():
        for part in data.by_file():
            found = [("selective", row) for row in selective_rows(part.answers)]
            for pair in part.sets:
                found += _check_pair(part.answers, pair, settings)
            for name, row in found:
                rows[name].append({"model": model, "dataset": dataset, **row})
    schemas = (THRESHOLDS, THRESHOLD_CELLS, CONFIDENT_REGRESSIONS, SELECTIVE)
    tables = ThresholdTables(
        *(
            pd.DataFrame(rows[name], columns=schema.schema.names)
            for name, schema in zip(rows, schemas, strict=True)
        )
    )
    key = ["model", "dataset", "checkpoint", "question_id"]
    texts, regressions = answers.set_index(key)["answer"], tables.confident_regressions
    for end in ("earlier", "later"):
        keys = regressions[["model", "dataset", end, "question_id"]].set_axis(key, axis=1)
        regressions[f"{end}_answer"] = texts.reindex(pd.MultiIndex.from_frame(keys)).to_numpy()
    return tables


def _check_pair(
    answers: AnswerArrays, pair: ContrastSet, settings: EvaluationSettings
) -> Iterator[tuple[str, Row]]:
    """Yield rows with their tables: the thresholds of all estimators and seeds on one pair."""
    precision, delta = settings.precision, settings.delta
    places = [pair.earlier, pair.later]
    shared = labelled_questions(answers, places, seed=settings.seed)
    first, second = answers.correct[places][:, shared] == 1
    earlier, later = (answers.checkpoints[k] for k in places)
    pair_names = {"earlier": earlier, "later": later}
    for series, confidence in answers.confidence.items():
        key: Row = {**pair_names, **series._asdict(), "target": precision}
        row = {**key, "delta": delta, "n_questions": len(shared), "verdict": ""}
        if not len(shared):
            yield "thresholds", row
            continue
        before, after = drop_noise(confidence[places][:, shared])
        best = least_abstention(before, first, precision=precision)
        row["least_abstention"] = 1 - best.coverage if best else np.nan
        selected = select_threshold(before, first, precision=precision, delta=delta)
        if selected is None:
            yield "thresholds", row
            continue
        check = check_threshold(selected.threshold, after, second, precision=precision)
        masks = before >= selected.threshold, after >= selected.threshold
        coverage = compare_accuracies(*masks)
        change = precision_difference(
            *masks, first, second, n_replicates=settings.n_replicates, seed=settings.seed
        )
        regressed = np.flatnonzero(masks[0] & masks[1] & first & ~second)
        row |= {
            "threshold": selected.threshold,
            "verdict": check.verdict,
            "labels_to_decide": check.n_to_decide,
            "confident_regressions": len(regressed),
        }
        for end, answered in {"earlier": selected, "later": check.answered}.items():
            row[f"{end}_answered"] = answered.n_answered
            row[f"{end}_correct"] = answered.n_correct
            row[f"{end}_precision"] = answered.precision
            row[f"{end}_coverage"] = answered.coverage
        for name, ends in {
            "later_precision": (check.answered.precision, check.lower, check.upper),
            "coverage_change": coverage[2:5],
            "precision_change": change,
        }.items():
            row |= zip(
                (name, f"{name}_lower_2_5pct", f"{name}_upper_97_5pct"), ends, strict=True
            )
        yield "thresholds", row
        for cell in explain_change(*masks, first, second):
            yield "threshold_cells", {**key, **cell._asdict()}
        for q in regressed:
            both = {"earlier_confidence": before[q], "later_confidence": after[q]}
            question = answers.questions[shared[q]]
            yield "confident_regressions", {**key, "question_id": question, **both}


def rank_verdicts(verdicts: Sequence[str]) -> str:
    """Return the worst of some verdicts, undecided without any."""
    return next((v for v in (BROKEN, UNDECIDED, KEPT) if v in verdicts), UNDECIDED)
