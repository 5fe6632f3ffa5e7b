"""The file of answers that a person labels because the judge could not.

Rules import this module when the Snakefile is parsed, so it needs no other package.
"""

import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from persistcal.judge.messages import Candidate, candidate_id
from persistcal.questions.labels import LABELS, JudgeError, parse_label
from persistcal.store.replies import append_rows, hold_lock, parse_rows, read_lines

log = logging.getLogger(__name__)

COLUMNS = ("label", "question", "references", "answer", "reason", "reply", "id")

LONGEST_CELL = 5_000  # characters; spreadsheets take 32,767


class Unresolved(NamedTuple):
    """A candidate that waits for a person, and why."""

    candidate: Candidate
    reason: str
    reply: str


class _Table(NamedTuple):
    """The file after edits: spreadsheets change delimiters and the order of columns."""

    delimiter: str
    columns: list[str]  # empty without a file
    rows: list[tuple[int, dict[str, str]]]


def _header(line: str) -> tuple[str, list[str]]:
    """Return the delimiter and the columns in `line`; no columns if it is not a header."""
    delimiter = max(",;\t", key=line.count)
    rows = parse_rows([line], delimiter=delimiter, columns=len(line))
    columns = next((fields for _, fields in rows), None) or []
    return delimiter, columns if {"id", "label"} <= set(columns) else []


def _read(path: str) -> _Table:
    """Read the rows, each with its number; lines cut short are left out."""
    try:
        lines = read_lines(path)
    except UnicodeDecodeError:
        raise JudgeError(f"{path} is not UTF-8 text; save it as CSV in UTF-8.") from None
    above = next((i for i, line in enumerate(lines) if _header(line)[1]), None)
    if above is None:
        # An empty file, or a file cut in this line
        if ",".join(COLUMNS).startswith("".join(lines).strip()):
            return _Table(",", [], [])
        raise JudgeError(
            f"{path}: the first line must name the columns {', '.join(COLUMNS)}; restore that "
            "line or move the file away."
        )
    delimiter, columns = _header(lines[above])
    rows = []
    parsed = parse_rows(lines[above + 1 :], delimiter=delimiter, columns=len(columns))
    for number, (_, fields) in enumerate(parsed, start=above + 2):
        row = dict.fromkeys(columns, "") | dict(zip(columns, fields or [], strict=False))
        if row["id"].strip():
            rows.append((number, row))
        elif fields is None or any(map(str.strip, fields)):
            log.warning("%s: row %d is damaged and not read.", path, number)
    return _Table(delimiter, columns, rows)


def read_human_labels(path: str) -> dict[str, str]:
    """Return the labels that a person gave, by the id of the candidate; refuse unclear ones."""
    labels: dict[str, str] = {}
    for number, row in _read(path).rows:
        if not (given := row["label"].strip()):
            continue
        label = parse_label(given)
        if label is None:
            raise JudgeError(
                f"{path}: row {number} has the label {given!r}; write "
                f"{', '.join(LABELS)} or nothing."
            )
        if labels.setdefault(row["id"], label) != label:
            raise JudgeError(
                f"{path}: row {number} gives {row['id']} a second label, {label!r} after "
                f"{labels[row['id']]!r}; keep one."
            )
    return labels


def note_consulted(path: str, labels: Mapping[str, str]) -> None:
    """Add candidates to the file of consulted labels of a job, at `path`.

    `labels` contains the label by candidate id, empty without a label. Earlier entries stay.
    """
    noted = _noted(path)
    fresh = [(number, label) for number, label in labels.items() if number not in noted]
    if fresh:
        append_rows(path, fresh)


def _noted(path: str) -> dict[str, str]:
    rows = [fields for _, fields in parse_rows(read_lines(path), columns=2)]
    return {row[0]: row[1] for row in rows if row and len(row) == 2}


def human_labels_digest(path: str, noted: str, *, stop: bool = False) -> str:
    """Return a digest of a person's decisions for a job since it first ran.

    The digest is the same before and after the job runs, and empty without changes. It changes
    only if a person labels a candidate of this job. A rule with this parameter reruns only the
    job. `path` is the queue, and `noted` the job's file from `note_consulted`. A job
    that must `stop` while a candidate waits for a person has another digest than a job that
    continued.
    """
    if not (noted_before := _noted(noted)):
        return ""
    given = {row["id"]: row["label"].strip() for _, row in _read(path).rows}
    current = {
        number: parse_label(given.get(number, "")) or given.get(number, "")
        for number in noted_before
    }
    changed = sorted(
        (number, label)
        for number, label in current.items()
        if label != noted_before[number] or (stop and not label)
    )
    return hashlib.sha256(repr(changed).encode()).hexdigest()[:16] if changed else ""


def _cell(text: str) -> str:
    """Shorten `text` to a cell of a spreadsheet, and keep it from being taken for a formula."""
    text = text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]} …"
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def append_unresolved(path: str, waiting: Iterable[Unresolved]) -> int:
    """Append the new candidates in `waiting` to the file at `path`; return their number.

    Existing rows are never rewritten, so nothing that a person typed is lost.
    """
    with hold_lock(f"{path}.lock"):
        delimiter, columns, rows = _read(path)
        lines = [] if columns else [list(COLUMNS)]
        columns = columns or list(COLUMNS)
        listed = {row["id"] for _, row in rows}
        fresh = {candidate_id(row.candidate): row for row in waiting}
        fresh = {number: row for number, row in fresh.items() if number not in listed}
        if not fresh:
            return 0
        for number, (candidate, reason, reply) in fresh.items():
            shown = {
                "question": _cell(candidate.question),
                "references": _cell(" | ".join(candidate.references)),
                "answer": _cell(candidate.answer),
                "reply": _cell(reply),
                "reason": reason,
                "id": number,
            }
            lines.append([shown.get(name, "") for name in columns])
        append_rows(path, lines, delimiter=delimiter)
    return len(fresh)
