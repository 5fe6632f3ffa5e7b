"""What an external verifier leaves to gain, and how much its own backbone knows."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import pandas as pd

from persistcal.evaluation.contrast import arrange_answers, contrast_sets


class Headroom(NamedTuple):
    """Contrast AUC of an oracle minus that of a verifier, and its 95 % interval."""

    headroom: float
    lower_2_5pct: float
    upper_97_5pct: float


def headroom(
    significance: pd.DataFrame, block: str, *, dataset: str, verifier: str, oracle: str
) -> Headroom:
    """Read the headroom of a verifier off the paired bootstrap test against the oracle.

    Parameters
    ----------
    significance : DataFrame
        Rows of the table SIGNIFICANCE of one model and dataset.
    block : str
        The block that compares these two estimators alone.
    dataset : str
        What they were trained on.
    verifier, oracle : str
        Estimators.

    Returns
    -------
    Headroom
        Negative where the verifier is better; NaN where both AUCs are undefined.

    Raises
    ------
    ValueError
        When the block was not tested at all.
    """
    tested = significance[
        (significance["block"] == block) & (significance["train_dataset"] == dataset)
    ]
    if tested.empty:
        raise ValueError(
            f"There is no test of block {block!r}; the test must compare "
            f"{verifier!r} with {oracle!r}."
        )
    of_auc = tested[
        (tested["conditioning"] == "odds")
        & (tested["scope"] == "contrast")
        & (tested["metric"] == "auc")
    ]
    if of_auc.empty:
        return Headroom(float("nan"), float("nan"), float("nan"))
    row = of_auc.iloc[0]
    found = Headroom(row["difference"], row["lower_2_5pct"], row["upper_97_5pct"])
    if (row["best"], row["other"]) == (oracle, verifier):
        return found
    return Headroom(-found.headroom, -found.upper_97_5pct, -found.lower_2_5pct)


def contrast_questions(answers: Mapping[str, pd.DataFrame], *, min_contrast: int) -> list[str]:
    """Return the questions that are in a contrast set that is large enough to be used.

    Parameters
    ----------
    answers : mapping of str to DataFrame
        By evaluation checkpoint, earliest first: columns question_id and correct.
    min_contrast : int
        Smaller contrast sets are not used.
    """
    correct, questions = arrange_answers(answers)
    sets = contrast_sets(correct, min_contrast=min_contrast)
    places = sorted({place for pair in sets if pair.kept for place in pair.questions})
    return [str(question) for question in questions[places]]


def error_rate(answers: pd.DataFrame, question_ids: Collection[str]) -> float:
    """Return the share of questions that were not answered correctly.

    Parameters
    ----------
    answers : DataFrame
        Columns question_id and correct.
    question_ids : collection of str
        The questions; one without an answer was not answered correctly.

    Returns
    -------
    float
        NaN when there are no questions.

    Examples
    --------
    Of a, b and c, b alone is right:

    >>> answers = pd.DataFrame({"question_id": ["a", "b"], "correct": [False, True]})
    >>> round(error_rate(answers, ["a", "b", "c"]), 3)
    0.667
    """
    if not question_ids:
        return float("nan")
    right = set(answers.loc[answers["correct"], "question_id"])
    return 1 - sum(question in right for question in question_ids) / len(question_ids)
