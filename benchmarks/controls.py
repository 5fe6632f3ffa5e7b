"""How often a change differs from its control by chance, in simulated studies of equal effects.

The interval of a change's Δ₀ᵇ minus the control's should exclude 0 in 5 % of the studies. Some
questions are changed by both, and there the two signs correlate.

    python -m benchmarks.controls [--studies 1000] [--replicates 300]

prints the table of docs/validation.md in Markdown.
"""

import argparse
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation.subsets import metrics_of_changes

STATES = ("base", "changed", "again")
PAIRS = {"Change": [("base", "changed")], "Control": [("base", "again")]}
SEPARATE = 50  # simulated studies with the same answers


class EqualEffects(NamedTuple):
    """Questions of a study, and shares of them that the change and the control flip."""

    n_questions: int
    change: float
    control: float


STUDIES = (
    EqualEffects(60, 0.5, 0.5),
    EqualEffects(400, 0.5, 0.5),
    EqualEffects(800, 0.18, 0.05),
)


def simulate_study(effects: EqualEffects, seed: int, n_studies: int) -> pd.DataFrame:
    """Return predictions of estimators that follow change and control equally.

    Each estimator represents a study. All estimators rate the same answers.
    """
    n = effects.n_questions
    rng = np.random.default_rng([seed, n])
    base = rng.random(n) < 0.5
    correct = {"base": base}
    for state, share in zip(STATES[1:], effects[1:], strict=True):
        correct[state] = base ^ (rng.random(n) < share)
    frames = []
    for study in range(n_studies):
        shared, confidence = rng.normal(size=n), {"base": np.full(n, 0.5)}
        for state in STATES[1:]:
            follows = shared + rng.normal(size=n) > -0.5
            gains = np.where(correct[state] == base, rng.random(n) < 0.5, correct[state])
            confidence[state] = np.where(gains == follows, 0.6, 0.4)
        frames += [
            pd.DataFrame(
                {
                    "checkpoint": state,
                    "question_id": [f"q{number:03}" for number in range(n)],
                    "correct": correct[state].astype(int),
                    "confidence": confidence[state],
                    "estimator": f"e{study}",
                }
            )
            for state in STATES
        ]
    place = {"model": "m", "dataset": "quiz", "train_dataset": "", "seed": 0}
    return pd.concat(frames).assign(**place)


def level(
    effects: EqualEffects, *, studies: int, replicates: int = 300, seed: int = 0
) -> float:
    """Return the share of studies in which the interval of the difference excludes 0."""
    claims = []
    for first in range(0, studies, SEPARATE):
        rows = metrics_of_changes(
            simulate_study(effects, seed + first, min(SEPARATE, studies - first)),
            {"m": STATES},
            PAIRS,
            controls={"Change": "Control"},
            min_direction=5,
            n_replicates=replicates,
            seed=seed + first,
        )
        rows = rows[(rows["change"] == "Change") & (rows["metric"] == "delta0_balanced")]
        low, high = rows["above_lower_2_5pct"], rows["above_upper_97_5pct"]
        claims += [*((low > 0) | (high < 0))]
    return float(np.mean(claims))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=300)
    options = vars(parser.parse_args())
    print("| questions | flipped by change, by control | interval excludes 0 |\n|--:|--:|--:|")
    for effects in STUDIES:
        shares = f"{effects.change:.0%}, {effects.control:.0%}"
        print(
            f"| {effects.n_questions} | {shares} | {level(effects, **options):.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
