"""The prediction of a checkpoint: its most probable candidate answer to a question.

A module of its own: what asks for answers labels options, and must not depend on how beams are
grouped.
"""

import logging

import pandas as pd

from persistcal.judge.labels import CORRECT

log = logging.getLogger(__name__)


def take_predictions(
    questions: pd.DataFrame, clusters: pd.DataFrame, *, split: str = "test"
) -> pd.DataFrame:
    """Return the first cluster of each question of a split that has one and is not excluded.

    The columns are question_id, question, answer and probability, in the order of the
    questions.
    """
    chosen = (questions["split"] == split) & ~questions["excluded"]
    asked = questions.loc[chosen, ["question_id", "question"]]
    first = clusters.loc[clusters["cluster"] == 0, ["question_id", "answer", "probability"]]
    return asked.merge(first, on="question_id", validate="one_to_one")


def label_predictions(predictions: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Add whether each prediction is correct; one that is not labelled is left out.

    An answer that was not attempted is not correct. `labels` is a table LABELS.
    """
    first = labels.loc[labels["cluster"] == 0, ["question_id", "label"]]
    joined = predictions.merge(first, on="question_id", validate="one_to_one")
    return joined.assign(correct=joined["label"] == CORRECT).drop(columns="label")


def warn_if_none_is_correct(correct: pd.Series, what: str) -> None:
    """Log a warning where there are labels of `what` and none is that an answer is correct."""
    if len(correct) and not correct.any():
        log.warning(
            "None of %d %s is correct; see whether answers and references have the same form",
            len(correct),
            what,
        )
