"""Sources of questions: TriviaQA, Jeopardy, BioASQ and a user's own file.

A function with the decorator `source` is a source. The parameters of a source are keys of a
dataset in the config, `least` (the questions of each split that the study needs) and `states`
(the names of the checkpoints). Keys without a default are required by the schema of the config.
"""

import inspect
import json
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from persistcal.questions.labels import benchmark_form
from persistcal.questions.question_list import (
    N_FEW_SHOT,
    SHUFFLE_SEED,
    Question,
    check_counts,
    draw_splits,
    number_questions,
    unique,
)
from persistcal.store.artifacts import QUESTIONS, check
from persistcal.store.user_files import (
    UserTableError,
    check_columns,
    check_groups,
    digests_of,
    list_of_texts,
    name_files_in_errors,
    plain_text,
    read_each,
    read_file,
    texts,
)

if TYPE_CHECKING:
    from datasets import Dataset

log = logging.getLogger(__name__)

BLACKLIST = {
    "Which is the longest length below?",
    "The books were Alice and Jerry in the USA – what were they here?",
    "Three female trainers have won the Grand National, Jenny Pitman is one name either of the "
    "other two,",
}


def _accepted(answer: Mapping[str, Any]) -> list[str]:
    """Return the answer and its aliases, each form of `benchmark_form` once.

    >>> answer = {"value": "Eagle", "aliases": ["The Eagle", "Erne"]}
    >>> _accepted({**answer, "normalized_aliases": ["eagle", "erne", "eagles"]})
    ['Eagle', 'Erne', 'eagles']
    """
    aliases = [*(answer["aliases"] or ()), *(answer["normalized_aliases"] or ())]
    texts = [text.strip() for text in (answer["value"], *aliases)]
    by_form = {benchmark_form(text): text for text in reversed(texts)}
    return [text for text in dict.fromkeys(texts) if by_form.get(benchmark_form(text)) == text]


def _shuffled(rows: "Dataset", *, aliases: bool) -> Iterator[Question]:
    rows = rows.select_columns(["question", "answer"]).shuffle(seed=SHUFFLE_SEED)
    return unique(
        Question(
            row["question"].strip(),
            _accepted(row["answer"]) if aliases else [row["answer"]["value"].strip()],
            excluded=row["question"].strip() in BLACKLIST,
        )
        for row in rows
    )


def _load(repo: str, name: str, splits: Sequence[str], revision: str) -> "list[Dataset]":
    """Load splits of a repository of the Hub, or of a folder with the same files.

    The cache of `datasets` identifies a folder by name and would return earlier contents, so a
    folder is read without the cache.
    """
    from datasets import load_dataset

    if not Path(repo).is_dir():
        return load_dataset(repo, name, split=splits, revision=revision)
    with TemporaryDirectory() as cache:
        return load_dataset(repo, name, split=splits, cache_dir=cache, keep_in_memory=True)


def read_triviaqa(
    *,
    repo: str,
    revision: str,
    train: Sequence[int],
    test: Sequence[int],
    aliases: bool = False,
    expect: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """Return the questions of TriviaQA, shuffled, from a repository of the Hub.

    With `aliases` they have all references of the benchmark. By default they have only its
    answer, and a judge decides about other answers.
    """
    validation, training = _load(repo, "rc.nocontext", ["validation", "train"], revision)
    with name_files_in_errors(repo):
        canonical = list(_shuffled(validation, aliases=aliases))
        examples = list(islice(_shuffled(training, aliases=aliases), N_FEW_SHOT))
        questions = number_questions("triviaqa", canonical, examples, train=train, test=test)
        check_counts(questions, expect or {})
    return questions


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


def read_jeopardy(
    *,
    repo: str,
    revision: str,
    categories: str,
    train: Sequence[int],
    test: Sequence[int],
    expect: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """Return the questions of Jeopardy, each with its category in brackets before it.

    A text file lists the `categories`.
    """
    [rows] = _load(repo, "all_questions", ["train"], revision)
    names = Path(categories).read_text(encoding="utf-8").splitlines()
    with name_files_in_errors(repo):
        rows = rows.select_columns(["question", "continuation", "ee-category"])
        clues = factual_clues(rows.shuffle(seed=SHUFFLE_SEED).to_list())
        check_categories((clue.category for clue in clues), names)
        asked = [clue._replace(question=f"[{clue.category}] {clue.question}") for clue in clues]
        canonical, examples = asked[N_FEW_SHOT:], asked[:N_FEW_SHOT]
        questions = number_questions("jeopardy", canonical, examples, train=train, test=test)
        check_counts(questions, expect or {})
    return questions


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


def bioasq_question(entry: Mapping[str, Any]) -> Question:
    """Return a factoid question, or a list question that asks for one of several answers.

    Several exact answers are each accepted.

    >>> entry = {"type": "factoid", "body": "Which gene causes it"}
    >>> bioasq_question({**entry, "exact_answer": [["CFTR"], [" "]]})[:4]
    ('Which gene causes it?', ['CFTR'], False, 'factoid')
    >>> answers = [["alpha", "α"], ["beta", ""]]
    >>> bioasq_question({"type": "list", "body": "List chains", "exact_answer": answers})[:3]
    ('List chains. Just output one of the answers.', ['alpha', 'α', 'beta'], True)
    """
    body, references = entry["body"].strip(), _answers(entry.get("exact_answer"))
    if not references:
        raise ValueError(
            f"question {entry.get('id')!r} ({entry['body']!r}) has no exact answer"
        )
    if entry["type"] == "factoid":
        end = "" if "?" in body or body.endswith((".", "!")) else "?"
        return Question(body + end, references, len(references) > 1, category="factoid")
    end = "" if body.endswith((".", "?", "!")) else "."
    return Question(body + end + LIST_REQUEST, references, any_of=True, category="list")


def _bioasq_questions(entries: Sequence[dict[str, Any]]) -> pd.DataFrame:
    order = list(range(len(entries)))
    random.Random(SHUFFLE_SEED).shuffle(order)
    first: dict[str, dict[str, Any]] = {}
    for position in order:
        first.setdefault(entries[position]["body"].strip(), entries[position])
    questions = [
        bioasq_question(entry)
        for entry in first.values()
        if entry["type"] == "factoid"
        or (entry["type"] == "list" and len(entry.get("exact_answer") or []) <= MAX_GROUPS)
    ]
    examples = [
        example
        for category in ("factoid", "list")
        for example in [q for q in questions if q.category == category][:N_EXAMPLES]
    ]
    rest = [question for question in questions if question not in examples]
    return number_questions("bioasq", rest, examples, train=[0, 0], test=[0, len(rest)])


def read_bioasq(*, file: str, expect: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Return the factoid and list questions of BioASQ's training file, all for evaluation.

    The first five of each type, in one shuffled order, are few-shot examples.
    """
    try:
        with name_files_in_errors(file):
            questions = _bioasq_questions(
                json.loads(Path(file).read_text("utf-8"))["questions"]
            )
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
    return questions


SPLITS = ("train", "test", "few_shot", "unused")
NEEDED = ("question", "answers")
OF_CHOICE = ("question", "options", "gold")  # needed of multiple choice, instead of `NEEDED`
OPTIONAL = ("category", "id", "split", "group")
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
        counts = {"n_few_shot": n_few_shot, "n_train": n_train, "n_test": n_test}
        if ignored := [name for name, count in counts.items() if count]:
            raise UserTableError(
                "the column 'split' decides the splits, so the dataset's key "
                f"{ignored[0]} would be ignored; remove the key or the column"
            )
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
    check_groups(tidy["group"], tidy["id"])
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
        options = read_each(plain_text, value, "options", f"row {row}".format)
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


def split_truths(rows: pd.DataFrame, known_names: Collection[str]) -> pd.DataFrame:
    """Return the columns references and truths of a user's column answers.

    An answer is a text, a list of texts, or a mapping of checkpoints to these, with ``default``
    for all other checkpoints. Truths are a JSON object of lists by checkpoint, or None.

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
        given = {
            key: value
            for key, value in several.items()
            if isinstance(value, list | tuple | np.ndarray) or not pd.isna(value)
        }
        if not given.get(DEFAULT) and isinstance(value, dict):
            raise UserTableError(
                f"column 'answers' of row {row} has no {DEFAULT!r}; give what is true at all "
                "checkpoints that it does not name"
            )
        if unknown := [key for key in given if key not in (DEFAULT, *known_names)]:
            raise UserTableError(
                f"column 'answers' of row {row} names the checkpoint {unknown[0]!r}; known are "
                f"{', '.join(known_names) or 'none'}"
            )
        listed = read_each(
            partial(list_of_texts, one_line=True),
            given.values(),
            "answers",
            f"row {row}".format,
        )
        read = dict(zip(given, map(list, listed), strict=True))
        if empty := [key for key, texts in read.items() if not texts and key != DEFAULT]:
            raise UserTableError(
                f"column 'answers' of row {row} holds no answer for {empty[0]!r}; give one"
            )
        references.append(read.pop(DEFAULT, []))
        truths.append(json.dumps(read, ensure_ascii=False) if read else None)
    return pd.DataFrame({"references": references, "truths": truths}, dtype=object)


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
        rows = read_file(file, known_names=KNOWN, lists=LISTS)
        questions = tidy_questions(rows, **sizes, seed=seed, states=states)
        for split, needed in least.items():
            if (n := int((questions["split"] == split).sum())) < needed:
                raise ValueError(
                    f"{n} questions are of the split {split}, but the study needs at least "
                    f"{needed}; name more in a column 'split' or raise the dataset's n_{split}"
                )
    questions.attrs["sources"] = digests_of(file)
    log.info("Questions per split: %s", questions["split"].value_counts().to_dict())
    return questions


# By the value of the config's `datasets.*.source`; each returns the table QUESTIONS
SOURCES: dict[str, Callable[..., pd.DataFrame]] = {
    "triviaqa": read_triviaqa,
    "jeopardy": read_jeopardy,
    "bioasq": read_bioasq,
    "file": read_own_questions,
}


def check_questions(questions: pd.DataFrame, name: str) -> None:
    """Refuse a table that the source `name` must not return, whatever its data are."""
    check(questions, QUESTIONS, f"source {name!r}")
    canonical = questions[questions["split"] != "few_shot"]
    choice = questions[questions["options"].notna()]
    gold = zip(choice["references"], choice["options"], choice["gold"], strict=True)
    is_gold = [list(right) == list(options)[int(n) :][:1] for right, options, n in gold]
    wrong = {
        f"a split that is not {', '.join(SPLITS)}": ~questions["split"].isin(SPLITS),
        "no question text": questions["question"].str.strip() == "",
        "the text of an earlier question": canonical["question"].duplicated(),
        "the index of an earlier question": canonical["index"].duplicated(),
        "no reference": questions["references"].map(lambda answers: not any(answers)),
        "a reference that is not option gold": ~pd.Series(is_gold, choice.index, dtype=bool),
    }
    for fault, rows in wrong.items():
        for question in questions.loc[rows[rows].index, "question_id"]:
            raise ValueError(
                f"source {name!r} returned question {question!r} with {fault}; correct the "
                "function of the source"
            )
    if not (questions["split"] == "test").any():
        raise ValueError(
            f"source {name!r} returned no question of the split test; correct the function of "
            "the source, or the dataset's key test or n_test"
        )


def read_questions(name: str, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return the questions of a source; settings that it has no parameter for are left out."""
    function = SOURCES[name]
    parameters = inspect.signature(function).parameters
    questions = function(**{key: settings[key] for key in settings if key in parameters})
    check_questions(questions, name)
    return questions
