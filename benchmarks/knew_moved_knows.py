"""How often a confidence is said to have followed, in simulated studies with known truth.

    python -m benchmarks.knew_moved_knows [--studies 100] [--replicates 300]

writes the table of docs/validation.md. In most worlds each version answers a question in the
same way again. A question has a difficulty and, at both versions, a state (known or not), and a
confidence made of the own state, of difficulty, of both or of neither. Only a confidence that
contains the own state of both versions follows. In the worlds of samples, versions answer at
random. One ask is a half of the samples alone (0 halvings), or both halves are crossed, 1 or 20
times.

Columns are shares of studies in per cent: with each of the five intervals above chance, with
the word *followed*, with each placebo that earns the word (*same scale* withholds it), and with
*followed* by the rule before: the intervals of change AUC and of Δ₀ᵇ are above chance.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from persistcal.evaluation.aligned import RatedSet, rate
from persistcal.evaluation.bootstrap import Bootstrap, Samples
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.knowledge import (
    CHANCE,
    EQUIVALENT,
    NEEDED,
    WITHHOLDING,
    placebo_shares,
    sample_knowledge,
)
from persistcal.evaluation.predictions import AnswerArrays, Series
from persistcal.evaluation.settings import EvaluationSettings

Array = NDArray[np.float64]
STATES = ("v1", "v2")
LEVEL = 0.05
SIZES = (300, 1000, 3000)
N_ANSWERS = 6


class StateWorld(NamedTuple):
    """What the confidences of both versions are made of.

    `earlier` and `later` are "own" (state and difficulty), "state", "difficulty", "random",
    "constant", "copy" or "shuffled". `slopes` are how much difficulty decides the state at both
    versions: with a larger later one, gained questions are easier than lost ones.
    """

    name: str
    earlier: str = "own"
    later: str = "own"
    weight: float = 1.5  # of the own state
    noise: tuple[float, float] = (1.0, 1.0)
    scale: tuple[float, float] = (1.0, 1.0)
    shift: float = 0.0
    slopes: tuple[float, float] = (1.0, 1.0)
    changed: float = 0.3  # share of questions with a state that is drawn anew
    group: int = 1  # questions of a group share difficulty and states
    follows: bool = False


NUMBER = {"earlier": "difficulty", "later": "difficulty"}
WORLDS = [
    StateWorld("later constant", later="constant"),
    StateWorld("later random", later="random"),
    StateWorld("later shuffled", later="shuffled"),
    StateWorld("later random, groups of four", later="random", group=4),
    StateWorld("earlier random", earlier="random"),
    StateWorld("earlier random, groups of four", earlier="random", group=4),
    StateWorld("difficulty", **NUMBER, noise=(0.0, 0.0)),
    StateWorld("difficulty, wider", **NUMBER, scale=(1.0, 2.5)),
    StateWorld("difficulty, narrower", **NUMBER, scale=(1.0, 0.3)),
    StateWorld("difficulty, less noise", **NUMBER, noise=(1.5, 0.3)),
    StateWorld("difficulty, more noise", **NUMBER, noise=(0.3, 1.5)),
    StateWorld("difficulty, less noise, groups of four", **NUMBER, noise=(1.5, 0.3), group=4),
    StateWorld("difficulty, gained easier", **NUMBER, slopes=(0.3, 2.5), changed=0.5),
    StateWorld("copy", later="copy", noise=(1.0, 0.0)),
    StateWorld("copy with noise, wider", later="copy", noise=(1.0, 0.3), scale=(1.0, 2.5)),
    StateWorld("own state, then difficulty", later="difficulty"),
    StateWorld("own state, then difficulty, groups of four", later="difficulty", group=4),
    StateWorld(
        "own state, then difficulty, gained easier",
        later="difficulty",
        slopes=(0.3, 2.5),
        changed=0.5,
    ),
    StateWorld("weak follower", weight=0.4, follows=True),
    StateWorld("follower", weight=0.8, follows=True),
    StateWorld("strong follower", weight=2.0, follows=True),
    StateWorld("strong follower, all lower", weight=2.0, shift=-3.0, follows=True),
    StateWorld("strong follower, groups of four", weight=2.0, group=4, follows=True),
    StateWorld("follower, much less noise", weight=0.8, noise=(2.5, 0.5), follows=True),
]


class Sampled(NamedTuple):
    """Versions that sample answers, of which each half gives the most frequent one.

    The confidence is its share, or its probability if a half is a single sample.
    """

    name: str
    changed: float  # share of questions with changed knowledge
    known: float = 5.0  # log-odds that knowledge adds to the right answer
    n_samples: int = 10
    follows: bool = True

    @property
    def halvings(self) -> tuple[int, ...]:
        """Numbers of halvings to try."""
        return (0, 1) if self.n_samples == 2 else (0, 1, 20)


SAMPLED = [
    Sampled("one sample and its probability, nothing changed", 0.0, n_samples=2, follows=False),
    Sampled("one sample and its probability, 15 % changed", 0.15, n_samples=2),
    Sampled("ten samples, nothing changed", 0.0, follows=False),
    Sampled("ten samples, 5 % changed", 0.05),
    Sampled("ten samples, 15 % changed", 0.15),
    Sampled("four samples, nothing changed", 0.0, n_samples=4, follows=False),
    Sampled("four samples, 15 % changed", 0.15, n_samples=4),
    Sampled("ten samples, many chance flips, nothing changed", 0.0, known=3.0, follows=False),
    Sampled("ten samples, many chance flips, 15 % changed", 0.15, known=3.0),
]


class DrawnAnswers(NamedTuple):
    """Labels and confidences of both versions, (2, n), for each role, and groups."""

    labels: list[Array]
    confidences: list[Array]
    groups: NDArray[np.intp]


def draw_answers(world: StateWorld, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return labels and confidences of both versions, (2, n)."""
    n_groups = n // world.group

    def spread(values: Array) -> Array:
        return np.repeat(values, world.group)

    easy = spread(rng.normal(size=n_groups))
    chances = [expit(slope * easy) for slope in world.slopes]
    first = spread(rng.random(n_groups)) < chances[0]
    is_new = spread(rng.random(n_groups)) < world.changed
    second = np.where(is_new, spread(rng.random(n_groups)) < chances[1], first)

    def rate(kind: str, state: NDArray[np.bool_], noise: float) -> Array:
        own, error = world.weight * (2.0 * state - 1), noise * rng.normal(size=n)
        made = {
            "own": easy + own + error,
            "difficulty": easy + error,
            "random": rng.normal(size=n),
            "constant": np.zeros(n),
        }
        return made[kind]

    earlier = rate(world.earlier, first, world.noise[0])
    if world.later == "copy":
        later = earlier + world.noise[1] * rng.normal(size=n)
    elif world.later == "shuffled":
        later = rng.permutation(rate("own", second, world.noise[1]))
    else:
        later = rate(world.later, second, world.noise[1])
    stated = [expit(world.scale[0] * earlier), expit(world.scale[1] * later + world.shift)]
    return np.array([first, second], np.int8), np.round(stated, 4)


def draw_chances(world: Sampled, n: int, rng: np.random.Generator) -> list[Array]:
    """Return the probabilities of answers at both versions; the first answer is right."""
    noise = 1.5 * rng.normal(size=(n, N_ANSWERS))
    known = rng.random(n) < 0.5
    later = known ^ (rng.random(n) < world.changed)
    made = []
    for state in (known, later):
        logits = noise.copy()
        logits[:, 0] += world.known * state
        weight = np.exp(logits)
        made.append(weight / weight.sum(axis=1, keepdims=True))
    return made


def rated_sets(labels: Sequence[Array], confidences: Sequence[Array]) -> list[RatedSet]:
    """Return the contrast set of each labels, rated by the confidences at the same position."""
    made = []
    for correct, stated in zip(labels, confidences, strict=True):
        [pair] = contrast_sets(
            np.asarray(correct, np.int8), STATES, EvaluationSettings(min_contrast=1)
        )
        made.append(rate(pair, [stated]))
    return made


def draw_sampled(
    world: Sampled, n: int, halvings: int, rng: np.random.Generator
) -> DrawnAnswers:
    """Return the roles of both halves of all halvings; of 0 halvings one half alone."""
    chances = draw_chances(world, n, rng)
    counts = [rng.multinomial(world.n_samples, row) for row in chances]
    labels, confidences = [], []
    for _ in range(max(1, halvings)):
        asks = []  # by version, then by half
        for of_version, chance in zip(counts, chances, strict=True):
            first = halve(of_version, rng)
            halves = first, of_version - first
            asks.append([answer(half, chance, rng) for half in halves])
        for selecting, rating in ((0, 1), (1, 0)) if halvings else ((0, 0),):
            labels.append(np.array([asks[version][selecting][0] for version in (0, 1)]))
            confidences.append(np.array([asks[version][rating][1] for version in (0, 1)]))
    return DrawnAnswers(labels, confidences, np.arange(n))


def halve(counts: Array, rng: np.random.Generator) -> Array:
    """Return the counts of a random half of the samples of each question."""
    samples = np.repeat(np.tile(np.arange(N_ANSWERS), len(counts)), counts.ravel())
    shuffled = rng.permuted(samples.reshape(len(counts), -1), axis=1)
    half = shuffled[:, : shuffled.shape[1] // 2]
    return (half[:, :, None] == np.arange(N_ANSWERS)).sum(axis=1)


def answer(counts: Array, chances: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return whether the most frequent answer is right, and its share; ties at random."""
    best = (counts + 0.5 * rng.random(counts.shape)).argmax(axis=1)
    if counts.sum(axis=1).max() == 1:
        return best == 0, chances[np.arange(len(best)), best]
    return best == 0, counts.max(axis=1) / counts.sum(axis=1)


def bootstrap_of(groups: NDArray[np.intp], settings: EvaluationSettings) -> Bootstrap:
    """Return the bootstrap of questions in groups that one estimator rates."""
    numbers = np.arange(len(groups))
    empty = np.zeros((2, len(groups)))
    run = {Series("", "simulated", 0): empty}
    return Bootstrap(
        AnswerArrays(STATES, numbers.astype(object), empty.astype(np.int8), run, groups),
        settings,
    )


def judge(
    drawn: DrawnAnswers, *, replicates: int, seed: int, n_compared: int = 1
) -> dict[str, float]:
    """Return which intervals are above chance, and whether the word and placebos are earned."""
    settings = EvaluationSettings(min_contrast=1, n_replicates=replicates, seed=seed)
    sets, level = rated_sets(drawn.labels, drawn.confidences), LEVEL / n_compared
    bootstrap = bootstrap_of(drawn.groups, settings)
    samples = {
        name: next(iter(sample.values())) for name, sample in measure(sets, bootstrap).items()
    }
    if np.isnan(samples["moved"].draws).any():
        return {"too_few": 1.0}
    ends = {
        name: np.quantile(sample.draws, [level / 2, 1 - level / 2])
        for name, sample in samples.items()
    }
    made = {name: float(ends[name][0] > CHANCE) for name in NEEDED}
    [placebos] = placebo_shares(sets[:2], bootstrap.answers, settings, level).values()
    earned = min(made.values())
    return {
        **made,
        "all_five": earned,
        "followed": earned * (1 - max(placebos[name] for name in WITHHOLDING)),
        "still": float(max(abs(end - CHANCE) for end in ends["moved"]) <= EQUIVALENT),
        **placebos,
        "before": float(min(ends["change_auc"][0] - CHANCE, ends["delta0_balanced"][0]) > 0),
        "too_few": 0.0,
    }


def measure(sets: Sequence[RatedSet], bootstrap: Bootstrap) -> dict[str, Samples]:
    """Return the samples of the statistics of knowledge, and of those that the word had."""
    before = bootstrap.apply(("change_auc", "delta0_balanced"), sets)
    return before | sample_knowledge(sets, bootstrap)


def shares(
    world: StateWorld | Sampled,
    n: int,
    *,
    studies: int,
    replicates: int,
    halvings: int = 1,
    n_compared: int = 1,
) -> dict[str, float]:
    """Return the shares of simulated studies in which each test passes."""
    rows = []
    for number in range(studies):
        rng = np.random.default_rng([number, n])
        if isinstance(world, Sampled):
            drawn = draw_sampled(world, n, halvings, rng)
        else:
            labels, stated = draw_answers(world, n, rng)
            drawn = DrawnAnswers([labels], [stated], np.arange(n) // world.group)
        rows.append(judge(drawn, replicates=replicates, seed=number, n_compared=n_compared))
    table = pd.DataFrame(rows)
    return {**table.drop(columns="too_few").fillna(0.0).mean(), "too_few": table.too_few.mean()}


def cells() -> Iterator[tuple[StateWorld | Sampled, dict[str, int]]]:
    """Yield all worlds with the numbers of questions, halvings and estimators at once."""
    for n in SIZES:
        for world in WORLDS:
            yield world, {"n": n}
        for sampled in SAMPLED if n < max(SIZES) else ():  # 20 halvings of 3,000 take long
            for halvings in sampled.halvings:
                yield sampled, {"n": n, "halvings": halvings}
    for world in WORLDS:
        yield world, {"n": 1000, "n_compared": 10}


def main() -> None:
    """Write the table of all worlds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--to", default="benchmarks/outputs/knew_moved_knows.csv")
    options = vars(parser.parse_args())
    path = options.pop("to")
    rows = []
    for world, sizes in cells():
        found = shares(world, **sizes, **options)
        percent = {name: round(100 * share, 1) for name, share in found.items()}
        columns = {"halvings": 1, "n_compared": 1, **sizes}
        rows.append({"world": world.name, "follows": world.follows, **columns, **percent})
        pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main()
