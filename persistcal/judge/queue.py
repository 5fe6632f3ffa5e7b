"""The file in which a person labels what the judge would not or could not.

A module of `persistcal` that does hold a path: being that file is its whole idea.
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from persistcal.judge.labels import LABELS, JudgeError, parse_label
from persistcal.judge.requests import Candidate, candidate_id

COLUMNS = ("label", "question", "references", "answer", "reason", "reply", "id")


class Unresolved(NamedTuple):
    """A candidate that waits for a person, and why."""

    candidate: Candidate
    reason: str
    reply: str


class _Table(NamedTuple):
    """The file as it stands: spreadsheets change delimiters and the order of columns."""

    delimiter: str
    columns: list[str]
    rows: list[dict[str, str]]


def _read(path: Path) -> _Table:
    if not path.exists():
        return _Table(",", list(COLUMNS), [])
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise JudgeError(f"{path} is not UTF-8 text; save it as CSV in UTF-8.") from None
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
    columns = list(reader.fieldnames or COLUMNS)
    if not {"id", "label"} <= set(columns):
        raise JudgeError(
            f"{path}: its first line must name the columns {', '.join(COLUMNS)}; restore that "
            "line or move the file away."
        )
    return _Table(delimiter, columns, list(reader))


def read_human_labels(path: str | Path) -> dict[str, str]:
    """Return the labels that a person gave, by the id of the candidate.

    Raises
    ------
    JudgeError
        When a label is none of the three, or two rows disagree.
    """
    path = Path(path)
    labels: dict[str, str] = {}
    for number, row in enumerate(_read(path).rows, start=2):
        if not (said := row["label"].strip()):
            continue
        label = parse_label(said)
        if label is None:
            raise JudgeError(
                f"{path}: row {number} has the label {said!r}; it must be one of "
                f"{', '.join(LABELS)}, or empty."
            )
        if labels.setdefault(row["id"], label) != label:
            raise JudgeError(
                f"{path}: row {number} gives {row['id']} a second label, {label!r} after "
                f"{labels[row['id']]!r}; keep one."
            )
    return labels


def note_consulted(path: str | Path, labels: Mapping[str, str]) -> None:
    """Add to the CSV file at `path` the candidates for which a job looked for a person's label.

    Parameters
    ----------
    path : str or Path
        One file per job; what it holds stays.
    labels : mapping of str to str
        The label that the job found by the candidate's id, empty where there was none.
    """
    path = Path(path)
    noted = _noted(path)
    fresh = [(number, label) for number, label in labels.items() if number not in noted]
    if fresh:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(fresh)


def _noted(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row[0]: row[1] for row in csv.reader(file) if len(row) == 2}


def human_labels_digest(path: str | Path, noted: str | Path) -> str:
    """Return a digest of what a person has decided for a job since it first ran.

    It is the same before and after the job runs, and changes when, and only
    when, a person labels a candidate of this job: as a parameter of its rule it
    reruns this job and no other. Queries that jobs append do not change it.

    Parameters
    ----------
    path : str or Path
        The queue.
    noted : str or Path
        The job's file of `note_consulted`.

    Returns
    -------
    str
        16 hexadecimal digits; empty when nothing has changed.
    """
    before = _noted(Path(noted))
    if not before:
        return ""
    said = {row["id"]: row["label"].strip() for row in _read(Path(path)).rows}
    now = {
        number: parse_label(said.get(number, "")) or said.get(number, "") for number in before
    }
    changed = sorted(pair for pair in now.items() if pair[1] != before[pair[0]])
    return hashlib.sha256(repr(changed).encode()).hexdigest()[:16] if changed else ""


def _harmless(text: str) -> str:
    """Keep a spreadsheet from taking `text` for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def append_unresolved(path: str | Path, waiting: Iterable[Unresolved]) -> int:
    """Append those of `waiting` that the file at `path` does not hold yet; return how many.

    What is there is never rewritten, so nothing that a person typed is lost.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        delimiter, columns, rows = _read(path)
        known = {row["id"] for row in rows}
        fresh = {candidate_id(row.candidate): row for row in waiting}
        fresh = {number: row for number, row in fresh.items() if number not in known}
        if not fresh:
            return 0
        before = path.read_bytes() if path.exists() else b""
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, delimiter=delimiter, extrasaction="ignore")
            if not before:
                writer.writeheader()
            elif not before.endswith(b"\n"):
                file.write("\r\n")
            for number, (candidate, reason, reply) in fresh.items():
                shown = {
                    "question": candidate.question,
                    "references": " | ".join(candidate.references),
                    "answer": candidate.answer,
                    "reply": reply,
                }
                shown = {name: _harmless(text) for name, text in shown.items()}
                writer.writerow({**shown, "label": "", "reason": reason, "id": number})
    return len(fresh)
