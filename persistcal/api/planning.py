"""Which differences a study could find, before there is one."""

import pandas as pd

from persistcal.evaluation.power import Findable, Guess, findable


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
        Questions that are to be asked.
    gained, lost : int
        How many of them the later checkpoint alone and the earlier one alone answers correctly.
    accuracy : float, default=0.5
        Accuracy of the earlier checkpoint.
    agreement : float, default=0.7
        Share of the gained and lost questions on which two estimators' confidences change in
        the same direction.
    auc : float, default=0.65
        Contrast AUC of the estimators, about.
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
        If a number cannot be: a count that is no whole number from 1 to `questions`, or a
        share that is not between 0 and 1.

    Examples
    --------
    >>> plan(2000, 220, 38)["difference"].round(3).tolist()
    [0.023, 0.262, 0.095]
    """
    guess = Guess(questions, gained, lost, accuracy, agreement, auc, correlation)
    table = pd.DataFrame(findable(guess, difference), columns=Findable._fields)
    return table.astype({"questions": "Int64"})
