"""Progress of long jobs: saved parts, so that a killed job can continue, and lines of the log.

The work files are in a hidden folder next to the output, and are deleted once the output
exists. No rule declares the folder, because Snakemake deletes declared files of failed jobs.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

from torch import Tensor
from tqdm import tqdm

from persistcal.store.files import (
    DamagedFileError,
    FilePath,
    delete,
    digest,
    exists,
    inside,
    last_part,
    names_in,
    read_text,
    sha256,
    sibling,
    write_whole,
)
from persistcal.store.jobs import Job, paths
from persistcal.store.weights_file import read_metadata, read_sealed, seal

log = logging.getLogger(__name__)

SAVE_EVERY_S = 60.0  # at most this much work is lost, and short jobs write nothing
SECONDS = 10.0  # between lines, and before the first
LINE = "{desc}: {n_fmt} of {total_fmt} ({percentage:.0f} %),{rate_noinv_fmt}, {remaining} left"


class Snapshot(NamedTuple):
    """State of a computation: tensors, and a record of JSON values."""

    tensors: dict[str, Tensor]
    record: dict[str, Any]


class Progress(AbstractContextManager["Progress"]):
    """Finished parts of a job, from an interrupted run and from this run.

    Parameters
    ----------
    output : path
        The job's first output; the work files are next to it.
    inputs : iterable of paths
        Files on which the result depends.
    settings : mapping
        All other values on which the result depends, including the digest of the code. Work
        files of other inputs or settings are deleted.

    Examples
    --------
    >>> import tempfile
    >>> output = inside(tempfile.mkdtemp(), "squares.json")
    >>> with Progress(output, [], {"power": 2}) as progress:
    ...     [progress.remember("squares", n, lambda: n * n) for n in (1, 2)]
    [1, 4]
    """

    def __init__(
        self, output: FilePath, inputs: Iterable[FilePath], settings: Mapping[str, Any]
    ) -> None:
        self.folder = sibling(output, f".{last_part(output)}.progress")
        serialised = json.dumps(settings, sort_keys=True, default=str)
        self._key = digest([serialised, *map(sha256, inputs)])
        self._saved_at = time.monotonic()
        self._finished: dict[str, Any] = {}
        self._unsaved: dict[str, Any] = {}
        key, parts = self._path("key"), names_in(self.folder, "*.json")
        if exists(self.folder) and not (exists(key) and read_text(key) == self._key):
            log.info("Deleting work files of other inputs, settings or code: %s", self.folder)
            delete(self.folder)
            parts = []
        if exists(self.folder):
            log.info("Continuing an interrupted run with its work files in %s", self.folder)
            for part in parts:
                self._finished |= _read_part(self._path(part))
        self._n_parts = len(parts)

    def _path(self, name: str) -> str:
        return inside(self.folder, name)

    @classmethod
    def of_job(cls, job: Job) -> AbstractContextManager["Progress | None"]:
        """Return the progress of a job, or None if the job writes nothing."""
        if not job.outputs:
            return nullcontext()
        output, *_ = paths(next(iter(job.outputs.values())))
        inputs = [path for files in job.inputs.values() for path in paths(files)]
        return cls(output, inputs, job.settings)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Remove the work files, or save the finished parts after an error."""
        if error is None:
            with suppress(OSError):  # the next run deletes files that remain
                delete(self.folder)
        else:
            self._save()

    @property
    def is_due(self) -> bool:
        """Return whether it is time to save again."""
        return time.monotonic() - self._saved_at >= SAVE_EVERY_S

    def remember(self, name: str, number: int, compute: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return part `number` of `name`, saved by an earlier run or computed now.

        `compute` must return JSON values, with lists instead of tuples, so that saved and
        computed values are equal.
        """
        part = f"{name}/{number}"
        if part not in self._finished:
            self._finished[part] = self._unsaved[part] = compute()
            if self.is_due:
                self._save()
        return self._finished[part]

    def write_snapshot(self, name: str, snapshot: Snapshot) -> None:
        """Save the state of the computation `name`; replace an earlier snapshot."""
        record = {"record": json.dumps(snapshot.record)}
        self._write(f"{name}.safetensors", seal(snapshot.tensors, record))

    def read_snapshot(self, name: str) -> Snapshot | None:
        """Return the last saved state of the computation `name`, or None."""
        path = self._path(f"{name}.safetensors")
        if not exists(path):
            return None
        try:
            return Snapshot(read_sealed(path), json.loads(read_metadata(path)["record"]))
        except (DamagedFileError, KeyError):
            log.warning("%s is damaged; its parts are computed again.", path)
            return None

    def _save(self) -> None:
        if self._unsaved:
            content = {"sha256": _sha256(self._unsaved), "finished": self._unsaved}
            self._write(f"{self._n_parts:06}.json", json.dumps(content).encode())
            self._n_parts += 1
            self._unsaved = {}

    def _write(self, name: str, content: bytes) -> None:
        """Write a work file, after the key if this is the first one."""
        key = self._path("key")
        if not exists(key):
            write_whole(key, self._key.encode())
        write_whole(self._path(name), content)
        self._saved_at = time.monotonic()


def _sha256(finished: dict[str, Any]) -> str:
    return digest([json.dumps(finished)])


def _read_part(path: str) -> dict[str, Any]:
    """Return the finished parts in a work file; an empty dict if it is damaged."""
    try:
        content = json.loads(read_text(path))
        if content["sha256"] == _sha256(content["finished"]):
            return content["finished"]
    except (ValueError, KeyError, TypeError):
        pass
    log.warning("%s is damaged; its parts are computed again.", path)
    return {}


class Pace(tqdm):
    """Progress bar of tqdm that logs whole lines.

    A bar that redraws itself is overwritten by other jobs on the same terminal, and it becomes
    one endless line in a cluster's log files.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        intervals = {"mininterval": SECONDS, "maxinterval": SECONDS, "delay": SECONDS}
        super().__init__(*args, **kwargs, **intervals, bar_format=LINE, gui=True)

    def display(self, *_: object, **__: object) -> None:
        """Log the progress of the job."""
        log.info("%s", str(self))
