"""The coverage of each kind of interval for recipes with known true values.

An adapter's quality is random. The `ratio` is its standard deviation divided by the standard
error of the questions. Metrics are the AUC of a full set, for moderate estimators and for
estimators near 1, and Δ₀ᵇ of a contrast set, under the draws of the bootstrap. The difference
of each metric is to an estimator that is a little worse. The adapters of the other estimator
have the same seeds and independent qualities.

    python -m benchmarks.seeds 300

makes the figure and the numbers of docs/validation.md, in some minutes.
"""

import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import rankdata

from persistcal.evaluation.draws import Component, draw_sequences
from persistcal.evaluation.metrics.registry import METRICS
from persistcal.evaluation.paper_draws import count_draws, window
from persistcal.evaluation.samples import recipe_interval
from persistcal.evaluation.weighted import auc, balanced_gap

N_QUESTIONS, N_REPLICATES = 600, 200
RATIOS = (0.0, 1.0, 3.0)


class SeedWorld(NamedTuple):
    """A metric's name, the mean quality, and the other estimator's mean quality.

    `spread` is a standard error of the metric by the questions, in units of quality.
    """

    name: str
    metric: str
    quality: float
    other_quality: float
    spread: float


WORLDS = [
    SeedWorld("AUC", "auc", 0.7, 0.5, 0.15),
    SeedWorld("AUC near 1", "auc", 3.0, 2.6, 0.265),
    SeedWorld("Δ₀ᵇ", "delta0_balanced", 0.5, 0.4, 0.07),
]
VALUES = {"auc": auc, "delta0_balanced": balanced_gap}


def simulate(rng, world, n_questions, spread, n_seeds):
    """Return each question's class and the confidences of each adapter of both recipes."""
    mean = np.array([world.quality, world.other_quality])[:, None, None]
    quality = mean + spread * rng.normal(size=(2, n_seeds, 1))
    knowledge, noise = rng.normal(size=n_questions), rng.normal(size=(2, n_seeds, n_questions))
    if world.quality > 1:
        return knowledge > 0, expit((quality * knowledge + noise) / 2)
    first = rng.random(n_questions) < expit(2 * knowledge)
    if world.metric == "auc":
        return first, expit(quality * knowledge + 2 * noise)
    shared = rng.normal(size=n_questions)  # the same for all adapters
    return first, np.sign(quality + shared + 0.7 * noise)


def value(world, first, stated, weights=None):
    """Return the world's metric."""
    if weights is None and world.metric == "auc":  # by ranks, which are found fast
        n = first.sum()
        return (rankdata(stated)[first].sum() - n * (n + 1) / 2) / (n * (len(first) - n))
    return VALUES[world.metric](stated, first, weights=weights)


def truth(world, spread):
    """Return the mean metric of both recipes."""
    rng = np.random.default_rng(0)
    worlds = (simulate(rng, world, 4000, spread, 1) for _ in range(600 if spread else 50))
    return np.mean(
        [
            [value(world, *recipe) for recipe in ((f, s[0][0]), (f, s[1][0]))]
            for f, s in [*worlds]
        ],
        axis=0,
    )


def coverage(n_seeds, *, worlds, seed, ratios=RATIOS, kinds=WORLDS):
    """Return the coverage of 95 % intervals by metric and ratio."""
    rows = []
    for world in kinds:
        for ratio in ratios:
            spread = ratio * world.spread
            true, rng = truth(world, spread), np.random.default_rng([seed, n_seeds])
            held = np.zeros((2, 2))
            for number in range(worlds):
                first, stated = simulate(rng, world, N_QUESTIONS, spread, n_seeds)
                part = Component(np.argsort(~first, kind="stable"), int(first.sum()))
                reach = window([part], N_QUESTIONS)
                sequences = draw_sequences(
                    N_QUESTIONS, range(N_REPLICATES), seed=number, window=reach
                )
                counts = count_draws(part, sequences)
                first, stated = first[part.questions], stated[..., part.questions]
                data = np.array([[float(value(world, first, r)) for r in s] for s in stated])
                runs = np.array([[value(world, first, r, counts) for r in s] for s in stated])
                drawn = runs.mean(axis=1)
                noise = runs.var(axis=1, ddof=1).mean(axis=-1) - data.var(axis=1, ddof=1)
                noise = np.maximum(0, noise)
                seeds_of_recipe = [dict(enumerate(row, 17)) for row in data.tolist()]
                mean = data.mean(axis=1)
                bounds = METRICS[world.metric].bounds
                own_interval = recipe_interval(
                    mean[0], drawn[0], seeds_of_recipe[:1], noise[0], bounds
                )
                gap, drawn_gap = mean[0] - mean[1], drawn[0] - drawn[1]
                difference = recipe_interval(gap, drawn_gap, seeds_of_recipe, max(noise))
                intervals = [
                    (true[0], drawn[0], own_interval),
                    (true[0] - true[1], drawn_gap, difference),
                ]
                for row, (target, replicates, made) in zip(held, intervals, strict=True):
                    low, high = np.quantile(replicates, [0.025, 0.975])
                    row += [low <= target <= high, made.lower <= target <= made.upper]
            for kind, row in zip(("alone", "difference"), held / worlds, strict=True):
                rows.append((world.name, kind, ratio, *row))
    return pd.DataFrame(rows, columns=["metric", "kind", "ratio", "questions", "seeds"])


def coverage_with_failures(n_seeds, *, worlds, seed):
    """Return the coverage of the mean AUC if one training in four fails.

    A training that succeeds has an AUC of .9, a failed one .5, both with errors of .01 by
    seeds and by questions.
    """
    rng = np.random.default_rng([seed, n_seeds])
    held = 0
    for _ in range(worlds):
        runs = np.where(rng.random(n_seeds) < 0.25, 0.5, 0.9) + rng.normal(0, 0.01, n_seeds)
        runs += rng.normal(0, 0.01)
        drawn = runs.mean() + rng.normal(0, 0.01, N_REPLICATES)
        by_seed = dict(enumerate(runs.tolist(), 17))
        made = recipe_interval(runs.mean(), drawn, [by_seed], 0.0, METRICS["auc"].bounds)
        held += made.lower <= 0.8 <= made.upper  # 3/4 of .9 and 1/4 of .5
    return held / worlds


def figure(results):
    """Draw the coverage of each metric by the spread of seeds."""
    drawn = Figure(figsize=(7.5, 4.4), layout="constrained")
    panels = drawn.subplots(2, 3, sharey=True, sharex=True)
    for axes, ((kind, metric), rows) in zip(
        panels.flat, results.groupby(["kind", "metric"], sort=False), strict=True
    ):
        axes.axhspan(0.90, 0.97, color="#eeeeee")
        axes.axhline(0.95, color="#6b6b6b", linewidth=0.7, linestyle="--")
        for n_seeds, line in rows.groupby("n_seeds"):
            look = {"marker": "o", "markersize": 4, "linewidth": 0.9}
            [drawn_line] = axes.plot(
                line["ratio"], line["seeds"], **look, label=f"{n_seeds} seeds"
            )
            axes.plot(line["ratio"], line["questions"], ":", color=drawn_line.get_color())
        axes.set_title(metric if kind == "alone" else f"Difference of {metric}", loc="left")
        axes.set_ylim(0.2, 1)
    axes.legend(frameon=False)
    drawn.supxlabel("Spread of seeds / standard error of questions", fontsize="medium")
    drawn.supylabel("Share of studies", fontsize="medium")
    return drawn


if __name__ == "__main__":
    n_worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    failing = [(n, coverage_with_failures(n, worlds=10_000, seed=0)) for n in (3, 5, 10)]
    pd.DataFrame(failing, columns=["n_seeds", "seeds"]).to_csv(
        "benchmarks/outputs/failing_seeds.csv", index=False, float_format="%.3f"
    )
    results = pd.concat(
        coverage(n, worlds=n_worlds, seed=0).assign(n_seeds=n) for n in (3, 5, 10)
    ).sort_values("kind", kind="stable")
    results.to_csv("benchmarks/outputs/seeds.csv", index=False, float_format="%.3f")
    figure(results).savefig("docs/images/coverage_of_seeds.png", dpi=150)
