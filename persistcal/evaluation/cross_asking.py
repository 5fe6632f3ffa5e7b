r"""Cross-asking: metrics of change that are at chance if no knowledge changed.

A checkpoint that samples its answers gives some questions a right answer once and a wrong one
the next time. The contrast set of two asks selects such questions, and the confidence in the
given answer moves with them, because the more probable answer is right more often. So Δ₀ᵇ and
change AUC are above chance although nothing has changed.

Cross-asking needs two independent asks, A and B, of each checkpoint. Ask A gives answers,
labels and the contrast set, and ask B the confidence, in B's own answers. Then the roles are
exchanged, and both statistics are averaged:

.. math:: T = \tfrac12 (T_{AB} + T_{BA}).

If both checkpoints have the same distribution of answers and confidences for each question,
then B's pair of confidences is exchangeable given A. Therefore Δ₀ᵇ has the mean 0 and the
change AUC has the mean ½, whatever A selects. Both roles have the same weights of questions in
each replicate, because their statistics share the questions.

Beams have no independent second ask. To ask again after other few-shot examples checks
robustness: the examples are common to all questions, so the null is not exact.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation import draws
from persistcal.evaluation.contrast import ContrastSet, contrast_sets
from persistcal.evaluation.draws import component
from persistcal.evaluation.evaluate import on_contrast_set
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, Array, Series, arrange
from persistcal.evaluation.replicates import MEMBER, blocks, noise_of_seeds, replicate_runs
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.weighted import auc, balanced_gap

log = logging.getLogger(__name__)

METRICS = ("delta0_balanced", "change_auc")
# The asks that are crossed: halves of the samples, or the usual answers and a second ask
HALVES, REPEATED, OTHER_EXAMPLES = (1, 2), (0, 2), (0, 3)
Part = tuple[ContrastSet, Mapping[Series, Array]]  # and the confidences on it, by run


class Directed(NamedTuple):
    """Δ₀ᵇ and change AUC of estimators, on the data and on replicates of the questions.

    All mappings have `METRICS` as keys. `observed` contains means over seeds, (n_estimators,),
    and `replicated` the same on replicates, (n_estimators, n_replicates); replicates are NaN if
    a pair has too few gained or lost questions. `by_seed` has the values of each estimator by
    seed, and `noise` the variance between seeds that comes from the questions. `gained` and
    `lost` are numbers of questions in each role, summed over pairs. `n_left_out` counts
    answers that have a label in one of the asks only.
    """

    estimators: list[tuple[str, str]]  # train_dataset and name
    observed: dict[str, Array]
    replicated: dict[str, Array]
    by_seed: dict[str, list[dict[int, float]]]
    noise: dict[str, Array]
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    n_left_out: int = 0
    asks: tuple[int, int] = REPEATED


def asks_to_cross(predictions: pd.DataFrame) -> tuple[int, int] | None:
    """Return the two asks of PREDICTIONS that can be crossed, or None for a single ask.

    >>> [asks_to_cross(pd.DataFrame({"ask": asks})) for asks in ([0, 1, 2], [0, 2], [0])]
    [(1, 2), (0, 2), None]
    """
    present = set(predictions["ask"].unique()) if "ask" in predictions else {0}
    possible = (HALVES, REPEATED, OTHER_EXAMPLES)
    return next((asks for asks in possible if present.issuperset(asks)), None)


def cross_ask(
    predictions: pd.DataFrame, checkpoints: Sequence[str], settings: EvaluationSettings
) -> Directed | None:
    """Cross-ask the estimators of PREDICTIONS that have two asks; None if none has.

    `predictions` are of one model and dataset, and `checkpoints` its evaluation checkpoints,
    the earliest first. A pair of checkpoints counts if the contrast sets of both roles have
    `min_contrast` questions, and needs `min_direction` gained and lost ones in both roles.
    """
    asks = asks_to_cross(predictions)
    if asks is None:
        return None
    members = pd.MultiIndex.from_frame(predictions[MEMBER])
    rows = predictions[members.isin(members[predictions["ask"] == asks[1]])]
    first, second, n_left_out = align(*(arrange(rows, checkpoints, ask=ask) for ask in asks))
    by_role = [
        contrast_sets(answers.correct, checkpoints, settings) for answers in (first, second)
    ]
    kept = [
        roles
        for roles in zip(*by_role, strict=True)
        if all(role.kept and role.has_both_directions for role in roles)
    ]
    parts: list[Part] = []
    for of_first, of_second in kept:
        parts += [(of_first, second.confidence), (of_second, first.confidence)]
    measured = measure_directions(parts, first, settings)
    counts = np.array([[role.counts[1:] for role in roles] for roles in kept])
    gained, lost = counts.reshape(-1, 2, 2).sum(axis=0).T.tolist()
    return measured._replace(
        gained=tuple(gained), lost=tuple(lost), n_left_out=n_left_out, asks=asks
    )


def align(first: AnswerArrays, second: AnswerArrays) -> tuple[AnswerArrays, AnswerArrays, int]:
    """Return two asks on the same questions, and the number of answers that are left out.

    An answer is left out if the other ask has no labelled answer of its checkpoint to its
    question.
    """
    questions, rows, other_rows = np.intersect1d(
        first.questions, second.questions, return_indices=True
    )
    masks = [
        answers.correct[:, chosen] != ABSENT
        for answers, chosen in ((first, rows), (second, other_rows))
    ]
    is_crossed = masks[0] & masks[1]
    n_answers = sum(int((answers.correct != ABSENT).sum()) for answers in (first, second))
    aligned = [
        answers._replace(
            questions=questions,
            correct=np.where(is_crossed, answers.correct[:, chosen], ABSENT).astype(np.int8),
            confidence={
                series: np.where(is_crossed, run[:, chosen], np.nan)
                for series, run in answers.confidence.items()
            },
            groups=answers.groups[chosen],
        )
        for answers, chosen in ((first, rows), (second, other_rows))
    ]
    return aligned[0], aligned[1], n_answers - 2 * int(is_crossed.sum())


def measure_directions(
    parts: Sequence[Part], answers: AnswerArrays, settings: EvaluationSettings
) -> Directed:
    """Return Δ₀ᵇ and change AUC of each estimator, means over contrast sets.

    Each contrast set has confidences of its own, by run. `answers` has the runs, and the
    groups of questions, which share one weight in each replicate.
    """
    members, runs = list(answers.rows), list(answers.confidence)
    on_sets = [
        (
            component(pair.questions, pair.improvement),
            [on_contrast_set(confidence[run], pair, "odds") for run in runs],
        )
        for pair, confidence in parts
    ]
    values = {metric: np.full(len(runs), np.nan) for metric in METRICS}
    if parts:
        values["delta0_balanced"] = np.mean(
            [[balanced_gap(r.sign, r.improvement) for r in of] for _, of in on_sets], axis=0
        )
        values["change_auc"] = np.mean(
            [[auc(r.change, r.improvement) for r in of] for _, of in on_sets], axis=0
        )
    fewest = min(
        (min(draws.count_groups(part, answers.groups)) for part, _ in on_sets), default=0
    )
    shape = (len(runs), settings.n_replicates)
    drawn = {metric: np.full(shape, np.nan) for metric in METRICS}
    if fewest >= settings.min_direction:
        drawn = _replicate(on_sets, answers, settings.n_replicates, settings.seed)
    observed, replicated, by_seed, noise = {}, {}, {}, {}
    for metric in METRICS:
        per_run = values[metric]
        observed[metric] = np.array([per_run[n].mean() for n in answers.rows.values()])
        replicated[metric] = np.array(
            [drawn[metric][n].mean(axis=0) for n in answers.rows.values()]
        )
        by_seed[metric] = [
            {runs[i].seed: float(per_run[i]) for i in numbers}
            for numbers in answers.rows.values()
        ]
        noise[metric] = np.array(
            [noise_of_seeds(per_run[n], drawn[metric][n]) for n in answers.rows.values()]
        )
    return Directed(members, observed, replicated, by_seed, noise)


def _replicate(
    on_sets: Sequence[tuple[draws.Component, list]],
    answers: AnswerArrays,
    n_replicates: int,
    seed: int,
) -> dict[str, Array]:
    """Return the replicates of each run, (n_runs, n_replicates), means over contrast sets."""
    asked = np.unique(np.concatenate([part.questions for part, _ in on_sets]))
    largest = max(part.size for part, _ in on_sets)
    sets = str([(part.n_first, part.questions.tolist()) for part, _ in on_sets])
    drawn = {metric: np.zeros((len(answers.confidence), n_replicates)) for metric in METRICS}
    pseudo = {
        member: {
            expected: draws.pseudo_weights(
                (*member, sets), n_replicates, seed=seed, expected=expected
            )
            for expected in (draws.PSEUDO, draws.PSEUDO_AUC)
        }
        for member in answers.rows
    }
    for block in blocks(n_replicates, 8 * (3 * len(asked) + 2 * largest)):
        columns = slice(block.start, block.stop)
        weights = draws.question_weights(answers.groups, asked, block, seed=seed)
        for part, runs in on_sets:
            part_weights = weights[np.searchsorted(asked, part.questions)]
            sizes = draws.group_sizes(part, answers.groups)
            for member, numbers in answers.rows.items():
                of_member = replicate_runs(
                    [runs[i] for i in numbers],
                    part,
                    part_weights,
                    {kind: rows[:, columns] for kind, rows in pseudo[member].items()},
                    sizes,
                )
                for metric in METRICS:
                    drawn[metric][numbers, columns] += of_member[metric] / len(on_sets)
    return drawn
