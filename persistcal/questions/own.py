"""A user's questions as the table QUESTIONS."""

import json
import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from persistcal.store.artifacts import QUESTIONS
from persistcal.store.user_files import (
    UserTableError,
    check_columns,
    lists_of_texts,
    plain_text,
    texts,
)

SPLITS = ("train", "test", "few_shot", "unused")
NEEDED = ("question", "answers")
OF_CHOICE = ("question", "options", "gold")  # needed of multiple choice, instead of `NEEDED`
OPTIONAL = ("category", "id", "split")
KNOWN = sorted({*NEEDED, *OF_CHOICE, *OPTIONAL})
LISTS = ("options",)  # columns that a CSV file gives as JSON lists
DEFAULT = "default"  # the checkpoint of answers that are right at all others


def tidy_questions(
    rows: pd.DataFrame,
    *,
    n_few_shot: int,
    n_train: int,
    n_test: int,
    seed: int,
    states: Sequence[str] = (),
) -> pd.DataFrame:
    """Turn a user's rows into the table QUESTIONS, in the order of the file.

    Questions have answers (a text or a list of texts), or options and gold, the number of the
    right one. Without a column split they are drawn at random. Answers can be given for the
    checkpoints `states`.
    """
    message, missing = f"known are {', '.join(KNOWN)}", "a file of questions needs it"
    unknown = dict.fromkeys(("options", "gold", "truths"))
    tidy = pd.DataFrame(unknown, index=range(len(rows)), dtype=object)
    if choice := bool({"options", "gold"} & set(rows.columns)):
        message = f"questions with options have {', '.join(OF_CHOICE)} and no answers"
        missing = "options come with gold, the place of the right one, counted from 0"
    needed = OF_CHOICE if choice else NEEDED
    check_columns(list(rows.columns), needed, OPTIONAL, unknown=message, missing=missing)
    tidy = tidy.assign(**{name: texts(rows, name) for name in ("question", *OPTIONAL)})
    if choice:
        tidy["options"], tidy["gold"] = options_and_gold(rows)
        references = [[o[g]] for o, g in zip(tidy["options"], tidy["gold"], strict=True)]
    else:
        of_states = split_truths(rows, states)
        references, tidy["truths"] = of_states["references"].tolist(), of_states["truths"]
    tidy["references"] = pd.Series(references, dtype=object)
    question, answers = tidy["question"], tidy["references"].map(len)
    wrong = {
        "column 'question' of row {row} is empty; fill or remove it": question == "",
        "row {row} repeats an earlier question; remove one of them": question.duplicated(),
        "column 'answers' of row {row} holds no answer; give at least one accepted answer or "
        "remove the row": answers == 0,
    }
    if "split" in rows:
        allowed = ", ".join(SPLITS)
        sentence = f"column 'split' of row {{row}} is {{split!r}}; it may be {allowed}"
        wrong[sentence] = ~tidy["split"].isin(SPLITS)
    else:
        tidy["split"] = draw_splits(
            len(rows), n_few_shot=n_few_shot, n_train=n_train, n_test=n_test, seed=seed
        )
    if "id" in rows:
        wrong["column 'id' of row {row} is empty; fill it"] = tidy["id"] == ""
        sentence = "row {row} repeats the id {id!r}; give it another one"
        wrong[sentence] = tidy["id"].duplicated()
    else:
        tidy["id"] = [str(row) for row in range(1, len(rows) + 1)]
    for sentence, rows_wrong in wrong.items():
        if rows_wrong.any():
            first = int(rows_wrong.to_numpy().argmax())
            raise UserTableError(sentence.format(row=first + 1, **tidy.loc[first]))
    if not (tidy["split"] == "test").any():
        raise UserTableError(
            "no question is of the split test; add a column 'split' or set the dataset's n_test"
        )
    tidy = tidy.rename(columns={"id": "question_id"})
    tidy = tidy.assign(index=range(len(tidy)), any_of=answers > 1, excluded=False)
    return tidy[QUESTIONS.schema.names]


def options_and_gold(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return the options of each row as texts, and the number of the right one."""
    all_options, gold = [], []
    places = texts(rows, "gold")
    for row, (value, place) in enumerate(zip(rows["options"], places, strict=True), start=1):
        if not isinstance(value, list | tuple | np.ndarray):
            raise UserTableError(
                f"column 'options' of row {row} is no list but {value!r}; give all rows a list "
                'of texts, in CSV ["a", "b"], and questions without a file of their own'
            )
        options = [plain_text(option, "options", row) for option in value]
        if len(options) < 2 or "" in options or len(set(options)) < len(options):
            raise UserTableError(
                f"column 'options' of row {row} is {options!r}; give at least two different "
                "texts, none of them empty"
            )
        if not re.fullmatch(r"\d{1,4}", place, re.ASCII) or int(place) >= len(options):
            raise UserTableError(
                f"column 'gold' of row {row} is {place!r}; give the place of the right option, "
                f"counted from 0: 0 to {len(options) - 1}"
            )
        all_options.append(options)
        gold.append(int(place))
    return pd.Series(all_options, dtype=object), pd.Series(gold, dtype=object)


def draw_splits(n: int, *, n_few_shot: int, n_train: int, n_test: int, seed: int) -> np.ndarray:
    """Draw which of `n` questions are few-shot examples, train and test; the rest is unused."""
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
    """Refuse questions with fewer in a split than a study needs."""
    for split, needed in least.items():
        if (n_rows := int((splits == split).sum())) < needed:
            raise ValueError(
                f"{n_rows} questions are of the split {split}, but the study needs at least "
                f"{needed}; name more in a column 'split' or raise the dataset's n_{split}"
            )


def split_truths(rows: pd.DataFrame, known: Collection[str]) -> pd.DataFrame:
    """Return the columns references and truths of a user's column answers.

    An answer is a text, a list of texts, or a mapping of checkpoints to these, with ``default``
    for all other checkpoints. Truths are None, or a JSON object of lists by checkpoint.

    >>> rows = pd.DataFrame({"answers": ["4", {"default": "Paris", "edited": ["Lyon"]}]})
    >>> split_truths(rows, ["base", "edited"]).values.tolist()
    [[['4'], None], [['Paris'], '{"edited": ["Lyon"]}']]
    """
    references, truths = [], []
    for row, value in enumerate(rows["answers"].tolist(), start=1):
        if isinstance(value, str) and value.lstrip().startswith("{"):
            raise UserTableError(
                f"column 'answers' of row {row} is the text {value!r}; give answers by "
                "checkpoint as an object, in JSONL or parquet"
            )
        several = value if isinstance(value, dict) else {DEFAULT: value}
        # A parquet file gives a row the keys of all others, without a value.
        given = {key: value for key, value in several.items() if _is_there(value)}
        if not given.get(DEFAULT) and isinstance(value, dict):
            raise UserTableError(
                f"column 'answers' of row {row} has no {DEFAULT!r}; give what is true at all "
                "checkpoints that it does not name"
            )
        if unknown := [key for key in given if key not in (DEFAULT, *known)]:
            raise UserTableError(
                f"column 'answers' of row {row} names the checkpoint {unknown[0]!r}; known are "
                f"{', '.join(known) or 'none'}"
            )
        table = pd.DataFrame({"answers": pd.Series([*given.values()], dtype=object)})
        read = dict(zip(given, map(list, lists_of_texts(table, "answers")), strict=True))
        if empty := [key for key, texts in read.items() if not texts and key != DEFAULT]:
            raise UserTableError(
                f"column 'answers' of row {row} holds no answer for {empty[0]!r}; give one"
            )
        references.append(read.pop(DEFAULT, []))
        truths.append(json.dumps(read, ensure_ascii=False) if read else None)
    return pd.DataFrame({"references": references, "truths": truths}, dtype=object)


def _is_there(value: object) -> bool:
    return isinstance(value, list | tuple | np.ndarray) or (
        value is not None and value == value
    )
