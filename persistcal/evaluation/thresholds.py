"""Thresholds on confidence: select one on a checkpoint, and check it on a later one.

A user answers only if the confidence reaches a threshold, so that a chosen share of the answers
is correct. `select_threshold` finds such a threshold with a guarantee. `check_threshold` tests
it at a later checkpoint, and `explain_change` counts the questions behind a change.

AURC, AUGRC and PRR summarise all thresholds. Answers with equal confidence are withheld in
random order, and every metric is the expectation over this order, so a metric does not depend
on the order of the rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

from persistcal.evaluation.contrast import Pairs, choose_pairs
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, arrange
from persistcal.evaluation.proportions import compare_accuracies
from persistcal.store.artifacts import (
    CONFIDENT_REGRESSIONS,
    SELECTIVE,
    THRESHOLD_CELLS,
    THRESHOLDS,
)

GRID = np.arange(101) / 100  # thresholds that can be selected
STARTS = (1 / 8, 1 / 4, 1 / 2, 1)  # coverages that start the sequences of tests
KEPT, BROKEN, UNDECIDED = "kept", "broken", "undecided"
LEVEL = 0.05  # one-sided level of a verdict
MOST_LABELS = 10_000_000


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

    `n_to_decide` is the number of labelled answers above the threshold that would decide the
    verdict at the observed precision. It is 0 if the verdict is decided, and infinite if no
    number up to ten million decides it.
    """

    answered: Selection
    lower: float
    upper: float
    verdict: str
    n_to_decide: float


def check_target(precision: float, delta: float = 0.1) -> None:
    """Refuse a target or an error probability outside (0, 1)."""
    for name, value in (("precision", precision), ("delta", delta)):
        if not 0 < value < 1:
            raise ValueError(f"{name} is {value}; give a number between 0 and 1, such as 0.9.")


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
    four sequences starts at the highest threshold that answers 1/8, 1/4, 1/2 or all of the
    questions, and walks down in steps of .01, at level delta / 4, until the first p-value above
    this level. Starts depend on the confidences and not on the labels, so the level is valid
    for every distribution of confidences.

    Parameters
    ----------
    confidence, correct : array-like of shape (n_questions,)
        Confidence in [0, 1] and whether the answer is correct, 0 or 1.
    precision : float
        Smallest share of correct answers among the answers at or above the threshold.
    delta : float, default=0.1
        Largest probability, over samples of questions, that the selected threshold does not
        reach the precision in the population.

    Returns
    -------
    Selection or None
        None if no threshold passes the test.

    Raises
    ------
    ValueError
        If precision or delta is not between 0 and 1.

    References
    ----------
    .. [1] Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test: Calibrating predictive
       algorithms to achieve risk control", Annals of Applied Statistics 2025.
       https://arxiv.org/abs/2110.01052

    Examples
    --------
    35 correct answers at .95: with a precision of .9 their probability is .9³⁵ = .0250, which
    is above .1 / 4 = .025 by .00003. For 36 answers it is .0225.

    >>> select_threshold([0.95] * 35, [1] * 35, precision=0.9) is None
    True
    >>> select_threshold([0.95] * 36, [1] * 36, precision=0.9).threshold
    0.0
    """
    check_target(precision, delta)
    stated, labels = np.asarray(confidence, float), np.asarray(correct, bool)
    n_answered, n_wrong = _counts_on_grid(stated, labels)
    p_values = np.where(
        n_answered > 0, binom.cdf(n_wrong, n_answered, round(1 - precision, 12)), 1.0
    )
    lowest = lowest_passing(p_values, first_tested(n_answered), delta)
    return None if lowest is None else answer_above(lowest, stated, labels)


def first_tested(n_answered: NDArray[np.intp]) -> list[int]:
    """Return the positions in GRID where the sequences of tests begin."""
    return [int(np.flatnonzero(n_answered >= share * n_answered[0])[-1]) for share in STARTS]


def lowest_passing(
    p_values: NDArray[np.float64], starts: Sequence[int], delta: float
) -> float | None:
    """Return the lowest threshold of GRID that passes multi-start fixed-sequence testing."""
    passes = p_values <= delta / len(starts)
    lowest: int | None = None
    for start in starts:
        place = start
        while place >= 0 and passes[place]:
            lowest = place if lowest is None else min(lowest, place)
            place -= 1
    return None if lowest is None else float(GRID[lowest])


def _counts_on_grid(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Count the answers at or above each threshold of GRID, and the wrong ones."""
    order = np.argsort(confidence, kind="stable")
    below = np.searchsorted(confidence[order], GRID, side="left")
    wrong_below = np.concatenate([[0], np.cumsum(~correct[order])])
    return len(confidence) - below, wrong_below[-1] - wrong_below[below]


def least_abstention(
    confidence: ArrayLike, correct: ArrayLike, *, precision: float
) -> Selection | None:
    """Return the lowest threshold with an observed precision of at least the target.

    It has no guarantee: it shows how far a sample is from `select_threshold`. Returns None if
    no threshold with an answer reaches the target.
    """
    stated, labels = np.asarray(confidence, float), np.asarray(correct, bool)
    n_answered, n_wrong = _counts_on_grid(stated, labels)
    reached = (n_answered > 0) & (n_answered - n_wrong >= precision * n_answered)
    if not reached.any():
        return None
    return answer_above(float(GRID[int(np.argmax(reached))]), stated, labels)


def check_threshold(
    threshold: float, confidence: ArrayLike, correct: ArrayLike, *, precision: float
) -> Check:
    """Test whether a threshold reaches a precision on other answers.

    The verdict is "kept" if the one-sided 5 % lower bound of the precision is at least the
    target, "broken" if the upper bound is below the target, else "undecided". Bounds and
    interval are exact (Clopper and Pearson [1]_).

    Parameters
    ----------
    threshold : float
        In [0, 1], selected on other answers than these.
    confidence, correct : array-like of shape (n_questions,)
        As for `select_threshold`, of the later checkpoint.
    precision : float
        The target, between 0 and 1.

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
    verdict = _verdict(k, n, precision)
    needed = 0.0 if verdict != UNDECIDED else _labels_to_decide(k / n, n, precision)
    return Check(answered, *exact_interval(k, n), verdict, needed)


def exact_interval(k: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return the two-sided Clopper–Pearson interval of k of n.

    Examples
    --------
    >>> [round(end, 3) for end in exact_interval(9, 10)]
    [0.555, 0.997]
    """
    tail = (1 - level) / 2
    lower = float(beta.ppf(tail, k, n - k + 1)) if k > 0 else 0.0
    upper = float(beta.ppf(1 - tail, k + 1, n - k)) if k < n else 1.0
    return lower, upper


def _verdict(k: float, n: float, precision: float) -> str:
    lower, upper = exact_interval(k, n, level=1 - 2 * LEVEL)
    return KEPT if lower >= precision else BROKEN if upper < precision else UNDECIDED


def _labels_to_decide(rate: float, n: int, precision: float) -> float:
    """Return how many answers decide the verdict if `rate` of them is correct."""

    def decided(size: float) -> bool:
        return _verdict(rate * size, size, precision) != UNDECIDED

    if not decided(MOST_LABELS):
        return np.inf
    low, high = n, MOST_LABELS  # the interval shrinks with the number of answers
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return float(high)


class QuestionCount(NamedTuple):
    """Questions by who answers them above the threshold, and whether each answer is correct."""

    answered: str  # "both", "earlier", "later" or "neither"
    earlier_correct: bool
    later_correct: bool
    n_questions: int


def explain_change(
    earlier: NDArray[np.bool_],
    later: NDArray[np.bool_],
    earlier_correct: NDArray[np.bool_],
    later_correct: NDArray[np.bool_],
) -> list[QuestionCount]:
    """Count questions by who answers, and who is correct.

    `earlier` and `later` are True for the questions that each checkpoint answers above the
    threshold. All arrays have the shape (n_questions,). The number of wrong answers changes by

        both: correct → wrong, minus both: wrong → correct,
        plus only later: wrong, minus only earlier: wrong.

    Examples
    --------
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
    return [
        QuestionCount(
            name,
            first,
            second,
            int((group & (earlier_correct == first) & (later_correct == second)).sum()),
        )
        for name, group in groups.items()
        for first in (True, False)
        for second in (True, False)
    ]


def precision_difference(
    earlier: NDArray[np.bool_],
    later: NDArray[np.bool_],
    earlier_correct: NDArray[np.bool_],
    later_correct: NDArray[np.bool_],
    *,
    n_replicates: int,
    seed: int,
) -> tuple[float, float, float]:
    """Return how much the precision changes, later − earlier, with a 95 % interval.

    Takes the arrays of `explain_change` and resamples questions in pairs. The interval is NaN
    if a checkpoint answers nothing, in the data or in a replicate. It describes
    two fixed sets of answers: the threshold was selected on the earlier ones, so their
    precision is optimistic.
    """
    columns = [earlier, earlier & earlier_correct, later, later & later_correct]
    table = np.stack(columns, axis=1).astype(float)  # (n_questions, 4)
    kinds, counts = np.unique(table, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(table), counts / len(table), size=n_replicates)
    sums = np.concatenate([counts[None], drawn]) @ kinds
    with np.errstate(invalid="ignore", divide="ignore"):
        change = sums[:, 3] / sums[:, 2] - sums[:, 1] / sums[:, 0]
    if np.isnan(change).any():
        return float(change[0]), np.nan, np.nan
    low, high = np.quantile(change[1:], [0.025, 0.975])
    return float(change[0]), float(low), float(high)


class ThresholdTables(NamedTuple):
    """Tables THRESHOLDS, THRESHOLD_CELLS, CONFIDENT_REGRESSIONS and SELECTIVE."""

    thresholds: pd.DataFrame
    threshold_cells: pd.DataFrame
    confident_regressions: pd.DataFrame
    selective: pd.DataFrame


def check_thresholds(
    predictions: Iterable[pd.DataFrame],
    checkpoints: Mapping[str, Sequence[str]],
    answers: pd.DataFrame,
    *,
    precision: float,
    delta: float = 0.1,
    pairs: Pairs = "all",
    n_replicates: int = 10_000,
    seed: int = 17,
) -> ThresholdTables:
    """Select a threshold on each earlier checkpoint and check it on the later one.

    Parameters
    ----------
    predictions : iterable of DataFrame
        Rows of the table PREDICTIONS with the columns model and dataset.
    checkpoints : mapping of str to sequence of str
        Evaluation checkpoints of each model, earliest first.
    answers : DataFrame
        Rows of the table ANSWERS, for the texts of regressions.
    precision, delta : float
        As for `select_threshold`.
    pairs : {"all", "adjacent", "first"} or sequence of (str, str), default="all"
        The pairs of checkpoints, see `choose_pairs`. A pair is evaluated on the questions that
        both checkpoints answered; pairs without a common question are skipped.
    n_replicates, seed : int
        Of the bootstrap for the change in precision.

    Returns
    -------
    ThresholdTables
        `thresholds` has a row per pair, estimator and training seed. If no threshold
        reaches the precision, `threshold` is NaN, the verdict is empty, and `least_abstention`
        shows the smallest share of withheld answers with an observed precision of at least the
        target. `threshold_cells` has the counts of `explain_change`. `confident_regressions`
        lists the questions that both checkpoints answer above the threshold, the earlier one
        correctly and the later one not. `selective` has AURC, AUGRC and PRR.
    """
    check_target(precision, delta)
    parts: list[dict[str, pd.DataFrame]] = []
    for frame in predictions:
        for (model, dataset), rows in frame.groupby(["model", "dataset"], sort=False):
            names = checkpoints[str(model)]
            answered = arrange(rows, names)
            made = [
                _check_pair(answered, pair, precision, delta, (n_replicates, seed))
                for pair in choose_pairs(pairs, names)
            ]
            made.append({"selective": selective_metrics(answered)})
            place = {"model": str(model), "dataset": str(dataset)}
            parts += [{n: t.assign(**place) for n, t in tables.items()} for tables in made]
    schemas = (THRESHOLDS, THRESHOLD_CELLS, CONFIDENT_REGRESSIONS, SELECTIVE)
    joined = {
        name: pd.concat(
            [tables[name] for tables in parts if len(tables.get(name, ()))]
            or [pd.DataFrame(columns=schema.schema.names)],
            ignore_index=True,
        )
        for name, schema in zip(ThresholdTables._fields, schemas, strict=True)
    }
    joined["confident_regressions"] = _add_answers(joined["confident_regressions"], answers)
    ordered = zip(joined.values(), schemas, strict=True)
    return ThresholdTables(*(rows[schema.schema.names] for rows, schema in ordered))


def _check_pair(
    answers: AnswerArrays,
    pair: tuple[int, int],
    precision: float,
    delta: float,
    bootstrap: tuple[int, int],
) -> dict[str, pd.DataFrame]:
    """Check the thresholds of all estimators and seeds on one pair of checkpoints."""
    labels = answers.correct[list(pair)]
    shared = np.flatnonzero((labels != ABSENT).all(axis=0))
    first, second = labels[:, shared] == 1
    ends = {"earlier": answers.checkpoints[pair[0]], "later": answers.checkpoints[pair[1]]}
    thresholds, cells, regressions = [], [], []
    for series, confidence in answers.confidence.items() if len(shared) else ():
        key = {**ends, **series._asdict(), "target": precision}
        earlier, later = confidence[list(pair)][:, shared]
        selected = select_threshold(earlier, first, precision=precision, delta=delta)
        row = {**key, "delta": delta, "n_questions": len(shared), "verdict": ""}
        best = least_abstention(earlier, first, precision=precision)
        row["least_abstention"] = 1 - best.coverage if best else np.nan
        if selected:
            masks = earlier >= selected.threshold, later >= selected.threshold
            row |= _compare_at(selected, (earlier, later), (first, second), precision)
            change = precision_difference(
                *masks, first, second, n_replicates=bootstrap[0], seed=bootstrap[1]
            )
            names = ("", "_lower_2_5pct", "_upper_97_5pct")
            row |= {f"precision_change{end}": v for end, v in zip(names, change, strict=True)}
            counts = explain_change(*masks, first, second)
            cells += [{**key, **cell._asdict()} for cell in counts]
            regressed = np.flatnonzero(masks[0] & masks[1] & first & ~second)
            row["confident_regressions"] = len(regressed)
            regressions += [
                {
                    **key,
                    "question_id": answers.questions[shared[q]],
                    "earlier_confidence": earlier[q],
                    "later_confidence": later[q],
                }
                for q in regressed
            ]
        thresholds.append(row)
    return {
        "thresholds": pd.DataFrame(thresholds, columns=THRESHOLDS.but("model", "dataset")),
        "threshold_cells": pd.DataFrame(cells),
        "confident_regressions": pd.DataFrame(regressions),
    }


def _compare_at(
    selected: Selection,
    confidence: tuple[NDArray[np.float64], NDArray[np.float64]],
    correct: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    precision: float,
) -> dict[str, float | str]:
    """Return the columns of THRESHOLDS about one selected threshold."""
    check = check_threshold(selected.threshold, confidence[1], correct[1], precision=precision)
    coverage = compare_accuracies(*(stated >= selected.threshold for stated in confidence))
    return {
        "threshold": selected.threshold,
        "earlier_answered": selected.n_answered,
        "earlier_correct": selected.n_correct,
        "earlier_precision": selected.precision,
        "earlier_coverage": selected.coverage,
        "later_answered": check.answered.n_answered,
        "later_correct": check.answered.n_correct,
        "later_precision": check.answered.precision,
        "later_precision_lower_2_5pct": check.lower,
        "later_precision_upper_97_5pct": check.upper,
        "later_coverage": check.answered.coverage,
        "coverage_change": coverage.difference,
        "coverage_change_lower_2_5pct": coverage.lower,
        "coverage_change_upper_97_5pct": coverage.upper,
        "verdict": check.verdict,
        "labels_to_decide": check.n_to_decide,
    }


def _add_answers(regressions: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the table CONFIDENT_REGRESSIONS with both answers, from the table ANSWERS."""
    key = ["model", "dataset", "checkpoint", "question_id"]
    texts = answers.set_index(key)["answer"]
    for end in ("earlier", "later"):
        places = regressions[["model", "dataset", end, "question_id"]].set_axis(key, axis=1)
        matched = texts.reindex(pd.MultiIndex.from_frame(places)).to_numpy()
        regressions = regressions.assign(**{f"{end}_answer": matched})
    return regressions


def rank_verdicts(verdicts: Sequence[str]) -> str:
    """Return the worst of some verdicts: broken, then undecided, then kept."""
    return next(v for v in (BROKEN, UNDECIDED, KEPT) if v in verdicts)


def _errors_in_top(confidence: ArrayLike, correct: ArrayLike) -> NDArray[np.float64]:
    """Return the expected number of errors among the k most confident answers, k = 0 … n."""
    stated = -np.asarray(confidence, float)
    wrong = 1 - np.asarray(correct, float)
    order = np.argsort(stated, kind="stable")
    ends = (
        np.flatnonzero(np.diff(stated[order], append=np.inf)) + 1
    )  # the end of each group of ties
    errors = np.cumsum(wrong[order])[ends - 1]
    positions = np.arange(len(wrong) + 1)
    return np.interp(positions, np.concatenate([[0], ends]), np.concatenate([[0], errors]))


def risk_coverage(
    confidence: ArrayLike, correct: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the risk–coverage curve: coverage k / n, and the error rate of the k answers.

    Returns
    -------
    coverage, risk : ndarray of shape (n_answers,)
        For k = 1 … n, from the most confident answer to all answers.

    Examples
    --------
    >>> coverage, risk = risk_coverage([0.9, 0.6, 0.6], [1, 1, 0])
    >>> [round(float(value), 3) for value in risk]  # 0; (0 + 1/2) / 2; 1 / 3
    [0.0, 0.25, 0.333]
    """
    errors = _errors_in_top(confidence, correct)[1:]
    answered = np.arange(1, len(errors) + 1)
    return answered / len(errors), errors / answered


def aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the risk–coverage curve: the mean risk over k = 1 … n.

    Lower is better; NaN without answers.

    References
    ----------
    .. [1] Geifman, Uziel and El-Yaniv, "Bias-Reduced Uncertainty Estimation for Deep Neural
       Classifiers", ICLR 2019. https://arxiv.org/abs/1805.08206

    Examples
    --------
    The least confident answer is the error: (0 + 0 + 1/3) / 3

    >>> round(aurc([0.9, 0.6, 0.2], [1, 1, 0]), 4)
    0.1111
    """
    risk = risk_coverage(confidence, correct)[1]
    return float(risk.mean()) if len(risk) else np.nan


def augrc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the generalised risk–coverage curve.

    The generalised risk is the number of errors among the k most confident answers divided by
    all n answers. The curve is piecewise linear and begins at (0, 0). With accuracy
    a it equals (1 − AUROC) a (1 − a) + (1 − a)² / 2. Lower is better; NaN without answers.

    References
    ----------
    .. [1] Traub, Bungert, Lüth, Baumgartner, Maier-Hein, Maier-Hein and Jaeger, "Overcoming
       Common Flaws in the Evaluation of Selective Classification Systems", NeurIPS 2024.
       https://arxiv.org/abs/2407.01032

    Examples
    --------
    Errors 0, 0, 0, 1 of 3 answers: ((0 + 0) + (0 + 0) + (0 + 1)) / 2 / 3 / 3

    >>> round(augrc([0.9, 0.6, 0.2], [1, 1, 0]), 4)
    0.0556
    """
    errors = _errors_in_top(confidence, correct)
    n = len(errors) - 1
    return float(np.trapezoid(errors) / n**2) if n else np.nan


def prediction_rejection_ratio(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return the prediction rejection ratio (PRR): 1 for a perfect order, 0 for a random one.

    The gain in mean accuracy over all rejection rates, from the random order, divided by the
    gain of the order that withholds all errors first. NaN if all answers are correct or all
    are wrong.

    References
    ----------
    .. [1] Malinin and Gales, "Uncertainty Estimation in Autoregressive Structured Prediction",
       ICLR 2021. https://arxiv.org/abs/2002.07650

    Examples
    --------
    >>> prediction_rejection_ratio([0.9, 0.6, 0.2], [1, 1, 0])
    1.0
    """
    labels = np.asarray(correct, float)
    if len(labels) == 0 or labels.min() == labels.max():
        return np.nan
    random_order, best_order = 1 - labels.mean(), aurc(labels, labels)
    return float((random_order - aurc(confidence, labels)) / (random_order - best_order))


METRICS = {"aurc": aurc, "augrc": augrc, "prr": prediction_rejection_ratio}


def selective_metrics(answers: AnswerArrays) -> pd.DataFrame:
    """Return AURC, AUGRC and PRR of each checkpoint, estimator and seed.

    The result has the columns of the table SELECTIVE except model and dataset.
    """
    rows = [
        (checkpoint, *series, metric, function(stated[answered], correct[answered] == 1))
        for series, confidence in answers.confidence.items()
        for checkpoint, stated, correct in zip(
            answers.checkpoints, confidence, answers.correct, strict=True
        )
        for answered in [correct != ABSENT]
        for metric, function in METRICS.items()
    ]
    return pd.DataFrame(rows, columns=SELECTIVE.but("model", "dataset"))
