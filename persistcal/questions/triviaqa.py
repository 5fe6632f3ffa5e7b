"""TriviaQA as the paper asks it: `rc.nocontext`, shuffled, without repetitions."""

from collections.abc import Iterator, Sequence
from itertools import islice
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

BLACKLIST = {
    "Which is the longest length below?",
    "The books were Alice and Jerry in the USA – what were they here?",
    "Three female trainers have won the Grand National, Jenny Pitman is one name either of the "
    "other two,",
}


def _shuffled(rows: "Dataset") -> Iterator[Question]:
    rows = rows.select_columns(["question", "answer"]).shuffle(seed=SHUFFLE_SEED)
    return unique(
        Question(
            row["question"].strip(),
            [row["answer"]["value"].strip()],
            excluded=row["question"].strip() in BLACKLIST,
        )
        for row in rows
    )


def triviaqa_questions(
    validation: "Dataset", training: "Dataset", *, train: Sequence[int], test: Sequence[int]
) -> pd.DataFrame:
    """Return the questions of TriviaQA's `rc.nocontext`, shuffled, without repetitions.

    The split `training` gives the few-shot examples. The reference is the answer's value; its
    aliases are left to the judge.
    """
    return number_questions(
        "triviaqa",
        list(_shuffled(validation)),
        list(islice(_shuffled(training), N_FEW_SHOT)),
        train=train,
        test=test,
    )
