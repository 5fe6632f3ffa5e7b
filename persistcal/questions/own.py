"""Questions of one's own: from a table as users keep it to QUESTIONS."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from persistcal.store.artifacts import QUESTIONS

SPLITS = ("train", "test", "few_shot", "unused")
KNOWN = {"question", "answers", "id", "category", "split"}
# What lists of texts and of numbers look like as text: ["UK"], ['a' 'b'], [-2,7], []
_LIST = re.compile(r"""\[\s*(?:(['"]).*\1\s*|[-+.,\s\d]*)\]""", re.DOTALL)


def plain_text(value: object, name: str, row: int, *, one_line: bool = True) -> str:
    """Return a value as text without space around it; empty where there is none.

    Raises
    ------
    ValueError
        When it is none of text and whole number, or has more than `one_line`. The message
        names the column and the row.
    """
    place = f"column {name!r} of row {row}"
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        raise ValueError(
            f"{place} is the fraction {value}, and nobody knows with which digits it was "
            "written; save the column as text"
        )
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise ValueError(f"{place} is of type {type(value).__name__}; give a text")
    text = str(value).strip()
    # A prompt is made of lines, and an answer ends with its line.
    if one_line and ("\n" in text or "\r" in text):
        raise ValueError(f"{place} has a line break, which would end its prompt; remove it")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{place} holds half a character (a surrogate); write it whole")
    return text


def reference_texts(
    value: object, name: str, row: int, *, one_line: bool = True
) -> tuple[str, ...]:
    """Return the texts of a list, or the one text, without those that are empty.

    Raises
    ------
    ValueError
        As `plain_text`, and when a text by itself is that of a list, as Python prints one:
        nobody knows whether it is several answers or one in brackets.
    """
    if isinstance(value, str) and _LIST.fullmatch(value.strip()):
        raise ValueError(
            f"column {name!r} of row {row} is the text of a list, {value!r}; give several "
            "answers as a list in JSONL or parquet, and an answer in brackets as a list of it "
            "alone"
        )
    several = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
    texts = [plain_text(text, name, row, one_line=one_line) for text in several]
    return tuple(text for text in texts if text)


def _references(answers: object, row: int) -> list[str]:
    references = reference_texts(answers, "answers", row)
    if not references:
        raise ValueError(
            f"column 'answers' of row {row} holds no answer; give at least one accepted answer "
            "or remove the row"
        )
    return list(references)


def _ids(ids: Sequence[str]) -> list[str]:
    for row, name in enumerate(ids, start=1):
        if not name:
            raise ValueError(f"column 'id' of row {row} is empty; fill it")
    if (again := _repeated(ids)) is not None:
        raise ValueError(f"row {again} repeats the id {ids[again - 1]!r}; give it another one")
    return list(ids)


def _repeated(texts: Sequence[str]) -> int | None:
    """Return the number of the first row whose text an earlier one has."""
    first: dict[str, int] = {}
    rows = enumerate(texts, start=1)
    return next((row for row, text in rows if first.setdefault(text, row) != row), None)


def tidy_questions(
    rows: pd.DataFrame, *, n_few_shot: int, n_train: int, n_test: int, seed: int
) -> pd.DataFrame:
    """Turn a user's rows into the table QUESTIONS.

    Parameters
    ----------
    rows : DataFrame
        Columns question and answers (a text or a list of texts), optionally id,
        category and split. Without split, questions are drawn at random.
    n_few_shot, n_train, n_test : int
        Size of each split, where `rows` has no column split.
    seed : int
        Seed of that draw.

    Returns
    -------
    DataFrame
        Table `persistcal.store.artifacts.QUESTIONS`, in the order of the file; an id that
        is not given is the row number.

    Raises
    ------
    ValueError
        When a column is missing, unknown or there twice, a question or id is empty or
        repeated, a question has no answer, a text has a line break, a value is neither
        text nor a whole number, a split is unknown or larger than the data, or there is
        nothing to test on. The message names the column and the row, counted from 1.

    Examples
    --------
    >>> rows = pd.DataFrame({"question": ["1+1?", "2+2?"], "answers": ["2", ["4", "four"]],
    ...                      "split": ["few_shot", "test"]})
    >>> tidy = tidy_questions(rows, n_few_shot=1, n_train=0, n_test=1, seed=0)
    >>> tidy[["question_id", "split", "references"]].values.tolist()
    [['1', 'few_shot', ['2']], ['2', 'test', ['4', 'four']]]
    """
    for name in ("question", "answers"):
        if name not in rows.columns:
            raise ValueError(f"column {name!r} is missing; a file of questions needs it")
    if unknown := set(map(str, rows.columns)) - KNOWN:
        raise ValueError(
            f"unknown column {min(unknown)!r}; known are {', '.join(sorted(KNOWN))}"
        )
    if not rows.columns.is_unique:
        name = rows.columns[rows.columns.duplicated()][0]
        raise ValueError(f"column {name!r} is there twice; keep one")
    records = rows.to_dict("records")  # values as Python has them
    texts = {
        name: [
            plain_text(record[name], name, row) for row, record in enumerate(records, start=1)
        ]
        for name in rows.columns
        if name != "answers"
    }
    questions = texts["question"]
    if "" in questions:
        row = questions.index("") + 1
        raise ValueError(f"column 'question' of row {row} is empty; fill or remove it")
    if (again := _repeated(questions)) is not None:
        raise ValueError(f"row {again} repeats an earlier question; remove one of them")
    if "split" in texts:
        splits = np.array(texts["split"], dtype=object)
        for row, split in enumerate(splits, start=1):
            if split not in SPLITS:
                raise ValueError(
                    f"column 'split' of row {row} is {split!r}; it may be {', '.join(SPLITS)}"
                )
    else:
        splits = draw_splits(
            len(rows), n_few_shot=n_few_shot, n_train=n_train, n_test=n_test, seed=seed
        )
    if not (splits == "test").any():
        raise ValueError(
            "no question is of the split test; add a column 'split' or set the dataset's n_test"
        )
    references = [
        _references(record["answers"], row) for row, record in enumerate(records, start=1)
    ]
    return pd.DataFrame(
        {
            "question_id": _ids(texts["id"])
            if "id" in texts
            else [str(row) for row in range(1, len(rows) + 1)],
            "index": range(len(rows)),
            "split": splits,
            "question": questions,
            "references": references,
            "any_of": [len(accepted) > 1 for accepted in references],
            "category": texts.get("category", ""),
            "excluded": False,
        }
    )[QUESTIONS.schema.names]


def draw_splits(n: int, *, n_few_shot: int, n_train: int, n_test: int, seed: int) -> np.ndarray:
    """Draw which of `n` questions are few-shot examples, train and test; the rest is unused.

    Raises
    ------
    ValueError
        When there are fewer than `n_few_shot + n_train + n_test` questions.
    """
    if (needed := n_few_shot + n_train + n_test) > n:
        raise ValueError(
            f"n_few_shot + n_train + n_test is {needed}, but there are only {n} questions; "
            "lower n_train or n_test"
        )
    split = np.full(n, "unused", dtype=object)
    order = np.random.default_rng(seed).permutation(n)
    split[order[:n_few_shot]] = "few_shot"
    split[order[n_few_shot : n_few_shot + n_train]] = "train"
    split[order[n_few_shot + n_train : needed]] = "test"
    return split


def check_splits(splits: pd.Series, least: Mapping[str, int]) -> None:
    """Refuse questions of which a split has fewer than a study needs.

    Raises
    ------
    ValueError
        With the split and the number that is there.
    """
    for split, needed in least.items():
        if (there := int((splits == split).sum())) < needed:
            raise ValueError(
                f"{there} questions are of the split {split}, but the study needs at least "
                f"{needed}; name more in a column 'split' or raise the dataset's n_{split}"
            )
