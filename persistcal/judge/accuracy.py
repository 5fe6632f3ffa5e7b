"""Accuracy of the checkpoints, and how often two of them agree or give the same answer."""

from collections.abc import Callable, Sequence

import pandas as pd

from persistcal.judge.audit import kappa
from persistcal.questions.labels import normalise
from persistcal.store.artifacts import ACCURACIES, AGREEMENTS


def accuracies(questions: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of each checkpoint on each dataset, in the order of the labels.

    A question is right if its most probable answer is labelled correct; a question without an
    answer is wrong. If no test question was asked, at a checkpoint for training only, the
    training questions count.
    """
    rows = []
    included = questions[~questions["excluded"]]
    places = labels.groupby(["model", "checkpoint", "dataset"], sort=False)
    for (model, checkpoint, dataset), labelled in places:
        best = labelled[labelled["cluster"] == 0]
        for split in ("test", "train"):
            chosen = included[(included["dataset"] == dataset) & (included["split"] == split)]
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


def same_answers(clusters: pd.DataFrame) -> Callable[[str, str], set[str] | None]:
    """Return a function that finds questions with the same answer at two checkpoints.

    Answers are the same if one checkpoint's cluster, made by the equivalence model, contains
    the other's answer. No new comparisons are made, so some equal answers can be missed. The
    function returns None for a checkpoint without `clusters`, which belong to one model and
    dataset.

    >>> first = {"question_id": ["q", "q"], "checkpoint": ["a", "b"], "cluster": [0, 0]}
    >>> first = {**first, "answer": ["NYC", "n.y.c"], "members": [["NYC"], []]}
    >>> same_answers(pd.DataFrame(first))("a", "b")
    {'q'}
    """
    by_checkpoint: dict[str, dict[str, tuple[str, set[str]]]] = {}
    first = clusters[clusters["cluster"] == 0]
    columns = [first[name] for name in ("checkpoint", "question_id", "answer", "members")]
    for checkpoint, question, answer, members in zip(*columns, strict=True):
        meant = {normalise(text) for text in (answer, *members)}
        by_checkpoint.setdefault(str(checkpoint), {})[question] = normalise(answer), meant

    def same(earlier: str, later: str) -> set[str] | None:
        if not {earlier, later} <= by_checkpoint.keys():
            return None
        first_said, second_said = by_checkpoint[earlier], by_checkpoint[later]
        return {
            question
            for question in first_said.keys() & second_said.keys()
            if first_said[question][0] in second_said[question][1]
            or second_said[question][0] in first_said[question][1]
        }

    return same


def count_same_answers(
    sets: pd.DataFrame, answers: pd.DataFrame, clusters: pd.DataFrame
) -> list[int | None]:
    """Count the questions of each contrast set with two answers of the same meaning.

    `sets` has columns earlier and later. The count is None for a checkpoint without clusters.
    """
    find_same = same_answers(clusters)
    correct = answers.pivot(index="question_id", columns="checkpoint", values="correct")
    counts: list[int | None] = []
    for pair in zip(sets["earlier"].astype(str), sets["later"].astype(str), strict=True):
        questions = find_same(*pair)
        if questions is not None:
            labels = correct.loc[correct.index.isin(questions), list(pair)].dropna()
            counts.append(int((labels[pair[0]] != labels[pair[1]]).sum()))
        else:
            counts.append(None)
    return counts
