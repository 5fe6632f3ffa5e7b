"""Checkpoints of a Hub repository, or of a local folder with a sub-folder per revision.

Weights are safetensors files. Code in a repository is neither fetched nor run. All jobs and
studies share the Hub's cache (`HF_HOME`). Locks of the cache make concurrent jobs fetch a file
once. The cache is consistent without locks, because downloads are renamed when complete.
"""

import difflib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import HfApi, errors, hf_hub_download, snapshot_download

from persistcal.models.checkpoint import (
    SMALL_FILES,
    TOKENIZER_FILES,
    Checkpoint,
    check_sums,
    files_that_matter,
    local_checkpoint,
    matching,
)
from persistcal.store.files import DamagedFileError, Digests, FilePath, sha256

log = logging.getLogger(__name__)


def resolve_revision(
    repo: str,
    revision: str,
    *,
    patterns: Sequence[str] = SMALL_FILES,
    digests: Digests | None = None,
) -> Checkpoint:
    """Return the record of `revision` of `repo`, without downloading weights.

    `patterns` select the files besides the weights; local files with known `digests` are not
    read again.
    """
    if Path(repo).is_dir():
        folder = str(Path(repo, revision))
        if not Path(folder).is_dir():
            raise _no_revision(repo, revision, _folders_in(repo))
        digest = digests.sha256 if digests else sha256
        check_sums(repo, revision, digest)
        return local_checkpoint(folder, digest, patterns)
    try:
        return _resolve_on_hub(repo, revision, patterns)
    except errors.RevisionNotFoundError:
        refs = HfApi().list_repo_refs(repo)
        names = [ref.name for ref in refs.branches + refs.tags]
        raise _no_revision(repo, revision, names) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise DamagedFileError(
            f"{repo} is neither a folder nor a repository on the Hub that you may read; "
            f"{_meant_folder(repo)}correct the model's repo, or log in with `hf auth login` if "
            "it is private."
        ) from error
    except (httpx2.HTTPError, errors.OfflineModeIsEnabled) as error:
        raise DamagedFileError(
            f"{repo}: there is no such folder, and the Hub did not answer ({error}); "
            f"{_meant_folder(repo)}correct the model's repo, or run this rule on a machine "
            "with a connection and without HF_HUB_OFFLINE."
        ) from error


def _folders_in(folder: FilePath) -> list[str]:
    return sorted(path.name for path in Path(folder).glob("*") if path.is_dir())


def _meant_folder(repo: str) -> str:
    """Return a suggestion: the most similar folder next to the missing `repo`."""
    parent = Path(repo).parent
    names = _folders_in(parent) if parent.name else []
    close = difflib.get_close_matches(repo, [str(Path(parent, name)) for name in names], n=1)
    return f"there is a folder {close[0]}; " if close else ""


def _resolve_on_hub(repo: str, revision: str, patterns: Sequence[str]) -> Checkpoint:
    info = HfApi().model_info(repo, revision=revision, files_metadata=True)
    commit = info.sha
    large = {file.rfilename: file.lfs for file in info.siblings or []}

    def download(name: str) -> str:
        with _cache_named():
            return hf_hub_download(repo, name, revision=commit)

    kinds = files_that_matter(f"{repo} ({revision})", large, download, patterns)
    weights, files = (  # the Hub gives the digests of files that it stores as large ones
        {name: lfs.sha256 if (lfs := large[name]) else sha256(download(name)) for name in part}
        for part in kinds
    )
    return Checkpoint(repo, revision, commit, weights, files)


@contextmanager
def _cache_named() -> Iterator[None]:
    """Name the folder, where the cache of downloads cannot be made or written."""
    try:
        yield
    except OSError as error:
        if error.filename is None:  # not of the disk
            raise
        raise DamagedFileError(
            f"{error.filename} cannot be written ({error.strerror}); set HF_HOME, or "
            "model_cache in the config, to a folder for downloads that can."
        ) from error


def _no_revision(repo: str, revision: str, names: Iterable[str]) -> DamagedFileError:
    names = sorted(names)
    close = difflib.get_close_matches(revision, names, n=1) or names[:5]
    return DamagedFileError(
        f"{repo} has no revision {revision!r}; give one that it has: {', '.join(close)}."
    )


def fetch_files(checkpoint: Checkpoint, patterns: list[str]) -> str:
    """Return a folder with the files of `checkpoint` that match; the cache is filled first."""
    if checkpoint.commit is None:
        return checkpoint.repo
    with _cache_named():
        return snapshot_download(
            checkpoint.repo, revision=checkpoint.commit, allow_patterns=patterns
        )


def fetch_checked(checkpoint: Checkpoint, *, weights: bool = True) -> str:
    """Return a folder with the files of `checkpoint`, checked against its record."""
    listed = checkpoint.files | (checkpoint.weights if weights else {})
    small = [] if checkpoint.files else SMALL_FILES
    folder = fetch_files(checkpoint, [*small, *listed])
    checkpoint.check(folder, listed)
    return folder


@dataclass(frozen=True)
class Revision(Checkpoint):
    """A resolved checkpoint, and whether other checkpoints can have the same weights.

    Equal weights are allowed explicitly, or if the settings `beside_weights` (such as few-shot
    examples) make two states of the same weights. The records of all checkpoints of a model
    are in one folder.
    """

    allow_identical_weights: bool = False
    beside_weights: dict[str, Any] = field(default_factory=dict)

    def resolved(self, *, dtype: str | None, record: str) -> Checkpoint:
        """Return the record of the checkpoint, as jobs read it."""
        files = self.weights, self.files
        return Checkpoint(
            self.repo, self.revision, self.commit, *files, dtype, self.changes, record
        )


def changed_files(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the files that differ or are in one mapping only, sorted."""
    return sorted({name for name, _ in first.items() ^ second.items()})


def check_siblings(revision: Revision) -> None:
    """Refuse a checkpoint with weights of another; warn of one with another tokenizer.

    Training changes every file, but some repositories have the same under several names.
    """
    folder = Path(str(revision.record)).parent
    model, own_name = folder.name, revision.name
    other_tokenizers = []
    for path in sorted(folder.glob("*.json")):
        recorded = Revision.read(path)
        if (name := recorded.name) == own_name:
            continue
        digests = recorded.weights.values()
        shared = [file for file, digest in revision.weights.items() if digest in digests]
        allowed = revision.allow_identical_weights or recorded.allow_identical_weights
        if shared and not allowed and revision.beside_weights == recorded.beside_weights:
            listed = ", ".join(shared) if len(shared) < len(revision.weights) else "all weights"
            raise DamagedFileError(
                f"checkpoints {own_name} and {name} of {model} have {listed} in "
                "common, so one is not what its name says; remove one from the config and its "
                f"file from {folder}, or set allow_identical_weights of one to true."
            )
        if differ := matching(changed_files(revision.files, recorded.files), TOKENIZER_FILES):
            other_tokenizers.append(f"{name} ({', '.join(differ)})")
    if other_tokenizers:
        log.warning(
            "checkpoint %s of %s does not have the tokenizer of %s; check that this is meant.",
            *(own_name, model),
            " and ".join(other_tokenizers),
        )


def check_pinned(resolved: Checkpoint, pins: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a revision with another commit than in the first run of the paper's study."""
    pinned = pins.get(resolved.repo, {}).get(resolved.revision or "", resolved.commit)
    if resolved.commit and resolved.commit != pinned:
        raise DamagedFileError(
            f"{resolved.repo} ({resolved.revision}) is now commit {resolved.commit}, but "
            f"resources/paper/revisions.yaml has {pinned} from an earlier run; set its "
            "revision to that commit, or delete its line there to accept the new one."
        )


def check_unchanged(resolved: Checkpoint, record: str) -> None:
    """Refuse a revision that has changed since results were made from `record`."""
    if not Path(record).exists():
        return
    used = Checkpoint.read(record)
    _check_same(used, resolved, record)
    if used.adapter and resolved.adapter:
        _check_same(used.adapter, resolved.adapter, record)


def _check_same(used: Checkpoint, resolved: Checkpoint, record: str) -> None:
    """Refuse `resolved` if it has the name of the `used` checkpoint but other files."""
    changed = changed_files(used.weights, resolved.weights)
    if used.files:  # records of older versions do not have them
        changed += changed_files(used.files, resolved.files)
    if changed and (used.repo, used.revision) == (resolved.repo, resolved.revision):
        part = "its weights" if changed[0] in resolved.weights else changed[0]
        keep = f"put {'the weights' if part == 'its weights' else 'it'} back"
        keep = f"set its revision to {used.commit}" if used.commit else keep
        raise DamagedFileError(
            f"{resolved.repo} ({resolved.revision}) has changed {part} since results were "
            f"made; {keep} to keep them, or delete {record} to make them again."
        )
