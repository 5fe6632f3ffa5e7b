"""Progress of long jobs: what an earlier run has made, to continue it, and lines of the log.

The work files are in a hidden folder next to the output, and are deleted once the output
exists. No rule declares the folder, because Snakemake deletes declared files of failed jobs.
The tensors are in safetensors files that contain a digest of the content.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from tqdm import tqdm

from persistcal.store.artifacts import TRAINING, TableError, read
from persistcal.store.files import (
    DamagedFileError,
    FilePath,
    delete,
    digest,
    sha256,
    write_whole,
)
from persistcal.store.jobs import Job, paths

log = logging.getLogger(__name__)

SAVE_EVERY_S = 60.0  # at most this much work is lost, and short jobs write nothing
SECONDS = 10.0  # between lines, and before the first
LINE = "{desc}: {n_fmt} of {total_fmt} ({percentage:.0f} %), {rate_noinv_fmt}, {remaining} left"
SEAL = "sha256"
MADE_FROM = "made_from"  # in an adapter's metadata: digest of the inputs, settings and code
FILES_MADE = ("training_of",)  # settings that decide which files a job makes


class Snapshot(NamedTuple):
    """State of a computation: tensors, and a record of JSON values."""

    tensors: dict[str, Tensor]
    record: dict[str, Any]


class Progress(AbstractContextManager["Progress"]):
    """Finished parts of a job, from an interrupted run and from this run.

    `key` is a digest of the inputs and settings, without the settings `FILES_MADE`.

    The work files are next to `output`, the job's first one. Work files of other inputs or
    settings are deleted; the settings contain the digest of the code.
    """

    def __init__(
        self, output: FilePath, inputs: Iterable[FilePath], settings: Mapping[str, Any]
    ) -> None:
        self.folder = Path(output).with_name(f".{Path(output).name}.progress")
        serialised = json.dumps(settings, sort_keys=True, default=str)
        self.key = digest([serialised, *map(sha256, inputs)])
        self._key_file = self.folder / "key"
        self._saved_at = time.monotonic()
        self._finished: dict[str, Any] = {}
        self._unsaved: dict[str, Any] = {}
        if self.folder.exists() and not (
            self._key_file.exists() and self._key_file.read_text(encoding="utf-8") == self.key
        ):
            log.info("Deleting work files of other inputs, settings or code: %s", self.folder)
            delete(self.folder)
        if self.folder.exists():
            log.info("Continuing an interrupted run with its work files in %s", self.folder)
        parts = sorted(self.folder.glob("*.json"))
        for part in parts:
            self._finished |= _read_part(part)
        self._n_parts = len(parts)

    @classmethod
    def of_job(cls, job: Job) -> AbstractContextManager["Progress | None"]:
        """Return the progress of a job, or None if the job writes nothing."""
        if not job.outputs:
            return nullcontext()
        output, *_ = paths(next(iter(job.outputs.values())))
        inputs = [path for files in job.inputs.values() for path in paths(files)]
        settings = {n: value for n, value in job.settings.items() if n not in FILES_MADE}
        return cls(output, inputs, settings)

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
        path = self.folder / f"{name}.safetensors"
        if not path.exists():
            return None
        try:
            tensors, metadata = read_sealed(path)
            return Snapshot(tensors, json.loads(metadata["record"]))
        except (DamagedFileError, KeyError):
            log.warning("%s is damaged; its parts are computed again.", path)
            return None

    def _save(self) -> None:
        if self._unsaved:
            checksum = digest([json.dumps(self._unsaved)])
            content = {"sha256": checksum, "finished": self._unsaved}
            self._write(f"{self._n_parts:06}.json", json.dumps(content).encode())
            self._n_parts += 1
            self._unsaved = {}

    def _write(self, name: str, content: bytes) -> None:
        """Write a work file, after the key if this is the first one."""
        if not self._key_file.exists():
            write_whole(self._key_file, self.key.encode())
        write_whole(self.folder / name, content)
        self._saved_at = time.monotonic()


def _read_part(path: Path) -> dict[str, Any]:
    """Return the finished parts in a work file; an empty dict if it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["sha256"] == digest([json.dumps(content["finished"])]):
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
        log.info("%s", " ".join(str(self).split()))  # tqdm fills short rates with spaces


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str], companion: str) -> str:
    shapes = {name: [str(t.dtype), [*t.shape]] for name, t in sorted(tensors.items())}
    texts = json.dumps([shapes, dict(metadata), companion], sort_keys=True)
    flat = (tensor.contiguous().view(-1) for _, tensor in sorted(tensors.items()))
    return digest(chain([texts], (tensor.view(torch.uint8).numpy().data for tensor in flat)))


def seal(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str], companion: str = ""
) -> bytes:
    """Return the bytes of a safetensors file with a digest of the tensors and metadata.

    The digest also covers `companion`, the content of a file that must not change either.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    file = save(tensors, metadata={**metadata, SEAL: _digest(tensors, metadata, companion)})
    # The library writes the header's keys in random order; sort them for a stable file.
    length = int.from_bytes(file[:8], "little")
    header = json.dumps(json.loads(file[8 : 8 + length]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + file[8 + length :]


def read_sealed(
    path: FilePath, companion: str = ""
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return tensors and metadata of a file of `seal`; refuse one that was changed since.

    Files of other programs have no digest and are not checked.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            metadata = dict(file.metadata() or {})
        sealed = metadata.pop(SEAL, None)
        if sealed and _digest(tensors, metadata, companion) != sealed:
            raise ValueError("its content does not match its digest")
    except (SafetensorError, ValueError, OSError) as error:
        raise DamagedFileError(
            f"{path} or the file next to it is damaged ({error}); delete it, so that it is "
            "made again."
        ) from error
    return tensors, metadata


class Trained(NamedTuple):
    """An adapter's files, and the history of the training as a table TRAINING."""

    weights: bytes
    config: bytes
    history: pd.DataFrame


def read_trained(job: Job, made_from: str) -> dict[int, Trained]:
    """Return the outputs of the job that were made of the same inputs, by seed.

    If the outputs of all seeds are there, all are made again, and none is returned.
    """
    trained = {}
    files = [job.outputs.get(name, []) for name in ("adapters", "configs", "training")]
    for (weights, config, history), values in zip(
        zip(*files, strict=True), job.settings["training_of"], strict=bool(job.outputs)
    ):
        with suppress(OSError, DamagedFileError, TableError):
            text = Path(config).read_text(encoding="utf-8")
            if read_sealed(weights, text)[1].get(MADE_FROM) == made_from:
                rows = read(history, TRAINING)
                trained[values["seed"]] = Trained(
                    Path(weights).read_bytes(), text.encode(), rows
                )
    return trained if len(trained) < len(job.settings["training_of"]) else {}


class Seeds(NamedTuple):
    """The seeds of a job's adapters, the trained ones among them, and the saved work."""

    numbers: list[int]
    trained: dict[int, Trained]
    progress: Progress | None

    @classmethod
    @contextmanager
    def of_job(cls, job: Job) -> Iterator["Seeds"]:
        """Yield the seeds of a job; only rank 0 of several has the trained ones."""
        with Progress.of_job(job) as progress:
            trained = read_trained(job, progress.key) if progress else {}
            numbers = [values["seed"] for values in job.settings["training_of"]]
            yield cls(numbers, trained, progress)
