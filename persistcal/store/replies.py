"""Store a paid server's replies, its running batches and the ledger of requests.

Jobs append rows to CSV files, which can end in half a row and which people edit.
"""

import csv
import datetime
import io
import itertools
import json
import logging
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from persistcal.store.files import FilePath, append_lines, digest, write_whole

log = logging.getLogger(__name__)

Value = TypeVar("Value")

SPENDING = ("time", "model", "requests", "cost", "what")
LONGEST_FIELD = 2**31 - 1  # the csv module's default is 128 KiB


def append_rows(path: FilePath, rows: Iterable[Sequence[Any]], *, delimiter: str = ",") -> None:
    """Append `rows` as `append_lines` does; line breaks inside a field become spaces."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(
        [" ".join(f.splitlines()) if isinstance(f, str) else f for f in row] for row in rows
    )
    append_lines(path, text.getvalue().encode("utf-8"))


def read_lines(path: FilePath) -> list[str]:
    """Return the lines of the file at `path` with their line breaks; [] without a file.

    Raises UnicodeDecodeError if the file is not UTF-8. A truncated character at the end of a
    line is allowed.
    """
    return decode_lines(Path(path).read_bytes() if Path(path).exists() else b"")


def decode_lines(content: bytes) -> list[str]:
    """Return the lines of the content of a UTF-8 file, see `read_lines`."""
    lines = []
    for line in content.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True):
        try:
            lines.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data" and line[error.end :].strip():
                raise
            lines.append(line.decode("utf-8", errors="replace"))
    return lines


def parse_rows(
    lines: Sequence[str], *, delimiter: str = ",", columns: int, blank: bool = False
) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the first line's number and the fields of each row with at most `columns` fields.

    A damaged line has fields that are None. A line that is a complete row is always read as
    one, even if an earlier truncated line opened a quote. Blank lines are rows without fields,
    and left out unless `blank`.
    """
    i = 0
    while i < len(lines):
        fields, n = _row_at(lines, i, delimiter)
        swallows = any(
            len(_row_at([line], 0, delimiter)[0] or ()) == columns
            for line in lines[i + 1 : i + n]
        )
        if fields is None or len(fields) > columns or swallows:
            fields, n = None, 1
        if fields != [] or blank:
            yield i + 1, fields
        i += n


def _row_at(lines: Sequence[str], i: int, delimiter: str) -> tuple[list[str] | None, int]:
    """Return the row that begins at line `i`, or None, and its number of lines."""
    previous_limit = csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(itertools.islice(lines, i, None), delimiter=delimiter, strict=True)
    try:
        fields = next(reader, [])
    except csv.Error:
        return None, 1
    finally:
        csv.field_size_limit(previous_limit)
    return fields, max(reader.line_num, 1)


@contextmanager
def hold_lock(lock: FilePath, *, waiting: str = "Waiting for another job.") -> Iterator[None]:
    """Acquire a lock file that only one job at a time can have, also across machines.

    The operating system releases the lock when its process ends. `waiting` is logged if the
    lock is not free.
    """
    # Imported here, because Snakemake's own environment imports this module without filelock.
    from filelock import FileLock, Timeout

    Path(lock).parent.mkdir(parents=True, exist_ok=True)
    held = FileLock(lock)
    try:
        held.acquire(timeout=0)
    except Timeout:
        log.info("%s", waiting)
        held.acquire(poll_interval=0.2)
    try:
        yield
    finally:
        held.release()


def request_digest(value: object) -> str:
    """Return a digest of a request or a part of it, as 32 hexadecimal digits."""
    return digest([json.dumps(value, ensure_ascii=False, sort_keys=True)])[:32]


class ReplyCache:
    """Cache with one JSON file per reply, named by its request's key: ``folder/ab/cdef….json``.

    A file is written as soon as the reply arrives. Delete it to send the request again.
    """

    def __init__(self, folder: FilePath) -> None:
        self._folder = folder

    def path(self, key: str) -> Path:
        """Return the file of the reply under `key`."""
        return Path(self._folder, key[:2], f"{key[2:]}.json")

    def get(self, key: str, read: Callable[[Any], Value | None], again: str) -> Value | None:
        """Return what `read` makes of the JSON value under `key`, or None without one.

        A value of which it makes nothing is damaged; a warning names what is done `again`.
        """
        value, path = None, self.path(key)
        try:
            value = read(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            pass
        if value is None:
            log.warning("%s is damaged; %s.", path, again)
        return value

    def put(self, key: str, entry: dict[str, Any]) -> None:
        """Write `entry` under `key`."""
        write_whole(self.path(key), json.dumps(entry, ensure_ascii=False, indent=1))


def upload_line(request: Mapping[str, Any]) -> str:
    """Return a request as it is uploaded: in ASCII, so that its length is its size in bytes."""
    return f"{json.dumps(request)}\n"


class BatchRecord:
    """A batch: its requests in ``<token>.jsonl``, its state in `path`, ``<token>.json``.

    The files exist from before the batch is submitted until its results are stored.
    """

    def __init__(self, folder: FilePath, token: str) -> None:
        self.token = token
        self.path = Path(folder, f"{token}.json")
        self._lines = Path(folder, f"{token}.jsonl")

    @classmethod
    def create(cls, folder: FilePath, lines: Iterable[dict[str, Any]], cost: float) -> Self:
        """Write the record of a batch before it is submitted."""
        record = cls(folder, uuid.uuid4().hex)
        write_whole(record._lines, "".join(map(upload_line, lines)))
        record._write(None, cost)
        return record

    @classmethod
    def all_in(cls, folder: FilePath) -> list[Self]:
        """Return the records of all batches that are not collected yet."""
        return [cls(folder, path.stem) for path in sorted(Path(folder).glob("*.json"))]

    def _write(self, batch_id: str | None, cost: float) -> None:
        write_whole(self.path, json.dumps({"batch_id": batch_id, "cost": cost}))

    def save(self, batch_id: str) -> None:
        """Write the server's id of the batch, whole or not at all."""
        self._write(batch_id, self.state()[1])

    def state(self) -> tuple[str | None, float]:
        """Return the server's id of the batch, or None, and the estimated cost."""
        try:
            state = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:  # another job has collected the batch
            return None, 0.0
        return state["batch_id"], state["cost"]

    def upload(self) -> bytes:
        """Return the requests as bytes for the upload."""
        return self._lines.read_bytes()

    def lines(self) -> list[dict[str, Any]]:
        """Return the requests."""
        return [json.loads(line) for line in self.upload().splitlines()]

    def bodies(self) -> dict[str, dict[str, Any]]:
        """Return the content of each request, by key."""
        return {line["custom_id"]: line["body"] for line in self.lines()}

    def remove(self) -> None:
        """Delete the record."""
        self.path.unlink(missing_ok=True)
        self._lines.unlink(missing_ok=True)


class Ledger:
    """CSV file of all requests of a study, so that its jobs share a ceiling on costs.

    Requests are added before they are sent and removed if no reply arrives. After a kill the
    ledger can contain too many requests, but never too few. Hold a lock while using it.
    """

    def __init__(self, path: FilePath) -> None:
        self.path = path

    def total(self) -> tuple[int, float]:
        """Return the number and the estimated cost of all requests so far.

        Lines that a crash truncated do not count: their requests were not sent, or removed.
        """
        requests, cost = 0, 0.0
        for line, fields in parse_rows(read_lines(self.path), columns=len(SPENDING)):
            if fields == list(SPENDING):
                continue
            try:
                _, _, number, spent, _ = fields or []
                n, spent_here = int(number), float(spent)
            except ValueError:
                n, spent_here = 0, math.nan
            if math.isfinite(spent_here):
                requests, cost = requests + n, cost + spent_here
            else:
                log.warning("%s: line %d is damaged and does not count.", self.path, line)
        return requests, cost

    def add(self, model: str, requests: int, cost: float, event: str) -> None:
        """Append a line; negative numbers remove requests."""
        if not requests:
            return
        time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        line = [time, model, requests, f"{cost:.6f}", event]
        append_rows(self.path, [line] if Path(self.path).exists() else [SPENDING, line])
