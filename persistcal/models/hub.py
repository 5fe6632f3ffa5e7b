"""Checkpoints of a Hub repository, or of a local folder with a sub-folder per revision.

Weights are safetensors files; code that comes with a checkpoint is neither fetched nor run. The
Hub's own cache (`HF_HOME`) is shared by all jobs and studies: its locks make concurrent jobs
fetch a file once, and without locks it stays whole, because a download is renamed when
complete.
"""

import difflib
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import httpx2
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from persistcal.models.checkpoint import (
    SMALL_FILES,
    Checkpoint,
    CheckpointError,
    check_sums,
    files_that_matter,
    local_checkpoint,
)
from persistcal.store.files import (
    Digests,
    folder_of,
    inside,
    is_folder,
    last_part,
    names_in,
    sha256,
)

log = logging.getLogger(__name__)


def resolve_revision(
    repo: str,
    revision: str,
    *,
    patterns: Sequence[str] = SMALL_FILES,
    digests: Digests | None = None,
) -> Checkpoint:
    """Return the record of `revision` of `repo`, without downloading weights.

    `patterns` are those of files that matter beside the weights; `digests` those of local files
    that are known, without which all are read.
    """
    if is_folder(repo):
        folder = inside(repo, revision)
        if not is_folder(folder):
            raise _no_revision(repo, revision, _folders_in(repo))
        digest = digests.of if digests else sha256
        check_sums(repo, revision, digest)
        return local_checkpoint(folder, digest, patterns)
    try:
        return _resolve_on_hub(repo, revision, patterns)
    except RevisionNotFoundError:
        refs = HfApi().list_repo_refs(repo)
        names = [ref.name for ref in refs.branches + refs.tags]
        raise _no_revision(repo, revision, names) from None
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise CheckpointError(
            f"{repo} is neither a folder nor a repository on the Hub that you may read; "
            f"{_meant_folder(repo)}correct the model's repo, or log in with `hf auth login` if "
            "it is private."
        ) from error
    except (httpx2.HTTPError, OfflineModeIsEnabled) as error:
        raise CheckpointError(
            f"{repo}: there is no such folder, and the Hub did not answer ({error}); "
            f"{_meant_folder(repo)}correct the model's repo, or run this rule on a machine "
            "with a connection and without HF_HUB_OFFLINE."
        ) from error


def _folders_in(folder: str) -> list[str]:
    return [name for name in names_in(folder) if is_folder(inside(folder, name))]


def _meant_folder(repo: str) -> str:
    """Name the folder that is most like `repo` beside the one that it would be."""
    parent = folder_of(repo)
    beside = [inside(parent, name) for name in _folders_in(parent)] if last_part(parent) else []
    close = difflib.get_close_matches(repo, beside, n=1)
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
        raise CheckpointError(
            f"{error.filename} cannot be written ({error.strerror}); set HF_HOME, or "
            "model_cache in the config, to a folder for downloads that can."
        ) from error


def _no_revision(repo: str, revision: str, names: Iterable[str]) -> CheckpointError:
    names = sorted(names)
    close = difflib.get_close_matches(revision, names, n=1) or names[:5]
    return CheckpointError(
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


def fetch_small_checked(checkpoint: Checkpoint) -> str:
    """Return a folder with all that belongs to `checkpoint` but its weights, checked."""
    folder = fetch_files(checkpoint, list(checkpoint.files) or SMALL_FILES)
    checkpoint.check(folder, checkpoint.files)
    return folder


def fetch_checked(checkpoint: Checkpoint) -> str:
    """Return a folder with all files of `checkpoint`, checked against its record."""
    small = list(checkpoint.files) or SMALL_FILES
    folder = fetch_files(checkpoint, [*small, *checkpoint.weights])
    checkpoint.check(folder, checkpoint.files | checkpoint.weights)
    return folder
