"""Contrast sets: the questions that one checkpoint answers correctly and another does not.

On a contrast set exactly one of two answers is correct, so confidences are conditioned on that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from persistcal.evaluation.draws import Component
from persistcal.evaluation.predictions import (
    ABSENT,
    AnswerArrays,
    Array,
    Mask,
    PredictionsError,
    join_ties,
)
from persistcal.evaluation.settings import Conditioning, EvaluationSettings, Pairs
from persistcal.store.artifacts import CONTRAST_SETS

N_FOLDS = 5
CLAMP = 1e-6
N_KNOTS = 30
Positions = NDArray[np.intp]
# Whether the earlier and the later answer to each kind of question of `FourRows` is correct
CORRECT = ((0, 1), (1, 0), (0, 0), (1, 1))
APART = 1e-7  # smallest distance between knots; closer knots would fit noise


def control_model(model: str, models: Collection[str]) -> str | None:
    """Return the model of a control: the same model, or else the only one of `models`.

    >>> [control_model("a", models) for models in (["a", "b"], ["b"], ["b", "c"])]
    ['a', 'b', None]
    """
    if model in models:
        return model
    return next(iter(models)) if len(models) == 1 else None


class Counts(NamedTuple):
    """Numbers of changed, of gained and of lost questions."""

    changed: int
    gained: int
    lost: int


class FourRows(NamedTuple):
    """Rows of the questions of each kind among all questions of a contrast set."""

    gained: slice
    lost: slice
    stayed_wrong: slice
    stayed_right: slice


@dataclass(eq=False)
class ContrastSet:
    """Questions of two checkpoints, by positions in ascending order.

    `kinds` are `gained`, `lost`, `stayed_wrong` and `stayed_right` questions. Exactly one
    checkpoint answers `gained` (the later) and `lost` ones (the earlier) correctly. The others,
    unchanged, are controls: none or both answer them correctly. `kept` is True if enough
    questions changed for the set to be evaluated.

    `changed` are gained questions, then lost ones, and `part` has both as its classes. `every`
    are the questions that both checkpoints answered, in the order of `rows`. `questions` are
    the changed ones in ascending order, and `improvement` whether each of these was gained.
    """

    earlier: int
    later: int
    kinds: Sequence[Positions]
    kept: bool

    def __post_init__(self) -> None:
        """Order and count the questions."""
        self.gained, self.lost, self.stayed_wrong, self.stayed_right = self.kinds
        gained, lost, *_ = sizes = list(map(len, self.kinds))
        ends = np.cumsum([0, *sizes]).tolist()
        self.rows = FourRows(*(slice(*pair) for pair in pairwise(ends)))
        self.every = np.concatenate(self.kinds)
        self.changed = np.concatenate(self.kinds[:2])
        self.part = Component(self.changed, gained)
        self.questions = np.sort(self.changed)
        self.improvement = np.argsort(self.changed) < gained
        self.counts = Counts(gained + lost, gained, lost)
        self.has_both_directions = bool(gained and lost)

    def among(self, mask: Mask) -> "ContrastSet":
        """Return the contrast set of the questions in a mask of all."""
        return replace(self, kinds=[rows[mask[rows]] for rows in self.kinds])


def choose_pairs(pairs: Pairs, checkpoints: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs of checkpoints for which contrast sets are built.

    "all" gives all pairs, "adjacent" each checkpoint with the next, and "first" the first
    checkpoint with each other one. A list or a mapping gives each listed pair with both ends in
    `checkpoints`; names of groups are ignored.

    >>> choose_pairs("adjacent", ["a", "b", "c"])
    [(0, 1), (1, 2)]
    >>> choose_pairs([["a", "c"], ["x", "y"]], ["a", "b", "c"])
    [(0, 2)]
    >>> choose_pairs({"tuned": [["a", "b"]], "any": [["a", "b"], ["a", "c"]]}, ["a", "b", "c"])
    [(0, 1), (0, 2)]
    """
    positions = range(len(checkpoints))
    if pairs == "all":
        return list(combinations(positions, 2))
    if pairs == "adjacent":
        return list(pairwise(positions))
    if pairs == "first":
        return [(0, later) for later in positions[1:]]
    if isinstance(pairs, Mapping):
        pairs = [pair for listed in pairs.values() for pair in listed]
    # The text "ab" would be taken as the pair of "a" and "b".
    if isinstance(pairs, str) or any(isinstance(p, str) or len(p) != 2 for p in pairs):
        raise ValueError(
            f"pairs is {pairs!r}, but it must be 'all', 'adjacent', 'first', or a list of "
            "pairs of checkpoints."
        )
    position = {name: number for number, name in enumerate(checkpoints)}
    places = [(position[a], position[b]) for a, b in pairs if a in position and b in position]
    for earlier, later in places:
        if earlier >= later:
            raise ValueError(
                f"pairs lists ({checkpoints[earlier]}, {checkpoints[later]}): name two "
                f"checkpoints, the earlier one first, in the order {', '.join(checkpoints)}."
            )
    return sorted(set(places))


def contrast_sets(
    correct: NDArray[np.int8], checkpoints: Sequence[str], settings: EvaluationSettings
) -> list[ContrastSet]:
    """Return the contrast sets of some pairs of checkpoints, see `choose_pairs`.

    `correct`, (n_checkpoints, n_questions), is as in `AnswerArrays`. A question counts for a
    pair only when both checkpoints answered it. Sets of less than `min_contrast` changed
    questions are not kept.

    >>> correct = np.array([[0, 1, 1, -1], [1, 0, 1, 1]], np.int8)
    >>> [pair] = contrast_sets(correct, ["a", "b"], EvaluationSettings(min_contrast=3))
    >>> [part.tolist() for part in pair.kinds], pair.kept
    ([[0], [1], [], [2]], False)
    """
    sets = []
    for earlier, later in choose_pairs(settings.pairs, checkpoints):
        first, second = correct[earlier], correct[later]
        kinds = [np.flatnonzero((first == a) & (second == b)) for a, b in CORRECT]
        kept = len(kinds[0]) + len(kinds[1]) >= settings.min_contrast
        sets.append(ContrastSet(earlier, later, kinds, kept))
    return sets


def read_sets(
    members: pd.DataFrame, answers: AnswerArrays, settings: EvaluationSettings
) -> list[ContrastSet]:
    """Return the contrast sets of the table CONTRAST_MEMBERS, of questions of `answers`.

    Questions that an estimator does not rate at both checkpoints are left out of its sets. A
    PredictionsError shows a question that has another label in `answers`.
    """
    index, sets = pd.Index(answers.questions), []
    for row in members.to_dict("records"):
        earlier, later = (answers.checkpoints.index(row[end]) for end in ("earlier", "later"))
        kinds = []
        for kind, labels in zip(FourRows._fields, CORRECT, strict=True):
            places = index.get_indexer(pd.Index(row[kind], dtype=object))
            rows = places[places >= 0]
            correct = answers.correct[[[earlier], [later]], rows]
            is_rated = (correct != ABSENT).all(axis=0)
            kinds.append(rows[is_rated])
            if (correct[:, is_rated] != np.reshape(labels, (2, 1))).any():
                raise PredictionsError(
                    f"The contrast set of {row['earlier']} and {row['later']} has other labels "
                    "than the predictions; run list_contrast_sets and join_labels again."
                )
        kept = len(kinds[0]) + len(kinds[1]) >= settings.min_contrast
        sets.append(ContrastSet(earlier, later, kinds, kept))
    return sets


def describe_sets(sets: Sequence[ContrastSet], checkpoints: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the table CONTRAST_SETS but for model and dataset."""
    rows = [
        (checkpoints[pair.earlier], checkpoints[pair.later], *pair.counts, pair.kept)
        for pair in sets
    ]
    return pd.DataFrame(rows, columns=CONTRAST_SETS.but("model", "dataset", "same_answers"))


class FullSet(NamedTuple):
    """Confidences of one run of an estimator in all answers, (n_answers,), and their labels.

    The answers are sorted by checkpoint, in the order of `checkpoints`.
    """

    confidence: Array
    correct: Mask
    checkpoints: list[slice]


class OnContrastSet(NamedTuple):
    """Confidences of one run in the answers to a contrast set, (n_questions,) each.

    `earlier` and `later` are conditioned confidences in the two checkpoints' answers. `change`
    is the later confidence minus the earlier one before conditioning. `pair` is the contrast
    set, and `stated` the run's confidences, (n_checkpoints, all questions), for metrics that
    compare changed with unchanged questions.
    """

    earlier: Array
    later: Array
    change: Array
    improvement: Mask
    pair: ContrastSet | None = None
    stated: Array = np.empty((0, 0))

    @property
    def ends(self) -> tuple[Array, Array]:
        """The confidences of both checkpoints in each of `pair.every`."""
        assert self.pair
        earlier, later = self.stated[[[self.pair.earlier], [self.pair.later]], self.pair.every]
        return earlier, later


class Conditioned(NamedTuple):
    """Conditioned confidences in the two answers to each question: in (0, 1), of sum 1."""

    earlier: Array
    later: Array


def condition(
    earlier: Array,
    later: Array,
    improvement: Mask,
    conditioning: Conditioning,
    folds: NDArray[np.intp] | None = None,
) -> Conditioned:
    """Condition confidences on the contrast set, by odds or by a fitted score.

    `earlier` and `later`, (n_questions,), are confidences in [0, 1] of the two checkpoints in
    their answers. Only the fits use `improvement`, whether the later answer is the correct one,
    and only "cross_fitted" uses the `folds` of the questions. Values that differ only by
    rounding are tied, see `join_ties`.
    """
    if conditioning == "odds":
        conditioned = condition_by_odds(earlier, later)
    elif conditioning == "fitted":
        conditioned = condition_by_fit(earlier, later, improvement)
    elif folds is None:
        raise ValueError("cross_fitted needs the folds of the questions.")
    else:
        conditioned = condition_by_cross_fit(earlier, later, improvement, folds)
    return Conditioned(*join_ties(np.stack(conditioned)))


def condition_by_odds(earlier: Array, later: Array) -> Conditioned:
    r"""Condition as if the two answers were independent.

    .. math:: p_i' = \frac{p_i (1 - p_j)}{p_i (1 - p_j) + p_j (1 - p_i)},
              \qquad p_j' = 1 - p_i'

    Confidences are first clamped to [1e-6, 1 − 1e-6]. `p_j'` is computed as the mirrored
    fraction, so that (p, q) and (q, p) give confidences that are tied to the last bit.

    Two equal confidences leave both answers equally likely; 0.8 against 0.5 has odds of 4:

    >>> condition_by_odds(np.array([0.8, 0.8]), np.array([0.8, 0.5])).earlier
    array([0.5, 0.8])
    """
    first, second = (np.clip(p, CLAMP, 1 - CLAMP) for p in (earlier, later))
    only_first, only_second = first * (1 - second), second * (1 - first)
    either = only_first + only_second
    return Conditioned(only_first / either, only_second / either)


def condition_by_fit(
    earlier: Array, later: Array, improvement: Mask, mask: Mask | None = None
) -> Conditioned:
    r"""Condition by a Bradley–Terry model fitted to the same questions.

    .. math:: p_i' = \sigma(h(p_i) - h(p_j))

    `h` is non-decreasing, antisymmetric about 0.5 and piecewise linear, with knots at 0.5 and
    at the k/31 quantiles (k = 1…30) of max(p, 1 − p) over the 2 N confidences; knots closer
    than 1e-7 are merged, and the last slope continues to 1. It minimises the negative
    log-likelihood, which is convex, over the increments between knots. With `mask`, only the
    questions in this mask determine `h`.

    The fit uses the labels on which the result is evaluated, so the metrics are optimistic. If
    the labels are separable, the likelihood has no maximum and the optimiser stops at a large
    finite `h`.
    """
    from scipy.optimize import minimize  # half a second

    if mask is None:
        mask = np.ones(len(earlier), bool)
    first, second = (np.clip(p, CLAMP, 1 - CLAMP) for p in (earlier, later))
    knots = _knots(np.concatenate([first[mask], second[mask]]))
    difference = _features(first, knots) - _features(second, knots)
    signed = (np.where(improvement, -1.0, 1.0)[:, None] * difference)[mask]

    def loss(increments: Array) -> tuple[float, Array]:
        margin = signed @ increments
        return np.logaddexp(0, -margin).mean(), -(expit(-margin) @ signed) / len(margin)

    n_increments = difference.shape[1]
    if n_increments == 0 or not mask.any():
        return Conditioned(np.full(len(first), 0.5), np.full(len(first), 0.5))
    increments = minimize(
        loss,
        np.full(n_increments, 1 / n_increments),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * n_increments,
        options={"ftol": 1e-13, "gtol": 1e-8, "maxiter": 5000, "maxfun": 20000},
    ).x
    log_odds = difference @ increments
    return Conditioned(expit(log_odds), expit(-log_odds))


def condition_by_cross_fit(
    earlier: Array, later: Array, improvement: Mask, folds: NDArray[np.intp]
) -> Conditioned:
    """Condition each fold of questions by the fit to the questions of the others.

    No label influences its own question; with `condition_by_fit` it does. A question gets
    equal confidences if no other fold has questions or the fit does not separate the answers.
    """
    conditioned = np.full((2, len(earlier)), 0.5)
    for fold in np.unique(folds):
        fitted = np.stack(condition_by_fit(earlier, later, improvement, folds != fold))
        conditioned[:, folds == fold] = fitted[:, folds == fold]
    return Conditioned(*conditioned)


def question_folds(n_questions: int) -> NDArray[np.intp]:
    """Return the fold of each of the study's questions, the same for all pairs of checkpoints.

    Folds are drawn at random with a fixed seed. Their sizes differ by at most one question.
    """
    return np.random.default_rng(0).permutation(n_questions) % N_FOLDS


def _knots(confidence: Array) -> Array:
    away = np.maximum(confidence, 1 - confidence)
    levels = np.arange(1, N_KNOTS + 1) / (N_KNOTS + 1)
    knots = [0.5]
    for knot in np.quantile(away, levels) if len(away) else []:
        if knot - knots[-1] > APART:
            knots.append(float(knot))
    return np.array(knots)


def _features(confidence: Array, knots: Array) -> Array:
    """Return the signed share of each increment of `h` between 0.5 and each confidence."""
    away = np.maximum(confidence, 1 - confidence)[:, None]
    part = (away - knots[:-1]) / np.diff(knots)
    part[:, :-1] = np.minimum(part[:, :-1], 1)  # the last slope is extrapolated
    return np.where(confidence >= 0.5, 1.0, -1.0)[:, None] * np.maximum(part, 0)
