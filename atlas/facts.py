"""Real facts as questions that are asked, and as texts that a model is pre-trained on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.store.artifacts import FACTS, QUESTIONS


class Fact(NamedTuple):
    """A question with the answer."""

    question_id: str  # relation and identifier of the subject
    relation: str  # kind of question, such as "country-capital"
    question: str
    answer: str
    aliases: tuple[str, ...]  # further accepted answers
    group: str  # part of the world or of the table that the subject is of
    weight: float  # frequency relative to the average fact of the relation


def fact_tables(
    facts: Sequence[Fact], splits: Sequence[str] | np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables QUESTIONS and FACTS of facts in canonical order, of these splits."""
    table = pd.DataFrame(facts).assign(
        index=range(len(facts)),
        split=splits,
        references=pd.Series([[fact.answer, *fact.aliases] for fact in facts]),
        any_of=True,
        category=lambda t: t["relation"],
        excluded=False,
        options=None,
        gold=None,
        truths=None,
    )
    return table.assign(group="")[QUESTIONS.schema.names], table[FACTS.schema.names]
