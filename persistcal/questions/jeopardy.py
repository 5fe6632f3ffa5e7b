"""Jeopardy as the paper asks it: clues of factual categories that occur often."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from persistcal.questions.question_list import (
    N_FEW_SHOT,
    SHUFFLE_SEED,
    Question,
    number_questions,
    unique,
)

if TYPE_CHECKING:
    from datasets import Dataset

MIN_CATEGORY_SIZE = 150
UNSUITABLE = {  # about words, not facts
    "before & after",
    "rhyme time",
    "stupid answers",
    "common bonds",
    "homophones",
}


def _is_broken(clue: str) -> bool:
    quoted = len(clue) > 1 and clue.startswith("'") and clue.endswith("'")
    missing = re.search(r"\bclue\b.*\bmissing\b", clue, re.IGNORECASE | re.DOTALL)
    return bool(missing) or not quoted


def factual_clues(rows: Iterable[dict[str, str]]) -> list[Question]:
    """Keep the clues that can be asked as a question of fact.

    Clues that link to media and repetitions are left out; then those of categories with
    fewer than 150 of the clues left. Clues that are broken in the source are excluded.
    """
    read = (
        Question(
            row["question"].strip(),
            [row["continuation"].strip()],
            category=(row["ee-category"] or "").strip(),
            excluded=_is_broken(row["question"].strip()),
        )
        for row in rows
        if "<a " not in row["question"].lower()
    )
    clues = list(unique(read))
    size = Counter(clue.category for clue in clues)
    return [
        clue
        for clue in clues
        if size[clue.category] >= MIN_CATEGORY_SIZE and clue.category.lower() not in UNSUITABLE
    ]


def check_categories(names: Iterable[str], expected: Iterable[str]) -> None:
    """Refuse other categories than the expected ones, whatever their case."""
    ours = {name.casefold(): name for name in names}
    papers = {name.casefold(): name for name in expected}
    too_many = sorted(ours[name] for name in ours.keys() - papers.keys())
    lacking = sorted(papers[name] for name in papers.keys() - ours.keys())
    if too_many or lacking:
        raise ValueError(
            f"the categories with at least {MIN_CATEGORY_SIZE} clues differ from the paper's: "
            f"the data has also {too_many}, and lacks {lacking}; use the pinned revision of "
            "the data"
        )


def jeopardy_questions(
    rows: "Dataset", categories: Sequence[str], *, train: Sequence[int], test: Sequence[int]
) -> pd.DataFrame:
    """Return the questions of Jeopardy, each with its category in brackets before it.

    Exactly these `categories` must be left.
    """
    rows = rows.select_columns(["question", "continuation", "ee-category"])
    clues = factual_clues(rows.shuffle(seed=SHUFFLE_SEED).to_list())
    check_categories((clue.category for clue in clues), categories)
    asked = [clue._replace(question=f"[{clue.category}] {clue.question}") for clue in clues]
    return number_questions(
        "jeopardy", asked[N_FEW_SHOT:], asked[:N_FEW_SHOT], train=train, test=test
    )
