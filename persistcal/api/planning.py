"""The differences that a study could find: from a guess, or from earlier results."""

from collections.abc import Iterator
from math import isnan

import pandas as pd
from scipy.stats import norm

from persistcal.evaluation.metrics import MEASURES
from persistcal.evaluation.power import (
    Findable,
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


def plan(
    questions: int,
    gained: int,
    lost: int,
    *,
    accuracy: float = 0.5,
    agreement: float = 0.7,
    auc: float = 0.65,
    correlation: float = 0.5,
    difference: float | None = None,
) -> pd.DataFrame:
    """Return the smallest differences that a study finds with a power of 80 %.

    Parameters
    ----------
    questions : int
        Number of questions that the study asks.
    gained, lost : int
        Numbers of questions that only the later and only the earlier checkpoint answers
        correctly.
    accuracy : float, default=0.5
        Accuracy of the earlier checkpoint.
    agreement : float, default=0.7
        Share of gained and lost questions with a confidence change in the same direction for
        two estimators.
    auc : float, default=0.65
        Approximate contrast AUC of the estimators.
    correlation : float, default=0.5
        Correlation of the two estimators' contrast AUCs.
    difference : float, optional
        Return also how many questions find this difference.

    Returns
    -------
    DataFrame
        measure, difference (NaN if the study finds none) and questions (missing if two
        estimators cannot differ by `difference`).

    Raises
    ------
    ValueError
        If a count is not a whole number from 1 to `questions`, or a share is not between 0 and
        1.

    Examples
    --------
    >>> plan(2000, 220, 38)["difference"].round(3).tolist()
    [0.023, 0.262, 0.095]
    """
    guess = Guess(questions, gained, lost, accuracy, agreement, auc, correlation)
    table = pd.DataFrame(findable(guess, difference), columns=Findable._fields)
    return table.astype({"questions": "Int64"})


def plan_lines(guess: Guess, difference: float | None) -> Iterator[str]:
    """Yield a line per smallest difference, and one per number of questions for another."""
    result = findable(guess, difference)
    for measure, smallest, _ in result:
        yield f"{measure}: {'none' if isnan(smallest) else f'{smallest:.3f}'}"
    if difference is None:
        return
    for measure, _, questions in result[1:]:
        name = measure.removesuffix(" of two estimators")
        needed = f"{questions:,}" if questions else "impossible by this guess"
        yield f"questions for a {name} of {difference:g}: {needed}"


def plan_from_results(
    folder: str, asked: int, questions: int, difference: float | None
) -> Iterator[str]:
    """Yield a line per test of the study in `folder`, as if it had asked `questions`."""
    check_count("the number of questions that the study asked", asked)
    if difference is not None:
        check_share("difference", difference)
    tests = read_csv(inside(folder, "significance.csv"), SIGNIFICANCE)
    shown = tests[(tests["conditioning"] == "odds") & tests["lower_2_5pct"].notna()]
    width = shown["upper_97_5pct"] - shown["lower_2_5pct"]
    for row, error in zip(shown.to_dict("records"), width / INTERVAL, strict=True):
        scaled = error * (asked / questions) ** 0.5
        name = f"{row['scope']} {MEASURES[str(row['metric'])].heading}"
        line = f"{row['model']} {row['dataset']} {name}, {row['best']} − {row['other']}: "
        line += f"{multiple() * scaled:.3f}"
        if difference and error > 0:
            needed = questions_needed(difference, error, asked)
            line += f"; questions for {difference:g}: {needed:,}"
        yield line
