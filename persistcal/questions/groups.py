"""Groups of facts that a change is about, and the answers that an edit makes true.

A module of its own: a pre-training, which deals facts, must not depend on how labels are given.
"""

import json
from collections.abc import Mapping, Sequence
from math import gcd

import numpy as np
import pandas as pd

from persistcal.judge.labels import normalise_answer
from persistcal.questions.facts import deal

EDITED, NEIGHBOUR, RETAIN = "edited", "neighbour", "retain"


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
