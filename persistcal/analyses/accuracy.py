"""Accuracy of a checkpoint on a dataset."""

import pandas as pd


def accuracy(questions: pd.DataFrame, labels: pd.DataFrame) -> tuple[str, float, int]:
    """Return the split, the accuracy on it, and its number of questions.

    A question is right when its most probable answer is labelled correct; one
    without an answer is wrong. Where no test question was asked (a checkpoint that
    only serves for training), the training questions count.

    Parameters
    ----------
    questions, labels : DataFrame
        Tables `persistcal.store.artifacts.QUESTIONS` and `LABELS`.

    Raises
    ------
    ValueError
        When neither split has a labelled question.
    """
    top = labels[labels["cluster"] == 0]
    for split in ("test", "train"):
        chosen = questions[(questions["split"] == split) & ~questions["excluded"]]
        of_split = top[top["question_id"].isin(chosen["question_id"])]
        if len(of_split):
            return (
                split,
                float((of_split["label"] == "correct").sum() / len(chosen)),
                len(chosen),
            )
    raise ValueError("no label belongs to a test or train question that is not excluded")
