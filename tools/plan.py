"""Print the differences that a study could find: `python -m tools.plan --questions 5000`.

Two checkpoints with an accuracy of about `--accuracy` answer the questions; `--flips` is the
share whose correctness changes. On those, two estimators have the same sign on a share
`--agreement`, a contrast AUC of about `--auc`, and their AUCs correlate by `--correlation`.
`--results FOLDER` takes the standard errors of a finished study instead, which asked `--asked`
questions. `--difference` also prints how many questions it takes to find one.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

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

INTERVAL = 2 * norm.ppf(0.975)  # standard errors in a 95 % interval


def guessed(asked: argparse.Namespace) -> Iterator[str]:
    """Yield a line for accuracy, Δ₀ᵇ and contrast AUC, from a guess."""
    n, flips = asked.questions, Flips.of(asked.accuracy, asked.flips)
    accuracy = accuracy_difference(asked.accuracy, asked.flips, n)
    yield f"accuracy of two checkpoints: {accuracy:.3f}"
    yield f"Δ₀ᵇ of two estimators: {delta0_difference(flips, n, asked.agreement):.3f}"
    error = auc_error(flips, n, asked.auc, asked.correlation)
    yield f"contrast AUC of two estimators: {multiple() * error:.3f}"
    if asked.difference:
        errors = {"Δ₀ᵇ": delta0_error(flips, n, asked.agreement), "contrast AUC": error}
        for name, one in errors.items():
            needed = questions_needed(asked.difference, one, n)
            yield f"questions for a {name} of {asked.difference:g}: {needed:,}"


def measured(asked: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each test of a finished study, as if it had asked other questions."""
    tests = read_csv(str(Path(asked.results) / "significance.csv"), SIGNIFICANCE)
    shown = tests[(tests["conditioning"] == "odds") & tests["lower_2_5pct"].notna()]
    width = shown["upper_97_5pct"] - shown["lower_2_5pct"]
    for row, error in zip(shown.to_dict("records"), width / INTERVAL, strict=True):
        scaled = error * (asked.asked / asked.questions) ** 0.5
        name = f"{row['scope']} {MEASURES[str(row['metric'])].heading}"
        line = f"{row['model']} {row['dataset']} {name}, {row['best']} − {row['other']}: "
        line += f"{multiple() * scaled:.3f}"
        if asked.difference and error > 0:
            needed = questions_needed(asked.difference, error, asked.asked)
            line += f"; questions for {asked.difference:g}: {needed:,}"
        yield line


def main(words: list[str] | None = None) -> None:
    """Print the smallest differences that the questions find."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--questions", type=int, required=True)
    parser.add_argument("--accuracy", type=float, default=0.5)
    parser.add_argument("--flips", type=float, default=0.2)
    parser.add_argument("--agreement", type=float, default=0.7)
    parser.add_argument("--auc", type=float, default=0.65)
    parser.add_argument("--correlation", type=float, default=0.5)
    parser.add_argument("--difference", type=float)
    parser.add_argument("--results")
    parser.add_argument("--asked", type=int)
    asked = parser.parse_args(words)
    if asked.results and not asked.asked:
        parser.error("--results needs --asked, the questions that the study asked")
    shares = (asked.accuracy, asked.flips, asked.agreement, asked.auc, asked.correlation)
    if asked.questions < 2 or not all(0 < share < 1 for share in shares):
        parser.error("--questions is at least 2, and shares are between 0 and 1")
    try:
        lines = list(measured(asked) if asked.results else guessed(asked))
    except (ValueError, OSError) as error:
        parser.error(str(error))
    print(f"Found with 80 % power at 5 %, two-sided, by {asked.questions:,} questions:")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
