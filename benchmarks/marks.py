"""How often simulated studies get the marks of accuracy, calibration and *moved*.

    python -m benchmarks.marks [--studies 200]

writes the table of docs/validation.md. Margins are the usual ones: .01 for accuracy and .02 for
calibration. A row is a world: the per cent of studies with the mark ✓, ✗ or neither. In studies
of ten estimators, one estimator with the mark is enough. *Moved* has the words that need no
other test.
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.knew_moved_knows import (
    STATES,
    WORLDS,
    Array,
    bootstrap_of,
    draw_answers,
    measure,
    rated_sets,
)
from persistcal.evaluation.claims import AGAINST, STILL, bounds_of, word_of
from persistcal.evaluation.findings import NO, YES, accuracy_finding, calibration_finding
from persistcal.evaluation.predictions import AnswerArrays, Series
from persistcal.evaluation.settings import MARGINS, EvaluationSettings

OUTPUT = "benchmarks/outputs/marks.csv"
Draw = Callable[[np.random.Generator], list[str]]


def accuracy_marks(n: int, flips: float, fall: float) -> Draw:
    """Return a function that draws the mark of an accuracy that falls by `fall`."""

    def draw(rng: np.random.Generator) -> list[str]:
        lost, gained = (flips + fall) / 2, (flips - fall) / 2
        kinds = rng.choice(4, n, p=[gained, lost, 0.6 - lost, 0.4 - gained])
        ends = np.array([(kinds == 1) | (kinds == 2), (kinds == 0) | (kinds == 2)], np.int8)
        return [accuracy_finding(ends, np.arange(n), margin=MARGINS["accuracy"]).mark]

    return draw


def calibration_marks(n: int, estimators: int, error: Callable[[Array], Array]) -> Draw:
    """Return a function that draws the marks of estimators with an `error` of confidence.

    A confidence c in [.1, .9] is right with the probability c − error(c).
    """

    def draw_answers_to(rng: np.random.Generator) -> tuple[Array, NDArray[np.int8]]:
        chance = rng.uniform(0.1, 0.9, n)
        return chance, np.tile((rng.random(n) < chance - error(chance)).astype(np.int8), (2, 1))

    def draw(rng: np.random.Generator) -> list[str]:
        first = draw_answers_to(rng)
        settings = EvaluationSettings(seed=int(rng.integers(1000)))
        further = (draw_answers_to(rng) for _ in range(estimators - 1))
        marks = []
        for chance, correct in chain([first], further):  # each estimator has its own labels
            stated, ids = np.tile(chance, (2, 1)), np.arange(n).astype(object)
            run = {Series("", "simulated", 0): stated}
            answers = AnswerArrays(STATES, ids, correct, run, np.arange(n))
            finding = calibration_finding(answers, [stated], (0, 1), 1, settings, estimators)
            marks.append(finding.mark)
        return marks

    return draw


def moved_words(name: str, n: int) -> Draw:
    """Return a function that draws the word if it is *moved against* or *did not move*."""
    [world] = (world for world in WORLDS if world.name == name)

    def draw(rng: np.random.Generator) -> list[str]:
        labels, stated = draw_answers(world, n, rng)
        seed = int(rng.integers(1000))
        settings = EvaluationSettings(min_contrast=1, n_replicates=300, seed=seed)
        bootstrap = bootstrap_of(np.arange(n), settings)
        samples = measure(rated_sets([labels], [stated]), bootstrap).items()
        bounds = {
            name: bounds_of(name, next(iter(members.values()))) for name, members in samples
        }
        return [word_of(bounds, "one ask").word]

    return draw


def cells() -> Iterator[tuple[dict[str, object], Draw]]:
    """Yield descriptions of worlds, and functions that draw their marks."""
    for n in (300, 3000, 30_000):
        for fall in (0.0, 0.01, 0.03):
            key = {"question": "accuracy", "world": f"falls by {fall:g}", "n": n}
            yield key, accuracy_marks(n, 0.1, fall)
    for name in ("difficulty, more noise", "difficulty, wider", "later shuffled", "copy"):
        yield {"question": "moved", "world": name, "n": 1000}, moved_words(name, 1000)
    errors: dict[str, Callable[[Array], Array]] = {
        "exact": lambda c: 0.0 * c,
        "off by .02": lambda c: 0.0 * c + 0.02,
        "off by .05": lambda c: 0.0 * c + 0.05,
        "off by .1 and −.1": lambda c: 0.1 * np.sign(c - 0.5),
    }
    for n, m in ((300, 1), (3000, 1), (1000, 10), (100_000, 1)):
        for name, error in errors.items():
            if n == 100_000 and name in ("off by .05", "off by .1 and −.1"):
                continue  # found among 3,000
            key = {"question": "calibration", "world": name, "n": n, "estimators": m}
            yield key, calibration_marks(n, m, error)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    studies = parser.parse_args().studies
    rows = []
    for key, draw in cells():
        results = [draw(np.random.default_rng([number, 9])) for number in range(studies)]
        counted = {"yes": YES, "no": NO, "moved_against": AGAINST, "did_not_move": STILL}
        shares = {
            name: round(100 * float(np.mean([mark in marks for marks in results])), 1)
            for name, mark in counted.items()
        }
        rows.append({"estimators": 1, **key, **shares})
        pd.DataFrame(rows).to_csv(OUTPUT, index=False)


if __name__ == "__main__":
    main()
