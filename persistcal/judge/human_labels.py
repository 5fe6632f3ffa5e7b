"""The file of answers that a person labels because the judge could not.

Rules import this module when the Snakefile is parsed, so it needs no other package.
"""

import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from persistcal.judge.messages import Candidate, candidate_id
from persistcal.questions.labels import LABELS, parse_label
from persistcal.store.replies import append_rows, hold_lock, parse_rows, read_lines
from persistcal.store.sheets import Sheet, append_to_sheet, read_sheet

log = logging.getLogger(__name__)

COLUMNS = ("label", "question", "references", "answer", "reason", "reply", "id")


class Unresolved(NamedTuple):
    """A candidate that waits for a person, and why."""

    candidate: Candidate
    reason: str
    reply: str


def _read(path: str) -> Sheet:
    """Read the queue without rows that are damaged or have no id."""
    sheet = read_sheet(path, ("id", "label"), COLUMNS)
    nameless = [row.number for row in sheet.rows if not row.cells["id"].strip()]
    for number in sorted([*sheet.damaged, *nameless]):
        log.warning("%s: row %d is damaged and not read.", path, number)
    return sheet._replace(rows=[row for row in sheet.rows if row.number not in nameless])


def read_human_labels(path: str) -> dict[str, str]:
    """Return the labels that a person gave, by the id of the candidate; refuse unclear ones."""
    labels: dict[str, str] = {}
    sheet = _read(path)
    for row in sheet.rows:
        number, given = row.cells["id"], row.cells["label"].strip()
        if not given:
            continue
        label = parse_label(given)
        if label is None:
            raise sheet.refuse(
                row, f"has the label {given!r}; write {', '.join(LABELS)} or nothing."
            )
        if labels.setdefault(number, label) != label:
            raise sheet.refuse(
                row,
                f"gives {number} a second label, {label!r} after {labels[number]!r}; keep one.",
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
    given = {row.cells["id"]: row.cells["label"].strip() for row in _read(path).rows}
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


def append_unresolved(path: str, waiting: Iterable[Unresolved]) -> int:
    """Append the new candidates in `waiting` to the file at `path`; return their number.

    Existing rows are never rewritten, so nothing that a person typed is lost.
    """
    with hold_lock(f"{path}.lock"):
        sheet = _read(path)
        listed = {row.cells["id"] for row in sheet.rows}
        fresh = {candidate_id(row.candidate): row for row in waiting}
        fresh = {number: row for number, row in fresh.items() if number not in listed}
        rows: list[dict[str, str]] = [] if sheet.columns else [{name: name for name in COLUMNS}]
        rows += [
            {
                "question": candidate.question,
                "references": " | ".join(candidate.references),
                "answer": candidate.answer,
                "reply": reply,
                "reason": reason,
                "id": number,
            }
            for number, (candidate, reason, reply) in fresh.items()
        ]
        if fresh:
            append_to_sheet(sheet._replace(columns=sheet.columns or list(COLUMNS)), rows)
    return len(fresh)
