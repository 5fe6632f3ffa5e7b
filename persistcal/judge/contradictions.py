"""Questions on which a judge contradicts itself: equal answers, one correct and one not."""

from collections.abc import Callable

import pandas as pd

from persistcal.questions.labels import normalise


def same_answers(clusters: pd.DataFrame) -> Callable[[str, str], set[str] | None]:
    """Return a function that finds the questions which two checkpoints answer alike.

    They do where either checkpoint gave both answers: in the cluster of its own, by the
    equivalence model, is the other's. So nothing is compared anew, and there may be more.
    It returns None for a checkpoint without `clusters`, which are of one model and dataset.

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
    own = first["answer"].map(normalise)
    said: dict[str, dict[str, tuple[str, set[str]]]] = {}
    for checkpoint, question, answer, texts in zip(
        first["checkpoint"], first["question_id"], own, meant, strict=True
    ):
        said.setdefault(str(checkpoint), {})[question] = answer, texts

    def same(earlier: str, later: str) -> set[str] | None:
        if not {earlier, later} <= said.keys():
            return None
        one, other = said[earlier], said[later]
        return {
            question
            for question in one.keys() & other.keys()
            if one[question][0] in other[question][1] or other[question][0] in one[question][1]
        }

    return same


def count_same_answers(
    sets: pd.DataFrame, answers: pd.DataFrame, clusters: pd.DataFrame
) -> list[int | None]:
    """Count, of each contrast set, the questions whose two answers mean the same.

    `sets` has columns earlier and later; None stands for a checkpoint without clusters.
    """
    alike = same_answers(clusters)
    correct = answers.pivot(index="question_id", columns="checkpoint", values="correct")

    def count(earlier: str, later: str) -> int | None:
        if (questions := alike(earlier, later)) is None:
            return None
        both = correct.loc[correct.index.isin(questions), [earlier, later]].dropna()
        return int((both[earlier] != both[later]).sum())

    return [count(str(a), str(b)) for a, b in zip(sets["earlier"], sets["later"], strict=True)]
