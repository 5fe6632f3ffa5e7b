"""Level and power of comparisons of several estimators, in worlds with known truth.

Estimators are equally good by construction, or one is better. Each world has new questions, new
confidences and its own bootstrap. Printed are Markdown tables, in per cent of the worlds:

- *simultaneous*: worlds with a claim about any pair of equal estimators, by
  `persistcal.evaluation.significance`,
- *coverage*: worlds with the true differences in all simultaneous intervals,
- *paper's marks*: worlds with an equal estimator that the paper's one-sided test calls
  significantly worse than the best,
- *Holm*: the same with the one-sided p-values after Holm's method, as in version 0.1,
- *power*: worlds with the better estimator above all others, or above at least one.

    python -m benchmarks.simultaneous --worlds 2000
    python -m benchmarks.simultaneous --worlds 200 --metrics auc --estimators 2 3
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from persistcal.evaluation.draws import (
    PSEUDO,
    Component,
    balanced_replicates,
    draw_sequences,
    pseudo_weights,
    question_weights,
)
from persistcal.evaluation.paper_draws import count_draws, window
from persistcal.evaluation.proportions import holm
from persistcal.evaluation.replicates import effective_questions
from persistcal.evaluation.significance import LEVEL, Array, compare_all
from persistcal.evaluation.weighted import auc, balanced_gap, mean_gap, squared_error

N_QUESTIONS, GAINED, LOST = 400, 220, 38
DRAWN_ANEW = 10  # worlds that share their draws of contrast questions


class EstimatorWorld(NamedTuple):
    """How estimators err: a metric, and what their errors have in common."""

    metric: str
    dependence: str

    @property
    def name(self) -> str:
        """Metric and dependence, for the table."""
        return f"{METRICS[self.metric]}, {self.dependence}"


METRICS = {
    "delta0_balanced": f"Δ₀ᵇ, {GAINED} gained and {LOST} lost",
    "auc": f"AUC, {N_QUESTIONS} questions",
    "auc_near_1": "AUC about .98",
    "brier": "Brier score",
    "brier_biased": "Brier score, half over- and half underconfident",
}
INDEPENDENT, CORRELATED, COPIES = "independent", "correlated", "each one twice"
SHARED = {INDEPENDENT: 0.0, CORRELATED: 0.8, COPIES: 0.5}  # share of the errors' variance
BETTER = {"delta0_balanced": 0.5, "auc": 0.6, "auc_near_1": 3.0, "brier": 0.6}  # quality added


def errors(rng: np.random.Generator, world: EstimatorWorld, m: int, n: int) -> Array:
    """Return the errors of `m` estimators in `n` answers, of variance 1."""
    shared, distinct = SHARED[world.dependence], m
    if world.dependence == COPIES:
        distinct = (m + 1) // 2
    separate = rng.normal(size=(distinct, n))
    made = np.sqrt(shared) * rng.normal(size=n) + np.sqrt(1 - shared) * separate
    return np.repeat(made, 2, axis=0)[:m] if world.dependence == COPIES else made


def draw_world(
    rng: np.random.Generator, world: EstimatorWorld, quality: Array
) -> tuple[np.ndarray, Array]:
    """Return a label per question and what estimators of some quality say, (m, n)."""
    m = len(quality)
    if world.metric == "delta0_balanced":
        gained = np.arange(GAINED + LOST) < GAINED
        felt = 0.3 + quality[:, None] + errors(rng, world, m, len(gained))
        return gained, np.sign(felt) * (np.abs(felt) > 0.2)  # some do not change
    difficulty = rng.normal(size=N_QUESTIONS)
    noise = errors(rng, world, m, N_QUESTIONS)
    if world.metric == "auc_near_1":
        return difficulty > 0, expit((4 + quality[:, None]) * difficulty + 0.5 * noise)
    right = rng.random(N_QUESTIONS) < expit(2 * difficulty)
    felt = (1 + quality[:, None]) * difficulty + noise
    if world.metric == "brier_biased":
        felt += np.where(np.arange(m) % 2, 1.0, -1.0)[:, None]
    return right, expit(felt)


def measure(
    world: EstimatorWorld, labels: np.ndarray, confidences: Array, weights: np.ndarray
) -> Array:
    """Return the metric of each estimator under each column of weights, larger is better."""
    if world.metric == "delta0_balanced":
        return np.asarray(balanced_gap(confidences, labels, weights=weights))
    if world.metric.startswith("auc"):
        return np.array(
            [auc(confidence, labels, weights=weights) for confidence in confidences]
        )
    return -np.asarray(mean_gap(squared_error(confidences, labels), weights=weights))


class PairedCounts(NamedTuple):
    """Counts of the questions for the paper's marks and for claims, (n, n_replicates)."""

    stratified: np.ndarray
    free: np.ndarray


def counts_of(part: Component, n: int, n_replicates: int, seed: int) -> PairedCounts:
    """Return bootstrap counts of the questions in their own order."""
    sequences = draw_sequences(n, range(n_replicates), seed=seed, window=window([part], n))
    counts = np.empty((n, n_replicates), np.uint8)
    counts[part.questions] = count_draws(part, sequences)
    return PairedCounts(counts, sequences.counts)


def claims_of(
    world: EstimatorWorld,
    labels: np.ndarray,
    confidences: Array,
    draws: PairedCounts,
    seed: int,
) -> Array:
    """Return the replicates on which claims rest, as `Bootstrap` draws them."""
    if world.metric != "delta0_balanced":
        return measure(world, labels, confidences, draws.free)
    n, n_replicates = draws.free.shape
    weights = question_weights(np.arange(n), np.arange(n), range(n_replicates), seed=seed)
    pseudo = [
        pseudo_weights([b"%d" % i], n_replicates, seed=seed, expected=PSEUDO)
        for i in range(len(confidences))
    ]
    return np.concatenate(
        [
            balanced_replicates(confidence[None], labels, weights, separate)
            for confidence, separate in zip(confidences, pseudo, strict=True)
        ]
    )


def simulate(
    world: EstimatorWorld, quality: Array, n_worlds: int, n_replicates: int, seed: int = 0
) -> Iterator[tuple[Array, Array, Array, float]]:
    """Yield the metric of each estimator on the data and on replicates, world by world.

    The replicates are those of the paper's marks, then those of claims. The last value is the
    effective number of questions.
    """
    rng = np.random.default_rng(seed)
    for number in range(n_worlds):
        labels, confidences = draw_world(rng, world, quality)
        if number % DRAWN_ANEW == 0 or world.metric != "delta0_balanced":
            part = Component(np.argsort(~labels, kind="stable"), int(labels.sum()))
            number_of_draws = int(rng.integers(2**31))
            draws = counts_of(part, len(labels), n_replicates, number_of_draws)
        count_once = np.ones((len(labels), 1), np.uint8)
        values = measure(world, labels, confidences, count_once)[:, 0]
        n = effective_questions(
            [part], np.arange(len(labels)), balanced=world.metric == "delta0_balanced"
        )
        marked = measure(world, labels, confidences, draws.stratified)
        yield values, marked, claims_of(world, labels, confidences, draws, number_of_draws), n


def marks(values: Array, drawn: Array) -> tuple[bool, bool]:
    """Return whether the paper's test marks an estimator, and whether its Holm p-values do."""
    best = int(np.argmax(values))
    gaps = np.delete(drawn[best] - drawn, best, axis=0)
    lower = np.quantile(gaps.round(12), LEVEL, axis=1)
    p = (1 + (gaps.round(12) <= 0).sum(axis=1)) / (1 + drawn.shape[1])
    return bool((lower > 0).any()), bool((holm(p.tolist()) <= LEVEL).any())


def level(world: EstimatorWorld, m: int, n_worlds: int, n_replicates: int) -> dict[str, float]:
    """Return shares of worlds with false claims about `m` equal estimators."""
    rates = []
    for values, drawn, claims, n in simulate(world, np.zeros(m), n_worlds, n_replicates):
        made = compare_all(values, claims, n)
        rates.append((made.above.any(), *marks(values, drawn)))
    shares = np.mean(rates, axis=0)
    return dict(zip(["simultaneous", "marks", "holm"], map(float, shares), strict=True))


def power(world: EstimatorWorld, m: int, n_worlds: int, n_replicates: int) -> dict[str, float]:
    """Return shares of worlds in which a better estimator is found, and kept in the set."""
    quality = np.zeros(m)
    quality[0] = BETTER[world.metric]
    truth = np.mean(
        [values for values, *_ in simulate(world, quality, 4000, 1, seed=1)], axis=0
    )
    true_difference = truth[:, None] - truth
    off_diagonal = ~np.eye(m, dtype=bool)
    rates = []
    for values, _, claims, n in simulate(world, quality, n_worlds, n_replicates):
        made = compare_all(values, claims, n)
        inside = (made.lower <= true_difference) & (true_difference <= made.upper)
        above_all, above_any = made.above[0, 1:].all(), made.above[0, 1:].any()
        covered = (inside | ~off_diagonal | made.tied).all()
        rates.append((above_all, above_any, made.in_best_set[0], covered))
    shares = map(float, np.mean(rates, axis=0))
    names = ["above all", "above some", "in the set", "coverage"]
    return {"difference": true_difference[0, -1], **dict(zip(names, shares, strict=True))}


def table(title: str, rows: Iterator[tuple[str, dict[str, float]]]) -> None:
    """Print rows of shares as Markdown, in per cent, each as soon as it is known."""
    for number, (name, shares) in enumerate(rows):
        if number == 0:
            print(f"\n| {title} | {' | '.join(shares)} |\n|---|{'--:|' * len(shares)}")
        cells = [
            f"{value:.3f}" if head == "difference" else f"{100 * value:.1f}"
            for head, value in shares.items()
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the tables of level and power."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=999)
    parser.add_argument("--estimators", type=int, nargs="+", default=[2, 3, 10, 25])
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=list(METRICS))
    args = parser.parse_args()
    worlds = [
        EstimatorWorld(metric, settings) for metric in args.metrics for settings in SHARED
    ]
    sizes = {"n_worlds": args.worlds, "n_replicates": args.replicates}
    table(
        "equal estimators",
        (
            (f"{m} × {world.name}", level(world, m, **sizes))
            for world in worlds
            for m in args.estimators
        ),
    )
    table(
        "one is better",
        (
            (f"{m} × {world.name}", power(world, m, **sizes))
            for world in worlds
            if world.metric in BETTER and world.dependence == CORRELATED
            for m in args.estimators
        ),
    )


if __name__ == "__main__":
    main()
