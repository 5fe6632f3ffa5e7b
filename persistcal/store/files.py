"""Files by their paths: read, written whole or not at all, and known by a digest."""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

FilePath = str | os.PathLike[str]

READ_EACH_TIME = 2**24  # bytes, whose digest takes about 10 ms


def read_bytes(path: FilePath) -> bytes:
    """Return the content of a file."""
    return Path(path).read_bytes()


def read_text(path: FilePath) -> str:
    """Return the content of a UTF-8 file."""
    return Path(path).read_text(encoding="utf-8")


def exists(path: FilePath) -> bool:
    """Return whether there is a file or folder at `path`."""
    return Path(path).exists()


def is_folder(path: FilePath) -> bool:
    """Return whether there is a folder at `path`."""
    return Path(path).is_dir()


def is_file(path: FilePath) -> bool:
    """Return whether there is a regular file at `path`: no folder, and no pipe."""
    return Path(path).is_file()


def check_writable(folder: FilePath) -> None:
    """Raise an OSError if no file can be written to `folder`, which need not exist yet."""
    path = Path(folder).absolute()
    there = next(one for one in (path, *path.parents) if one.exists())
    try:
        with TemporaryDirectory(dir=there):
            pass
    except OSError as error:
        error.filename = str(folder)
        raise


def size(path: FilePath) -> int:
    """Return how many bytes a file has."""
    return Path(path).stat().st_size


def inside(folder: FilePath, name: str) -> str:
    """Return the path of the file `name` in `folder`."""
    return str(Path(folder, name))


def beside(path: FilePath, name: str) -> str:
    """Return the path of the file `name` in the folder of the file at `path`."""
    return str(Path(path).with_name(name))


def folder_of(path: FilePath) -> str:
    """Return the folder of the file at `path`."""
    return str(Path(path).parent)


def last_part(path: FilePath) -> str:
    """Return the name of the file or folder at `path`."""
    return Path(path).name


def names_in(folder: FilePath, pattern: str = "*") -> list[str]:
    """Return in order the names in `folder` that match; none where there is no folder."""
    return sorted(path.name for path in Path(folder).glob(pattern))


def files_below(folder: FilePath, pattern: str) -> list[str]:
    """Return in order the files below `folder` that match, relative to it."""
    return [str(path.relative_to(folder)) for path in sorted(Path(folder).rglob(pattern))]


def make_folder(path: FilePath) -> str:
    """Make a folder, with those above it, unless it is there; return its path."""
    Path(path).mkdir(parents=True, exist_ok=True)
    return str(path)


def delete(path: FilePath) -> None:
    """Delete a file, or a folder with all that is in it, if it is there."""
    if Path(path).is_dir():
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)


@contextmanager
def written_whole(path: FilePath) -> Iterator[Path]:
    """Give a path to write to, which becomes `path` when the ``with`` block ends well.

    Folders are made, and what killed processes of this machine left of the file is removed.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "deep" / "numbers.txt"
    >>> with written_whole(path) as part:
    ...     _ = part.write_text("1, 2")
    ...     path.exists()
    False
    >>> path.read_text(), [file.name for file in path.parent.iterdir()]
    ('1, 2', ['numbers.txt'])
    """
    path = Path(path)
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
            os.fsync(file.fileno())  # a rename may reach the disk before what it names
        part.replace(path)
    except OSError as error:
        if error.errno is not None:  # the system's: a full disk names no file
            error.filename = error.filename or str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    """Return whether a process of this machine runs, or cannot be asked."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)  # no signal, only the question
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
    """Append `lines` to the file at `path`: all of them or, if that fails, none.

    A last line that a crash cut, or an editor left without its end, gets one.
    """
    make_folder(folder_of(path))
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
    """Return the SHA-256 digest of a content, part after part, in hexadecimal."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.encode() if isinstance(part, str) else part)
    return total.hexdigest()


def folder_beside(path: FilePath) -> AbstractContextManager[str]:
    """Return a folder beside a file that is removed at the end of its ``with`` block."""
    return TemporaryDirectory(dir=make_folder(folder_of(path)))


def sha256(path: FilePath) -> str:
    """Return the SHA-256 digest of a file in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_beside(path: FilePath) -> Path:
    return Path(path).with_name(f".{Path(path).name}.sha256")


def keep_digest(path: FilePath) -> None:
    """Write the digest of a file that has no room for it to a hidden file beside it."""
    write_whole(_digest_beside(path), sha256(path))


def is_edited(path: FilePath) -> bool:
    """Return whether a file has changed since `keep_digest`."""
    kept = _digest_beside(path)
    return kept.exists() and read_text(kept) != sha256(path)


class Digests:
    """Digests of files in a folder, so that a large file is read once per version of it.

    Jobs need no locks: entries are written whole, and one that cannot be read is missing.
    """

    def __init__(self, folder: FilePath) -> None:
        self._folder = Path(folder)

    @classmethod
    def beside(cls, record: FilePath) -> Self:
        """Return the digests that are kept in a folder beside `record`."""
        return cls(Path(record).parent / ".digests")

    def of(self, path: FilePath) -> str:
        """Return the digest of the file at `path`."""
        path = Path(path).resolve()
        stat = path.stat()
        if stat.st_size <= READ_EACH_TIME:
            return sha256(path)
        entry = self._folder / f"{digest([str(path)])[:32]}.json"
        # Programs that copy times cannot set that of the last change to the file's entry.
        version = [str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        try:
            known, found = json.loads(read_text(entry))
        except (OSError, ValueError, TypeError):
            known = None
        if known != version:
            found = sha256(path)
            with suppress(OSError):  # in a folder that cannot be written it is read again
                write_whole(entry, json.dumps([version, found]))
        return found


class DamagedFileError(ValueError):
    """A file is missing or damaged, or is not the file that a study expects."""
