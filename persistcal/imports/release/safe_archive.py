"""Check and unpack an archive of others: only files and folders, only below one folder."""

import hashlib
import os
import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, Self, cast

import pyarrow as pa

MAX_BYTES = 16 * 2**30  # the released results need well under half of it
MEMBER_BYTES = 512  # a tar header; so that a billion empty files meet the limit too
HEADER_BYTES = 2**18  # before each file; the longest path needs a few thousand
MAX_PATH = 1024
MAX_NAME = 255

_DIGEST = re.compile(r"([0-9a-fA-F]{64})(?:\s+\*?(\S.*))?")


class ArchiveError(ValueError):
    """An archive is damaged, is not the one that was published, or is hostile."""


def check_digest(archive: str | Path, digest_file: str | Path) -> None:
    """Refuse an archive whose sha256 is not the one in `digest_file`.

    That holds lines of `HEX  filename` as sha256sum writes them, or the bare HEX.
    """
    archive, digest_file = Path(archive), Path(digest_file)
    if not archive.is_file():
        raise ArchiveError(f"{archive}: no such file; download it from the release.")
    if not digest_file.is_file():
        raise ArchiveError(
            f"{digest_file}: no such file; download it from the release, beside the archive."
        )
    lines = digest_file.read_text(encoding="utf-8", errors="replace").split("\n")
    entries = [match for line in lines if (match := _DIGEST.fullmatch(line.strip()))]
    named = [entry for entry in entries if entry[2] and Path(entry[2]).name == archive.name]
    if not named and len(entries) != 1:
        raise ArchiveError(f"{digest_file}: holds no sha256 of {archive.name}.")
    expected = (named or entries)[0][1].lower()
    with archive.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        raise ArchiveError(
            f"{archive}: its sha256 is {actual} but {digest_file.name} says {expected}; "
            "download both again."
        )


class _Header(tarfile.TarInfo):
    """A member whose damaged header is an error, not the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf and not any(buf):
                raise  # zeros are the end
            raise tarfile.ReadError(str(error)) from error


class _Metered:
    """A stream that gives no more than `left` bytes, which tarfile would hold in memory."""

    def __init__(self, stream: pa.NativeFile, archive: Path) -> None:
        self.stream, self.archive, self.left = stream, archive, HEADER_BYTES

    def read(self, size: int) -> bytes:
        content = self.stream.read(size)
        self.left -= len(content)
        if self.left < 0:
            raise ArchiveError(
                f"{self.archive}: refused, a member's headers are larger than "
                f"{HEADER_BYTES:,} bytes."
            )
        return content


def _target(member: tarfile.TarInfo, archive: Path, below: PurePosixPath) -> PurePosixPath:
    """Return the member's relative path, or refuse the archive."""

    def refuse(why: str) -> ArchiveError:
        return ArchiveError(f"{archive}: refused, member {member.name!r} {why}.")

    name = PurePosixPath(member.name)
    if len(member.name) > MAX_PATH or any(len(os.fsencode(p)) > MAX_NAME for p in name.parts):
        raise refuse("has a name that is too long")
    if "\0" in member.name:
        raise refuse("has a zero byte in its name")
    if member.size < 0:
        raise refuse("has a negative size")
    if name.is_absolute() or ".." in name.parts or "\\" in member.name:
        raise refuse("points outside the folder that it is unpacked into")
    if member.issym() or member.islnk():
        raise refuse("is a link")
    # Compared by type, because isreg() also lets sparse files of the GNU kind through.
    plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
    if not plain or member.issparse():
        raise refuse("is neither a file nor a folder")
    inside = below in name.parents or (name == below and member.isdir())
    if not inside and not (member.isdir() and name in below.parents):
        raise refuse(f"lies outside {below}/")
    return name


def unpack(
    archive: str | Path, folder: str | Path, *, below: str, max_bytes: int = MAX_BYTES
) -> int:
    """Unpack a `.tar.zst` whose files all lie `below` a folder of it; return how many files.

    `folder` must be empty, and may hold part of them after an error.
    """
    archive, n_files, n_bytes = Path(archive), 0, 0
    try:
        with pa.input_stream(str(archive), compression="zstd") as stream:
            metered = _Metered(stream, archive)
            with tarfile.open(
                fileobj=cast(IO[bytes], metered), mode="r|", tarinfo=_Header
            ) as tar:
                while member := tar.next():
                    target = Path(folder, _target(member, archive, PurePosixPath(below)))
                    n_bytes += MEMBER_BYTES + member.size
                    if n_bytes > max_bytes:
                        raise ArchiveError(
                            f"{archive}: refused, it unpacks to more than {max_bytes:,} bytes."
                        )
                    metered.left = HEADER_BYTES + member.size
                    if not member.isdir() and target.exists():
                        raise FileExistsError
                    tar.extract(member, folder, set_attrs=False, filter="data")
                    n_files += not member.isdir()
                    metered.left = HEADER_BYTES
                    tar.members.clear()  # type: ignore[attr-defined]  # they would add up
                    if tar.pax_headers:  # so would these
                        raise ArchiveError(f"{archive}: refused, it has global headers.")
    except (FileExistsError, NotADirectoryError) as error:
        raise ArchiveError(
            f"{archive}: refused, member '{target.relative_to(folder)}' is there twice."
        ) from error
    except ArchiveError:
        raise
    # Numbers in headers that are none are ValueErrors, headers of headers RecursionErrors.
    except (tarfile.TarError, EOFError, OSError, ValueError, RecursionError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk, not of the archive
        raise ArchiveError(
            f"{archive}: truncated, damaged or not a .tar.zst ({error}); download it again."
        ) from error
    return n_files
