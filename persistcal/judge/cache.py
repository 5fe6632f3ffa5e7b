"""Replies on disk, each under the digest of its request, shared by all jobs.

A module of `persistcal` that does hold a path: being a folder is its whole idea.
"""

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from persistcal.judge.labels import LABELS, JudgeError
from persistcal.judge.prompt import Body, asked_together, messages_of
from persistcal.judge.reply import Reply
from persistcal.store.files import write_whole

log = logging.getLogger(__name__)


class LabelCache:
    """One small JSON file per reply: ``folder/cache/ab/cdef….json``.

    A file is written whole or not at all, as soon as its reply has come, so a
    crash loses only what was on its way. A file that cannot be read counts as
    missing. Delete a file to have its candidates judged again.

    Parameters
    ----------
    folder : str or Path
        Folder of the judge, below which the cache and its lock lie.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def _path(self, key: str) -> Path:
        return self._folder / "cache" / key[:2] / f"{key[2:]}.json"

    def get(self, key: str) -> Reply | None:
        """Return the reply under `key`, or None."""
        path = self._path(key)
        try:
            entry = json.loads(path.read_text(encoding="utf-8"))
            labels = tuple(entry["labels"]) if "labels" in entry else (entry["label"],)
            reply = Reply(labels, str(entry["reason"]), str(entry["reply"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            reply = Reply(("damaged",), "", "")
        known = all(label is None or label in LABELS for label in reply.labels)
        if known and len(reply.labels) == (asked_together(key) or 1):
            return reply
        log.warning("%s is damaged; its candidates are judged again.", path)
        return None

    def put(self, key: str, reply: Reply, body: Body) -> None:
        """Keep `reply` under `key`, beside the user message of its request for readers."""
        path = self._path(key)
        labels = {"labels": reply.labels} if asked_together(key) else {"label": reply.labels[0]}
        asked = messages_of(body)[-1]["content"]
        entry = {**labels, "reason": reply.reason, "reply": reply.text, "asked": asked}
        write_whole(path, json.dumps(entry, ensure_ascii=False, indent=1))

    def put_all(self, replies: Mapping[str, Reply], bodies: Mapping[str, Body]) -> None:
        """Keep all `replies` that can be kept, and raise what kept one of the others out."""
        failures = []
        for key, reply in replies.items():
            try:
                self.put(key, reply, bodies[key])
            except Exception as error:
                failures.append(error)
        if failures and isinstance(failures[0], OSError):
            why = failures[0].strerror or failures[0]
            raise JudgeError(
                f"{len(failures)} replies of the judge cannot be kept in {self._folder} "
                f"({why}); make room there and run again."
            ) from failures[0]
        if failures:
            raise failures[0]

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the judge's lock: of all jobs, also on other machines, one at a time.

        The operating system frees it when its holder ends, however it ends.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._folder / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log.info("Waiting for another job that is asking the judge.")
            lock.acquire(poll_interval=0.2)
        try:
            yield
        finally:
            lock.release()
