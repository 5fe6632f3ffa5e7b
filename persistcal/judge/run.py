"""Judge candidates by a paid model: each distinct one once, and a person where it fails.

A module of `persistcal` that does hold a path: what is kept between jobs and
runs (verdicts, batches, the queue, the ledger) lies in one folder.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from persistcal.judge.cache import LabelCache
from persistcal.judge.labels import NOT_ATTEMPTED, JudgeError, Verdict
from persistcal.judge.queue import (
    Unresolved,
    append_unresolved,
    note_consulted,
    read_human_labels,
)
from persistcal.judge.requests import (
    Body,
    Candidate,
    candidate_id,
    request_body,
    request_key,
)
from persistcal.judge.settings import JudgeSettings

log = logging.getLogger(__name__)


def judge_candidates(
    candidates: Sequence[Candidate],
    folder: str | Path,
    settings: JudgeSettings,
    *,
    noted: str | Path,
    api_key: str,
) -> list[tuple[str, str]]:
    """Return the label of each of `candidates` and who gave it.

    Parameters
    ----------
    candidates : sequence of Candidate
    folder : str or Path
        Folder of the judge, shared by all jobs of a study.
    settings : JudgeSettings
    noted : str or Path
        This job's file for `persistcal.judge.queue.note_consulted`.
    api_key : str
        Needed only when something has to be asked.

    Returns
    -------
    list of (str, str)
        Label and source, the latter "human", the judge's model, or "queue" for
        a candidate that waits for a person; such a one is "not_attempted".

    Raises
    ------
    JudgeError
        When a ceiling, the key, the server or the queue stands in the way.
    """
    folder = Path(folder)
    queue = folder / "queue.csv"
    human = read_human_labels(queue)
    ids = [candidate_id(candidate) for candidate in candidates]
    bodies = {
        number: request_body(
            candidate, model=settings.model, prompt=settings.prompt, options=settings.request
        )
        for number, candidate in zip(ids, candidates, strict=True)
        if number not in human
    }
    keys = {number: request_key(body) for number, body in bodies.items()}
    cache = LabelCache(folder)
    verdicts = _look_up(cache, keys.values())
    missing = {
        keys[number]: body for number, body in bodies.items() if keys[number] not in verdicts
    }
    log.info(
        "%d candidates, %d distinct: %d labelled by a person, %d judged before, %d to ask",
        *(len(candidates), len(set(ids)), len(set(ids)) - len(bodies)),
        *(len(bodies) - len(missing), len(missing)),
    )
    if missing:
        _ask(missing, folder, settings, api_key)
        verdicts |= _look_up(cache, missing)

    labels, consulted, waiting = [], {}, []
    for number, candidate in zip(ids, candidates, strict=True):
        label, reason, reply = verdicts.get(keys.get(number, ""), Verdict(None, "", ""))
        if label:
            labels.append((label, settings.model))
            continue
        consulted[number] = human.get(number, "")
        if number in human:
            labels.append((human[number], "human"))
        else:
            labels.append((NOT_ATTEMPTED, "queue"))
            waiting.append(Unresolved(candidate, reason, reply))
    note_consulted(noted, consulted)
    if waiting:
        append_unresolved(queue, waiting)
        log.warning(
            "%d answers wait for a person and count as not attempted until then: fill in the "
            "column label of %s (correct, incorrect or not_attempted) and run again.",
            *(len(waiting), queue),
        )
    return labels


def _look_up(cache: LabelCache, keys: Iterable[str]) -> dict[str, Verdict]:
    found = {key: cache.get(key) for key in keys}
    return {key: verdict for key, verdict in found.items() if verdict}


def _ask(missing: dict[str, Body], folder: Path, settings: JudgeSettings, api_key: str) -> None:
    """Have `missing` judged into the cache of `folder`."""
    if not api_key.strip():
        raise JudgeError(
            f"The environment variable {settings.api_key_env} is empty; put the judge's key "
            "into it (any text for a server without keys)."
        )
    try:
        from persistcal.judge.backends import ask
    except ImportError as error:
        raise JudgeError(
            f"judge.backend {settings.backend} needs the package {error.name}: "
            "pip install openai tenacity"
        ) from None
    ask(missing, folder, settings, api_key.strip())
