"""Count how often a recipe without an effect seems to have one, by seeds and their spread.

Adapters of a recipe have effects around 0, with a standard deviation of `ratio` standard errors
of the questions.

    python -m benchmarks.recipes [--studies 4000]

writes the table of docs/validation.md, in per cent of the studies: claims by the interval over
questions, by `recipe_interval` (both as at commit 8ed590e0), and by `Sample.interval`.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.stats import norm

from persistcal.evaluation.samples import Sample, recipe_interval

RATIOS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
GRID = norm.ppf((np.arange(200) + 0.5) / 200)  # replicates of a mean with standard error 1


def false_claims(n_seeds: int, ratio: float, *, studies: int) -> dict[str, float]:
    """Return the shares of studies with an interval that excludes 0."""
    rng = np.random.default_rng([n_seeds, int(10 * ratio)])
    made = []
    for _ in range(studies):
        effects = ratio * rng.normal(size=n_seeds) + rng.normal()
        by_seed, mean = dict(enumerate(effects.tolist(), 17)), float(effects.mean())
        drawn = mean + GRID
        recipe = recipe_interval(mean, drawn, [by_seed])
        ends = (
            np.quantile(drawn, [0.025, 0.975]),
            recipe[1:3],
            Sample(mean, drawn, by_seed).interval(),
        )
        made.append([low > 0 or high < 0 for low, high in ends])
    shares = 100 * np.mean(made, axis=0)
    return dict(zip(("questions", "recipe", "claim"), shares.round(1).tolist(), strict=True))


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=4000)
    parser.add_argument("--to", default="benchmarks/outputs/recipes.csv")
    options = vars(parser.parse_args())
    path = options.pop("to")
    rows = [
        {"n_seeds": n, "ratio": ratio, **false_claims(n, ratio, **options)}
        for n in (2, 3, 5)
        for ratio in RATIOS
    ]
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main()
