"""Baselines from the text of an answer, without the question and the checkpoint.

Wrong answers can be more common or shorter than right ones. The change of such an attribute
between two checkpoints then follows the change of correctness. An estimator that is not above
these baselines need not contain more.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from persistcal.judge.labels import normalise_answer

ANSWER_BASELINES = ("answer_rarity", "answer_length", "answer_popularity")


def count_references(references: Iterable[Sequence[str]]) -> Counter[str]:
    """Count the questions that have each text among their references, as a judge compares them.

    >>> count_references([["Paris", "paris."], ["Paris"], ["Lyon"]])
    Counter({'paris': 2, 'lyon': 1})
    """
    return Counter(text for texts in references for text in set(map(normalise_answer, texts)))


def rate_answers(answers: pd.DataFrame, references: Counter[str]) -> pd.DataFrame:
    """Return the confidence of each baseline in each answer: a column each of ANSWER_BASELINES.

    `answers` has the columns checkpoint and answer, and `references` are counts of the training
    questions; without any, rarity is left out. The baselines are surer of an answer that

    - is a reference of fewer training questions (rarity, 1 / (1 + n)),
    - has more characters (length, n / (1 + n)),
    - is given less often by the same checkpoint (popularity, 1 / n).

    >>> given = pd.DataFrame({"checkpoint": "c", "answer": ["Paris", "paris.", "Ulm"]})
    >>> rate_answers(given, Counter({"paris": 3})).round(2).to_numpy().tolist()
    [[0.25, 0.83, 0.5], [0.25, 0.83, 0.5], [1.0, 0.75, 1.0]]
    """
    text = answers["answer"].map(normalise_answer)
    n_characters = text.str.len()
    n_given = text.groupby([answers["checkpoint"], text]).transform("size")
    rarity = (
        {"answer_rarity": [1 / (1 + references[one]) for one in text]} if references else {}
    )
    rated = {
        "answer_length": n_characters / (1 + n_characters),
        "answer_popularity": 1 / n_given,
    }
    return pd.DataFrame({**rarity, **rated}, index=answers.index)
