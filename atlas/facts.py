"""Real facts as questions that are asked, and as texts that a model is pre-trained on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.store.artifacts import FACTS, QUESTIONS


class Fact(NamedTuple):
    """One question with its answer."""

    question_id: str  # relation and identifier of the subject
    relation: str  # kind of question, such as "country-capital"
    question: str
    answer: str
    aliases: tuple[str, ...]  # further accepted answers
    group: str  # part of the world or of the table that the subject is of
    weight: float  # how often it is met, relative to an average fact of its relation


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
    return table[QUESTIONS.schema.names], table[FACTS.schema.names]


def deal(facts: pd.DataFrame, n_sets: int, *, seed: int | Sequence[int]) -> np.ndarray:
    """Return the set of each fact, from 1, so that no attribute tells sets apart.

    Facts of a relation and group are sorted by weight and dealt from the top, `n_sets` at
    a time, one to each set in random order. So of every relation, group and stretch of
    weights each set has as many as another, give or take one.
    """
    rng = np.random.default_rng([*np.ravel(seed), n_sets])
    number = np.zeros(len(facts), dtype=np.int64)
    strata = facts.reset_index(drop=True).groupby(["relation", "group"], sort=True)
    for _, stratum in strata:
        order = stratum.sort_values(["weight", "question_id"], ascending=[False, True]).index
        hands = [rng.permutation(n_sets) for _ in range(0, len(order), n_sets)]
        number[order] = np.concatenate(hands)[: len(order)] + 1
    return number
