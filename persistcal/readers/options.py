"""Check rows of imported scored options, and convert them to tables."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.answers.options import normalised, option_answers, scored_clusters
from persistcal.readers.answers import ANSWER_SET, Needed, check_sets, question_table
from persistcal.readers.columns import OPTIONS
from persistcal.readers.rules import check_equal, check_one_row, read_rows
from persistcal.store.artifacts import ANSWERS, BEAMS, CLUSTERS, LABELS, QUESTIONS, Table
from persistcal.store.user_files import UserTableError, check_rows

log = logging.getLogger(__name__)

# The column that a normalisation needs
NEEDS = {
    "per_token": "option_tokens",
    "per_character": "option_characters",
    "unconditional": "option_logprobs_unconditional",
}


def tidy_options(rows: pd.DataFrame, normalisation: str, *, file: str = "") -> pd.DataFrame:
    """Return scored options in a uniform format after checking each row.

    `options` become tuples of distinct texts, and `numbers` has an array with a column for each
    option: its score, logprob, number of tokens and unconditional logprob, NaN if unknown.
    """
    tidy = read_rows(rows, OPTIONS, file=file)
    n_options = tidy["options"].map(len)
    problem = "gold is not the place of an option"
    remedy = "give the place of the right option, counted from 0"
    check_rows(tidy, tidy["gold"] >= n_options, problem, "gold", remedy)
    arrays: list[Any] = _numbers(tidy, n_options.tolist(), normalisation)
    tidy["numbers"] = arrays
    tidy["options"] = tidy["options"].map(distinct)
    reported = tidy.pop("correct")
    best = np.array([int(np.argmax(scores)) for scores, *_ in tidy["numbers"]])
    check_rows(
        tidy.assign(correct=reported),
        reported.notna() & (reported != (best == tidy["gold"])),
        "the score of the log is not that of its best option",
        "correct",
        "the log was made with other options or another gold than it shows",
    )
    return tidy


def distinct(options: Sequence[str]) -> tuple[str, ...]:
    """Return the texts, with a number appended to each repetition.

    >>> distinct(["yes", "no", "yes"]), distinct(["a", "a [3]", "a"])
    (('yes', 'no', 'yes [3]'), ('a', 'a [3]', 'a [3] [3]'))
    """
    names: list[str] = []
    for number, text in enumerate(options, start=1):
        name = text
        while name in names or (name != text and name in options):
            name += f" [{number}]"
        names.append(name)
    return tuple(names)


def _numbers(
    tidy: pd.DataFrame, n_options: list[int], normalisation: str
) -> list[NDArray[np.float64]]:
    """Take the lists of numbers out of the rows, and return an array for each row."""
    names = ("option_logprobs", *NEEDS.values())
    columns = {name: tidy.pop(name) for name in names}
    present = {n: values for n, values in columns.items() if values.notna().any()}
    column = NEEDS.get(normalisation)
    if column and column not in {*present, "option_characters"}:
        raise UserTableError(
            f"the normalisation {normalisation} needs the column {column!r}, which is missing; "
            "add it, or choose another normalisation"
        )
    for name, values in present.items():
        wrong = [len(v or ()) != n for v, n in zip(values, n_options, strict=True)]
        problem = f"{name} is not as long as options"
        remedy = "give a list with one number for each option"
        check_rows(tidy.assign(**{name: values}), wrong, problem, name, remedy)
    numbers = {name: np.concatenate(values.tolist()) for name, values in present.items()}
    unknown = np.full(sum(n_options), np.nan)
    lengths = [float(len(option)) for options in tidy["options"] for option in options]
    logprob, tokens, characters, unconditional = (
        numbers.get(name, np.array(lengths) if name == "option_characters" else unknown)
        for name in names
    )
    scores = normalised(logprob, tokens, characters, unconditional, normalisation)
    table = np.stack([scores, logprob, tokens, unconditional])
    return np.split(table, np.cumsum(n_options)[:-1], axis=1)


MOST_TIES = 0.01  # share of tied questions that is not worth a warning


def join_options(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all files, with equal texts in memory once, whatever their number."""
    texts: dict[Any, Any] = {}
    parts = []
    for rows in tables:
        names = rows.columns.drop(["row", "numbers"])
        shared = {n: [texts.setdefault(value, value) for value in rows[n]] for n in names}
        parts.append(rows.assign(**pd.DataFrame(shared, dtype=object)))
    return pd.concat(parts, ignore_index=True)


def check_options(
    rows: pd.DataFrame,
    checkpoints: Mapping[str, Mapping[str, bool]] | None = None,
    needed: Needed | None = None,
) -> None:
    """Refuse scores that contradict each other, or are missing or repeated."""
    remedy = "give each document once, and the log of each run as a separate file"
    check_one_row(rows, [*ANSWER_SET, "question_id"], remedy)
    check_equal(rows, OPTIONS)
    content = rows[["question_id"]].assign(
        of=[hash(array.tobytes()) for array in rows["numbers"]]
    )
    check_sets(
        rows, "scores", "on", ["question", "options", "version"], content, checkpoints, needed
    )


def name_ties(rows: pd.DataFrame) -> list[str]:
    """Name the checkpoints whose questions have several best options; warn of frequent ones."""
    texts = []
    for names, group in rows.groupby(ANSWER_SET, sort=False):
        counts = []
        for (scores, *_), gold in zip(group["numbers"], group["gold"], strict=True):
            best = scores == scores.max()
            counts.append((best.sum(), best[gold], np.argmax(best) == gold))
        n_best, holds_gold, first_is_gold = np.array(counts, float).T
        if n_tied := int((n_best > 1).sum()):
            text = (
                f"{', '.join(map(str, names))}: {n_tied:,} of {len(group):,} questions have "
                "several best options, and the first counts, as in lm-evaluation-harness: "
                f"accuracy {first_is_gold.mean():.3f}, with a random one "
                f"{(holds_gold / n_best).mean():.3f}."
            )
            (log.warning if n_tied > MOST_TIES * len(group) else log.info)("%s", text)
            texts.append(text)
    return texts


def option_tables(rows: pd.DataFrame) -> Iterator[tuple[Table, dict[str, str], pd.DataFrame]]:
    """Yield tables with their keys: QUESTIONS by dataset, then tables by checkpoint."""
    questions = {}
    for dataset, group in rows.groupby("dataset", sort=False):
        table = question_table(group)[QUESTIONS.schema.names].reset_index(drop=True)
        yield QUESTIONS, {"dataset": str(dataset)}, table
        questions[dataset] = table
    for names, group in rows.groupby(ANSWER_SET, sort=False):
        keys = dict(zip(ANSWER_SET, map(str, names), strict=True))
        asked = questions[keys["dataset"]]
        beams, scores = _beams(group, asked["question_id"])
        clusters = scored_clusters(beams, scores)
        labels, answers = option_answers(asked, clusters)
        made = [(BEAMS, beams), (CLUSTERS, clusters), (LABELS, labels), (ANSWERS, answers)]
        for split in ("train", "test"):
            ids = asked.loc[asked["split"] == split, "question_id"]
            for kind, table in made:
                yield kind, {**keys, "split": split}, table[table["question_id"].isin(ids)]


def _beams(group: pd.DataFrame, ids: pd.Series) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Return the table BEAMS of one checkpoint in the order of `ids`, and the scores."""
    group = group.iloc[np.argsort(pd.Index(ids).get_indexer(group["question_id"]))]
    n_options = group["options"].map(len).to_numpy()
    scores, *numbers = np.hstack(group["numbers"].tolist())
    table = pd.DataFrame(
        {
            "question_id": group["question_id"].repeat(n_options.tolist()),
            "beam": np.concatenate([np.arange(n) for n in n_options]),
            "text": [text for options in group["options"] for text in options],
            **dict(zip(("logprob", "n_tokens", "unconditional"), numbers, strict=True)),
        }
    )
    return table.reindex(columns=BEAMS.schema.names).reset_index(drop=True), scores
