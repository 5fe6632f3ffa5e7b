"""Real facts as questions that are asked, and as texts that a model is pre-trained on.

A change of the model may be about some groups of facts, and make edited answers true.
"""

import json
from collections.abc import Mapping, Sequence
from math import gcd
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.judge.labels import normalise_answer
from persistcal.store.artifacts import FACTS, QUESTIONS

EDITED, NEIGHBOUR, RETAIN = "edited", "neighbour", "retain"


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


def group_facts(facts: pd.DataFrame, shares: Mapping[str, float], *, seed: int) -> np.ndarray:
    """Return the group of each fact: one of `shares`, "neighbour", or else "retain".

    For each fact of the group "edited" there is a neighbour of the same relation and answer,
    as long as facts are left. Few-shot examples, which every prompt shows, are retained.
    Shares are of all facts, in whole hundredths, dealt as by `deal`, whose sets with the same
    seed are others.
    """
    hundredths = {name: round(100 * share) for name, share in shares.items()}
    step = gcd(100, *hundredths.values())
    sets = [name for name, n in hundredths.items() for _ in range(n // step)]
    sets += [RETAIN] * (100 // step - len(sets))
    facts = facts.reset_index(drop=True)
    category = pd.Series(np.array(sets, object)[deal(facts, len(sets), seed=[seed, 1]) - 1])
    example = facts["split"] == "few_shot"
    category[example] = RETAIN
    edited = facts[category == EDITED].groupby(["relation", "answer"]).size()
    left = facts[(category == RETAIN) & ~example].sort_values("question_id")
    left = left.sample(frac=1, random_state=np.random.default_rng([seed, 2]))
    pile = left.groupby(["relation", "answer"])
    wanted = edited.reindex(pd.MultiIndex.from_frame(left[["relation", "answer"]]))
    category[left.index[pile.cumcount().to_numpy() < wanted.to_numpy()]] = NEIGHBOUR
    return category.to_numpy()


def edit_answers(
    facts: pd.DataFrame, references: pd.Series, states: Sequence[str], *, seed: int
) -> pd.Series:
    """Return the truths of each fact: of the group "edited" another answer at `states`.

    It is drawn from the answers to other questions of the relation, each as likely, that
    share no reference with the fact's own.
    The first of the `references` to each fact is its own answer.
    """
    rng = np.random.default_rng([seed, 3])
    table = facts.assign(references=references, truths=None).sort_values("question_id")
    for _, of_relation in table.groupby("relation"):
        answers = {given[0]: given for given in of_relation["references"]}
        said = {name: set(map(normalise_answer, given)) for name, given in answers.items()}
        for row, fact in of_relation[of_relation["category"] == EDITED].iterrows():
            own = set(map(normalise_answer, fact["references"]))
            others = [name for name in answers if own.isdisjoint(said[name])]
            new = answers[others[rng.integers(len(others))]]
            truths = {state: list(new) for state in states}
            table.at[row, "truths"] = json.dumps(truths, ensure_ascii=False)
    return table["truths"].reindex(facts.index)
