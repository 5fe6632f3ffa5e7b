"""Accuracy of the checkpoints, and how often two of them agree."""

from collections.abc import Sequence

import pandas as pd

from persistcal.judge.audit import kappa
from persistcal.store.artifacts import ACCURACIES, AGREEMENTS


def accuracies(questions: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of each checkpoint on each dataset, in the order of the labels.

    A question is right if its most probable answer is labelled correct; a question without an
    answer is wrong. If no test question was asked, at a checkpoint for training only, the
    training questions count.
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


def measure_agreement(
    answers: pd.DataFrame,
    categories: pd.Series,
    *,
    reference: str,
    pairs: Sequence[tuple[str, str]],
) -> pd.DataFrame:
    """Count the lost answers at each of two states, and at both: the table AGREEMENTS.

    Only test questions that are right at the checkpoint `reference` count. An answer is lost if
    it is not right at a state. Each pair has a row per category, and a row with an empty
    category for all questions. Cohen's kappa is NaN unless there are lost and kept answers.
    """
    tested = answers[answers["split"] == "test"]
    right = tested.pivot(index="question_id", columns="checkpoint", values="correct").dropna()
    known_before = right[right[reference].astype(bool)].astype(bool)
    category_of = categories.reindex(known_before.index)
    groups = [("", known_before), *known_before.groupby(category_of, sort=True)]
    rows = []
    for pair in pairs:
        for category, group in groups:
            first, second = (~group[state].to_numpy() for state in pair)
            gone = first.sum(), second.sum(), (first & second).sum()
            rows.append((*pair, category, len(group), *gone, kappa(first, second)))
    return pd.DataFrame(rows, columns=AGREEMENTS.but("model", "dataset"))
