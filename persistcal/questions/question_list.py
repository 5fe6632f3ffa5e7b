"""A dataset's canonical question list: unique questions, indices, splits and counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from persistcal.store.artifacts import QUESTIONS

SHUFFLE_SEED = 17  # of every list of the paper
N_FEW_SHOT = 10  # questions reserved for few-shot prompts; the first 5 are used


class Question(NamedTuple):
    """A question before it has an index."""

    question: str
    references: list[str]  # the first one is shown where the question is an example
    any_of: bool = False  # references are different answers, instead of names of one
    category: str = ""  # few-shot examples may be chosen by it
    excluded: bool = False  # keeps its index, but is neither trained nor evaluated on
    options: list[str] | None = None  # of multiple choice: what may be answered
    gold: int | None = None  # which of the options is right, counted from 0
    truths: str | None = None  # references by checkpoint, as JSON


def unique(questions: Iterable[Question]) -> Iterator[Question]:
    """Yield the first of questions with the same text.

    >>> [q.references for q in unique([Question("a", ["1"]), Question("a", ["2"])])]
    [['1']]
    """
    seen = set()
    for question in questions:
        if question.question not in seen:
            seen.add(question.question)
            yield question


def number_questions(
    name: str,
    canonical: Sequence[Question],
    few_shot: Sequence[Question],
    *,
    train: Sequence[int],
    test: Sequence[int],
) -> pd.DataFrame:
    """Give the questions of the dataset `name` their index, id and split: the table QUESTIONS.

    The `few_shot` examples, in the order of their use, have ids and indices of their own, so
    that reserving them moves no canonical index. A split is the first canonical index and the
    one after its last; canonical questions outside of both are `unused`.

    Examples
    --------
    >>> asked = [Question(text, ["yes"]) for text in "abc"]
    >>> table = number_questions("x", asked, [Question("d", ["no"])], train=[0, 1], test=[2, 3])
    >>> table[["question_id", "index", "split"]].values.tolist()
    [['x-0', 0, 'train'], ['x-1', 1, 'unused'], ['x-2', 2, 'test'],
     ['x-few-shot-0', 0, 'few_shot']]
    """
    for split, (_, end) in (("train", train), ("test", test)):
        if end > len(canonical):
            raise ValueError(
                f"split {split} ends at index {end}, but there are only {len(canonical)} "
                f"questions; lower datasets.{name}.{split}"
            )
    if not few_shot:
        raise ValueError("no question is left for few-shot prompts; give more data")

    def split_of(index: int) -> str:
        if train[0] <= index < train[1]:
            return "train"
        return "test" if test[0] <= index < test[1] else "unused"

    rows = [
        (f"{name}-{index}", index, split_of(index), *question)
        for index, question in enumerate(canonical)
    ] + [
        (f"{name}-few-shot-{index}", index, "few_shot", *question)
        for index, question in enumerate(few_shot)
    ]
    return pd.DataFrame(rows, columns=["question_id", "index", "split", *Question._fields])[
        QUESTIONS.schema.names
    ]


def count_questions(questions: pd.DataFrame) -> dict[str, int]:
    """Count the canonical list; without blacklisted questions train, test, its categories."""
    kept = questions[~questions["excluded"]]
    test = kept[kept["split"] == "test"]
    return {
        "questions": int((questions["split"] != "few_shot").sum()),
        "train": int((kept["split"] == "train").sum()),
        "test": len(test),
        **Counter(filter(None, test["category"])),
    }


def check_counts(questions: pd.DataFrame, expected: Mapping[str, int]) -> None:
    """Refuse `questions` whose counts are not those that the data is known to have."""
    counts = count_questions(questions)
    wrong = [
        f"{name}: {counts.get(name, 0)} instead of {count}"
        for name, count in expected.items()
        if counts.get(name, 0) != count
    ]
    if wrong:
        raise ValueError(
            f"these are not the questions that the study expects ({', '.join(wrong)}); use the "
            "pinned revision of the data, or remove the key expect of a dataset of your own"
        )
