"""How often confidence is said to follow knowledge that did not change.

In each simulated study two checkpoints sample answers to the same questions. A question has a
right answer and five wrong ones; their probabilities are random, and the right one is more
probable if the model knows it. In a share of the questions the knowledge changes. Estimators:
the probability of one sampled answer, and self-consistency of ten samples.

    python -m benchmarks.asked_twice [--studies 1000] [--replicates 400]

writes the table of docs/validation.md, in per cent of the studies. By one ask, confidence is
claimed to have followed if the interval of the change AUC is above .5 (all that was needed at
commit 8ed590e0). By cross-asking the interval of Δ₀ᵇ must be above 0, too.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.aligned import Aligned, cross
from persistcal.evaluation.bootstrap import Bootstrap, Samples
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.cross_asking import cross_ask
from persistcal.evaluation.metrics.registry import statistics_of_change
from persistcal.evaluation.predictions import AnswerArrays, Ask, Series
from persistcal.evaluation.settings import EvaluationSettings

Array = NDArray[np.float64]
STATES = ("v1", "v2")
N_ANSWERS = 6
RUN = Series("quiz", "estimator", 0)


class WorldAsks(NamedTuple):
    """An estimator, the share of questions with changed knowledge, and the questions."""

    estimator: str  # "probability" or "self-consistency"
    changed: float
    n_questions: int = 300
    n_samples: int = 10
    known: float = 5.0  # log-odds that knowledge adds to the right answer
    group: int = 1  # questions with the same knowledge and its change


def draw_knowledge(world: WorldAsks, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the probabilities of answers at both checkpoints; the first answer is right."""
    n_groups = world.n_questions // world.group
    noise = 1.5 * rng.normal(size=(world.n_questions, N_ANSWERS))
    known = rng.random(n_groups) < 0.5
    later = known ^ (rng.random(n_groups) < world.changed)
    made = []
    for state in (known, later):
        logits = noise.copy()
        logits[:, 0] += world.known * np.repeat(state, world.group)
        weight = np.exp(logits)
        made.append(weight / weight.sum(axis=1, keepdims=True))
    return made[0], made[1]


def ask(
    chances: Array, world: WorldAsks, n_samples: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return whether each answer is right, and the estimator's confidence in it."""
    n = len(chances)
    if world.estimator == "probability":
        answer = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        answer = answer.clip(max=N_ANSWERS - 1)
        return answer == 0, chances[np.arange(n), answer]
    counts = rng.multinomial(n_samples, chances) + 0.01 * rng.random((n, N_ANSWERS))
    answer = counts.argmax(axis=1)
    return answer == 0, np.floor(counts.max(axis=1)) / n_samples


def arranged(asked: list[tuple[Array, Array]], world: WorldAsks) -> AnswerArrays:
    """Return the answers of both checkpoints as arrays."""
    n = world.n_questions
    return AnswerArrays(
        STATES,
        np.array([f"q{number:04}" for number in range(n)], object),
        np.array([right for right, _ in asked], np.int8),
        {RUN: np.array([confidence for _, confidence in asked])},
        np.arange(n) // world.group,
    )


def draw_study(world: WorldAsks, rng: np.random.Generator) -> tuple[AnswerArrays, ...]:
    """Return the usual answers, and the two asks that are crossed."""
    chances = draw_knowledge(world, rng)
    if world.estimator == "probability":
        first, second = (
            arranged([ask(c, world, 1, rng) for c in chances], world) for _ in range(2)
        )
        return first, first, second
    half = world.n_samples // 2
    # both halves together are the usual answers, but independent ones have the same claims
    usual, first, second = (
        arranged([ask(c, world, size, rng) for c in chances], world)
        for size in (world.n_samples, half, half)
    )
    return usual, first, second


def one_ask(answers: AnswerArrays, **settings: Any) -> dict[str, Samples]:
    """Return the metrics of one ask: confidences in the answers that select the questions."""
    data = settle(answers)
    bootstrap = Bootstrap(answers, EvaluationSettings(**settings))
    return bootstrap.apply(statistics_of_change(), data.rated())


def settle(answers: AnswerArrays) -> Aligned:
    """Return answers with their contrast sets."""
    sets = contrast_sets(answers.correct, STATES, EvaluationSettings(min_contrast=1))
    return Aligned(answers, sets)


def crossed(first: AnswerArrays, second: AnswerArrays, **settings: Any) -> dict[str, Samples]:
    """Return the metrics of two asks with exchanged roles."""
    asks = Ask.WHOLE, Ask.AGAIN
    chosen = EvaluationSettings(min_contrast=1, **settings)
    return cross_ask(cross(first, second, asks, chosen), chosen).samples


def is_above(measured: dict[str, Samples], metric: str) -> bool:
    """Return whether the 95 % interval of the estimator's metric is above chance."""
    low = np.quantile(measured[metric][RUN.member].draws, 0.025)
    return bool(low > (0.5 if metric == "change_auc" else 0.0))


def claims(
    world: WorldAsks, *, studies: int, replicates: int, seed: int = 0
) -> dict[str, float]:
    """Return shares of studies: claims by one ask, and by cross-asking with either metric."""
    kind = 0 if world.estimator == "probability" else 1
    made: list[tuple[bool, ...]] = []
    for number in range(studies):
        rng = np.random.default_rng([seed, number, kind, int(100 * world.changed), world.group])
        settings = {"min_direction": 5, "n_replicates": replicates, "seed": number}
        usual, first, second = draw_study(world, rng)
        once, cross = one_ask(usual, **settings), crossed(first, second, **settings)
        of_cross = [is_above(cross, metric) for metric in ("change_auc", "delta0_balanced")]
        below = np.quantile(cross["change_auc"][RUN.member].draws, 0.975) < 0.5
        made.append((is_above(once, "change_auc"), *of_cross, all(of_cross), bool(below)))
    names = ("one_ask", "change_auc", "delta0_balanced", "followed", "against")
    return dict(zip(names, np.mean(made, axis=0).tolist(), strict=True))


def worlds() -> Iterator[WorldAsks]:
    """Yield the worlds of the table."""
    for known in (5.0, 3.0):
        for estimator in ("probability", "self-consistency"):
            for changed in (0.0, 0.15, 0.3):
                yield WorldAsks(estimator, changed, known=known)


def main() -> None:
    """Write the table of all worlds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--to", default="benchmarks/outputs/asked_twice.csv")
    options = vars(parser.parse_args())
    path = options.pop("to")
    rows = [
        {
            "confidence": world.estimator,
            "knowledge_adds": world.known,
            "changed": 100 * world.changed,
            **{name: 100 * share for name, share in claims(world, **options).items()},
        }
        for world in worlds()
    ]
    pd.DataFrame(rows).round(1).to_csv(path, index=False)


if __name__ == "__main__":
    main()
