"""Check rows of imported scored options, and convert them to tables.

Texts are stored once for each dataset, and only numbers for each checkpoint, so that memory
suffices for hundreds of files.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.answers.options import normalised, option_answers, scored_clusters
from persistcal.readers.answers import (
    ANSWER_SET,
    Needed,
    Wanted,
    check_known,
    check_splits,
    refuse_missing,
)
from persistcal.readers.columns import OPTIONS
from persistcal.readers.rules import (
    check_asked,
    check_copies,
    check_equal,
    check_ids,
    check_one_row,
    read_rows,
)
from persistcal.store.artifacts import ANSWERS, BEAMS, CLUSTERS, LABELS, QUESTIONS, Table
from persistcal.store.files import digest
from persistcal.store.user_files import UserTableError, check_rows

log = logging.getLogger(__name__)

# The column that a normalisation needs
NEEDS = {
    "per_token": "option_tokens",
    "per_character": "option_characters",
    "unconditional": "option_logprobs_unconditional",
}
NUMBERS = ("scores", "logprob", "n_tokens", "unconditional")  # arrays over options


def tidy_options(rows: pd.DataFrame, normalisation: str, *, file: str = "") -> pd.DataFrame:
    """Return scored options in a uniform format after checking each row.

    `options` become tuples of distinct texts, and each of `NUMBERS` an array over the options,
    with NaN for unknown numbers.
    """
    tidy = read_rows(rows, OPTIONS, file=file)
    n_options = tidy["options"].map(len)
    problem = "gold is not the place of an option"
    remedy = "give the place of the right option, counted from 0"
    check_rows(tidy, tidy["gold"] >= n_options, problem, "gold", remedy)
    _add_scores(tidy, n_options.tolist(), normalisation)
    tidy["options"] = tidy["options"].map(distinct)
    reported = tidy.pop("correct")
    best = np.array([int(np.argmax(scores)) for scores in tidy["scores"]])
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


def _add_scores(tidy: pd.DataFrame, n_options: list[int], normalisation: str) -> None:
    """Replace the lists of numbers by `NUMBERS`."""
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
    for name, array in zip(NUMBERS, (scores, logprob, tokens, unconditional), strict=True):
        of_rows: list[Any] = np.split(array, np.cumsum(n_options)[:-1])
        tidy[name] = of_rows


class Scored(NamedTuple):
    """The scores of a checkpoint's options, question by question; texts are elsewhere."""

    questions: NDArray[np.int64]  # rows of the dataset's table
    numbers: NDArray[np.float64]  # `NUMBERS`, a row each, of all options


class Ties(NamedTuple):
    """The questions of a checkpoint with several best options; the first one counts."""

    answers: str  # model, checkpoint and dataset
    n_tied: int
    n: int
    accuracy: float  # with the first of the best options, as lm-evaluation-harness has it
    random_accuracy: float  # expected if a random best option counts

    def __str__(self) -> str:
        """Return a sentence with both accuracies."""
        return (
            f"{self.answers}: {self.n_tied:,} of {self.n:,} questions have several best "
            f"options, and the first counts, as in lm-evaluation-harness: accuracy "
            f"{self.accuracy:.3f}, with a random one {self.random_accuracy:.3f}."
        )


MOST_TIES = 0.01  # share of tied questions that is not worth a warning


class ScoredOptions:
    """Collect rows of `tidy_options` file by file, and check that the files are consistent."""

    def __init__(self, checkpoints: Mapping[str, Mapping[str, bool]], wanted: Wanted) -> None:
        self._checkpoints, self._datasets = checkpoints, wanted.datasets
        self._scored: dict[tuple[str, ...], list[Scored]] = {
            tuple(row[name] for name in ANSWER_SET): [] for row in wanted.answered
        }
        self._asked: dict[str, pd.DataFrame] = {}  # by dataset
        self._of_model: dict[tuple[str, str], pd.DataFrame] = {}  # by model and dataset

    def add(self, rows: pd.DataFrame) -> int:
        """Add the wanted rows; return the number of skipped rows."""
        check_known(rows, by_model=self._checkpoints, datasets=self._datasets)
        skipped = 0
        for keys, group in rows.groupby(ANSWER_SET, sort=False):
            answer_set = tuple(map(str, keys))
            if answer_set not in self._scored:
                skipped += len(group)
                continue
            model, checkpoint, dataset = answer_set
            check_one_row(
                group,
                [*ANSWER_SET, "question_id"],
                "give each document once, and the log of each run as a separate file",
            )
            number = self._number(group, model, dataset)
            group, number = group.iloc[np.argsort(number)], np.sort(number)
            if any(
                np.isin(number, earlier.questions).any() for earlier in self._scored[answer_set]
            ):
                raise UserTableError(
                    f"{dataset} at checkpoint {checkpoint} of {model} is in an earlier file "
                    "too, with the same questions; keep one of them"
                )
            numbers = np.stack([np.concatenate(group[name].tolist()) for name in NUMBERS])
            self._scored[answer_set].append(Scored(number, numbers))
        return skipped

    def _number(self, group: pd.DataFrame, model: str, dataset: str) -> NDArray[np.int64]:
        """Return the questions' row numbers in their dataset; append new questions to it."""
        group = group.assign(category=group["category"] if "category" in group else "")
        names = {"row", "file", "category", *OPTIONS.names}
        group = group[[name for name in group if name in names]]
        earlier = self._asked.get(dataset, group.iloc[:0])
        of_model = self._of_model.get((model, dataset), group.iloc[:0])
        check_equal(pd.concat([earlier, of_model, group], ignore_index=True), OPTIONS)
        rows = pd.concat([of_model, group], ignore_index=True)
        self._of_model[model, dataset] = rows.drop_duplicates("question_id")
        new = group[~group["question_id"].isin(earlier["question_id"])]
        asked = pd.concat([earlier, new], ignore_index=True) if len(new) else earlier
        self._asked[dataset] = asked
        return pd.Index(asked["question_id"]).get_indexer(group["question_id"])

    def check(self, needed: Needed) -> None:
        """Refuse missing or repeated scores after the last file is added."""
        refuse_missing([names for names, scored in self._scored.items() if not scored])
        contents: dict[str, list[tuple[str, str, object, str]]] = {}
        for questions in self._asked.values():
            check_ids(questions, ["question", "options", "version"])
        for (model, checkpoint, dataset), scored in self._scored.items():
            questions = self._asked[dataset]
            is_scored = np.zeros(len(questions), bool)
            is_scored[np.concatenate([group.questions for group in scored])] = True
            splits = set(questions.loc[is_scored, "split"])
            lacking = questions[~is_scored & questions["split"].isin(splits)]
            check_asked(lacking, model, checkpoint, dataset)
            subject = f"scores of model {model}, checkpoint {checkpoint} on"
            check_splits(splits, needed[model][checkpoint], subject, dataset)
            content = digest([array.tobytes() for group in scored for array in group])
            seen = ", as of a file that was given twice"
            contents.setdefault(dataset, []).append((model, checkpoint, content, seen))
        for dataset, of_dataset in contents.items():
            check_copies(f"scores on {dataset}", of_dataset, self._checkpoints)

    def ties(self) -> Iterator[Ties]:
        """Yield the ties of each model, checkpoint and dataset that has some."""
        for names, scored in self._scored.items():
            asked = self._asked[names[-1]]
            counts = []
            for group in scored:
                questions = asked.iloc[group.questions]
                ends = np.cumsum(questions["options"].map(len))[:-1]
                for scores, gold in zip(
                    np.split(group.numbers[0], ends), questions["gold"], strict=True
                ):
                    best = scores == scores.max()
                    counts.append((best.sum(), best[gold], np.argmax(best) == gold))
            n_best, holds_gold, first_is_gold = np.array(counts, float).T
            if (n_tied := int((n_best > 1).sum())) > 0:
                accuracies = float(first_is_gold.mean()), float((holds_gold / n_best).mean())
                yield Ties(", ".join(names), n_tied, len(counts), *accuracies)

    def tables(self) -> Iterator[tuple[Table, dict[str, str], pd.DataFrame]]:
        """Yield tables with their keys: QUESTIONS by dataset, then tables by checkpoint."""
        questions = {}
        for dataset, asked in self._asked.items():
            right = [
                [texts[i]] for texts, i in zip(asked["options"], asked["gold"], strict=True)
            ]
            table = asked.assign(
                index=np.arange(len(asked)),
                references=pd.Series(right, dtype=object),
                options=asked["options"].map(list),
                any_of=False,
                excluded=False,
                truths=None,
            )
            questions[dataset] = QUESTIONS.fill(table)[QUESTIONS.schema.names]
            yield QUESTIONS, {"dataset": dataset}, questions[dataset]
        for key, scored in self._scored.items():
            keys = dict(zip(ANSWER_SET, key, strict=True))
            asked = questions[keys["dataset"]]
            beams, scores = self._beams(keys["dataset"], scored)
            clusters = scored_clusters(beams, scores)
            labels, answers = option_answers(asked, clusters)
            made = [(BEAMS, beams), (CLUSTERS, clusters), (LABELS, labels), (ANSWERS, answers)]
            for split in ("train", "test"):
                ids = asked.loc[asked["split"] == split, "question_id"]
                for kind, rows in made:
                    is_in_split = rows["question_id"].isin(ids)
                    yield kind, {**keys, "split": split}, rows[is_in_split]

    def _beams(
        self, dataset: str, scored: list[Scored]
    ) -> tuple[pd.DataFrame, NDArray[np.float64]]:
        """Return the table BEAMS of one checkpoint, and the scores of the options."""
        rows = self._asked[dataset]
        questions = np.concatenate([group.questions for group in scored])
        options = rows["options"].iloc[questions]
        n_options = options.map(len).to_numpy()
        numbers = np.hstack([group.numbers for group in scored])
        scores, logprob, n_tokens, unconditional = numbers
        table = pd.DataFrame(
            {
                "question_id": rows["question_id"].iloc[questions.repeat(n_options)],
                "beam": np.concatenate([np.arange(n) for n in n_options]),
                "text": [text for row_options in options for text in row_options],
                "logprob": logprob,
                "n_tokens": n_tokens,
                "unconditional": unconditional,
            }
        )
        return table.reindex(columns=BEAMS.schema.names).reset_index(drop=True), scores


def log_ties(scored: ScoredOptions) -> list[Ties]:
    """Return the ties of all checkpoints, and warn of frequent ones."""
    counts = list(scored.ties())
    for ties in counts:
        (log.warning if ties.n_tied > MOST_TIES * ties.n else log.info)("%s", ties)
    return counts
