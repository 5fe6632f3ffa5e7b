"""Sources of questions: TriviaQA, Jeopardy, BioASQ and a user's own file.

A function with the decorator `source` is a source. Its parameters are keys of a dataset in the
config, `least` (the questions of each split that the study needs) and `states` (the names of
its checkpoints). Keys without a default are required by the schema of the config.
"""

import inspect
import json
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from persistcal.questions.own import KNOWN, LISTS, check_splits, tidy_questions
from persistcal.questions.question_list import (
    N_FEW_SHOT,
    SHUFFLE_SEED,
    Question,
    check_counts,
    count_questions,
    number_questions,
    unique,
)
from persistcal.store.user_files import digests_of, name_files_in_errors, read_file

if TYPE_CHECKING:
    from datasets import Dataset

log = logging.getLogger(__name__)

Source = Callable[..., pd.DataFrame]
SOURCES: dict[str, Source] = {}  # by the value of the config's `datasets.*.source`


def source(name: str) -> Callable[[Source], Source]:
    """Register a function that returns the table QUESTIONS as the source `name`."""

    def register(function: Source) -> Source:
        SOURCES[name] = function
        return function

    return register


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
    """Return the questions of TriviaQA, shuffled; the judge decides about aliases."""
    return number_questions(
        "triviaqa",
        list(_shuffled(validation)),
        list(islice(_shuffled(training), N_FEW_SHOT)),
        train=train,
        test=test,
    )


MIN_CATEGORY_SIZE = 150
# About words, not facts
UNSUITABLE = {"before & after", "rhyme time", "stupid answers", "common bonds", "homophones"}


def _is_broken(clue: str) -> bool:
    quoted = len(clue) > 1 and clue.startswith("'") and clue.endswith("'")
    missing = re.search(r"\bclue\b.*\bmissing\b", clue, re.IGNORECASE | re.DOTALL)
    return bool(missing) or not quoted


def factual_clues(rows: Iterable[dict[str, str]]) -> list[Question]:
    """Keep the clues that are factual questions.

    Clues with links to media and repetitions are left out, and then categories with fewer than
    150 remaining clues. Clues that are damaged in the source are excluded.
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
    canonical = {name.casefold(): name for name in names}
    papers = {name.casefold(): name for name in expected}
    too_many = sorted(canonical[name] for name in canonical.keys() - papers.keys())
    lacking = sorted(papers[name] for name in papers.keys() - canonical.keys())
    if too_many or lacking:
        raise ValueError(
            f"the categories with at least {MIN_CATEGORY_SIZE} clues differ from the paper's: "
            f"the data has also {too_many}, and lacks {lacking}; use the pinned revision of "
            "the data"
        )


def jeopardy_questions(
    rows: "Dataset", categories: Sequence[str], *, train: Sequence[int], test: Sequence[int]
) -> pd.DataFrame:
    """Return the questions of Jeopardy, each with its category in brackets before it."""
    rows = rows.select_columns(["question", "continuation", "ee-category"])
    clues = factual_clues(rows.shuffle(seed=SHUFFLE_SEED).to_list())
    check_categories((clue.category for clue in clues), categories)
    asked = [clue._replace(question=f"[{clue.category}] {clue.question}") for clue in clues]
    return number_questions(
        "jeopardy", asked[N_FEW_SHOT:], asked[:N_FEW_SHOT], train=train, test=test
    )


N_EXAMPLES = 5  # few-shot examples of each type
MAX_GROUPS = 10  # a judge loses track of longer lists
LIST_REQUEST = " Just output one of the answers."


def _answers(exact_answer: object) -> list[str]:
    """Flatten the exact answer (groups of synonyms, a list, or one text) without empty ones.

    >>> _answers([["CFTR", " "], ["ABCC7 "]])
    ['CFTR', 'ABCC7']
    """
    if isinstance(exact_answer, str):
        return [answer] if (answer := exact_answer.strip()) else []
    if not isinstance(exact_answer, Sequence):
        return []
    return [answer for part in exact_answer for answer in _answers(part)]


def factoid_question(body: str, exact_answer: object) -> Question:
    """Return a factoid question; several exact answers are each accepted.

    >>> factoid_question("Which gene causes it", [["CFTR"]])[:4]
    ('Which gene causes it?', ['CFTR'], False, 'factoid')
    """
    if "?" not in body and not body.endswith((".", "!")):
        body += "?"
    references = _answers(exact_answer)
    return Question(body, references, any_of=len(references) > 1, category="factoid")


def list_question(body: str, groups: Sequence[object]) -> Question:
    """Return a list question that asks for one answer of its `groups`.

    >>> list_question("List the chains", [["alpha", "α"], ["beta"]])[:4]
    ('List the chains. Just output one of the answers.', ['alpha', 'α', 'beta'], True, 'list')
    """
    if not body.endswith((".", "?", "!")):
        body += "."
    return Question(body + LIST_REQUEST, _answers(groups), any_of=True, category="list")


def _question(entry: dict[str, Any]) -> Question:
    make = factoid_question if entry["type"] == "factoid" else list_question
    question = make(entry["body"].strip(), entry.get("exact_answer") or [])
    if not question.references:
        raise ValueError(
            f"question {entry.get('id')!r} ({entry['body']!r}) has no exact answer"
        )
    return question


def bioasq_questions(entries: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the factoid and list questions of BioASQ's training file, all for evaluation.

    The first five of each type, in one shuffled order, are few-shot examples.
    """
    order = list(range(len(entries)))
    random.Random(SHUFFLE_SEED).shuffle(order)
    first: dict[str, dict[str, Any]] = {}
    for position in order:
        first.setdefault(entries[position]["body"].strip(), entries[position])
    questions = [
        _question(entry)
        for entry in first.values()
        if entry["type"] == "factoid"
        or (entry["type"] == "list" and len(entry.get("exact_answer") or []) <= MAX_GROUPS)
    ]
    examples = [
        example
        for category in ("factoid", "list")
        for example in [q for q in questions if q.category == category][:N_EXAMPLES]
    ]
    asked = [question for question in questions if question not in examples]
    return number_questions("bioasq", asked, examples, train=[0, 0], test=[0, len(asked)])


@source("triviaqa")
def read_triviaqa(
    *,
    repo: str,
    revision: str,
    train: Sequence[int],
    test: Sequence[int],
    expect: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """Return the questions of TriviaQA, from a repository of the Hub."""
    from datasets import load_dataset

    validation, training = load_dataset(
        repo, "rc.nocontext", split=["validation", "train"], revision=revision
    )
    with name_files_in_errors(repo):
        questions = triviaqa_questions(validation, training, train=train, test=test)
        check_counts(questions, expect or {})
    log.info("Questions without blacklisted ones: %s", count_questions(questions))
    return questions


@source("jeopardy")
def read_jeopardy(
    *,
    repo: str,
    revision: str,
    categories: str,
    train: Sequence[int],
    test: Sequence[int],
    expect: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """Return the questions of Jeopardy of the categories that a text file lists."""
    from datasets import load_dataset

    rows = load_dataset(repo, "all_questions", split="train", revision=revision)
    names = Path(categories).read_text(encoding="utf-8").splitlines()
    with name_files_in_errors(repo):
        questions = jeopardy_questions(rows, names, train=train, test=test)
        check_counts(questions, expect or {})
    kept = {name: count_questions(questions)[name] for name in ("questions", "train", "test")}
    log.info("Questions without blacklisted ones: %s", kept)
    return questions


@source("bioasq")
def read_bioasq(*, file: str, expect: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Return the questions of BioASQ, from the user's copy of its training data."""
    try:
        with name_files_in_errors(file):
            questions = bioasq_questions(json.loads(Path(file).read_text("utf-8"))["questions"])
            check_counts(questions, expect or {})
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{file}: there is no such file. BioASQ may not be passed on: register at "
            "https://participants-area.bioasq.org, download the training data of task 14b and "
            "give its path as datasets.bioasq.file, or drop bioasq from study.datasets."
        ) from error
    except KeyError as error:
        raise ValueError(
            f"{file}: the key {error} is missing; give the task-B training data as BioASQ "
            "distributes it."
        ) from error
    questions.attrs["sources"] = digests_of(file)
    log.info("Questions by type: %s", count_questions(questions))
    return questions


@source("file")
def read_own_questions(
    *,
    file: str,
    n_few_shot: int = 0,
    n_train: int = 0,
    n_test: int = 0,
    seed: int = 17,
    least: Mapping[str, int],
    states: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the questions of a user's CSV, JSONL or parquet file."""
    sizes: dict[str, Any] = {"n_few_shot": n_few_shot, "n_train": n_train, "n_test": n_test}
    with name_files_in_errors(file):
        rows = read_file(file, known=KNOWN, lists=LISTS)
        questions = tidy_questions(rows, **sizes, seed=seed, states=states)
        check_splits(questions["split"], least)
    questions.attrs["sources"] = digests_of(file)
    log.info("Questions per split: %s", questions["split"].value_counts().to_dict())
    return questions


def read_questions(name: str, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return the questions of a source; settings that it has no parameter for are left out."""
    function = SOURCES[name]
    parameters = inspect.signature(function).parameters
    return function(**{key: settings[key] for key in settings if key in parameters})
