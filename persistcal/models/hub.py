"""Checkpoints as a Hub repository or a local folder holds them.

A checkpoint is the revision of a repository. A local repository is a folder with
one sub-folder per revision. Weights are safetensors files; code that comes with
a checkpoint is neither fetched nor run.

Files go to the Hub's own cache (`HF_HOME`), which all jobs and studies share. Its
locks make concurrent jobs fetch a file once; where a file system has no locks,
the cache stays whole all the same, because a download is a temporary file of its
process that is renamed when it is complete.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

import httpx2
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
ADAPTER = "adapter_model.safetensors"
ADAPTER_FILES = ["adapter_config.json", ADAPTER]
SMALL_FILES = [
    "config.json",
    "generation_config.json",
    INDEX,
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
]


class CheckpointError(ValueError):
    """A checkpoint is not there, or not what a study takes it for."""


class Revision(NamedTuple):
    """What a revision of a repository is.

    Attributes
    ----------
    repo : str
        Hub id, or the local folder that holds the files.
    revision : str
        Branch, tag or commit, or the folder's name.
    commit : str or None
        Commit of the Hub repository; None for a local folder.
    weights : dict of str to str
        SHA-256 of each file of weights.
    """

    repo: str
    revision: str
    commit: str | None
    weights: dict[str, str]


def resolve_revision(repo: str, revision: str) -> Revision:
    """Look up what `revision` of `repo` is, without downloading weights.

    The digest is computed from the file where the Hub does not give it, as for
    files that are not stored as large ones.

    Raises
    ------
    CheckpointError
        When there is no such repository or revision, it holds no safetensors
        weights or not all of them, or the Hub cannot be reached.
    """
    if Path(repo).is_dir():
        return _resolve_folder(Path(repo), revision)
    try:
        return _resolve_on_hub(repo, revision)
    except RevisionNotFoundError:
        refs = HfApi().list_repo_refs(repo)
        names = [ref.name for ref in refs.branches + refs.tags]
        raise _no_revision(repo, revision, names) from None
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise CheckpointError(
            f"{repo} is neither a folder nor a repository on the Hub that you may read; "
            "correct the model's repo, or log in with `hf auth login` if it is private."
        ) from error
    except (httpx2.HTTPError, OfflineModeIsEnabled) as error:
        raise CheckpointError(
            f"{repo}: the Hub did not answer ({error}); run this rule on a machine with a "
            "connection and without HF_HUB_OFFLINE."
        ) from error


def _resolve_folder(repo: Path, revision: str) -> Revision:
    folder = repo / revision
    if not folder.is_dir():
        names = [path.name for path in repo.iterdir() if path.is_dir()]
        raise _no_revision(str(repo), revision, names)
    names = weight_files(
        str(folder), [path.name for path in folder.iterdir()], lambda name: folder / name
    )
    return Revision(
        str(folder), revision, None, {name: sha256(folder / name) for name in names}
    )


def _resolve_on_hub(repo: str, revision: str) -> Revision:
    info = HfApi().model_info(repo, revision=revision, files_metadata=True)
    commit = info.sha
    files = {file.rfilename: file.lfs for file in info.siblings or []}

    def download(name: str) -> Path:
        return Path(hf_hub_download(repo, name, revision=commit))

    weights = {
        name: lfs.sha256 if (lfs := files[name]) else sha256(download(name))
        for name in weight_files(f"{repo} ({revision})", files, download)
    }
    return Revision(repo, revision, commit, weights)


def _no_revision(repo: str, revision: str, names: Iterable[str]) -> CheckpointError:
    names = sorted(names)
    close = difflib.get_close_matches(revision, names, n=1) or names[:5]
    return CheckpointError(
        f"{repo} has no revision {revision!r}; give one that it has: {', '.join(close)}."
    )


def weight_files(where: str, names: Iterable[str], fetch: Callable[[str], Path]) -> list[str]:
    """Return the files that hold the weights: one, an adapter's, or the shards of an index.

    Parameters
    ----------
    where : str
        Checkpoint, for messages.
    names : iterable of str
        All files of the checkpoint.
    fetch : callable
        Gives the path of one of them.

    Raises
    ------
    CheckpointError
        When there are no safetensors weights, or a shard is missing.
    """
    names = set(names)
    for name in (WEIGHTS, ADAPTER):
        if name in names:
            return [name]
    if INDEX not in names:
        raise CheckpointError(
            f"{where} has neither {WEIGHTS} nor {INDEX}; other formats are not read, so save "
            "the checkpoint as safetensors."
        )
    shards = sorted(set(json.loads(fetch(INDEX).read_text())["weight_map"].values()))
    if missing := [shard for shard in shards if shard not in names]:
        raise CheckpointError(
            f"{where}: {INDEX} names the shard {missing[0]}, which is not there; the "
            "checkpoint is incomplete, so use another revision."
        )
    return shards


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def fetch_files(revision: Revision, patterns: list[str]) -> Path:
    """Return a folder with those files of `revision` that match `patterns`.

    Files that the cache lacks are downloaded to it.
    """
    if revision.commit is None:
        return Path(revision.repo)
    return Path(
        snapshot_download(revision.repo, revision=revision.commit, allow_patterns=patterns)
    )


def check_digests(folder: Path, weights: Mapping[str, str]) -> None:
    """Compare files with their digests.

    Raises
    ------
    CheckpointError
        With the first file that differs.
    """
    for name, digest in weights.items():
        if sha256(folder / name) != digest:
            raise CheckpointError(
                f"{folder / name} is not the file that its repository lists "
                f"(SHA-256 {digest}); delete it, so that it is fetched again."
            )


def shared_weights(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the files of `one` whose content is also in `other`.

    Repositories have served the same weights, or a shard of another checkpoint,
    under several names. Training changes every file.

    Parameters
    ----------
    one, other : mapping of str to str
        The digest of each file.

    Examples
    --------
    >>> shared_weights({"1-of-2": "aa", "2-of-2": "bb"}, {"1-of-2": "cc", "2-of-2": "bb"})
    ['2-of-2']
    """
    digests = set(other.values())
    return [name for name, digest in one.items() if digest in digests]
