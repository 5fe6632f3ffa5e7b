"""The columns of each kind of input, found in a user's file by their names and other names."""

import logging
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

from persistcal.store.user_files import UserTableError, list_names, plain_name

log = logging.getLogger(__name__)

QUESTION = ("dataset", "question_id")


class FileColumn(NamedTuple):
    """A column: the kind of value in it, and other names that users give it.

    Rows that agree in the columns `of` have one value, or the `remedy` is printed. A column
    that is not needed in each row can be `all_or_none`.
    """

    name: str
    kind: str = "name"  # a key of `persistcal.readers.rules.KINDS`
    needed: bool = True
    synonyms: Sequence[str] = ()
    of: Sequence[str] = ()
    all_or_none: bool = False
    remedy: str = "a question has one; give another question another question_id"


class FileTable(NamedTuple):
    """The columns of a kind of input. Each row is a `unit`."""

    unit: str
    columns: Sequence[FileColumn]
    further: str = ""  # names of other columns that a file can have

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(column.name for column in self.columns)

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of columns that each file has."""
        return tuple(column.name for column in self.columns if column.needed)

    @property
    def optional(self) -> tuple[str, ...]:
        """Names of the other columns."""
        return tuple(column.name for column in self.columns if not column.needed)

    @property
    def lists(self) -> tuple[str, ...]:
        """Names of columns that can be JSON lists in a CSV file."""
        return tuple(c.name for c in self.columns if c.kind.endswith("s"))


SUBJECT = (
    FileColumn("model"),
    FileColumn(
        "checkpoint",
        synonyms=("version", "revision", "model_version", "model_name", "step", "epoch"),
    ),
    FileColumn("dataset"),
    FileColumn(
        "question_id",
        synonyms=("id", "qid", "item_id", "idx", "index", "sample_id", "example_id", "item"),
    ),
)
RIGHT = (
    *("is_correct", "correctness", "accuracy", "acc", "right", "hit", "label"),
    *("grade", "passed", "pass", "is_right", "success", "exact_match", "em", "score"),
)
ASKED = FileColumn(
    "question", "text", synonyms=("query", "prompt", "input", "problem"), of=QUESTION
)
SPLIT = FileColumn("split", "split", needed=False, of=QUESTION)

PREDICTIONS = FileTable(
    "answer that an estimator judged",
    (
        *(column._replace(kind="word") for column in SUBJECT),
        FileColumn("train_dataset", "word", needed=False),
        FileColumn("estimator", "word"),
        FileColumn("seed", "whole"),
        FileColumn(
            "confidence",
            "share",
            synonyms=("conf", "prob", "probability", "p_true", "certainty"),
        ),
        FileColumn("correct", "truth", synonyms=RIGHT),
        FileColumn("ask", "ask", needed=False, all_or_none=True),
        FileColumn("group", "name or nothing", needed=False, of=QUESTION),
    ),
)
ANSWERS = FileTable(
    "answer",
    (
        *SUBJECT,
        ASKED,
        FileColumn(
            "references",
            "texts",
            synonyms=(
                *("reference", "target", "gold", "ground_truth", "reference_answer"),
                *("expected_answer", "expected", "ideal"),
            ),
            of=QUESTION,
        ),
        FileColumn(
            "answer",
            "reply",
            synonyms=(
                *("predicted_answer", "response", "prediction", "output", "completion"),
                *("generation", "model_response"),
            ),
        ),
        FileColumn("sample", "whole", needed=False, all_or_none=True),
        FileColumn("logprob", "logprob", needed=False, all_or_none=True),
        FileColumn("token_logprobs", "logprobs", needed=False, all_or_none=True),
        FileColumn("label", "label", needed=False),
        FileColumn("correct", "label", needed=False, synonyms=RIGHT),
        SPLIT,
        FileColumn("group", "name or nothing", needed=False, of=QUESTION),
    ),
    "confidence, confidence_<name>",
)
OPTIONS = FileTable(
    "answer",
    (
        *SUBJECT,
        ASKED,
        FileColumn("options", "options", of=QUESTION),
        FileColumn("option_logprobs", "logprobs"),
        FileColumn("gold", "place", of=QUESTION),
        FileColumn("option_tokens", "counts", needed=False),
        FileColumn("option_characters", "counts", needed=False),
        FileColumn("option_logprobs_unconditional", "logprobs", needed=False),
        FileColumn("correct", "truth or nothing", needed=False),
        FileColumn(
            "version",
            "text",
            needed=False,
            of=("model", *QUESTION),
            remedy="take all logs from one version of the task",
        ),
        SPLIT,
    ),
)
KNOWN = {*PREDICTIONS.names, *ANSWERS.names, *OPTIONS.names}
NAMES = tuple(column.name for column in SUBJECT)

# Words in the name of a column with high values for low confidences
UNCERTAINTIES = {"uncertainty", "doubt", "entropy", "perplexity", "error", "risk", "variance"}
VALUES = ("raw", "text", "content", "value")  # uninformative last names of nested fields
# A word that identifies a column, in any name
CLEAR = {
    "confidence": {"confidence", "conf", "probability", "prob", "certainty"},
    "correct": {"correct", "correctness"},
}


class Hint(NamedTuple):
    """Options that can make the command read a refused file."""

    columns: Mapping[str, str] = {}
    uncertainty: str = ""
    scale: str = ""

    def __str__(self) -> str:
        """Return the options, quoted for a shell."""
        pairs = [shlex.quote(f"{name}={column}") for name, column in self.columns.items()]
        options = [f"--columns {' '.join(pairs)}"] if pairs else []
        for name in ("uncertainty", "scale"):
            if value := getattr(self, name):
                options.append(f"--{name} {shlex.quote(value)}")
        return " ".join(options)

    def with_text_as_id(self) -> "Hint":
        """Return the options with the question's text as the id, if an id was guessed."""
        text = self.columns.get("question", "question")
        ids = {"question_id": text} if "question_id" in self.columns else {}
        return self._replace(columns={**self.columns, **ids})

    def join(self, further: "Hint") -> "Hint":
        """Return the options of both, where the first ones stay."""
        return Hint(
            {**further.columns, **self.columns},
            self.uncertainty or further.uncertainty,
            self.scale or further.scale,
        )


def match_columns(
    present: Sequence[str], wanted: Collection[str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the meaning of columns by name: as given, exact, or but for case and spaces.

    >>> match_columns(["Question ID", "conf", "x"], {"question_id"}, {"confidence": "conf"})
    {'conf': 'confidence', 'Question ID': 'question_id'}
    """
    matched = {column: name for name, column in given.items() if column in present}
    taken = set(given)
    matched |= {n: n for n in present if n in wanted and n not in matched and n not in taken}
    taken |= set(matched.values())
    by_plain_name = {plain_name(name): name for name in wanted if name not in taken}
    counts = Counter(plain_name(name) for name in present if name not in matched)
    for name in present:
        key = plain_name(name)
        if name not in matched and key in by_plain_name and counts[key] == 1:
            matched[name] = by_plain_name[key]
    return matched


@dataclass
class ColumnChoice:
    """The columns of all files of a study, and notes on those that are not read as named."""

    given: Mapping[str, str]
    by: Collection[str]
    names: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)

    def choose(
        self,
        present: Sequence[str],
        needed: Collection[str],
        optional: Collection[str],
        given: Mapping[str, str],
        fits: Callable[[str, str], bool],
    ) -> dict[str, str]:
        """Return the columns to read by their names in a file; refuse unclear names.

        A missing column is hinted at if another one has its meaning, and `fits` its values.
        """
        for column, given_column in given.items():
            option = str(Hint({column: given_column}))
            if column not in needed and column not in optional:
                expected = ", ".join([*needed, *optional])
                raise UserTableError(
                    f"{option}: there is no column {column!r} to give; give {expected}"
                )
            if given_column not in present:
                raise UserTableError(
                    f"{option}: it has no {given_column!r}, but {list_names(present)}"
                )
            if column in present and column != given_column:
                raise UserTableError(
                    f"{option}: it has a column {column!r}, too; rename one of them"
                )
        columns = match_columns(present, {*needed, *optional}, given)
        spare = [name for name in present if name not in columns]
        lacking = [name for name in needed if name not in columns.values()]
        if lacking:
            hint = guess_columns(lacking, spare, columns, fits)
            raise lacking_error(f"column {lacking[0]!r} is missing", lacking[0], hint)
        for name in spare:
            if close := get_close_matches(name, set(optional) - set(columns.values()), 1, 0.85):
                raise UserTableError(
                    f"column {name!r} looks like {close[0]!r}; give {Hint({close[0]: name})}, "
                    "or rename it"
                )
        self.names |= columns
        self.ignored += [name for name in spare if name not in self.by]
        return columns

    def notes(self) -> list[str]:
        """Return sentences on columns that are matched by a similar name, or ignored."""
        notes, given = [], self.given.values()
        similar = {c: name for c, name in self.names.items() if c != name and c not in given}
        if similar:
            names = ", ".join(f"{column!r} is {name}" for column, name in similar.items())
            notes.append(f"Columns that differ only in case or spaces: {names}.")
        if self.ignored:
            notes.append(f"Ignored columns: {list_names(self.ignored)}.")
            log.warning("Ignored columns: %s", list_names(self.ignored))
        return notes


def lacking_error(problem: str, name: str, hint: Hint) -> UserTableError:
    """Return the refusal of a file without a column, with a hint if there is one."""
    if hint != Hint():
        return UserTableError(problem, hint)
    return UserTableError(
        f"{problem}; add it to every row, or name the column that holds it, as in --columns "
        f"{name}=NAME"
    )


def guess_columns(
    lacking: Sequence[str],
    spare: Sequence[str],
    chosen: Mapping[str, str],
    fits: Callable[[str, str], bool],
) -> Hint:
    """Return the spare columns that can be the missing ones, by their names and by `fits`.

    A question's text can be its id.
    """
    guesses: dict[str, str] = {}
    doubts: list[str] = []
    for name in lacking:
        free = [column for column in spare if column not in guesses.values()]
        called = {word: c for n in (3, 2, 1) for c in free[::-1] for word in _calls(c)[:n][-1:]}
        likely = [called[s] for s in (name, *SYNONYMS.get(name, ())) if s in called]
        likely += [
            column
            for column in free
            if (words := _words(column)) & CLEAR.get(name, set())
            and ("confidence" in words or not words & UNCERTAINTIES)
        ]
        fitting = [column for column in dict.fromkeys(likely) if fits(name, column)]
        if fitting:
            guesses[name] = fitting[0]
        elif name == "confidence":
            doubts = [
                column
                for column in free
                if _words(column) & UNCERTAINTIES
                and "confidence" not in _words(column)
                and fits("uncertainty", column)
            ]
    if "question_id" in lacking and "question_id" not in guesses:
        texts = [column for column, name in chosen.items() if name == "question"]
        texts += [guesses["question"]] if "question" in guesses else []
        texts += [column for column in spare if plain_name(column) in ("question", "prompt")]
        guesses |= {"question_id": texts[0]} if texts else {}
    return Hint(guesses, doubts[0] if doubts else "")


def _calls(column: str) -> list[str]:
    """Return names for a column, the best one first: `output.raw` is an output.

    >>> _calls("output.raw"), _calls("results.Answers")
    (['output_raw', 'output', 'output'], ['results_answers', 'answers', 'answer'])
    """
    *first, last = column.split(".")
    part = plain_name(first[0] if first and last in VALUES else last)
    return [plain_name(column).replace(".", "_"), part, part.removesuffix("s")]


def _words(name: str) -> set[str]:
    return {*re.findall(r"[a-z]+", name.casefold())}


SYNONYMS = {
    column.name: column.synonyms
    for table in (PREDICTIONS, ANSWERS)
    for column in table.columns
    if column.synonyms
}
