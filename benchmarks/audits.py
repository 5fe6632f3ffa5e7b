"""Worlds with a known truth, a judge of known error, and a person who audits some answers.

`python -m benchmarks.audits` prints the table of docs/validation.md.
"""

import sys
from typing import NamedTuple

import numpy as np

from persistcal.judge.correction import (
    KIND,
    UNAUDITED,
    Audited,
    correct_counts,
    correct_metrics,
)

MANY = 1_000_000  # questions; each world draws a sample of them


class JudgeWorld(NamedTuple):
    """How a judge errs, and how many of how many questions are audited, by kind.

    A judge fails right answers at the rate `strict` and passes wrong ones at the rate
    `lenient`, more often where the confidence is high if it is `swayed`.
    """

    strict: float
    lenient: float
    swayed: float = 0.0
    skill: float = 1.0
    n: int = 3000
    audit: tuple[int, int, int] = (200, 100, 100)


WORLDS = {
    "wrong about 5 %": JudgeWorld(0.05, 0.05),
    "wrong about 10 %": JudgeWorld(0.1, 0.1),
    "strict": JudgeWorld(0.15, 0.02),
    "swayed by confidence": JudgeWorld(0.08, 0.08, swayed=0.8),
    "no estimator follows": JudgeWorld(0.06, 0.06, skill=0.0),
    "half audited": JudgeWorld(0.08, 0.08, n=1000, audit=(160, 170, 170)),
    "5 %, sheet of 50, 25 and 25": JudgeWorld(0.05, 0.05, audit=(50, 25, 25)),
    "wrong about 1 %": JudgeWorld(0.01, 0.01),
}


def draw(world, n, rng):
    """Draw questions: the true states, the judge's, and confidences of (2, n) answers."""
    truth = rng.choice(4, size=n, p=[0.42, 0.15, 0.08, 0.35])
    right = np.stack([truth >> 1, truth & 1])
    hardness = rng.normal(size=n)
    odds = world.skill * right + hardness + rng.normal(scale=0.7, size=(2, n)) - 0.5
    confidence = 1 / (1 + np.exp(-odds))
    rate = np.where(right, world.strict, world.lenient)
    rate = rate * (1 + world.swayed * (2 * confidence - 1))
    judged = right ^ (rng.random((2, n)) < rate)
    return truth, 2 * judged[0] + judged[1], confidence


def audit(truth, judged, sizes, rng):
    """Let a person who is never wrong label some questions of each kind."""
    person = np.full(len(judged), UNAUDITED)
    for kind, size in enumerate(sizes):
        members = np.flatnonzero(KIND[judged] == kind)
        sheet = rng.choice(members, min(size, len(members)), replace=False)
        person[sheet] = truth[sheet]
    return Audited(judged, person)


def correct(audited, confidence):
    """Correct all numbers, sizes as shares of the questions."""
    n = len(audited.judged)
    counts = {
        name: estimate
        if name.startswith("accuracy")
        else type(estimate)(*(part / n for part in estimate))
        for name, estimate in correct_counts(audited).items()
    }
    return counts | correct_metrics(audited, [confidence])


def coverage(world, n_worlds, seed, population=MANY):
    """Return each interval's coverage of the true value, and its mean width."""
    rng = np.random.default_rng(seed)
    truth, judged, confidence = draw(world, population, rng)
    perfect = correct(Audited(truth, truth), confidence)
    true = {name: estimate.judged for name, estimate in perfect.items()}
    held = {name: [] for name in true}
    for _ in range(n_worlds):
        truth, judged, confidence = draw(world, world.n, rng)
        made = correct(audit(truth, judged, world.audit, rng), confidence)
        for name, estimate in made.items():
            held[name].append(
                (
                    estimate.lower <= true[name] <= estimate.upper,
                    estimate.upper - estimate.lower,
                )
            )
    return {name: tuple(np.nanmean(widths, axis=0)) for name, widths in held.items()}


if __name__ == "__main__":
    n_worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name, world in WORLDS.items():
        made = coverage(world, n_worlds, seed=17)
        cells = [f"{100 * share:.1f} ({width:.3f})" for share, width in made.values()]
        if name == next(iter(WORLDS)):
            print("|", " | ".join(["judge", *made]), "|")
        print("|", " | ".join([name, *cells]), "|", flush=True)
