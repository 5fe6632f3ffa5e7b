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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from persistcal.evaluation import draws
from persistcal.evaluation.aligned import RatedSet, TwoAsks
from persistcal.evaluation.predictions import AnswerArrays, Array, Ask
from persistcal.evaluation.replicates import blocks, noise_of_seeds, replicate_runs
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.weighted import auc, balanced_gap

METRICS = ("delta0_balanced", "change_auc")


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
    asks: tuple[Ask, Ask] = (Ask.WHOLE, Ask.AGAIN)


def cross_ask(crossed: TwoAsks, settings: EvaluationSettings) -> Directed:
    """Cross-ask the estimators of two asks.

    A pair of checkpoints counts if the contrast sets of both roles have `min_contrast`
    questions, and needs `min_direction` gained and lost ones in both roles.
    """
    first, _ = crossed.answers
    measured = measure_directions(crossed.rated(), first, settings)
    counts = np.array([[role.counts[1:] for role in roles] for roles in crossed.kept])
    gained, lost = counts.reshape(-1, 2, 2).sum(axis=0).T.tolist()
    return measured._replace(
        gained=tuple(gained),
        lost=tuple(lost),
        n_left_out=crossed.n_left_out,
        asks=crossed.asks,
    )


def measure_directions(
    sets: Sequence[RatedSet], answers: AnswerArrays, settings: EvaluationSettings
) -> Directed:
    """Return Δ₀ᵇ and change AUC of each estimator, means over contrast sets.

    `answers` has the runs, and the groups of questions, which share one weight in each
    replicate.
    """
    members, runs = list(answers.rows), list(answers.confidence)
    on_sets = [(of.pair.part, of.runs) for of in sets]
    values = {metric: np.full(len(runs), np.nan) for metric in METRICS}
    if sets:
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
