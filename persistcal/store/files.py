"""Read files by path, write them as a whole or not at all, and compare their digests."""

import errno
import fcntl
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

FilePath = str | os.PathLike[str]

READ_EACH_TIME = 2**24  # bytes; a digest of so many takes about 10 ms


def check_writable(folder: FilePath) -> None:
    """Raise an OSError if no file can be written to `folder`, which need not exist yet."""
    path = Path(folder).absolute()
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    try:
        with TemporaryDirectory(dir=existing):
            pass
    except OSError as error:
        error.filename = str(folder)
        raise


@contextmanager
def one_writer(folder: FilePath) -> Iterator[None]:
    """Refuse a folder into which another process of this machine writes now.

    The folder is made for this, and removed if it stays empty.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise ValueError(
            f"{folder}: another run writes into it; wait for its end, or give another --out."
        ) from None
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        os.close(handle)
        with suppress(OSError):
            Path(folder).rmdir()


def delete(path: FilePath) -> None:
    """Delete a file, or a folder with its content, if it exists."""
    if Path(path).is_dir():
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)


@contextmanager
def written_whole(path: FilePath) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to `path` if the ``with`` block succeeds.

    Folders are made. Temporary files that killed processes of this machine left are removed.
    A link is followed. Only regular files are replaced: a pipe or a device is written into.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; give the name of a file", str(path))
    if path.exists() and not path.is_file():
        with TemporaryDirectory() as folder:
            yield (part := Path(folder, path.name))
            with part.open("rb") as written, path.open("wb") as node:
                shutil.copyfileobj(written, node)
        return
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    beginning = f".{path.name}.{platform.node()}."
    for left in path.parent.glob(f"{escape(beginning)}*.part"):
        process = left.name.removeprefix(beginning).removesuffix(".part")
        if process.isdecimal() and not _runs(int(process)):
            left.unlink(missing_ok=True)
    part = path.with_name(f"{beginning}{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())  # the rename must not reach the disk before the content
        part.replace(path)
    except OSError as error:
        if error.errno is not None:  # the system's error for a full disk names no file
            error.filename = error.filename or str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    """Return whether a process of this machine runs, or True if this is unknown."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)  # signal 0 only checks that the process exists
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def write_whole(path: FilePath, content: bytes | str) -> None:
    """Write `content` to the file `path`, whole or not at all; text is UTF-8."""
    with written_whole(path) as part:
        part.write_bytes(content if isinstance(content, bytes) else content.encode())


def append_lines(path: FilePath, lines: bytes) -> None:
    """Append `lines` to the file at `path`: all of them, or none if an error occurs.

    A line break is inserted first if the file's last line has none.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("a+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        start = b"\r\n" if file.read(1) not in (b"", b"\n") else b""
        content = start + lines
        try:
            if file.write(content) != len(content):
                raise OSError(f"{path}: not everything could be written; is the disk full?")
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(size)
            raise


def digest(parts: Iterable[bytes | memoryview | str]) -> str:
    """Return the hexadecimal SHA-256 digest of the concatenated parts."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.encode() if isinstance(part, str) else part)
    return total.hexdigest()


def sha256(path: FilePath) -> str:
    """Return the hexadecimal SHA-256 digest of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Digests:
    """Cache of digests, so that each version of a large file is read only once.

    Jobs need no locks: entries are written as a whole, and unreadable entries count as missing.
    """

    def __init__(self, folder: FilePath) -> None:
        self._folder = Path(folder)

    @classmethod
    def next_to(cls, record: FilePath) -> Self:
        """Return the cache in the folder of the file `record`."""
        return cls(Path(record).parent / ".digests")

    def sha256(self, path: FilePath) -> str:
        """Return the digest of the file at `path`."""
        path = Path(path).resolve()
        stat = path.stat()
        if stat.st_size <= READ_EACH_TIME:
            return sha256(path)
        entry = self._folder / f"{digest([str(path)])[:32]}.json"
        # Programs that copy a file's times cannot set its ctime.
        version = [str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        try:
            cached_version, cached = json.loads(entry.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            cached_version = None
        if cached_version != version:
            cached = sha256(path)
            with suppress(OSError):  # the cache is optional if the folder is not writable
                write_whole(entry, json.dumps([version, cached]))
        return cached


class DamagedFileError(ValueError):
    """A file is missing, damaged or not the expected one."""
