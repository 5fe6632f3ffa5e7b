"""Questions with two equal answers that a judge labelled differently."""

from collections.abc import Callable

import pandas as pd

from persistcal.questions.labels import normalise


def same_answers(clusters: pd.DataFrame) -> Callable[[str, str], set[str] | None]:
    """Return a function that finds questions with the same answer at two checkpoints.

    Answers are the same if one checkpoint's cluster, made by the equivalence model, contains
    the other's answer. No new comparisons are made, so some equal answers can be missed. The
    function returns None for a checkpoint without `clusters`, which belong to one model and
    dataset.

    Examples
    --------
    >>> first = {"question_id": ["q", "q"], "checkpoint": ["a", "b"], "cluster": [0, 0]}
    >>> first = {**first, "answer": ["NYC", "n.y.c"], "members": [["NYC"], []]}
    >>> same_answers(pd.DataFrame(first))("a", "b")
    {'q'}
    """
    first = clusters[clusters["cluster"] == 0]
    meant = [
        {normalise(text) for text in (answer, *members)}
        for answer, members in zip(first["answer"], first["members"], strict=True)
    ]
    first_answers = first["answer"].map(normalise)
    by_checkpoint: dict[str, dict[str, tuple[str, set[str]]]] = {}
    for checkpoint, question, answer, texts in zip(
        first["checkpoint"], first["question_id"], first_answers, meant, strict=True
    ):
        by_checkpoint.setdefault(str(checkpoint), {})[question] = answer, texts

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

    def count(earlier: str, later: str) -> int | None:
        if (questions := find_same(earlier, later)) is None:
            return None
        labels = correct.loc[correct.index.isin(questions), [earlier, later]].dropna()
        return int((labels[earlier] != labels[later]).sum())

    return [count(str(a), str(b)) for a, b in zip(sets["earlier"], sets["later"], strict=True)]
