"""Judge candidates by a paid model, nothing twice, and by a person where that fails."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from persistcal.answers.clusters import (
    label_predictions,
    take_predictions,
    warn_if_none_is_correct,
)
from persistcal.answers.options import has_options, option_labels
from persistcal.judge.prompt import Candidate, JudgeSettings, candidate_id, requests_about
from persistcal.judge.reply import Replies, Reply
from persistcal.questions.labels import (
    LABELS,
    NOT_ATTEMPTED,
    JudgeError,
    judge_lexically,
    normalise,
    parse_label,
)
from persistcal.server.errors import ServerError
from persistcal.server.spending import Body
from persistcal.store.artifacts import ANSWERS
from persistcal.store.replies import alone, append_rows, parse_rows, read_lines

log = logging.getLogger(__name__)

Asked = tuple[str, Sequence[str], str]  # question, references, answer

Judge = Callable[[Sequence[Asked]], Sequence[tuple[str, str]]]  # label and who gave it


def judge_candidates(
    candidates: Sequence[Candidate],
    folder: str,
    settings: JudgeSettings,
    *,
    noted: str,
    api_key: str,
) -> list[tuple[str, str]]:
    """Return the label of each of `candidates`, all of one checkpoint, and who gave it.

    That is "human", the judge's model, or "queue" for a candidate that waits for a person and
    counts as "not_attempted", if the settings let a job go on with it. `folder` is that of the
    judge, shared by all jobs of a study: replies, batches, the queue and the ledger; `noted`
    this job's file for `note_consulted`. The key is needed only to ask something new.
    """
    queue = f"{folder}/queue.csv"
    human = read_human_labels(queue)
    distinct = {candidate_id(candidate): candidate for candidate in candidates}
    requests = {
        key: (body, group)
        for key, (body, group) in requests_about(distinct.values(), settings).items()
        if not human.keys() >= set(map(candidate_id, group))
    }
    replies = _look_up(folder, requests)
    missing = {key: body for key, (body, _) in requests.items() if key not in replies}
    log.info(
        "%d candidates, %d distinct, %d labelled by a person: %d requests, %d of them new",
        *(len(candidates), len(distinct), len(human.keys() & distinct.keys())),
        *(len(requests), len(missing)),
    )
    if missing:
        _ask(missing, folder, settings, api_key)
        replies |= _look_up(folder, missing)

    decided, waiting = {}, {}
    for key, (_, group) in requests.items():
        labels, reason, text = replies[key]
        for candidate, label in zip(group, labels, strict=True):
            number = candidate_id(candidate)
            if label:
                decided[number] = (label, settings.model)
            elif number not in human:
                waiting[number] = Unresolved(candidate, reason, text)
    decided |= {number: (label, "human") for number, label in human.items()}
    consulted = [number for number in distinct if number in human or number in waiting]
    note_consulted(noted, {number: human.get(number, "") for number in consulted})
    if waiting:
        append_unresolved(queue, waiting.values())
        _say_who_waits(len(waiting), queue, settings)
    return [
        decided.get(candidate_id(candidate), (NOT_ATTEMPTED, "queue"))
        for candidate in candidates
    ]


def given_labels(clusters: pd.DataFrame, given: pd.DataFrame) -> list[str | None]:
    """Return the label that each cluster's answer came with, None where it has none."""
    keys = zip(given["question_id"], given["answer"], strict=True)
    labels = dict(zip(keys, given["label"], strict=True))
    answers = zip(clusters["question_id"], map(normalise, clusters["answer"]), strict=True)
    return [labels.get(key) for key in answers]


def label_answers(
    questions: pd.DataFrame, clusters: pd.DataFrame, given: pd.DataFrame, ask: Judge
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the labels of candidate answers, and the predictions with theirs.

    Answers without a label among those `given` are for `ask`, but for options of multiple
    choice, of which one is known to be right.
    """
    table = questions.set_index("question_id")
    asked = table.loc[clusters["question_id"], ["question", "references"]]
    rows = list(zip(asked["question"], asked["references"], clusters["answer"], strict=True))
    if has_options(questions):
        sourced = option_labels(questions, clusters)
    else:
        known = given_labels(clusters, given)
        unknown = [row for row, label in zip(rows, known, strict=True) if label is None]
        replies = iter(ask(unknown))
        sourced = [(label, "given") if label else next(replies) for label in known]
    labels = clusters[["question_id", "cluster"]].assign(
        label=[label for label, _ in sourced], source=[source for _, source in sourced]
    )
    predictions = pd.concat(
        take_predictions(questions, clusters, split=split).assign(split=split)
        for split in ("train", "test")
    )
    answers = label_predictions(predictions, labels)[ANSWERS.schema.names]
    log.info("Labels: %s", labels["label"].value_counts().to_dict())
    for split, correct in answers.groupby("split")["correct"]:
        percent = 100 * correct.mean()
        log.info("%.0f %% of %d %s answers are correct", percent, len(correct), split)
    warn_if_none_is_correct(answers["correct"], "answers")
    return labels, answers


def lexical_labels(
    rows: Iterable[tuple[str, Iterable[str], str]],
) -> list[tuple[str, str]]:
    """Return label and source of each question, references and answer, by a match."""
    return [(judge_lexically(answer, right), "lexical") for _, right, answer in rows]


def _say_who_waits(n: int, queue: str, settings: JudgeSettings) -> None:
    what = f"{n} answers wait for a person" if n > 1 else "1 answer waits for a person"
    how = (
        f"fill in the column label of {queue} (correct, incorrect or not_attempted) and run "
        "again"
    )
    if settings.undecided == "stop":
        raise JudgeError(
            f"{what}: {how}; all that the judge has replied is kept and not paid again. "
            "To go on without them as not attempted, set judge.undecided to not_attempted."
        )
    log.warning("%s and count as not attempted until then: %s.", what, how)


def _look_up(folder: str, keys: Iterable[str]) -> dict[str, Reply]:
    kept = Replies(folder)
    found = {key: kept.get(key) for key in keys}
    return {key: reply for key, reply in found.items() if reply}


def _ask(missing: dict[str, Body], folder: str, settings: JudgeSettings, api_key: str) -> None:
    try:
        from persistcal.judge.backends import ask
    except ImportError as error:
        raise JudgeError(
            f"judge.backend {settings.backend} needs the package {error.name}: "
            "pip install openai tenacity"
        ) from None
    try:
        ask(missing, folder, settings, api_key.strip())
    except ServerError as error:
        raise JudgeError(str(error)) from error


COLUMNS = ("label", "question", "references", "answer", "reason", "reply", "id")

LONGEST_CELL = 5_000  # characters; spreadsheets take 32,767


class Unresolved(NamedTuple):
    """A candidate that waits for a person, and why."""

    candidate: Candidate
    reason: str
    reply: str


class _Table(NamedTuple):
    """The file as it stands: spreadsheets change delimiters and the order of columns."""

    delimiter: str
    columns: list[str]  # empty as long as there is no file
    rows: list[tuple[int, dict[str, str]]]


def _header(line: str) -> tuple[str, list[str]]:
    """Return the delimiter and the columns that `line` names, none if it is no header."""
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
        if ",".join(COLUMNS).startswith("".join(lines).strip()):  # nothing, or cut in here
            return _Table(",", [], [])
        raise JudgeError(
            f"{path}: its first line must name the columns {', '.join(COLUMNS)}; restore that "
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


def note_consulted(path: str, labels: Mapping[str, str]) -> None:
    """Add to a job's file at `path` the candidates for which it looked for a person's label.

    `labels` are those that it found by the candidate's id, empty where there was none.
    Earlier entries stay.
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

    It is the same before and after the job runs, empty when nothing has changed, and
    changes when, and only when, a person labels a candidate of this job: as a parameter
    of its rule it reruns this job and no other. `path` is the queue, `noted` the job's
    file of `note_consulted`. A job that has to `stop` while one of its candidates waits
    for a person has another digest than one that went on.
    """
    before = _noted(noted)
    if not before:
        return ""
    said = {row["id"]: row["label"].strip() for _, row in _read(path).rows}
    now = {
        number: parse_label(said.get(number, "")) or said.get(number, "") for number in before
    }
    changed = sorted(
        pair for pair in now.items() if pair[1] != before[pair[0]] or (stop and not pair[1])
    )
    return hashlib.sha256(repr(changed).encode()).hexdigest()[:16] if changed else ""


def _cell(text: str) -> str:
    """Shorten `text` to a cell of a spreadsheet, and keep it from being taken for a formula."""
    text = text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]} …"
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def append_unresolved(path: str, waiting: Iterable[Unresolved]) -> int:
    """Append those of `waiting` that the file at `path` does not hold yet; return how many.

    Existing rows are never rewritten, so nothing that a person typed is lost.
    """
    with alone(f"{path}.lock"):
        delimiter, columns, rows = _read(path)
        lines = [] if columns else [list(COLUMNS)]
        columns = columns or list(COLUMNS)
        known = {row["id"] for _, row in rows}
        fresh = {candidate_id(row.candidate): row for row in waiting}
        fresh = {number: row for number, row in fresh.items() if number not in known}
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
