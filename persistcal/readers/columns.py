"""Columns of a user's file by the names of this project, and the options that name them."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches

from persistcal.readers import answers as own_answers
from persistcal.readers import options as own_options
from persistcal.readers import predictions as own_predictions
from persistcal.readers.answer_files import columns_and_scores
from persistcal.readers.scales import scale_remedy
from persistcal.store.user_files import (
    UserTableError,
    name_files_in_errors,
    plain_name,
    read_batches,
)

KNOWN = {*own_answers.KNOWN, *own_options.KNOWN, *own_predictions.KNOWN}

# Other names of columns, for the remedy of an error
OTHER_NAMES = {
    "confidence": ("conf", "prob", "probability", "p_true", "score", "certainty"),
    "question_id": ("id", "qid", "item_id", "idx", "index", "sample_id", "example_id", "item"),
    "correct": ("is_correct", "correctness", "accuracy", "acc", "right", "hit", "label"),
    "answer": ("response", "prediction", "output", "completion", "generation"),
    "references": ("reference", "target", "gold", "ground_truth", "reference_answer"),
    "question": ("prompt", "input", "query"),
    "checkpoint": ("version", "revision", "model_version", "model_name", "step", "epoch"),
}

# Words in names of columns in which a high value is a low confidence
UNCERTAINTIES = {"uncertainty", "doubt", "entropy", "perplexity", "error", "risk", "variance"}


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


def choose_columns(
    present: Sequence[str],
    needed: Collection[str],
    optional: Collection[str],
    given: Mapping[str, str],
    further: Callable[[Mapping[str, str]], str] = lambda _: "",
) -> dict[str, str]:
    """Return the columns to read by their names in a file; refuse unclear names.

    `further` returns the options that the file needs besides the names of columns.
    """
    for column, given_column in given.items():
        option = f"--columns {name_column(column, given_column)}"
        if column not in needed and column not in optional:
            expected = ", ".join([*needed, *optional])
            raise UserTableError(
                f"{option}: there is no column {column!r} to give; give {expected}"
            )
        if given_column not in present:
            raise UserTableError(
                f"{option}: it has no {given_column!r}, but {', '.join(present)}"
            )
        if column in present and column != given_column:
            raise UserTableError(
                f"{option}: it has a column {column!r}, too; rename one of them"
            )
    chosen = match_columns(present, {*needed, *optional}, given)
    spare = [name for name in present if name not in chosen]
    lacking = [name for name in needed if name not in chosen.values()]
    if lacking:
        raise UserTableError(
            f"column {lacking[0]!r} is missing; {column_remedy(lacking, spare, further)}"
        )
    for name in spare:
        if close := get_close_matches(name, set(optional) - set(chosen.values()), 1, 0.85):
            raise UserTableError(
                f"column {name!r} looks like {close[0]!r}; give --columns "
                f"{name_column(close[0], name)}, or rename it"
            )
    return chosen


def column_remedy(
    lacking: Sequence[str],
    spare: Sequence[str],
    further: Callable[[Mapping[str, str]], str] = lambda _: "",
) -> str:
    """Return the option with the user's own columns, if any can be meant."""
    guesses = guess_columns(lacking, spare)
    doubts = [name for name in spare if _words(name) & UNCERTAINTIES]
    if "confidence" in lacking and "confidence" not in guesses and doubts:
        guesses["confidence"] = doubts[0]
    for name in ("confidence", "correct"):
        close = [c for c in spare if _words(c) & {name, *OTHER_NAMES[name]}]
        if name in lacking and name not in guesses and close:
            guesses[name] = close[0]
    options = [name_column(n, c) for n, c in guesses.items() if [c] != doubts[:1]]
    options = [f"--columns {' '.join(options)}"] if options else []
    if guesses.get("confidence") in doubts:
        options.append(f"--uncertainty {shlex.quote(doubts[0])}")
    if options:
        return f"give {' '.join(options)}{further(guesses)} if these are meant"
    if spare:
        pair = name_column(lacking[0], spare[0])
        return f"if {spare[0]!r} is meant, give --columns {pair}"
    return "add it to every row"


def guess_columns(lacking: Sequence[str], spare: Sequence[str]) -> dict[str, str]:
    """Return the spare columns that have another usual name of a column that is lacking."""
    by_plain_name = {plain_name(name): name for name in reversed(spare)}
    return {
        name: by_plain_name[synonym]
        for name in lacking
        for synonym in reversed(OTHER_NAMES.get(name, ()))
        if synonym in by_plain_name
    }


def _words(name: str) -> set[str]:
    return {*re.findall(r"[a-z]+", name.casefold())}


def name_column(name: str, column: str) -> str:
    """Return a value of the option `--columns`, quoted for a shell."""
    return shlex.quote(f"{name}={column}")


def column_values(file: str, column: str) -> list[object]:
    """Return the values of one column of a file."""
    batches = read_batches(file, known_names=KNOWN, choose=lambda _: {column: column})
    return [value for batch in batches for value in batch.column(column).to_pylist()]


def scale_option(file: str, guesses: Mapping[str, str]) -> str:
    """Return the option that the confidences of a file need, after the names of columns."""
    with name_files_in_errors(file):
        present = columns_and_scores(file, KNOWN)[0]
        named = match_columns(present, KNOWN, guesses)
        column = next((given for given, name in named.items() if name == "confidence"), None)
        option = scale_remedy(column_values(file, column)) if column else ""
    return f" {option}" if option else ""


def version_column(files: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the column that names the version of each file, if it is `model`."""
    if len(files) < 2 or {"checkpoint", "model"} & given.keys():
        return {}
    models = []
    for file in files:
        matched = match_columns(columns_and_scores(file, KNOWN)[0], KNOWN, {})
        column = next((name for name, meaning in matched.items() if meaning == "model"), None)
        if column is None or "checkpoint" in matched.values():
            return {}
        models.append((column, set(column_values(file, column))))
    names = {name for _, values in models for name in values}
    is_one_each = all(len(values) == 1 for _, values in models) and len(names) == len(files)
    return {"checkpoint": models[0][0]} if is_one_each else {}
