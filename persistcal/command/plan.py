"""The differences that a study could find, a line each: from a guess or a finished one."""

from collections.abc import Iterator
from dataclasses import dataclass

from scipy.stats import norm

from persistcal.evaluation.measures import MEASURES
from persistcal.evaluation.power import (
    Flips,
    accuracy_difference,
    auc_error,
    delta0_difference,
    delta0_error,
    multiple,
    questions_needed,
)
from persistcal.store.artifacts import SIGNIFICANCE, read_csv
from persistcal.store.files import inside

INTERVAL = 2 * norm.ppf(0.975)  # standard errors in a 95 % interval


@dataclass(frozen=True)
class Guess:
    """What is guessed of two checkpoints, and of two estimators on what changes between them.

    On the share `flips` of questions estimators have the same sign on a share `agreement`, a
    contrast AUC of about `auc`, and AUCs that correlate by `correlation`.
    """

    accuracy: float
    flips: float
    agreement: float
    auc: float
    correlation: float

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        for name, share in vars(self).items():
            if not 0 < share < 1:
                raise ValueError(f"{name} is {share:g}; give a number between 0 and 1")


def guessed(asked: Guess, n: int, difference: float | None) -> Iterator[str]:
    """Yield a line per difference that `n` questions find, and how many find `difference`."""
    flips = Flips.of(asked.accuracy, asked.flips)
    accuracy = accuracy_difference(asked.accuracy, asked.flips, n)
    yield f"accuracy of two checkpoints: {accuracy:.3f}"
    yield f"Δ₀ᵇ of two estimators: {delta0_difference(flips, n, asked.agreement):.3f}"
    error = auc_error(flips, n, asked.auc, asked.correlation)
    yield f"contrast AUC of two estimators: {multiple() * error:.3f}"
    if difference:
        errors = {"Δ₀ᵇ": delta0_error(flips, n, asked.agreement), "contrast AUC": error}
        for name, one in errors.items():
            needed = questions_needed(difference, one, n)
            yield f"questions for a {name} of {difference:g}: {needed:,}"


def measured(folder: str, asked: int, n: int, difference: float | None) -> Iterator[str]:
    """Yield a line per test of the study in `folder`, as if it had asked `n` questions."""
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
