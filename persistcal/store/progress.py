"""Work files of an output that is not finished, to go on from after a kill.

A folder of work files is this module's whole idea, which makes it the exception to
the rule that the package knows no paths. The folder stands beside the output, is
declared nowhere (Snakemake deletes what a failed job declared) and goes away when the
output is there.
"""

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from torch import Tensor

from persistcal.models.checkpoint import CheckpointError
from persistcal.store.files import sha256, write_whole
from persistcal.store.jobs import Job, paths
from persistcal.store.sealed import read_metadata, read_sealed, seal

log = logging.getLogger(__name__)

SAVE_EVERY_S = 60.0  # at most this much work is lost, and short jobs write nothing


class Snapshot(NamedTuple):
    """State of a computation.

    Attributes
    ----------
    tensors : dict of str to Tensor
    record : dict
        JSON values.
    """

    tensors: dict[str, Tensor]
    record: dict[str, Any]


class Progress:
    """What an interrupted run of the same job has finished, and what this one finishes.

    Parameters
    ----------
    output : str or Path
        The file that the job makes; work files go to the folder
        ``.{name of the output}.progress`` beside it.
    inputs : iterable of str or Path
        The files that the job reads.
    settings : mapping
        All else that the result depends on, the digest of the code included. Work
        files of other settings or of inputs with another content are deleted unread.

    Examples
    --------
    >>> import tempfile
    >>> output = Path(tempfile.mkdtemp()) / "squares.json"
    >>> with Progress(output, [], {"power": 2}) as progress:
    ...     [progress.remember("squares", n, lambda: n * n) for n in (1, 2)]
    [1, 4]
    """

    def __init__(
        self, output: str | Path, inputs: Iterable[str | Path], settings: Mapping[str, Any]
    ) -> None:
        output = Path(output)
        self.folder = output.with_name(f".{output.name}.progress")
        self._key = _digest(inputs, settings)
        self._saved_at = time.monotonic()
        self._finished: dict[str, Any] = {}
        self._unsaved: dict[str, Any] = {}
        self._n_parts = 0
        key = self.folder / "key"
        if self.folder.exists() and not (key.exists() and key.read_text() == self._key):
            log.info("Deleting work files of other inputs, settings or code: %s", self.folder)
            shutil.rmtree(self.folder)
        if self.folder.exists():
            log.info("Going on with what an interrupted run left in %s", self.folder)
            parts = sorted(self.folder.glob("*.json"))
            for part in parts:
                self._finished |= _read_part(part)
            self._n_parts = len(parts)

    @classmethod
    def of_job(cls, job: Job) -> AbstractContextManager["Progress | None"]:
        """Return the progress of a job's first output; None of a job that writes nothing."""
        if not job.outputs:
            return nullcontext()
        output, *_ = paths(next(iter(job.outputs.values())))
        inputs = [path for files in job.inputs.values() for path in paths(files)]
        return cls(output, inputs, job.settings)

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the work files, or after an error save what is finished."""
        if error is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self._save()

    @property
    def is_due(self) -> bool:
        """Whether the last save is long enough ago for another one."""
        return time.monotonic() - self._saved_at >= SAVE_EVERY_S

    def remember(self, name: str, number: int, compute: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return part `number` of `name`: as an earlier run saved it, or from `compute`.

        Parameters
        ----------
        name, number : str, int
            Identify the part among all that the job computes.
        compute : callable
            Returns JSON values, lists rather than tuples, so that both are the same.
        """
        part = f"{name}/{number}"
        if part not in self._finished:
            self._finished[part] = self._unsaved[part] = compute()
            if self.is_due:
                self._save()
        return self._finished[part]

    def write_snapshot(self, name: str, snapshot: Snapshot) -> None:
        """Save the state of the computation `name` in place of a former one."""
        record = {"record": json.dumps(snapshot.record)}
        self._write(f"{name}.safetensors", seal(snapshot.tensors, record))

    def read_snapshot(self, name: str) -> Snapshot | None:
        """Return the last saved state of the computation `name`, if there is one."""
        path = self.folder / f"{name}.safetensors"
        if not path.exists():
            return None
        try:
            return Snapshot(read_sealed(path), json.loads(read_metadata(path)["record"]))
        except (CheckpointError, KeyError):
            log.warning("%s is damaged; what it held is computed again.", path)
            return None

    def _save(self) -> None:
        if self._unsaved:
            content = {"sha256": _sha256(self._unsaved), "finished": self._unsaved}
            self._write(f"{self._n_parts:06}.json", json.dumps(content).encode())
            self._n_parts += 1
            self._unsaved = {}

    def _write(self, name: str, content: bytes) -> None:
        """Write a work file whole or not at all; the key is the first of them."""
        key = self.folder / "key"
        if not key.exists():
            write_whole(key, self._key.encode())
        write_whole(self.folder / name, content)
        self._saved_at = time.monotonic()


def _sha256(finished: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(finished).encode()).hexdigest()


def _read_part(path: Path) -> dict[str, Any]:
    """Return what a work file holds; nothing of one that is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["sha256"] == _sha256(content["finished"]):
            return content["finished"]
    except (ValueError, KeyError, TypeError):
        pass
    log.warning("%s is damaged; what it held is computed again.", path)
    return {}


def _digest(inputs: Iterable[str | Path], settings: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for path in inputs:
        digest.update(sha256(path).encode())
    return digest.hexdigest()
