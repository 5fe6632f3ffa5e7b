"""Judge candidates by a paid model, nothing twice, and by a person where that fails."""

import logging
from collections.abc import Iterable, Sequence

import pandas as pd

from persistcal.answers.equivalence import normalise
from persistcal.judge.labels import NOT_ATTEMPTED, JudgeError, judge_lexically
from persistcal.judge.prompt import Candidate, candidate_id, requests_about
from persistcal.judge.queue import (
    Unresolved,
    append_unresolved,
    note_consulted,
    read_human_labels,
)
from persistcal.judge.reply import Replies, Reply
from persistcal.judge.settings import JudgeSettings
from persistcal.server.errors import ServerError
from persistcal.server.spending import Body

log = logging.getLogger(__name__)


def judge_candidates(
    candidates: Sequence[Candidate],
    folder: str,
    settings: JudgeSettings,
    *,
    noted: str,
    api_key: str,
) -> list[tuple[str, str]]:
    """Return the label of each of `candidates` and who gave it.

    Parameters
    ----------
    candidates : sequence of Candidate
        Of one checkpoint, where answers to a question are judged together.
    folder : str
        Folder of the judge, shared by all jobs of a study: replies, batches, the queue
        and the ledger.
    settings : JudgeSettings
    noted : str
        This job's file for `persistcal.judge.queue.note_consulted`.
    api_key : str
        Needed only when something has to be asked.

    Returns
    -------
    list of (str, str)
        Label and source, the latter "human", the judge's model, or "queue" for
        a candidate that waits for a person; such a one is "not_attempted", if
        the settings let a job go on with it.

    Raises
    ------
    JudgeError
        When a ceiling, the key, the server or the queue stands in the way, or
        when candidates wait for a person.
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
    """Have `missing` judged, and the replies kept in `folder`."""
    try:
        from persistcal.judge.ask import ask
    except ImportError as error:
        raise JudgeError(
            f"judge.backend {settings.backend} needs the package {error.name}: "
            "pip install openai tenacity"
        ) from None
    try:
        ask(missing, folder, settings, api_key.strip())
    except ServerError as error:
        raise JudgeError(str(error)) from error
