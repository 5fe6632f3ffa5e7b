"""The file of answers that a person labels because the judge could not.

Rules import this module when the Snakefile is parsed, so it needs no other package.
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from persistcal.judge.messages import Candidate, candidate_id, candidate_of
from persistcal.questions.labels import LABELS, parse_label
from persistcal.store.files import digest, write_whole
from persistcal.store.replies import append_rows, hold_lock, parse_rows, read_lines
from persistcal.store.sheets import Sheet, SheetRow, append_to_sheet, check_shown, read_sheet

log = logging.getLogger(__name__)

COLUMNS = ("label", "question", "references", "answer", "reason", "reply", "id")


class Unresolved(NamedTuple):
    """A candidate that waits for a person, and why."""

    candidate: Candidate
    reason: str
    reply: str


def _read(path: str) -> Sheet:
    """Read the queue without rows that are damaged or have no id.

    A row without an id that a person added, to correct a label, is known by its texts.
    """
    sheet = read_sheet(path, ("id", "label"), COLUMNS)
    unread = list(sheet.damaged)
    for row in sheet.rows:
        if row.cells["id"].strip():
            continue
        question, references, answer, reason, reply = (
            row.cells.get(name, "").strip() for name in COLUMNS[1:-1]
        )
        if row.is_short or reason or reply or not row.cells["label"].strip():
            unread.append(row.number)  # a row of the judge that was cut
        elif question and answer:
            candidate = candidate_of(question, references.split(" | "), answer)
            row.cells["id"] = candidate_id(candidate)
        else:
            raise sheet.refuse(
                row, "has a label and no id; copy question, references and answer, or the id."
            )
    for number in sorted(unread):
        log.warning("%s: row %d is damaged and not read.", path, number)
    return sheet._replace(rows=[row for row in sheet.rows if row.number not in unread])


def read_human_labels(
    path: str, candidates: Mapping[str, Candidate] | None = None
) -> dict[str, str]:
    """Return the labels that a person gave, by the id of the candidate; refuse unclear ones.

    The texts in a row must be those of its candidate, if it is among `candidates`.
    """
    labels: dict[str, str] = {}
    sheet = _read(path)
    for row in sheet.rows:
        number, given = row.cells["id"], row.cells["label"].strip()
        if not given:
            continue
        if candidate := (candidates or {}).get(number):
            _check_texts(sheet, row, candidate)
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


def _check_texts(sheet: Sheet, row: SheetRow, candidate: Candidate) -> None:
    """Refuse a row in which a person read other texts, as after one column was sorted."""
    question, references, answer = candidate
    texts = {"question": question, "references": " | ".join(references), "answer": answer}
    for name, text in texts.items():
        if row.cells.get(name, "").strip():  # a person can write an id and a label alone
            remedy = "delete the row and run again, and it is listed anew"
            check_shown(sheet, row, name, text, remedy)


def note_consulted(
    path: str, labels: Mapping[str, str], candidates: Iterable[str] = ()
) -> None:
    """Add candidates to the file of consulted labels of a job, at `path`.

    `labels` contains the label by candidate id, empty without a label. Earlier entries stay.
    `candidates` are the ids of all answers of the job, which a person can correct later; they
    are in a file of their own, so that a dry run need not read them one by one.
    """
    noted, decided = _noted(path), _decided(path)
    fresh = [
        (number, "" if number in decided else label)
        for number, label in labels.items()
        if number not in noted
    ]
    if fresh:
        append_rows(path, fresh)
    write_whole(f"{path}.ids", "\n".join(dict.fromkeys([*decided.split(), *candidates])))


def _decided(path: str) -> str:
    """Return the ids of all answers that a job has labelled, a line each."""
    ids = Path(f"{path}.ids")
    return ids.read_text(encoding="utf-8") if ids.exists() else ""


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
    noted_before, decided = _noted(noted), _decided(noted)
    if not noted_before and not decided:
        return ""
    labels = {row.cells["id"]: row.cells["label"].strip() for row in _read(path).rows}
    corrected = (number for number, label in labels.items() if label and number in decided)
    noted_before = dict.fromkeys(corrected, "") | noted_before
    current = {
        number: parse_label(labels.get(number, "")) or labels.get(number, "")
        for number in noted_before
    }
    changed = sorted(
        (number, label)
        for number, label in current.items()
        if label != noted_before[number] or (stop and not label)
    )
    return digest([repr(changed)])[:16] if changed else ""


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
