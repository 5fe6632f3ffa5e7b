"""Coverage of the intervals of Δ₀ᵇ, Δᵇ and the change AUC in worlds with known truth.

A world is a study with G gained and L lost questions, drawn from a truth. The table lists the
share of worlds whose 95 % interval contains the truth, for the replicates of
`persistcal.evaluation.draws` and for the class-stratified bootstrap. Differences are of
two independent estimators with the same truth (so that 1 − coverage is the share of false
claims), of two that agree on four questions in five, and to a constant estimator. A second
table is of three checkpoints, whose three pairs share questions. The stratified bootstrap is
tried in every fifth world.

    python -m benchmarks.intervals [--worlds 1000] [--replicates 500] [--lost 1 2 5 …]

prints the table of docs/validation.md in Markdown.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, norm

from persistcal.evaluation.draws import (
    PSEUDO,
    balanced_replicates,
    change_auc_replicates,
)
from persistcal.evaluation.metrics.registry import ChangeAUC
from persistcal.evaluation.weighted import auc

Array = NDArray[np.float64]
KINDS = ("sign", "tied sign", "gap", "small gap", "change AUC")
TRUTHS = (0.0, 0.3, 0.7, 0.9)
LOST = (1, 2, 3, 5, 10, 20, 50)
RATIOS = (1, 3, 8)
NOISE = np.random.default_rng(0).normal(size=100_000)
SHIFTS = {
    truth: brentq(lambda a, t=truth: np.tanh(a + NOISE).mean() - t, -9, 9) for truth in TRUTHS
}


class World(NamedTuple):
    """Values of four estimators, (4, n), the directions of questions, and the true metric.

    The second estimator is independent of the first one, the third agrees with it on four
    questions in five, and the fourth is constant.
    """

    values: Array
    improvement: NDArray[np.bool_]
    truth: float


def values_of(
    kind: str, truth: float, shape: tuple[int, ...], rng: np.random.Generator
) -> Array:
    """Draw values of a kind with a mean of `truth`; of small gaps a twentieth of it."""
    if kind == "sign":
        return np.where(rng.random(shape) < (1 + truth) / 2, 1.0, -1.0)
    if kind == "tied sign":  # 60 % ties, or as many as the truth allows
        ties = min(0.6, (1 - truth) * 0.8)
        chance = rng.random(shape)
        up = (1 - ties + truth) / 2
        return np.where(chance < up, 1.0, np.where(chance < 1 - ties, -1.0, 0.0))
    if kind == "gap":
        return np.tanh(SHIFTS[truth] + rng.normal(size=shape))
    return truth / 20 + 0.05 * rng.normal(size=shape)


def draw_world(
    kind: str, truth: float, sizes: tuple[int, int], rng: np.random.Generator
) -> World:
    """Draw a world of `sizes`, the numbers of gained and of lost questions."""
    improvement = np.arange(sum(sizes)) < sizes[0]
    shape = (3, sum(sizes))
    if kind == "change AUC":
        apart = np.sqrt(2) * norm.ppf((1 + truth) / 2)
        values = rng.normal(size=shape) + apart * improvement
        true = (1 + truth) / 2
    else:
        values = values_of(kind, truth, shape, rng)
        true = truth / 20 if kind == "small gap" else truth
    values[2] = np.where(rng.random(shape[1]) < 0.8, values[0], values[2])
    return World(np.vstack([values, np.zeros(shape[1])]), improvement, true)


def replicates_of(world: World, kind: str, rng: np.random.Generator, n: int) -> Array:
    """Replicate the metric of the estimators as in a study: (4, n)."""
    weights = rng.standard_exponential((world.values.shape[1], n))
    made = []
    for values in world.values:
        if kind == "change AUC":
            pseudo = rng.standard_gamma(ChangeAUC.pseudo, (4, n))
            made.append(change_auc_replicates(values, world.improvement, weights, pseudo))
        else:
            pseudo = rng.standard_gamma(PSEUDO, (4, n))
            made += [*balanced_replicates(values[None], world.improvement, weights, pseudo)]
    return np.array(made)


def stratified_of(world: World, kind: str, rng: np.random.Generator, n: int) -> Array:
    """Replicate the metric of the estimators with each class resampled by itself: (4, n)."""
    rows = [np.flatnonzero(world.improvement), np.flatnonzero(~world.improvement)]
    counts = np.zeros((len(world.improvement), n), np.uint8)
    for members in rows:
        counts[members] = rng.multinomial(
            len(members), np.full(len(members), 1 / len(members)), n
        ).T
    if kind == "change AUC":
        return np.array([auc(v, world.improvement, weights=counts) for v in world.values])
    means = [
        world.values[:, members] @ counts[members].astype(float) / len(members)
        for members in rows
    ]
    return np.asarray((means[0] + means[1]) / 2)


def contains(replicates: Array, truth: float) -> bool:
    """Return whether the 95 % percentile interval contains the truth, but for rounding."""
    low, high = np.quantile(replicates, [0.025, 0.975])
    return bool(low - 1e-9 <= truth <= high + 1e-9)


def cell(
    kind: str, truth: float, sizes: tuple[int, int], *, worlds: int, replicates: int, seed: int
) -> dict[str, float]:
    """Return the coverage of single values and of differences, now and stratified."""
    rng = np.random.default_rng([seed, KINDS.index(kind), int(100 * truth), *sizes])
    held: dict[str, list[bool]] = {}
    constant_value = 0.5 if kind == "change AUC" else 0.0  # what a constant estimator has
    for number in range(worlds):
        world = draw_world(kind, truth, sizes, rng)
        methods = {"": replicates_of}
        if number % 5 == 0:
            methods[" before"] = stratified_of
        for name, draw in methods.items():
            made = draw(world, kind, rng, replicates)
            targets = {
                "alone": (made[0], world.truth),
                "independent": (made[0] - made[1], 0.0),
                "correlated": (made[0] - made[2], 0.0),
                "constant": (made[0] - made[3], world.truth - constant_value),
            }
            for label, (drawn, target) in targets.items():
                held.setdefault(f"{label}{name}", []).append(contains(drawn, target))
    return {name: float(np.mean(covered)) for name, covered in held.items()}


def exact_cell(truth: float, sizes: tuple[int, int], *, draws: int = 8000) -> float:
    """Return the coverage of Δ₀ᵇ of one estimator without ties, over all possible counts."""
    rng, drawn, chance = np.random.default_rng(1), [], []
    for n in sizes:
        followed = np.arange(n + 1)[:, None]
        share = rng.beta(followed + PSEUDO, n - followed + PSEUDO, (n + 1, draws))
        centre = (followed + PSEUDO) / (n + 2 * PSEUDO)
        drawn.append(2 * np.clip(centre + np.sqrt((n + 2) / n) * (share - centre), 0, 1) - 1)
        chance.append(binom.pmf(followed[:, 0], n, (1 + truth) / 2))
    covered = 0.0
    for lost, its_chance in zip(drawn[1], chance[1], strict=True):
        low, high = np.quantile((drawn[0] + lost) / 2, [0.025, 0.975], axis=1)
        covered += its_chance * float(chance[0] @ ((low <= truth) & (truth <= high)))
    return covered


def pairs_cell(
    truth: float, n: int, *, worlds: int, replicates: int, seed: int
) -> dict[str, float]:
    """Return the coverage of the mean over three pairs of checkpoints that share questions.

    A third of 3n questions is right at the first of three checkpoints alone, or at the second,
    or at the third, so that each pair gains n and loses n, and shares n with each other pair. A
    confidence is normal, higher by a constant if the answer is right.
    """
    rng = np.random.default_rng([seed, 99, int(100 * truth), n])
    right = np.repeat(np.eye(3, dtype=bool), n, axis=1)
    apart = np.sqrt(2) * norm.ppf((1 + truth) / 2)
    true_auc = norm.cdf(apart)  # changes of ±apart with a variance of 2 each
    held: dict[str, list[bool]] = {"Δ₀ᵇ": [], "Δ₀ᵇ difference": [], "change AUC": []}
    for _ in range(worlds):
        weights = rng.standard_exponential((3 * n, replicates))
        made = np.zeros((2, replicates))
        areas = np.zeros(replicates)
        stated = rng.normal(size=(2, 3, 3 * n)) + apart * right
        pseudo = rng.standard_gamma(PSEUDO, (2, 4, replicates))
        of_auc = rng.standard_gamma(ChangeAUC.pseudo, (4, replicates))
        for earlier, later in ((0, 1), (0, 2), (1, 2)):
            changed = right[earlier] != right[later]
            gained = right[later, changed]
            change = stated[:, later, changed] - stated[:, earlier, changed]
            for i in range(2):
                follows = np.where(gained, 1, -1) * np.sign(change[i])
                made[i] += balanced_replicates(
                    follows[None], gained, weights[changed], pseudo[i]
                )[0]
            areas += change_auc_replicates(change[0], gained, weights[changed], of_auc)
        held["Δ₀ᵇ"].append(contains(made[0] / 3, truth))
        held["Δ₀ᵇ difference"].append(contains(made[0] - made[1], 0))
        held["change AUC"].append(contains(areas / 3, float(true_auc)))
    return {name: float(np.mean(covered)) for name, covered in held.items()}


def one_pair(
    kinds: Sequence[str], lost: Sequence[int], *, worlds: int, replicates: int, seed: int
) -> Iterator[dict[str, object]]:
    """Yield a row of coverage per kind, truth and numbers of questions."""
    settings = {"worlds": worlds, "replicates": replicates, "seed": seed}
    for kind in kinds:
        for n_lost in lost:
            for gained in sorted({*(ratio * n_lost for ratio in RATIOS), 40}):
                for truth in TRUTHS:
                    covered = cell(kind, truth, (gained, n_lost), **settings)
                    yield {
                        "kind": kind,
                        "lost": n_lost,
                        "gained": gained,
                        "truth": truth,
                        **covered,
                    }


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the least and the largest coverage per kind and number of lost questions."""
    names = [c for c in rows if c not in ("kind", "lost", "gained", "truth")]
    grouped = rows.groupby(["kind", "lost"], sort=False)[names]
    low, high = grouped.min(), grouped.max()
    columns = {
        name: [f"{a:.3f}–{b:.3f}" for a, b in zip(low[name], high[name], strict=True)]
        for name in names
    }
    return pd.DataFrame(columns, index=low.index).reset_index()


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--lost", type=int, nargs="+", default=LOST)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--pairs", action="store_true", help="only the pairs that share questions"
    )
    parser.add_argument("--exact", action="store_true", help="Δ₀ᵇ alone, over all counts")
    args = parser.parse_args()
    if args.exact:
        for n_lost in args.lost:
            sizes = [(gained, n_lost) for gained in (n_lost, 3 * n_lost, 8 * n_lost, 40)]
            covered = [exact_cell(truth, counts) for counts in sizes for truth in TRUTHS]
            print(f"| {n_lost} | {min(covered):.3f}–{max(covered):.3f} |", flush=True)
        return
    settings = {"worlds": args.worlds, "replicates": args.replicates, "seed": args.seed}
    if not args.pairs:
        rows = pd.DataFrame(one_pair(args.kinds, args.lost, **settings))
        print(summary(rows).to_markdown(index=False), "\n", flush=True)
    shared = [
        {"each direction": n, "truth": truth, **pairs_cell(truth, n, **settings)}
        for n in args.lost
        for truth in TRUTHS
    ]
    print(pd.DataFrame(shared).to_markdown(index=False, floatfmt=".3f"))


if __name__ == "__main__":
    main()
