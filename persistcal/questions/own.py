"""Questions of one's own: from a table as users keep it to QUESTIONS."""

import numpy as np
import pandas as pd

from persistcal.artifacts import QUESTIONS

SPLITS = ("train", "test", "few_shot", "unused")
KNOWN = {"question", "answers", "id", "category", "split"}


def _references(answers: object, row: int) -> list[str]:
    given = list(answers) if isinstance(answers, list | tuple | np.ndarray) else [answers]
    texts = ["" if answer is None or answer != answer else str(answer) for answer in given]
    references = [text.strip() for text in texts if text.strip()]
    if not references:
        raise ValueError(
            f"column 'answers' of row {row} holds no answer; give at least one accepted answer "
            "or remove the row"
        )
    return references


def _ids(rows: pd.DataFrame, number: np.ndarray) -> pd.Series:
    if "id" not in rows.columns:
        return pd.Series(number.astype(str), index=rows.index)
    ids = rows["id"].astype("string").fillna("").str.strip()
    if (empty := (ids == "")).any():
        raise ValueError(f"column 'id' of row {number[empty][0]} is empty; fill it")
    if (twice := ids.duplicated()).any():
        raise ValueError(
            f"row {number[twice][0]} repeats the id {ids[twice].iloc[0]!r}; give it another one"
        )
    return ids


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
        Table `persistcal.artifacts.QUESTIONS`, in the order of the file; an id that
        is not given is the row number.

    Raises
    ------
    ValueError
        When a column is missing or unknown, a question or id is empty or repeated,
        a question has no answer, a split is unknown or larger than the data, or
        there is nothing to test on. The message names the column and the row,
        counted from 1.

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
    if unknown := set(rows.columns) - KNOWN:
        raise ValueError(
            f"unknown column {min(unknown)!r}; known are {', '.join(sorted(KNOWN))}"
        )
    number = np.arange(1, len(rows) + 1)
    questions = rows["question"].fillna("").astype(str).str.strip()
    if (empty := questions == "").any():
        raise ValueError(
            f"column 'question' of row {number[empty][0]} is empty; fill or remove it"
        )
    if (twice := questions.duplicated()).any():
        raise ValueError(
            f"row {number[twice][0]} repeats an earlier question; remove one of them"
        )
    if "split" in rows.columns:
        split = rows["split"].astype(str)
        if (wrong := ~split.isin(SPLITS)).any():
            raise ValueError(
                f"column 'split' of row {number[wrong][0]} is {split[wrong].iloc[0]!r}; "
                f"it may be {', '.join(SPLITS)}"
            )
        splits = split.to_numpy()
    else:
        splits = draw_splits(
            len(rows), n_few_shot=n_few_shot, n_train=n_train, n_test=n_test, seed=seed
        )
    if not (splits == "test").any():
        raise ValueError(
            "no question is of the split test; add a column 'split' or set the dataset's n_test"
        )
    return pd.DataFrame(
        {
            "question_id": _ids(rows, number),
            "index": number - 1,
            "split": splits,
            "question": questions,
            "references": [
                _references(answers, row)
                for row, answers in enumerate(rows["answers"], start=1)
            ],
            "any_of": False,
            "category": rows["category"].astype("string").fillna("")
            if "category" in rows.columns
            else "",
            "excluded": False,
        }
    ).assign(any_of=lambda table: table["references"].str.len() > 1)[QUESTIONS.schema.names]


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
