"""Accuracy of each checkpoint."""

import pandas as pd

from persistcal.store.artifacts import ACCURACIES


def accuracies(questions: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of each checkpoint on each dataset, in the order of the labels.

    A question is right when its most probable answer is labelled correct; one without an
    answer is wrong. Where no test question was asked (a checkpoint that only serves for
    training), the training questions count.
    """
    rows = []
    asked = questions[~questions["excluded"]]
    places = labels.groupby(["model", "checkpoint", "dataset"], sort=False)
    for (model, checkpoint, dataset), labelled in places:
        best = labelled[labelled["cluster"] == 0]
        for split in ("test", "train"):
            chosen = asked[(asked["dataset"] == dataset) & (asked["split"] == split)]
            answered = best[best["question_id"].isin(chosen["question_id"])]
            if len(answered):
                share = float((answered["label"] == "correct").sum() / len(chosen))
                rows.append((model, checkpoint, dataset, split, share, len(chosen)))
                break
        else:
            raise ValueError(
                f"{model} {checkpoint}, {dataset}: no label belongs to a test or train "
                "question that is not excluded."
            )
    return pd.DataFrame(rows, columns=ACCURACIES.schema.names)
