"""Questions at a checkpoint: as it is asked them, and what is right there.

A module of its own: an edit of it must not prepare the questions again.
"""

import json

import pandas as pd


def truths_of(questions: pd.DataFrame) -> dict[str, dict[str, list[str]]]:
    """Return the references that some states have of their own, by question and checkpoint."""
    there = questions["truths"].notna()
    rows = zip(questions.loc[there, "question_id"], questions.loc[there, "truths"], strict=True)
    return {question: json.loads(truths) for question, truths in rows}


def true_at(questions: pd.DataFrame, checkpoint: str) -> pd.DataFrame:
    """Return `questions` with the references that hold at a checkpoint."""
    own = truths_of(questions)
    pairs = zip(questions["question_id"], questions["references"], strict=True)
    references = [own.get(question, {}).get(checkpoint, usual) for question, usual in pairs]
    return questions.assign(references=pd.Series(references, questions.index, dtype=object))


def asked_by(questions: pd.DataFrame, checkpoint: str | None) -> pd.DataFrame:
    """Return the questions as a checkpoint is asked them, or without any context for None.

    `questions` are the tables QUESTIONS and CONTEXTS, one below the other, or the former alone.
    """
    if "checkpoint" not in questions:
        return questions
    own = questions["checkpoint"] == checkpoint
    return questions[own if own.any() else questions["checkpoint"].isna()]
