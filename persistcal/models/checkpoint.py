"""The record of a checkpoint, its files and their digests; refuse models that are not whole."""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from persistcal.store.files import DamagedFileError, Digests, FilePath, sha256, write_whole

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
# A tokenizer needs one of these files, and can have others.
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
    """A revision of a model, an adapter or an entailment model.

    `changes` are applied to the weights after loading: `merge`, a list of shares with records
    (this record has the files of the first one); `adapter`, a record; `quantization`.
    """

    repo: str  # Hub id, or a local folder with the files and without a `commit`
    # Branch, tag or commit, or the folder's name; None for a checkpoint made by the workflow.
    revision: str | None
    commit: str | None
    weights: dict[str, str]  # digests by file name
    files: dict[str, str] = dataclasses.field(default_factory=dict)  # also, of `SMALL_FILES`
    dtype: str | None = None  # dtype of computations; by default the device's
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)
    record: str | None = dataclasses.field(default=None, compare=False)  # the JSON file

    @classmethod
    def read(cls, path: FilePath) -> Self:
        """Read the record at `path`."""
        try:
            return cls(**json.loads(Path(path).read_text(encoding="utf-8")), record=str(path))
        except (ValueError, TypeError) as error:
            raise DamagedFileError(
                f"{path} is not the record of a checkpoint ({error}); delete it, so that it "
                "is made again."
            ) from error

    @property
    def name(self) -> str:
        """The key of the checkpoint in the config, which is the name of the record, too."""
        if self.record is None:
            raise DamagedFileError(f"The record of {self.repo} was not read from a file.")
        return Path(self.record).name.removesuffix(".json")

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
        paths = {Path(folder, name): digest for name, digest in listed.items()}
        for path in paths:
            if not path.exists():
                raise DamagedFileError(f"{path} is missing; {self._remedy(path)}.")
        large = sum(path.stat().st_size for path in paths) > ALWAYS_READ
        digest_of = Digests.next_to(self.record).sha256 if self.record and large else sha256
        for path, digest in paths.items():
            if digest_of(path) != digest:
                lists = "its repository" if self.commit else "its record"
                raise DamagedFileError(
                    f"{path} is not the file that {lists} lists (SHA-256 {digest}); "
                    f"{self._remedy(path)}."
                )

    def _remedy(self, path: Path) -> str:
        """Return how to get the right file where `path` is."""
        if self.commit:
            delete = f"delete {path.resolve()}, so that it" if path.exists() else "it"
            command = f"hf download {self.repo} --revision {self.commit}"
            return f"{delete} is fetched again by `{command}`"
        if self.revision is None:
            delete = "delete it, so that" if path.exists() else "run again, and"
            return f"{delete} the workflow makes it again"
        remedy = f" or delete {self.record} to make the results again" if self.record else ""
        return f"put it back{remedy}"


def files_that_matter(
    source: str,
    names: Iterable[str],
    fetch: Callable[[str], str],
    patterns: Sequence[str] = SMALL_FILES,
) -> tuple[list[str], list[str]]:
    """Return the weight files of a model or an adapter, and its further files.

    `names` are all files of the checkpoint, which messages call `source`; `fetch` returns the
    path of a file. The further files of a model match `patterns`.
    """
    names = {name for name in names if "/" not in name}
    weights = weight_files(source, names, fetch)
    is_adapter = weights == [ADAPTER]
    if (config := ADAPTER_CONFIG if is_adapter else "config.json") not in names:
        raise DamagedFileError(
            f"{source} has no {config}; put it there (`save_pretrained` writes it)."
        )
    if not is_adapter and not matching(names, VOCABULARIES):
        raise DamagedFileError(
            f"{source} has no tokenizer ({', '.join(VOCABULARIES)}); put the model's there "
            "(`save_pretrained` of the tokenizer writes it)."
        )
    return weights, matching(names, [ADAPTER_CONFIG] if is_adapter else patterns)


def weight_files(source: str, names: Iterable[str], fetch: Callable[[str], str]) -> list[str]:
    """Return the weight files: a single file, an adapter's, or the shards of an index."""
    names = set(names)
    for name in (WEIGHTS, ADAPTER):
        if name in names:
            return [name]
    if INDEX not in names:
        raise DamagedFileError(
            f"{source} has neither {WEIGHTS} nor {INDEX}; other formats are not read, so save "
            "the checkpoint as safetensors."
        )
    try:
        index = json.loads(Path(fetch(INDEX)).read_text(encoding="utf-8"))
        shards = sorted(set(index["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedFileError(
            f"{source}: {INDEX} is not an index of shards ({error}); save the checkpoint again."
        ) from error
    if missing := [shard for shard in shards if shard not in names]:
        raise DamagedFileError(
            f"{source}: {INDEX} names the shard {missing[0]}, which is not there; the "
            "checkpoint is incomplete, so use another revision."
        )
    return shards


def local_checkpoint(
    folder: FilePath,
    digest: Callable[[str], str] = sha256,
    patterns: Sequence[str] = SMALL_FILES,
) -> Checkpoint:
    """Return the record of the checkpoint in a local folder, named after the folder."""
    paths = {path.name: str(path) for path in Path(folder).glob("*")}
    present = files_that_matter(str(folder), paths, paths.__getitem__, patterns)
    for name in present[0]:
        _refuse_pointer(Path(paths[name]))
    weights, files = ({name: digest(paths[name]) for name in part} for part in present)
    return Checkpoint(str(folder), Path(folder).name, None, weights, files)


def check_sums(repo: FilePath, revision: str, digest: Callable[[str], str] = sha256) -> None:
    """Refuse a file of a local revision that is not as the repository's `SHA256SUMS` lists it.

    A repository without this file is not checked.
    """
    sums = Path(repo, SUMS)
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    for number, line in enumerate(lines, start=1):
        listed = re.fullmatch(r"([0-9a-f]{64}) [ *](.+)", line)
        if listed is None:
            raise DamagedFileError(
                f"{sums}: line {number} is not a SHA-256 and a path; write the file again with "
                "`sha256sum */*`, or delete it."
            )
        if not listed[2].startswith(f"{revision}/"):
            continue
        path = Path(repo, listed[2])
        remedy = f"get it again; in a clone, `git checkout -- {path}` does"
        if not path.exists():
            raise DamagedFileError(f"{path}, which {sums} lists, is missing; {remedy}.")
        _refuse_pointer(path)
        if digest(str(path)) != listed[1]:
            raise DamagedFileError(
                f"{path} is not the file that {sums} lists (SHA-256 {listed[1]}); {remedy}."
            )


def _refuse_pointer(path: Path) -> None:
    """Refuse a file that Git LFS left in the place of another one."""
    if path.stat().st_size < 1024 and path.read_bytes().startswith(POINTER):
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
    """Return the `names` that match a pattern, sorted."""
    patterns = list(patterns)
    return sorted(name for name in names if any(fnmatch(name, p) for p in patterns))


MAX_LAYERS = 1000  # the deepest language models have some 130

MAX_RANK = 4096

# Initialisations that leave the model as it is, and are overwritten by the adapter's
# weights. Others change the model's own weights, or take hours.
KNOWN_INITIALISATIONS = (True, False, "gaussian")


def read_json(path: FilePath) -> dict[str, Any]:
    """Return the content of a config, which is a JSON object."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DamagedFileError(
            f"{path} is missing; put it back, or fetch or make the checkpoint again."
        ) from error
    except ValueError as error:
        raise DamagedFileError(
            f"{path} is not readable ({error}); fetch or save the checkpoint again."
        ) from error
    if not isinstance(content, dict):
        raise DamagedFileError(f"{path} is not a JSON object; save the checkpoint again.")
    return content


def check_layers(config: Mapping[str, Any], path: FilePath) -> None:
    """Refuse a config of more layers than any model has, before they are built."""
    for key, value in config.items():
        if isinstance(value, dict):
            check_layers(value, path)
        elif "layer" in key and isinstance(value, int | float) and value > MAX_LAYERS:
            raise DamagedFileError(
                f"{path}: {key} is {value}, and no model of more than {MAX_LAYERS} layers is "
                "built; correct it."
            )


def check_size(empty: "nn.Module", folder: str) -> None:
    """Refuse a config that describes a far larger model than the files' headers do."""
    from safetensors import SafetensorError, safe_open

    stored = 0
    for path in sorted(Path(folder).glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as file:
                stored += sum(math.prod(file.get_slice(k).get_shape()) for k in file.keys())
        except SafetensorError as error:
            raise DamagedFileError(
                f"{path} is cut off or damaged ({error}); fetch or save the checkpoint again."
            ) from error
    described = sum(t.numel() for t in [*empty.parameters(), *empty.buffers()])
    if stored and described > 2 * stored + 10**8:
        raise DamagedFileError(
            f"{Path(folder, 'config.json')} describes a model of {described:,} weights, and "
            f"the files next to it have {stored:,}; correct the config or complete the files."
        )


def check_keys(
    source: str,
    *,
    missing: Iterable[str] = (),
    unexpected: Iterable[str] = (),
    mismatched: Iterable[str] = (),
) -> None:
    """Refuse missing and unexpected weights, by their names."""
    problems = {
        "lacks weights of the model": sorted(missing),
        "has weights that the model does not have": sorted(unexpected),
        "has weights of another shape than the model's": sorted(mismatched),
    }
    wrong = [f"{problem}: {first(names)}" for problem, names in problems.items() if names]
    if wrong:
        raise DamagedFileError(
            f"{source} {', and '.join(wrong)}; save or fetch it again, with its config."
        )


def first(names: Collection[str]) -> str:
    """Name the first three of many.

    >>> first({"e", "a", "d", "c", "b"})
    'a, b, c and 2 more'
    """
    listed = sorted(names)[:3]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(listed)}{more}"


def check_finite(tensors: "Iterable[tuple[str, Tensor]]", source: str) -> None:
    """Refuse weights that are not numbers, or infinite."""
    # The extremes of a tensor need no memory, and are NaN if anything is.
    finite = {
        name: low.isfinite() & high.isfinite()
        for name, tensor in tensors
        if tensor.is_floating_point() and tensor.numel()
        for low, high in [tensor.detach().aminmax()]
    }
    if bad := [name for name, is_finite in finite.items() if not is_finite]:
        raise DamagedFileError(
            f"{source} has weights that are not finite numbers: {first(bad)}; fetch or save "
            "it again, or use another checkpoint."
        )


def check_adapter_config(folder: FilePath) -> dict[str, Any]:
    """Return the config of a plain LoRA adapter; others are refused before they are built."""
    path, weights = Path(folder, ADAPTER_CONFIG), Path(folder, ADAPTER)
    config = read_json(path)
    if not weights.exists():
        raise DamagedFileError(
            f"{weights} is missing; fetch or make the adapter again as safetensors."
        )
    pattern = config.get("rank_pattern", {})
    ranks = [config.get("r", 0), *(pattern.values() if isinstance(pattern, dict) else [])]
    refused = {
        "peft_type": config.get("peft_type") != "LORA",
        "init_lora_weights": config.get("init_lora_weights", True) not in KNOWN_INITIALISATIONS,
        "r": not all(type(rank) is int and 0 < rank <= MAX_RANK for rank in ranks),
        "rank_pattern": not isinstance(pattern, dict),
        # They import a module that they name, or rebuild the model.
        **{key: bool(config.get(key)) for key in ("megatron_config", "layer_replication")},
    }
    if bad := [key for key, is_bad in refused.items() if is_bad]:
        raise DamagedFileError(
            f"{path}: {bad[0]} is {config.get(bad[0])!r}, and only plain LoRA adapters are "
            f"loaded (peft_type LORA, ranks up to {MAX_RANK}, initialised by "
            f"{', '.join(map(repr, KNOWN_INITIALISATIONS))}); convert it with peft."
        )
    return config
