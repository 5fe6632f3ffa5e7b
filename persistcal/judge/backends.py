"""Have requests judged, one by one or in batches, within the ceilings of a study."""

import logging
from collections.abc import Iterator
from pathlib import Path

from persistcal.judge.batch import collect, find_submitted, submit, wait_for
from persistcal.judge.batch_record import Record
from persistcal.judge.cache import LabelCache
from persistcal.judge.client import JudgeServer
from persistcal.judge.key import check_key
from persistcal.judge.labels import JudgeError
from persistcal.judge.ledger import Ledger, plan
from persistcal.judge.one_by_one import ask_one_by_one
from persistcal.judge.prompt import Body
from persistcal.judge.settings import JudgeSettings

log = logging.getLogger(__name__)

BATCH_ROUNDS = 3
LARGEST_UPLOAD = 150_000_000  # bytes; servers take 200 MB

Bodies = dict[str, Body]


def ask(bodies: Bodies, folder: Path, settings: JudgeSettings, api_key: str) -> None:
    """Have `bodies`, requests by key, judged into the cache of `folder`.

    Raises
    ------
    JudgeError
        When a ceiling is too low or the server fails; what was judged is kept.
    """
    check_key(api_key, settings.api_key_env)
    server = JudgeServer(
        base_url=settings.base_url,
        api_key=api_key,
        timeout_s=settings.timeout_s,
        retries=settings.retries,
        first_wait_s=settings.first_wait_s,
    )
    cache, ledger = LabelCache(folder), Ledger(folder / "spending.csv")
    if settings.backend == "openai":
        with cache.alone():
            ask_one_by_one(server, cache, ledger, _missing(bodies, cache), settings)
    elif settings.backend == "openai_batch":
        _ask_in_batches(server, cache, ledger, bodies, folder / "batches", settings)
    else:
        raise JudgeError(
            f"judge.backend is {settings.backend!r}; choose openai or openai_batch."
        )


def _missing(bodies: Bodies, cache: LabelCache) -> Bodies:
    return {key: body for key, body in bodies.items() if cache.get(key) is None}


def _ask_in_batches(
    server: JudgeServer,
    cache: LabelCache,
    ledger: Ledger,
    bodies: Bodies,
    folder: Path,
    settings: JudgeSettings,
) -> None:
    """Submit what no batch holds yet, wait for all batches that matter, and repeat.

    The lock is held while submitting and collecting, not while waiting, so
    batches of several jobs run side by side.
    """
    for _ in range(BATCH_ROUNDS):
        with cache.alone():
            missing = _missing(bodies, cache)
            waiting = _on_their_way(server, ledger, folder)
            on_way = {key for keys in waiting.values() for key in keys}
            if new := {key: body for key, body in missing.items() if key not in on_way}:
                cost = plan(new, ledger, settings)
                for part in _parts(new, settings.batch_requests):
                    ledger.add(settings.model, len(part), cost * len(part), "batch")
                    record = Record.create(folder, part, cost * len(part))
                    submit(server, record)
                    waiting[record] = set(part)
        for record, keys in waiting.items():
            if not keys.isdisjoint(missing) and (
                batch := wait_for(server, record, poll_s=settings.poll_s)
            ):
                with cache.alone():
                    collect(server, record, batch, cache, ledger)
        if not _missing(bodies, cache):
            return
    raise JudgeError(
        f"{len(_missing(bodies, cache))} requests have no reply after {BATCH_ROUNDS} rounds of "
        "batches; run again, or set judge.backend to openai."
    )


def _on_their_way(server: JudgeServer, ledger: Ledger, folder: Path) -> dict[Record, set[str]]:
    """Return the batches of all jobs with their keys; forget those never submitted."""
    unfinished = {}
    for record in Record.all_in(folder):
        bodies = record.bodies()
        batch_id, cost = record.state()
        if batch_id or find_submitted(server, record):
            unfinished[record] = set(bodies)
        else:
            model = next(iter(bodies.values()))["model"]
            ledger.add(model, -len(bodies), -cost, "not submitted")
            record.remove()
    return unfinished


def _parts(bodies: Bodies, most: int) -> Iterator[Bodies]:
    """Split `bodies` into batches that a server takes."""
    part: Bodies = {}
    size = 0
    for key, body in bodies.items():
        length = len(str(body).encode())
        if part and (len(part) == most or size + length > LARGEST_UPLOAD):
            yield part
            part, size = {}, 0
        part[key] = body
        size += length
    yield part
