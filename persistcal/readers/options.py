"""Check rows of imported scored options, and convert them to tables.

Texts are stored once for each dataset, and only numbers for each checkpoint, so that memory
suffices for hundreds of files.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.answers.options import normalised, option_answers, scored_clusters
from persistcal.readers.answers import (
    ANSWER_SET,
    NAMES,
    ROUNDING,
    Needed,
    Wanted,
    add_choice,
    check_ids,
    check_known,
    check_splits,
    is_empty,
    named_rows,
    number_of,
    refuse_missing,
)
from persistcal.store.artifacts import ANSWERS, BEAMS, CLUSTERS, LABELS, QUESTIONS, Table
from persistcal.store.files import digest
from persistcal.store.user_files import (
    TRUTHS,
    UserTableError,
    check_columns,
    check_copy,
    check_rows,
    plain_text,
    refuse,
    texts,
)

log = logging.getLogger(__name__)

NEEDED = (*NAMES, "question", "options", "option_logprobs", "gold")
# The column that a normalisation needs
NEEDS = {
    "per_token": "option_tokens",
    "per_character": "option_characters",
    "unconditional": "option_logprobs_unconditional",
}
OPTIONAL = (*NEEDS.values(), "correct", "version", "split")
KNOWN = (*NEEDED, *OPTIONAL)
LISTS = ("options", "option_logprobs", *NEEDS.values())
OF_QUESTION = ("question", "options", "gold", "split")  # equal at all checkpoints
NUMBERS = ("scores", "logprob", "n_tokens", "unconditional")  # arrays over options

# Bounds of the numbers in a list, and their description for errors
_LOGPROBS = (-np.inf, ROUNDING, "summed log-probabilities, up to 0")
VALID = {
    "option_logprobs": _LOGPROBS,
    "option_logprobs_unconditional": _LOGPROBS,
    "option_tokens": (1, np.inf, "numbers of tokens, at least 1"),
    "option_characters": (1, np.inf, "numbers of characters, at least 1"),
}


def tidy_options(rows: pd.DataFrame, normalisation: str, *, file: str = "") -> pd.DataFrame:
    """Return scored options in a uniform format after checking each row.

    `options` become tuples of distinct texts, and each of `NUMBERS` an array over the options,
    with NaN for unknown numbers.
    """
    unknown = f"scored options may have {', '.join(KNOWN)}; remove or rename it"
    check_columns(list(rows.columns), NEEDED, OPTIONAL, unknown=unknown)
    tidy = named_rows(rows, file, "question")
    tidy["version"] = texts(rows, "version", one_line=False)
    add_choice(tidy, rows, "split")
    options = _options(tidy, rows["options"].tolist())
    _add_gold(tidy, rows["gold"].tolist(), [len(row_options) for row_options in options])
    _add_scores(tidy, rows, options, normalisation)
    tidy["options"] = [distinct(row_options) for row_options in options]
    if "correct" in rows:
        _check_correct(tidy, rows["correct"].tolist())
    return tidy


def _options(tidy: pd.DataFrame, values: list[Any]) -> list[list[str]]:
    shown, remedy = tidy.assign(options=values), "give a list of at least two texts"
    wrong = [not isinstance(value, list) or len(value) < 2 for value in values]
    check_rows(shown, wrong, "options is no list of several", "options", remedy)
    options = [
        [plain_text(option, "options", row, one_line=False) for option in value]
        for row, value in enumerate(values, start=1)
    ]
    check_rows(
        shown, ["" in texts for texts in options], "an option is empty", "options", remedy
    )
    return options


def distinct(options: list[str]) -> tuple[str, ...]:
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


def _add_gold(tidy: pd.DataFrame, values: list[Any], n_options: list[int]) -> None:
    gold = np.array([number_of(value) for value in values])
    wrong = ~np.isin(gold, np.arange(max(n_options))) | (gold >= n_options)
    remedy = "give the place of the right option, counted from 0"
    shown = tidy.assign(gold=values)
    check_rows(shown, wrong, "gold is not the place of an option", "gold", remedy)
    tidy["gold"] = gold.astype(int)


def _add_scores(
    tidy: pd.DataFrame, rows: pd.DataFrame, options: list[list[str]], normalisation: str
) -> None:
    given = {name for name in VALID if name in rows and rows[name].notna().any()}
    given.add("option_logprobs")
    column = NEEDS.get(normalisation)
    if column and column not in {*given, "option_characters"}:
        raise UserTableError(
            f"the normalisation {normalisation} needs the column {column!r}, which is missing; "
            "add it, or choose another normalisation"
        )
    n_options = [len(row_options) for row_options in options]
    numbers = {
        name: _numbers(tidy, name, rows[name].tolist(), n_options)
        for name in VALID
        if name in given
    }
    unknown = np.full(sum(n_options), np.nan)
    tokens, unconditional = (
        numbers.get(NEEDS[n], unknown) for n in ("per_token", "unconditional")
    )
    lengths = np.array(
        [len(option) for row_options in options for option in row_options], float
    )
    characters = numbers.get("option_characters", lengths)
    logprob = numbers["option_logprobs"]
    scores = normalised(logprob, tokens, characters, unconditional, normalisation)
    for name, values in zip(NUMBERS, (scores, logprob, tokens, unconditional), strict=True):
        of_rows: list[Any] = np.split(values, np.cumsum(n_options)[:-1])
        tidy[name] = of_rows


def _numbers(
    tidy: pd.DataFrame, name: str, values: list[Any], n_options: list[int]
) -> NDArray[np.float64]:
    """Return the numbers of the options of all rows, one after the other."""
    least, greatest, valid = VALID[name]
    lists = [[number_of(x) for x in v] if isinstance(v, list) else [] for v in values]
    shown = tidy.assign(**{name: values})
    wrong = [
        not all(np.isfinite(x) and least <= x <= greatest for x in numbers) for numbers in lists
    ]
    check_rows(shown, wrong, f"{name} is not valid", name, f"give {valid}")
    wrong = [len(numbers) != n for numbers, n in zip(lists, n_options, strict=True)]
    remedy = "give a list with one number for each option"
    check_rows(shown, wrong, f"{name} is not as long as options", name, remedy)
    return np.concatenate(lists)


def _check_correct(tidy: pd.DataFrame, values: list[Any]) -> None:
    """Refuse rows if the log's score and `gold` disagree about the best option."""
    best = np.array([int(np.argmax(scores)) for scores in tidy["scores"]])
    given = np.array([not is_empty(value) for value in values])
    reported = np.array([TRUTHS.get(str(value).strip().lower(), np.nan) for value in values])
    shown = tidy.assign(correct=values)
    wrong = given & np.isnan(reported)
    check_rows(shown, wrong, "correct is not valid", "correct", "give 1 or 0, or nothing")
    problem = "the score of the log is not that of its best option"
    remedy = "the log was made with other options or another gold than it shows"
    check_rows(shown, given & (reported != (best == tidy["gold"])), problem, "correct", remedy)


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
        self._asked: dict[str, pd.DataFrame] = {}  # by dataset, with their row `number`
        self._versions: dict[tuple[str, str], pd.Series] = {}  # by model and dataset

    def add(self, rows: pd.DataFrame) -> int:
        """Add the wanted rows; return the number of skipped rows."""
        check_known(rows, by_model=self._checkpoints, datasets=self._datasets)
        skipped = 0
        for named, group in rows.groupby(ANSWER_SET, sort=False):
            answer_set = tuple(map(str, named))
            if answer_set not in self._scored:
                skipped += len(group)
                continue
            model, checkpoint, dataset = answer_set
            if (twice := group.duplicated("question_id", keep=False)).any():
                first = group.loc[twice, "question_id"].iloc[0]
                raise refuse(
                    f"question {first!r} of {dataset} is there twice at checkpoint "
                    f"{checkpoint} of {model}",
                    group[group["question_id"] == first],
                    "question",
                    "give each document once, and the log of each run as a separate file",
                )
            self._check_version(group, model, dataset)
            number = self._number(group, dataset)
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

    def _check_version(self, group: pd.DataFrame, model: str, dataset: str) -> None:
        """Refuse a question of another version of the task than at an earlier checkpoint."""
        versions = group.set_index("question_id")["version"]
        earlier_versions = self._versions.setdefault((model, dataset), versions)
        shared_ids = versions.index.intersection(earlier_versions.index)
        differs = (
            versions.loc[shared_ids].to_numpy() != earlier_versions.loc[shared_ids].to_numpy()
        )
        if differs.any():
            raise refuse(
                f"{dataset} has two versions, which cannot be compared: prompts or "
                f"settings of {differs.sum()} questions differ between checkpoints of {model}",
                group[group["question_id"].isin(shared_ids[differs])],
                "question_id",
                "take all logs from one version of the task",
            )
        self._versions[model, dataset] = pd.concat(
            [earlier_versions, versions.drop(shared_ids)]
        )

    def _number(self, group: pd.DataFrame, dataset: str) -> NDArray[np.int64]:
        """Return the questions' row numbers in their dataset; append new questions to it."""
        group = group.assign(category=group["category"] if "category" in group else "")
        group = group[["location", "question_id", *OF_QUESTION, "version", "category"]]
        earlier = self._asked.get(dataset, group.iloc[:0])
        new = group[~group["question_id"].isin(earlier["question_id"])]
        asked = pd.concat([earlier, new], ignore_index=True) if len(new) else earlier
        self._asked[dataset] = asked
        number = pd.Index(asked["question_id"]).get_indexer(group["question_id"])
        recorded = asked.iloc[number]
        for name in OF_QUESTION:
            differs = group[name].to_numpy(object) != recorded[name].to_numpy(object)
            if differs.any():
                first, conflicting = group[differs].iloc[0], recorded[differs].iloc[0]
                raise refuse(
                    f"{name} of {differs.sum()} questions of {dataset} differs between "
                    f"checkpoints, first of {first['question_id']!r}, where "
                    f"{conflicting['location']} has {conflicting[name]}",
                    group[differs],
                    name,
                    "a question has one at all checkpoints; give another question another id",
                )
        return number

    def check(self, needed: Needed) -> None:
        """Refuse missing or repeated scores after the last file is added."""
        refuse_missing([names for names, scored in self._scored.items() if not scored])
        for dataset, asked in self._asked.items():
            check_ids(asked, dataset, "documents", ["question", "options", "version"])
        seen: dict[tuple[str, str, str], str] = {}
        for (model, checkpoint, dataset), scored in self._scored.items():
            asked = self._asked[dataset]
            is_scored = np.zeros(len(asked), bool)
            is_scored[np.concatenate([group.questions for group in scored])] = True
            splits = set(asked.loc[is_scored, "split"])
            if (lacking := ~is_scored & asked["split"].isin(splits)).any():
                raise refuse(
                    f"model {model}, checkpoint {checkpoint} has no scores of {lacking.sum()} "
                    f"questions of {dataset} that others have",
                    asked[lacking],
                    "question_id",
                    "all checkpoints are asked the same questions; add their rows",
                )
            subject = f"scores of model {model}, checkpoint {checkpoint} on"
            check_splits(splits, needed[model][checkpoint], subject, dataset)
            content = digest([array.tobytes() for group in scored for array in group])
            first = seen.setdefault((model, dataset, content), checkpoint)
            may_be_equal = self._checkpoints[model]
            check_copy(f"scores on {dataset}", model, checkpoint, first, may_be_equal)

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
        for named, scored in self._scored.items():
            keys = dict(zip(ANSWER_SET, named, strict=True))
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
        asked = self._asked[dataset]
        questions = np.concatenate([group.questions for group in scored])
        options = asked["options"].iloc[questions]
        n_options = options.map(len).to_numpy()
        numbers = np.hstack([group.numbers for group in scored])
        scores, logprob, n_tokens, unconditional = numbers
        table = pd.DataFrame(
            {
                "question_id": asked["question_id"].iloc[questions.repeat(n_options)],
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
    found = list(scored.ties())
    for ties in found:
        (log.warning if ties.n_tied > MOST_TIES * ties.n else log.info)("%s", ties)
    return found
