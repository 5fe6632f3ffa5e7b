r"""Results of a study as if a person had judged, estimated from an audit of some answers.

Every question is in one of four states: no answer is correct, only the later one, only the
earlier one, or both. The judge gives the state :math:`j` of each question, and a person the
state :math:`t` of some, drawn within three kinds of the judge's states. Prediction-powered
inference adds the person's corrections to the judge's numbers: with N questions of a kind, n of
them audited, question i counts in state s

.. math:: w_{is} = [j_i = s] + \frac{N}{n} \left([t_i = s] - [j_i = s]\right),

with the second term for audited questions only. Kinds are the judge's states; gained and lost
questions are one kind if too few of either are audited. Errors can have any form and can depend
on a confidence. An audit without errors gives the judge's numbers.

An interval includes the sampling of questions and of audited questions: its variance is the
variance of each question's influence on the number. An audit without errors does not prove a
perfect judge, so a quarter of an error of each kind, with average influence, is added to the
observed errors, and two for the degrees of freedom. `docs/validation.md` shows the coverage.

References
----------
.. [1] Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, "Prediction-Powered Inference",
   Science 2023.
.. [2] Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992, chapter 9: two
   phases.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from persistcal.evaluation.aligned import align
from persistcal.evaluation.contrast import OnContrastSet, condition
from persistcal.evaluation.evaluate import compute
from persistcal.evaluation.predictions import ABSENT, Array
from persistcal.judge.audit import KINDS, AuditError
from persistcal.store.artifacts import CORRECTIONS

NEITHER, GAINED, LOST, BOTH = range(4)  # 2 × earlier is correct + later is correct
KIND = np.array([2, 0, 0, 1])  # the kind of each state
UNAUDITED = -1
FEWEST = 10  # audited questions of a kind
UNSEEN, UNSEEN_FREEDOM = 0.25, 2
COUNTED = {  # numbers that are shares of states
    "accuracy_earlier": [0, 0, 1, 1],
    "accuracy_later": [0, 1, 0, 1],
    "contrast_size": [0, 1, 1, 0],
    "improvement": [0, 1, 0, 0],
    "regression": [0, 0, 1, 0],
}
METRICS = ("delta0_balanced", "auc")


class Audited(NamedTuple):
    """States of all questions: by the judge, and by a person or `UNAUDITED`; both (n,)."""

    judged: NDArray[np.intp]
    person: NDArray[np.intp]


class Correction(NamedTuple):
    """A number by the judge, the corrected one, and its 95 % interval; NaN if undefined."""

    judged: float
    corrected: float
    lower: float
    upper: float


def correct_results(
    states: pd.DataFrame, predictions: pd.DataFrame, checkpoints: Sequence[str]
) -> pd.DataFrame:
    """Correct the numbers of an earlier and a later checkpoint, and of each estimator there.

    `states` are of `persistcal.judge.audit.states_of_sheet`, and `predictions` are the
    PREDICTIONS of one model and dataset. The result has the columns of CORRECTIONS except model
    and dataset.
    """
    audited = Audited(*(states[name].to_numpy() for name in Audited._fields))
    made = {("", ""): correct_counts(audited)}
    chosen = predictions[predictions["checkpoint"].isin(checkpoints)]
    if len(chosen):
        answers = align(chosen, checkpoints).answers
        ids = states["question_id"]
        places = pd.Index(answers.questions).get_indexer(pd.Index(ids))
        lacking = (places < 0) | (answers.correct[:, places] == ABSENT).any(axis=0)
        if lacking.any():
            raise AuditError(
                f"{lacking.sum()} of {len(ids)} questions that {' and '.join(checkpoints)} "
                f"answered have no prediction of both (first: {ids[lacking].iloc[0]!r}); "
                "evaluate the same answers again, then correct them."
            )
        for member, runs in answers.estimators.items():
            made[member] = correct_metrics(audited, [run[:, places] for run in runs])
    rows = [
        (*checkpoints, *member, metric, *values, len(states), int((audited.person >= 0).sum()))
        for member, by_metric in made.items()
        for metric, values in by_metric.items()
    ]
    return pd.DataFrame(rows, columns=CORRECTIONS.but("model", "dataset"))


def correct_counts(audited: Audited) -> dict[str, Correction]:
    """Correct both accuracies, and the numbers of changed, gained and lost questions.

    An audit with too few questions of a kind is refused.

    The judge calls 40 questions correct at both. A person finds 1 of 20 lost, so 2 of 40:

    >>> person = np.repeat([LOST, BOTH, UNAUDITED], [1, 19, 20])
    >>> correct_counts(Audited(np.repeat(BOTH, 40), person))["regression"].corrected
    2.0
    """
    weights, n = _weights(audited), len(audited.judged)
    corrected = {}
    for name, states in COUNTED.items():
        judged, value = (
            float(weight.sum(axis=0) @ states) / n
            for weight in (np.eye(4)[audited.judged], weights)
        )
        influence = np.tile((np.array(states) - value) / n, (n, 1))
        half_width = _half_width(audited, weights, influence)
        bounds = [
            min(max(0.0, v), 1.0) for v in (value, value - half_width, value + half_width)
        ]
        scale = 1 if name.startswith("accuracy") else n
        corrected[name] = Correction(*(scale * share for share in (judged, *bounds)))
    return corrected


def correct_metrics(audited: Audited, runs: Sequence[Array]) -> dict[str, Correction]:
    """Correct an estimator's Δ₀ᵇ and contrast AUC (conditioned by odds), means over seeds.

    Each of `runs`, one per seed, contains the confidences in the earlier and in the later
    answers: (2, n_questions). The results are undefined if the corrected numbers of questions
    can be zero.
    """
    weights = _weights(audited)
    judged = _values(np.eye(4)[audited.judged], runs)
    made = {name: Correction(value, np.nan, np.nan, np.nan) for name, value in judged.items()}
    counts = correct_counts(audited)
    if min(counts[name].lower for name in ("improvement", "regression")) <= 0:
        return made
    values = _values(weights, runs)
    influences = {
        "delta0_balanced": _influence_on_delta0(weights, runs),
        "auc": np.mean([_influence_on_auc(weights, run) for run in runs], axis=0),
    }
    for name, least in (("delta0_balanced", -1.0), ("auc", 0.0)):
        half_width = _half_width(audited, weights, influences[name])
        ends = max(least, values[name] - half_width), min(1.0, values[name] + half_width)
        made[name] = Correction(judged[name], values[name], *ends)
    return made


def _weights(audited: Audited) -> Array:
    """How much each question counts in each state: (n_questions, 4)."""
    by_judge, seen = np.eye(4)[audited.judged], audited.person != UNAUDITED
    kinds = _kinds(audited)
    n_all, n_seen = (np.bincount(kind, minlength=4) for kind in (kinds, kinds[seen]))
    change = (np.eye(4)[audited.person] - by_judge) * seen[:, None]
    return by_judge + (n_all / np.maximum(n_seen, 1))[kinds, None] * change


def _kinds(audited: Audited) -> NDArray[np.intp]:
    """Return the kind of each question, below 4; refuse an audit with too few of one."""
    drawn = KIND[audited.judged]
    for number, name in enumerate(KINDS):
        seen = audited.person[drawn == number] != UNAUDITED
        if seen.sum() < (needed := min(FEWEST, len(seen))):
            raise AuditError(
                f"{seen.sum()} of {len(seen)} {name} questions are labelled, and a correction "
                f"needs {needed}: label more, or raise analyses.audit.n_{name} and draw "
                "another sheet."
            )
    for state in (GAINED, LOST):
        seen = audited.person[audited.judged == state] != UNAUDITED
        if seen.sum() < min(FEWEST, len(seen)):
            return drawn
    return audited.judged


def _half_width(audited: Audited, weights: Array, influence: Array) -> float:
    """Half the width of the interval of a number that states have an influence on: (n, 4)."""
    judged, person = audited
    parts, freedom = [max(0.0, float((weights * influence**2).sum()))], [np.inf]
    kinds = _kinds(audited)
    for kind in np.unique(kinds):
        members = kinds == kind
        seen = members & (person != UNAUDITED)
        n_all, n = int(members.sum()), int(seen.sum())
        if n == n_all:
            continue
        by_judge = influence[members, judged[members]]
        error = influence[seen, person[seen]] - influence[seen, judged[seen]]
        unseen = np.concatenate(  # were it wrong about the later answer, or the earlier one
            [influence[members, judged[members] ^ answer] - by_judge for answer in (1, 2)]
        )
        second, fourth = ((error**p).sum() + UNSEEN * (unseen**p).mean() for p in (2, 4))
        spread = (second - error.sum() ** 2 / n) / (n - 1)
        parts.append(n_all**2 * (1 / n - 1 / n_all) * spread)
        second, fourth = (
            (error**p).sum() + UNSEEN_FREEDOM * (unseen**p).mean() for p in (2, 4)
        )
        freedom.append(2 * second**2 / fourth if fourth > 0 else np.inf)
    variances = np.array(parts)
    of_audit = float((variances**2 / np.array(freedom)).sum())
    degrees = variances.sum() ** 2 / of_audit if of_audit > 0 else np.inf
    return float(student.ppf(0.975, degrees) * np.sqrt(variances.sum()))


def _values(weights: Array, runs: Sequence[Array]) -> dict[str, float]:
    """Return the metrics by the functions that evaluate the study."""
    gained, lost = (np.flatnonzero(weights[:, state]) for state in (GAINED, LOST))
    rows = np.concatenate([gained, lost])
    improvement = np.arange(len(rows)) < len(gained)
    weight = np.where(improvement, weights[rows, GAINED], weights[rows, LOST])
    on_set = []
    for earlier, later in runs:
        conditioned = condition(earlier[rows], later[rows], improvement, "odds")
        change = later[rows] - earlier[rows]
        on_set.append(OnContrastSet(*conditioned, change, improvement))
    values = compute("contrast", on_set, weight[:, None], chosen=METRICS)
    return {name: float(draws[:, 0].mean()) for name, draws in values.items()}


def _influence_on_delta0(weights: Array, runs: Sequence[Array]) -> Array:
    moved = np.mean([np.sign(later - earlier) for earlier, later in runs], axis=0)
    influence = np.zeros(weights.shape)
    for state, sign in ((GAINED, moved), (LOST, -moved)):
        total = weights[:, state].sum()
        influence[:, state] = (sign - weights[:, state] @ sign / total) / (2 * total)
    return influence


def _influence_on_auc(weights: Array, run: Array) -> Array:
    """As right and wrong confidences mirror each other, both of a question's weigh the same."""
    earlier, later = condition(run[0], run[1], np.zeros(0, bool), "odds")
    right, wrong = np.concatenate([later, earlier]), np.concatenate([earlier, later])
    weight = np.concatenate([weights[:, GAINED], weights[:, LOST]])
    order = np.argsort(wrong)
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    ends = [np.searchsorted(wrong[order], right, side) for side in ("left", "right")]
    won = (below[ends[0]] + below[ends[1]]) / (2 * weight.sum())
    influence = np.zeros(weights.shape)
    change = 2 * (won - weight @ won / weight.sum()) / weight.sum()
    influence[:, GAINED], influence[:, LOST] = np.split(change, 2)
    return influence
