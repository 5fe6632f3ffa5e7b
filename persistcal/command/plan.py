"""The differences that a study could find, a line each: from a guess or a finished one."""

from collections.abc import Iterator
from math import isnan

from scipy.stats import norm

from persistcal.evaluation.metrics import MEASURES
from persistcal.evaluation.power import (
    Guess,
    check_count,
    check_share,
    findable,
    multiple,
    questions_needed,
)
from persistcal.store.artifacts import SIGNIFICANCE, read_csv
from persistcal.store.files import inside

INTERVAL = 2 * norm.ppf(0.975)  # standard errors in a 95 % interval


def guessed(guess: Guess, difference: float | None) -> Iterator[str]:
    """Yield a line per difference that a study finds, and how many questions find another."""
    found = findable(guess, difference)
    for measure, smallest, _ in found:
        yield f"{measure}: {'none' if isnan(smallest) else f'{smallest:.3f}'}"
    if difference is None:
        return
    for measure, _, questions in found[1:]:
        name = measure.removesuffix(" of two estimators")
        needed = f"{questions:,}" if questions else "impossible by this guess"
        yield f"questions for a {name} of {difference:g}: {needed}"


def measured(folder: str, asked: int, n: int, difference: float | None) -> Iterator[str]:
    """Yield a line per test of the study in `folder`, as if it had asked `n` questions."""
    check_count("the number of questions that the study asked", asked)
    if difference is not None:
        check_share("difference", difference)
    tests = read_csv(inside(folder, "significance.csv"), SIGNIFICANCE)
    shown = tests[(tests["conditioning"] == "odds") & tests["lower_2_5pct"].notna()]
    width = shown["upper_97_5pct"] - shown["lower_2_5pct"]
    for row, error in zip(shown.to_dict("records"), width / INTERVAL, strict=True):
        scaled = error * (asked / n) ** 0.5
        name = f"{row['scope']} {MEASURES[str(row['metric'])].heading}"
        line = f"{row['model']} {row['dataset']} {name}, {row['best']} − {row['other']}: "
        line += f"{multiple() * scaled:.3f}"
        if difference and error > 0:
            needed = questions_needed(difference, error, asked)
            line += f"; questions for {difference:g}: {needed:,}"
        yield line
