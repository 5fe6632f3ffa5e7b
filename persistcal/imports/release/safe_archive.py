"""Check and unpack an archive of others: only files and folders, only below one folder."""

import hashlib
import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, cast

import pyarrow as pa

_DIGEST = re.compile(r"([0-9a-fA-F]{64})(?:\s+\*?(\S.*))?")


class ArchiveError(ValueError):
    """An archive is damaged, is not the published one, or has members that it must not have."""


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


def unpack(archive: str | Path, folder: str | Path, *, below: str) -> int:
    """Unpack a `.tar.zst` whose files all lie `below` a folder of it; return how many files.

    `folder` must be empty, and may contain part of them after an error.
    """
    archive, inside, n_files = Path(archive), PurePosixPath(below), 0
    try:
        with (
            pa.input_stream(str(archive), compression="zstd") as stream,
            tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|") as tar,
        ):
            for member in tar:
                if reason := _refusal(member, inside, Path(folder)):
                    raise ArchiveError(f"{archive}: refused, member {member.name!r} {reason}.")
                tar.extract(member, folder, set_attrs=False, filter="data")
                n_files += member.isfile()
    except tarfile.FilterError as error:
        raise ArchiveError(f"{archive}: refused, {error}.") from error
    except ArchiveError:
        raise
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk, not of the archive
        raise ArchiveError(
            f"{archive}: truncated, damaged or not a .tar.zst ({error}); download it again."
        ) from error
    return n_files


def _refusal(member: tarfile.TarInfo, below: PurePosixPath, folder: Path) -> str:
    """Return what is wrong with a member of an archive; empty if nothing is."""
    name = PurePosixPath(member.name)
    if not (member.isfile() or member.isdir()):
        return "is neither a file nor a folder"
    parents = [name, *name.parents] if member.isdir() else name.parents
    if below not in parents and not (member.isdir() and name in below.parents):
        return f"lies outside {below}/"
    if member.isfile() and (folder / name).exists():
        return "is there twice"
    return ""
