"""Scores of baselines that use only an attribute of a question, or only the answer."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from persistcal.evaluation.aligned import align
from persistcal.evaluation.replicates import replicate
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import intervals
from persistcal.questions.labels import normalise_answer

ATTRIBUTES = ("category", "group", "popularity", "first_letter", "length")
ANSWER_BASELINES = ("answer_rarity", "answer_length", "answer_popularity")
_NAME = re.compile(r"(?<=\s)[^\W\d_]", re.UNICODE)


def first_letter(question: str) -> str:
    """Return the first letter of the first name in a question, or of the question.

    A name is a word with a capital letter, other than the first word.

    >>> [first_letter(q) for q in ("Which country is Lyon in?", "who was he?", "1 + 1")]
    ['L', 'W', '']
    """
    inner = [letter for letter in _NAME.findall(question) if letter.isupper()]
    letters = inner or [letter for letter in question if letter.isalpha()]
    return letters[0].upper() if letters else ""


def attributes(questions: pd.DataFrame, facts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the attributes of each question for the baselines, by question_id.

    There is a column of texts for each of `ATTRIBUTES` that varies between the questions of the
    train and test split. Deciles are computed over the asked questions; the deciles of
    popularity, a fact's weight, within its relation.
    """
    rows = questions[questions["split"].isin(["train", "test"]) & ~questions["excluded"]]
    rows = rows.set_index("question_id")
    grouping = {
        "category": rows["category"],
        "first_letter": rows["question"].map(first_letter),
        "length": _decile(rows["question"].str.len().rank(pct=True)),
    }
    if facts is not None:
        subjects = facts.set_index("question_id").loc[rows.index]
        grouping["group"] = subjects["group"]
        grouping["popularity"] = _decile(subjects.groupby("relation")["weight"].rank(pct=True))
    table = pd.DataFrame(grouping, columns=[name for name in ATTRIBUTES if name in grouping])
    return table[[name for name in table if table[name].nunique() > 1]]


def _decile(rank: pd.Series) -> pd.Series:
    return np.ceil(10 * rank).astype(int).astype(str)


def group_means(train: pd.DataFrame, test: pd.DataFrame, groups: pd.Series) -> pd.DataFrame:
    """Return each test answer with its checkpoint's accuracy on train questions of its group.

    `train` and `test` have columns checkpoint, question_id and correct. If the train split has
    no question of a group, the `confidence` is the checkpoint's accuracy on all questions.

    >>> train = pd.DataFrame({"checkpoint": "c", "question_id": list("abcd"),
    ...                       "correct": [True, True, False, False]})
    >>> test = pd.DataFrame({"checkpoint": "c", "question_id": list("xyz"),
    ...                      "correct": [True, False, False]})
    >>> groups = pd.Series(dict(a=1, b=2, c=2, d=2, x=1, y=2, z=3))
    >>> group_means(train, test, groups)["confidence"].round(2).tolist()
    [1.0, 0.33, 0.5]
    """
    learnt = train.assign(group=train["question_id"].map(groups))
    of_group = learnt.groupby(["checkpoint", "group"])["correct"].mean()
    of_all = learnt.groupby("checkpoint")["correct"].mean()
    keys = zip(test["checkpoint"], test["question_id"].map(groups), strict=True)
    confidence = [of_group.get(key, of_all[key[0]]) for key in keys]
    return test.assign(confidence=np.array(confidence, dtype=float))


def measure_confounds(
    answers: pd.DataFrame,
    grouping: pd.DataFrame,
    checkpoints: Sequence[str],
    settings: EvaluationSettings,
) -> pd.DataFrame:
    """Evaluate baselines that each use the checkpoint and one attribute of a question.

    A baseline has Δ₀ᵇ 0 if its attribute is unrelated to gained and lost questions. If Δ₀ᵇ is
    far from 0, an estimator at the level of the baseline does not need to read single facts.
    `grouping` is from `attributes`. The answers can have further columns with the confidences
    of answer baselines; `n_groups` counts their values. The result is the table CONFOUNDS but
    for model and dataset.
    """
    train, test = (answers[answers["split"] == split] for split in ("train", "test"))
    for checkpoint in checkpoints:
        if not (train["checkpoint"] == checkpoint).any():
            raise ValueError(f"checkpoint {checkpoint!r} has no answer to a train question")
    if grouping.empty:
        raise ValueError("the questions do not differ in any attribute")
    rated = {str(name): group_means(train, test, grouping[name]) for name in grouping}
    groups = grouping.nunique().to_dict()
    for name in ANSWER_BASELINES:
        if name in test:
            rated[name], groups[name] = test.assign(confidence=test[name]), test[name].nunique()
    tables = [rows.assign(estimator=name) for name, rows in rated.items()]
    predictions = pd.concat(tables).assign(train_dataset="", seed=0)
    by_odds = replace(settings, conditionings=["odds"])
    replicates = replicate(align(predictions, checkpoints, by_odds), by_odds)
    bounds = intervals(replicates)
    measure = bounds["scope"] + " " + bounds["metric"]
    delta, contrast_auc, full_auc = (
        bounds[measure == name].set_index("estimator")
        for name in ("contrast delta0_balanced", "contrast auc", "full auc")
    )
    return pd.DataFrame(
        {
            "n_groups": pd.Series(groups),
            "delta0_balanced": delta["value"],
            "lower_2_5pct": delta["lower_2_5pct"],
            "upper_97_5pct": delta["upper_97_5pct"],
            "contrast_auc": contrast_auc["value"],
            "full_auc": full_auc["value"],
        },
        index=pd.Index(list(rated), name="attribute"),
    ).reset_index()


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
    rated = {}
    if references:
        rated["answer_rarity"] = 1 / (1 + text.map(lambda answer: references[answer]))
    rated["answer_length"] = n_characters / (1 + n_characters)
    rated["answer_popularity"] = 1 / n_given
    return pd.DataFrame(rated, index=answers.index)
