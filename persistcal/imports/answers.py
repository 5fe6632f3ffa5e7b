"""What predictions that were made elsewhere say of the answers: whether they are correct."""

from collections.abc import Sequence

import pandas as pd

from persistcal.store import artifacts


def imported_answers(
    predictions: pd.DataFrame, checkpoints: Sequence[str]
) -> list[pd.DataFrame]:
    """Return a table ANSWERS for each checkpoint, without texts and probabilities.

    Every estimator has the same answers (evaluation refuses anything else), so those of
    the first one count.
    """
    answers = predictions.drop_duplicates(["checkpoint", "question_id"])
    answers = answers.assign(split="test", answer=None, probability=float("nan"))
    columns = artifacts.ANSWERS.schema.names
    return [answers.loc[answers["checkpoint"] == name, columns] for name in checkpoints]
