"""Files that are there whole or not at all, and what is in them.

The package knows no paths but here: how a file is written is this module's idea.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Self

READ_EACH_TIME = 2**24  # bytes, whose digest takes about 10 ms


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a path to write to, which becomes `path` when the ``with`` block ends well.

    Until then, and after an error, `path` is as it was before. Folders are made, and what
    killed processes of this machine left of the same file is removed.

    Examples
    --------
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


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write `content` to the file `path`, whole or not at all; text is UTF-8."""
    with written_whole(path) as part:
        part.write_bytes(content if isinstance(content, bytes) else content.encode())


def sha256(path: str | Path) -> str:
    """Return the SHA-256 digest of a file in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_beside(path: str | Path) -> Path:
    return Path(path).with_name(f".{Path(path).name}.sha256")


def keep_digest(path: str | Path) -> None:
    """Write the SHA-256 of a file that has no room for it to a hidden file beside it."""
    write_whole(_digest_beside(path), sha256(path))


def is_edited(path: str | Path) -> bool:
    """Return whether a file has changed since `keep_digest`."""
    kept = _digest_beside(path)
    return kept.exists() and kept.read_text(encoding="utf-8") != sha256(path)


class Digests:
    """SHA-256 of files, large ones read once per version: what is known lies in a folder.

    A large file whose size or times are not those that are known is read. Jobs need no
    locks: entries are written whole, and one that cannot be read counts as missing.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "weights").write_text("1, 2")
    >>> digests = Digests(folder / "known")
    >>> digests.of(folder / "weights") == sha256(folder / "weights")
    True
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    @classmethod
    def beside(cls, record: str | Path) -> Self:
        """Return what is known of files, kept in a folder beside `record`."""
        return cls(Path(record).parent / ".digests")

    def of(self, path: Path) -> str:
        """Return the digest of the file at `path`."""
        path = path.resolve()
        if path.stat().st_size <= READ_EACH_TIME:
            return sha256(path)
        key = hashlib.sha256(str(path).encode()).hexdigest()[:32]
        entry, stat = self._folder / f"{key}.json", path.stat()
        # The time of the last change to the entry of the file cannot be set by programs
        # that copy times.
        version = [str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        try:
            known, digest = json.loads(entry.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            known = None
        if known != version:
            digest = sha256(path)
            with suppress(OSError):  # in a folder that cannot be written it is read again
                write_whole(entry, json.dumps([version, digest]))
        return digest
