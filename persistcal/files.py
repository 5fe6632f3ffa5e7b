"""Files that are there whole or not at all, and what is in them.

The package knows no paths but here: how a file is written is this module's idea.
"""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from hashlib import file_digest
from pathlib import Path


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
        return file_digest(file, "sha256").hexdigest()
