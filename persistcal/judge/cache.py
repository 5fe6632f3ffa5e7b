"""Verdicts on disk, each under the digest of its request, shared by all jobs.

A module of `persistcal` that does hold a path: being a folder is its whole idea.
"""

import contextlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from persistcal.files import write_whole
from persistcal.judge.labels import LABELS, Verdict
from persistcal.judge.requests import Body

log = logging.getLogger(__name__)


class LabelCache:
    """One small JSON file per verdict: ``folder/cache/ab/cdef….json``.

    A file is written whole or not at all, as soon as its reply has come, so a
    crash loses only what was on its way. A file that cannot be read counts as
    missing. Delete a file to have its candidate judged again.

    Parameters
    ----------
    folder : str or Path
        Folder of the judge, below which the cache and its lock lie.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def _path(self, key: str) -> Path:
        return self._folder / "cache" / key[:2] / f"{key[2:]}.json"

    def get(self, key: str) -> Verdict | None:
        """Return the verdict under `key`, or None."""
        path = self._path(key)
        try:
            entry = json.loads(path.read_text(encoding="utf-8"))
            verdict = Verdict(entry["label"], entry["reason"], entry["reply"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            log.warning("%s is damaged; its candidate is judged again.", path)
            return None
        return verdict if verdict.label in (*LABELS, None) else None

    def put(self, key: str, verdict: Verdict, body: Body) -> None:
        """Keep `verdict` under `key`, beside the user message of its request for readers."""
        path = self._path(key)
        entry = {**verdict._asdict(), "asked": body["messages"][-1]["content"]}
        write_whole(path, json.dumps(entry, ensure_ascii=False, indent=1))

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
