"""How often a change is said to be followed beyond its control, in simulated studies.

A change flips some questions by chance, as its control does, and others because knowledge
changed. Confidence moves with a chance flip with the mean sign Δ_S, and with changed knowledge
with the mean sign Δ_K. A claim is false if Δ_K is 0.

    python -m benchmarks.controls [--studies 1000] [--replicates 400]

writes the table of docs/validation.md: claims by the difference of Δ₀ᵇ and that of the control
(as at commit 8ed590e0), claims by the numerators of Δ_K and of AUC_K, and how often the Fieller
interval contains Δ_K, in per cent of the studies.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.bootstrap import Bootstrap
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.control import compare_with_control
from persistcal.evaluation.predictions import AnswerArrays, Series
from persistcal.evaluation.settings import EvaluationSettings

Array = NDArray[np.float64]
STATES = ("base", "changed", "again")
CHANGE, CONTROL = [("base", "changed")], [("base", "again")]
RUN = Series("quiz", "estimator", 0)


class NextToControl(NamedTuple):
    """Mean signs, shares of questions that flip by knowledge and by chance, and the numbers."""

    of_chance: float
    of_knowledge: float
    known: float = 0.15
    chance: float = 0.08
    n_questions: int = 800
    gained: float = 0.5  # share of changed knowledge that is gained


WORLDS = [
    *(
        NextToControl(of_chance, of_knowledge)
        for of_chance in (-0.4, 0.0, 0.4)
        for of_knowledge in (0, 1)
    ),
    NextToControl(-0.4, 0, chance=0.15),
    NextToControl(0.4, 1, chance=0.15),
    NextToControl(-0.4, 0, gained=0.8),
    NextToControl(0.4, 1, gained=0.8),
    NextToControl(0.4, 0.5, n_questions=2000),
    NextToControl(-0.4, 0, n_questions=300),
    NextToControl(0.4, 1, n_questions=300),
]


def draw_study(world: NextToControl, rng: np.random.Generator) -> AnswerArrays:
    """Return the answers of a base checkpoint, a changed one, and the base asked again."""
    n = world.n_questions
    base = rng.random(n) < 0.5
    share = np.where(base, 1 - world.gained, world.gained) * 2 * world.known
    by_knowledge = rng.random(n) < share
    correct, confidence = [base], [np.full(n, 0.5)]
    for state in STATES[1:]:
        # firm knowledge does not flip by chance, before it changes
        by_chance = (rng.random(n) < world.chance) & ~by_knowledge
        flips = by_chance | by_knowledge if state == "changed" else by_chance
        mean = np.where(by_chance, world.of_chance, 0.0)
        if state == "changed":
            mean = np.where(by_knowledge, world.of_knowledge, mean)
        follows = np.where(rng.random(n) < (1 + mean) / 2, 1, -1)
        way = np.where(base, -1, 1) * follows  # towards the flipped label
        size = 0.1 + 0.3 * rng.random(n)
        correct.append(base ^ flips)
        confidence.append(0.5 + np.where(flips, way * size, 0.0))
    names = np.array([f"q{number:05}" for number in range(n)], object)
    labels = np.array(correct, np.int8)
    return AnswerArrays(STATES, names, labels, {RUN: np.array(confidence)}, np.arange(n))


def judge_study(answers: AnswerArrays, *, replicates: int, seed: int) -> dict[str, float]:
    """Return the claims on one study, and Δ_K with the ends of its interval."""
    settings = EvaluationSettings(min_contrast=1, n_replicates=replicates, seed=seed)
    change, control = (
        contrast_sets(answers.correct, STATES, replace(settings, pairs=pairs))
        for pairs in (CHANGE, CONTROL)
    )
    data = [Aligned(answers, pairs) for pairs in (change, control)]
    bootstrap = Bootstrap(answers, settings)
    once, again = (
        bootstrap.apply(["delta0_balanced"], pair.rated())["delta0_balanced"][RUN.member]
        for pair in data
    )
    gap = once.draws - again.draws
    ratios = compare_with_control(*data, settings)
    if not ratios:
        return {}
    made: dict[str, float] = {"difference": float(np.quantile(gap, 0.025) > 0)}
    for metric, name in (("delta0_balanced", "delta"), ("change_auc", "auc")):
        of_estimator = ratios[metric][RUN.member]
        drawn = of_estimator.excess.draws
        made[name] = float(np.quantile(drawn, 0.025) > 0)
        made[f"{name}_against"] = float(np.quantile(drawn, 0.975) < 0)
        made[f"{name} value"], made[f"{name} low"], made[f"{name} high"] = (
            of_estimator.estimate()
        )
    return made


def shares(
    world: NextToControl, *, studies: int, replicates: int, seed: int = 0
) -> dict[str, float]:
    """Return shares of the studies: claims, printed ratios, and intervals with the truth."""
    rows: Sequence[dict[str, float]] = [
        judge_study(
            draw_study(world, np.random.default_rng([seed, number, int(100 * world.known)])),
            replicates=replicates,
            seed=number,
        )
        for number in range(studies)
    ]
    judged = [row for row in rows if row]
    printed = [row for row in judged if not np.isnan(row["delta low"])]
    held = [row["delta low"] <= world.of_knowledge <= row["delta high"] for row in printed]
    names = ("difference", "delta", "delta_against", "auc")
    return {
        **{name: float(np.mean([row[name] for row in judged])) for name in names},
        "printed": len(printed) / studies,
        "coverage": float(np.mean(held)) if held else np.nan,
        "mean": float(np.mean([row["delta value"] for row in printed])) if printed else np.nan,
    }


def main() -> None:
    """Write the table of all worlds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--to", default="benchmarks/outputs/controls.csv")
    options = vars(parser.parse_args())
    path = options.pop("to")
    rows = []
    for world in WORLDS:
        made = shares(world, **options)
        mean = made.pop("mean")
        percent = {name: round(100 * share, 1) for name, share in made.items()}
        rows.append({**world._asdict(), **percent, "mean": round(mean, 3)})
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main()
