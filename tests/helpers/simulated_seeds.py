"""Recipes in worlds of known truth: how often each kind of interval holds it.

An adapter's quality is random; how much, in standard errors of the questions, is the `ratio`.
Metrics are the AUC of a full set and Δ₀ᵇ of a contrast set, under the draws of the bootstrap.

    PYTHONPATH=. python tests/helpers/simulated_seeds.py docs/images/coverage_of_seeds.png

makes the figure of docs/reading-the-results.md, in some minutes.
"""

import sys

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import expit

from persistcal.evaluation.draws import component, draw_sequences, reach, take
from persistcal.evaluation.metrics import auc, balanced_gap
from persistcal.evaluation.recipes import recipe_interval

N_QUESTIONS, N_REPLICATES = 600, 200
RATIOS = (0.0, 1.0, 3.0)
# A standard error of either metric by the questions, in units of quality
SPREAD = {"auc": 0.15, "delta0_balanced": 0.07}
METRICS = {"auc": auc, "delta0_balanced": balanced_gap}


def world(rng, metric, n_questions, spread, n_seeds):
    """Which class each question is in, and what each adapter says of it."""
    quality = 0.7 + spread * rng.normal(size=(n_seeds, 1))
    known, noise = rng.normal(size=n_questions), rng.normal(size=(n_seeds, n_questions))
    first = rng.random(n_questions) < expit(2 * known)
    if metric == "auc":
        return first, expit(quality * known + 2 * noise)
    shared = rng.normal(size=n_questions)  # of a question, whoever judges it
    return first, np.sign(quality - 0.2 + shared + 0.7 * noise)


def value(metric, first, said, weights=None):
    return METRICS[metric](said, first, weights=weights)


def truth(metric, spread):
    rng = np.random.default_rng(0)
    worlds = (world(rng, metric, 4000, spread, 1) for _ in range(600 if spread else 50))
    return np.mean([value(metric, first, said) for first, [said] in worlds])


def coverage(n_seeds, *, worlds, seed, ratios=RATIOS):
    """Share of worlds whose 95 % interval holds the truth, by metric and ratio."""
    rows = []
    for metric in METRICS:
        for ratio in ratios:
            spread = ratio * SPREAD[metric]
            true, rng = truth(metric, spread), np.random.default_rng([seed, n_seeds])
            held = np.zeros(2)
            for number in range(worlds):
                first, said = world(rng, metric, N_QUESTIONS, spread, n_seeds)
                part = component(np.arange(N_QUESTIONS), first)
                counts = take(
                    part,
                    draw_sequences(
                        N_QUESTIONS,
                        range(N_REPLICATES),
                        seed=number,
                        reach=reach([part], N_QUESTIONS),
                    ),
                )
                first, said = first[part.questions], said[:, part.questions]
                of = {s: float(value(metric, first, run)) for s, run in enumerate(said, 17)}
                runs = np.array([value(metric, first, run, counts) for run in said])
                drawn, data = runs.mean(axis=0), np.array(list(of.values()))
                noise = max(0, runs.var(axis=0, ddof=1).mean() - data.var(ddof=1))
                found = recipe_interval(data.mean(), drawn, [of], noise)
                low, high = np.quantile(drawn, [0.025, 0.975])
                held += [low <= true <= high, found.lower <= true <= found.upper]
            rows.append((metric, ratio, *held / worlds))
    return pd.DataFrame(rows, columns=["metric", "ratio", "questions", "seeds"])


def figure(found):
    drawn = Figure(figsize=(6, 2.6), layout="constrained")
    for axes, (metric, rows) in zip(
        drawn.subplots(1, 2, sharey=True), found.groupby("metric"), strict=True
    ):
        axes.axhspan(0.90, 0.97, color="#eeeeee")
        axes.axhline(0.95, color="#6b6b6b", linewidth=0.7, linestyle="--")
        for n_seeds, line in rows.groupby("n_seeds"):
            look = {"marker": "o", "markersize": 4, "linewidth": 0.9}
            [drawn_line] = axes.plot(
                line["ratio"], line["seeds"], **look, label=f"{n_seeds} seeds"
            )
            axes.plot(line["ratio"], line["questions"], ":", color=drawn_line.get_color())
        axes.set_title({"auc": "AUC", "delta0_balanced": "Δ₀ᵇ"}[metric], loc="left")
        axes.set_ylim(0.3, 1)
    axes.legend(frameon=False)
    drawn.supxlabel("Spread of seeds / standard error of questions", fontsize="medium")
    drawn.axes[0].set_ylabel("Share of worlds")
    return drawn


if __name__ == "__main__":
    everything = pd.concat(
        coverage(n, worlds=400, seed=0).assign(n_seeds=n) for n in (3, 5, 10)
    )
    print(everything.to_string())
    figure(everything).savefig(sys.argv[1], dpi=150)
