"""The record of a checkpoint: its files and their digests."""

import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any, Self

from persistcal.store.files import (
    DamagedFileError,
    Digests,
    FilePath,
    exists,
    inside,
    last_part,
    names_in,
    read_bytes,
    read_text,
    sha256,
    size,
    write_whole,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_FILES = [ADAPTER_CONFIG, ADAPTER]
# A tokenizer needs one of these; its other files are optional.
VOCABULARIES = ["tokenizer.json", "*.model", "vocab.*", "*.tiktoken", "tekken.json"]
TOKENIZER_FILES = [
    *VOCABULARIES,
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
]
# Further files that determine how weights and texts are read.
SMALL_FILES = [
    "config.json",
    "generation_config.json",
    INDEX,
    *TOKENIZER_FILES,
    "chat_template*",
]

# Digests of a local repository's files, as `sha256sum` writes them, if there is one
SUMS = "SHA256SUMS"
POINTER = b"version https://git-lfs"

ALWAYS_READ = 2**31  # bytes: their digests take about 1.5 s


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A revision of a repository: of a model, an adapter or an entailment model.

    `repo` is a Hub id, or a local folder with the files and without a `commit`. `revision` is a
    branch, tag or commit, or the folder's name, and None for a checkpoint made by the workflow.
    `weights` and `files` (the `SMALL_FILES`) map file names to digests. `dtype` is the dtype of
    the computation, None for the device's default. `record` is the JSON file of this record.

    `changes` are applied to the weights after loading: `merge`, a list of shares with records
    (this record has the files of the first one); `adapter`, a record; `quantization`.
    """

    repo: str
    revision: str | None
    commit: str | None
    weights: dict[str, str]
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    dtype: str | None = None
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)
    record: str | None = dataclasses.field(default=None, compare=False)

    @classmethod
    def read(cls, path: FilePath) -> Self:
        """Read the record at `path`."""
        try:
            return cls(**json.loads(read_text(path)), record=str(path))
        except (ValueError, TypeError) as error:
            raise DamagedFileError(
                f"{path} is not the record of a checkpoint ({error}); delete it, so that it "
                "is made again."
            ) from error

    @property
    def name(self) -> str:
        """The checkpoint's key in the config, which is also the name of its record."""
        if self.record is None:
            raise DamagedFileError(f"The record of {self.repo} was not read from a file.")
        return last_part(self.record).removesuffix(".json")

    def write(self, path: FilePath) -> None:
        """Write the record to `path`."""
        write_whole(path, json.dumps(self.content(), indent=2) + "\n")

    def content(self) -> dict[str, Any]:
        """Return the content of the record."""
        content = {name: value for name, value in vars(self).items() if name != "record"}
        return content if self.changes else {n: v for n, v in content.items() if n != "changes"}

    @property
    def merged(self) -> "list[tuple[float, Checkpoint]]":
        """The checkpoints of a weight average, each with its share."""
        parts = self.changes.get("merge", [])
        return [(part["share"], Checkpoint(**part["checkpoint"])) for part in parts]

    @property
    def adapter(self) -> "Checkpoint | None":
        """The adapter that is merged into the weights."""
        record = self.changes.get("adapter")
        return Checkpoint(**record) if record else None

    def check(self, folder: str, listed: Mapping[str, str]) -> None:
        """Refuse a file in `folder` that is missing or differs from its digest.

        Files of more than `ALWAYS_READ` bytes in total are read once per version, by size and
        times; smaller files are read every time.
        """
        paths = {inside(folder, name): digest for name, digest in listed.items()}
        for path in paths:
            if not exists(path):
                raise DamagedFileError(f"{path} is missing; {self._remedy(path)}.")
        large = sum(map(size, paths)) > ALWAYS_READ
        digest_of = Digests.next_to(self.record).sha256 if self.record and large else sha256
        for path, digest in paths.items():
            if digest_of(path) != digest:
                lists = "its repository" if self.commit else "its record"
                raise DamagedFileError(
                    f"{path} is not the file that {lists} lists (SHA-256 {digest}); "
                    f"{self._remedy(path)}."
                )

    def _remedy(self, path: str) -> str:
        """Return how to get the right file where `path` is."""
        if self.commit:
            delete = f"delete {os.path.realpath(path)}, so that it" if exists(path) else "it"
            command = f"hf download {self.repo} --revision {self.commit}"
            return f"{delete} is fetched again by `{command}`"
        if self.revision is None:
            delete = "delete it, so that" if exists(path) else "run again, and"
            return f"{delete} the workflow makes it again"
        remedy = f" or delete {self.record} to make the results again" if self.record else ""
        return f"put it back{remedy}"


def files_that_matter(
    where: str,
    names: Iterable[str],
    fetch: Callable[[str], str],
    patterns: Sequence[str] = SMALL_FILES,
) -> tuple[list[str], list[str]]:
    """Return the weight files of a model or an adapter, and its further files.

    `names` are all files of the checkpoint, which messages call `where`; `fetch` returns the
    path of a file. The further files of a model match `patterns`.
    """
    names = {name for name in names if "/" not in name}
    weights = weight_files(where, names, fetch)
    if weights == [ADAPTER]:
        patterns, needed = ADAPTER_FILES[:1], ADAPTER_FILES[:1]
    else:
        needed = ["config.json"]
    if missing := [name for name in needed if name not in names]:
        raise DamagedFileError(
            f"{where} has no {missing[0]}; put it there (`save_pretrained` writes it)."
        )
    if weights != [ADAPTER] and not matching(names, VOCABULARIES):
        raise DamagedFileError(
            f"{where} has no tokenizer ({', '.join(VOCABULARIES)}); put the model's there "
            "(`save_pretrained` of the tokenizer writes it)."
        )
    return weights, matching(names, patterns)


def weight_files(where: str, names: Iterable[str], fetch: Callable[[str], str]) -> list[str]:
    """Return the weight files: a single file, an adapter's, or the shards of an index."""
    names = set(names)
    for name in (WEIGHTS, ADAPTER):
        if name in names:
            return [name]
    if INDEX not in names:
        raise DamagedFileError(
            f"{where} has neither {WEIGHTS} nor {INDEX}; other formats are not read, so save "
            "the checkpoint as safetensors."
        )
    try:
        shards = sorted(set(json.loads(read_text(fetch(INDEX)))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedFileError(
            f"{where}: {INDEX} is not an index of shards ({error}); save the checkpoint again."
        ) from error
    if missing := [shard for shard in shards if shard not in names]:
        raise DamagedFileError(
            f"{where}: {INDEX} names the shard {missing[0]}, which is not there; the "
            "checkpoint is incomplete, so use another revision."
        )
    return shards


def local_checkpoint(
    folder: FilePath,
    digest: Callable[[str], str] = sha256,
    patterns: Sequence[str] = SMALL_FILES,
) -> Checkpoint:
    """Return the record of the checkpoint in a local folder; its name is the revision."""
    present = files_that_matter(
        str(folder), names_in(folder), lambda name: inside(folder, name), patterns
    )
    for name in present[0]:
        _refuse_pointer(inside(folder, name))
    weights, files = ({name: digest(inside(folder, name)) for name in part} for part in present)
    return Checkpoint(str(folder), last_part(folder), None, weights, files)


def check_sums(repo: FilePath, revision: str, digest: Callable[[str], str] = sha256) -> None:
    """Refuse a file of a local revision that is not as the repository's `SHA256SUMS` lists it.

    A repository without this file is not checked.
    """
    sums = inside(repo, SUMS)
    lines = read_text(sums).splitlines() if exists(sums) else []
    for number, line in enumerate(lines, start=1):
        listed = re.fullmatch(r"([0-9a-f]{64}) [ *](.+)", line)
        if listed is None:
            raise DamagedFileError(
                f"{sums}: line {number} is not a SHA-256 and a path; write the file again with "
                "`sha256sum */*`, or delete it."
            )
        if not listed[2].startswith(f"{revision}/"):
            continue
        path = inside(repo, listed[2])
        remedy = f"get it again; in a clone, `git checkout -- {path}` does"
        if not exists(path):
            raise DamagedFileError(f"{path}, which {sums} lists, is missing; {remedy}.")
        _refuse_pointer(path)
        if digest(path) != listed[1]:
            raise DamagedFileError(
                f"{path} is not the file that {sums} lists (SHA-256 {listed[1]}); {remedy}."
            )


def _refuse_pointer(path: str) -> None:
    """Refuse a file that Git LFS left in the place of another one."""
    if size(path) < 1024 and read_bytes(path).startswith(POINTER):
        raise DamagedFileError(
            f"{path} is a pointer of Git LFS and not the file itself; get it with "
            "`git lfs pull`."
        )


def save_checkpoint(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    folder: FilePath,
    *,
    dtype: str | None,
) -> Checkpoint:
    """Write a model that the workflow made, in one file, and return its record."""
    model.save_pretrained(folder, max_shard_size="1TB")
    tokenizer.save_pretrained(folder)
    return dataclasses.replace(local_checkpoint(folder), revision=None, dtype=dtype)


def local_digests(folder: FilePath, record: FilePath) -> dict[str, str]:
    """Return the digest of each file of a local checkpoint, or {} if it is incomplete.

    Digests are stored next to `record`, so that only new versions of large files are read.
    """
    try:
        current = local_checkpoint(folder, Digests.next_to(record).sha256)
    except (OSError, DamagedFileError):  # the job that resolves it reports the error
        return {}
    return current.weights | current.files


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the `names` that match one of `patterns`, sorted.

    >>> matching(["vocab.txt", "README.md", "config.json"], ["config.json", "vocab.*"])
    ['config.json', 'vocab.txt']
    """
    patterns = list(patterns)
    return sorted(name for name in names if any(fnmatch(name, p) for p in patterns))
