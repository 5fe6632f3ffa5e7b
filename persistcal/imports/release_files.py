"""Read the authors' released archives safely."""

import hashlib
import io
import logging
import pickle
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, NoReturn, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from numpy.typing import NDArray

from persistcal.store import artifacts
from persistcal.store.files import FilePath, read_bytes

log = logging.getLogger(__name__)


_DIGEST = re.compile(r"([0-9a-fA-F]{64})(?:\s+\*?(\S.*))?")


class ArchiveError(ValueError):
    """An archive is damaged, is not the published one, or has members that it must not have."""


def check_digest(archive: str | Path, digest_file: str | Path) -> None:
    """Refuse an archive if its sha256 differs from `digest_file`.

    The file contains lines `HEX  filename`, as sha256sum writes them, or only HEX.
    """
    archive, digest_file = Path(archive), Path(digest_file)
    if not archive.is_file():
        raise ArchiveError(f"{archive}: no such file; download it from the release.")
    if not digest_file.is_file():
        raise ArchiveError(
            f"{digest_file}: no such file; download it from the release into the same folder."
        )
    lines = digest_file.read_text(encoding="utf-8", errors="replace").split("\n")
    entries = [match for line in lines if (match := _DIGEST.fullmatch(line.strip()))]
    named = [entry for entry in entries if entry[2] and Path(entry[2]).name == archive.name]
    if not named and len(entries) != 1:
        raise ArchiveError(f"{digest_file}: has no sha256 of {archive.name}.")
    expected = (named or entries)[0][1].lower()
    with archive.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        raise ArchiveError(
            f"{archive}: its sha256 is {actual} but {digest_file.name} has {expected}; "
            "download both again."
        )


def unpack(archive: str | Path, folder: str | Path, *, below: str) -> int:
    """Unpack a `.tar.zst` with all files `below` one folder; return the number of files.

    `folder` must be empty. After an error it can contain some of the files.
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
            raise  # an error of the disk, not of the archive
        raise ArchiveError(
            f"{archive}: truncated, damaged or not a .tar.zst ({error}); download it again."
        ) from error
    return n_files


def _refusal(member: tarfile.TarInfo, below: PurePosixPath, folder: Path) -> str:
    """Return the reason to refuse a member of an archive, or "" for a valid one."""
    name = PurePosixPath(member.name)
    if not (member.isfile() or member.isdir()):
        return "is neither a file nor a folder"
    parents = [name, *name.parents] if member.isdir() else name.parents
    if below not in parents and not (member.isdir() and name in below.parents):
        return f"lies outside {below}/"
    if member.isfile() and (folder / name).exists():
        return "is there twice"
    return ""


_PLAIN_TYPES = (str, int, float, bool, type(None))


class UnsafeFileError(ValueError):
    """A file is damaged or contains something other than plain values."""


class _ListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def load_lists(path: FilePath, *, depth: int) -> list[Any]:
    """Load a pickle of lists of strings, nested `depth` levels deep, without running code.

    Entries of the outermost list can be None. Any other content is refused.
    """
    try:
        lists = _ListUnpickler(io.BytesIO(read_bytes(path))).load()
    # A damaged pickle can raise any exception.
    except Exception as error:
        raise UnsafeFileError(
            f"{path}: refused, not a whole pickle of only lists, None and strings ({error})."
        ) from error
    _check_lists(lists, path, depth)
    return lists


def _check_lists(value: object, path: FilePath, depth: int, level: int = 0) -> None:
    if not isinstance(value, list if level < depth else str):
        raise UnsafeFileError(
            f"{path}: refused, {type(value).__name__} where "
            f"{'a list' if level < depth else 'a string'} belongs."
        )
    if isinstance(value, list):
        for entry in value:
            if not (entry is None and level == 0):
                _check_lists(entry, path, depth, level + 1)


def load_arrays(path: FilePath) -> object:
    """Load a tensor or a dict from a `torch.save` file, without running code.

    Tensors become arrays of float64 or int64. Any other content is refused.
    """
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    # A damaged file can raise any exception.
    except Exception as error:
        (reason, *_) = f"{error}\n".splitlines()
        reason_text = (
            "it contains code or objects, not only tensors and plain containers"
            if isinstance(error, pickle.UnpicklingError)
            else "not a whole file of torch.save"
        )
        raise UnsafeFileError(f"{path}: refused, {reason_text} ({reason}).") from error
    _check_tensors(value, path)
    if isinstance(value, dict):
        return {key: _to_array(entry) for key, entry in value.items()}
    return _to_array(value)


def _check_tensors(value: object, path: FilePath) -> None:
    """Refuse anything but dense tensors of numbers in plain containers."""
    if isinstance(value, list | tuple | dict):
        for entry in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_tensors(entry, path)
    elif type(value) is torch.Tensor:
        odd = value.dtype.is_complex or value.dtype == torch.bool
        if odd or value.layout is not torch.strided:
            raise UnsafeFileError(f"{path}: refused, a tensor that is not plain and dense.")
    elif type(value) not in _PLAIN_TYPES:
        raise UnsafeFileError(
            f"{path}: refused, {type(value).__name__}, not only tensors of numbers and plain "
            "containers."
        )


def _to_array(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    wide = torch.float64 if value.dtype.is_floating_point else torch.int64
    return value.detach().to(wide).numpy()


ROOT = "results/conset"  # the archive's only folder

LABELS = {1: "correct", 2: "incorrect", 3: "not_attempted"}

NO_ANSWER = -1  # as in the release; positive labels are keys of `LABELS`

UNKNOWN = -2  # not in the release

ROUNDING = 1e-5  # tolerance for float32 sums of probabilities above 1

Span = tuple[int, int]

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]

Flags = NDArray[np.bool_]


class ReleaseError(ValueError):
    """The released files contradict each other or their own description."""


class Shard(NamedTuple):
    """A file or folder of the release that covers questions `begin` to `end` (exclusive)."""

    begin: int
    end: int
    path: str

    def of(self, span: Span) -> tuple[slice, slice]:
        """Return the shard's slice of an array over `span`, and the slice of its rows."""
        begin, end = max(self.begin, span[0]), min(self.end, span[1])
        return (
            slice(begin - span[0], end - span[0]),
            slice(begin - self.begin, end - self.begin),
        )


def question_id(dataset: str, index: int) -> str:
    """Return the identifier of a question of the release."""
    return f"{dataset}-{index}"


def model_folder(repo: str) -> str:
    """Return the name under which the release files a Hub repo's results."""
    return repo.rsplit("/", 1)[-1]


def check_tensor(
    value: object, shape: tuple[int, ...], kind: str, location: str
) -> NDArray[Any]:
    """Return a tensor of that shape, of floats ("f") or whole numbers ("i"), or refuse it."""
    tensor = value if isinstance(value, np.ndarray) else None
    if tensor is None or tensor.shape != shape or tensor.dtype.kind != kind:
        held = "no tensor" if tensor is None else f"{tensor.dtype}{tensor.shape}"
        kinds = {"f": "float", "i": "whole-number"}
        raise ReleaseError(
            f"{location} holds {held}, but needs a {kinds[kind]} tensor of shape {shape}."
        )
    return tensor


class Tree:
    """The unpacked release: files by their paths below its root, which errors name whole."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)

    def named(self, path: str) -> str:
        """Return the whole path of a file or folder."""
        return str(self._root / path)

    def has(self, path: str) -> bool:
        """Return whether there is such a file."""
        return (self._root / path).is_file()

    def has_any(self, folder: str, prefix: str) -> bool:
        """Return whether a folder has files `{prefix}_*.pt`."""
        return any((self._root / folder).glob(f"{prefix}_*.pt"))

    def lists(self, path: str, n: int, depth: int) -> list[Any]:
        """Load lists of strings, nested `depth` levels deep, about `n` questions."""
        lists = load_lists(self._root / path, depth=depth)
        if len(lists) != n:
            raise ReleaseError(
                f"{self.named(path)}: has {len(lists)} questions, but the name of the "
                f"folder has {n}."
            )
        return lists

    def arrays(self, path: str) -> object:
        """Load an array, or a dict of arrays."""
        return load_arrays(self._root / path)

    def shards(
        self, folder: str, prefix: str, suffix: str, span: Span
    ) -> tuple[list[Shard], list[Span]]:
        """Return the shards `{prefix}{begin}-{end}{suffix}` of a folder, and gaps in `span`.

        Two of them that cover the same question of `span` are refused.
        """
        name = re.compile(
            f"{re.escape(prefix)}([0-9]{{1,12}})-([0-9]{{1,12}}){re.escape(suffix)}"
        )
        directory = self._root / folder
        shards = sorted(
            Shard(int(match[1]), int(match[2]), f"{folder}/{path.name}")
            for path in (directory.iterdir() if directory.is_dir() else ())
            if (match := name.fullmatch(path.name))
        )
        shards = [s for s in shards if max(s.begin, span[0]) < min(s.end, span[1])]
        gaps, covered, previous = [], span[0], ""
        for shard in shards:
            if shard.begin < covered and previous:
                raise ReleaseError(
                    f"{self.named(shard.path)}: covers questions that {previous} covers too; "
                    "keep one."
                )
            if shard.begin > covered:
                gaps.append((covered, shard.begin))
            covered, previous = shard.end, shard.path.rpartition("/")[2]
        if covered < span[1]:
            gaps.append((covered, span[1]))
        return shards, gaps


N_BEAMS = 10

STRINGS, SCORES = "beam_strs.pkl", "beam_lls.pt"

GROUPS, PROBABILITIES, JUDGED = "beam_group_strs.pkl", "beam_group_probs.pt", "judge.pt"


class ReleasedAnswers(NamedTuple):
    """A checkpoint's top answers, one for each question of a span."""

    confidence: Floats  # probability of the most probable cluster; NaN without one
    label: Ints  # a key of `LABELS`, `NO_ANSWER` or `UNKNOWN`
    skipped: Flags  # questions that the authors left without candidates


class ReleasedCandidates(NamedTuple):
    """A checkpoint's candidates for a dataset: tables, top answers by split, absent files."""

    beams: pd.DataFrame
    clusters: pd.DataFrame
    labels: pd.DataFrame
    answers: dict[str, ReleasedAnswers]
    missing: list[str]


def _load_tensor(tree: Tree, path: str, n: int, kind: str) -> NDArray[Any]:
    return check_tensor(tree.arrays(path), (n, N_BEAMS), kind, f"{tree.named(path)}:")


def _beam_rows(
    ids: list[str], texts: list[list[str] | None], logprobs: Floats, path: str
) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    n_unscored = 0
    for name, beams, scores in zip(ids, texts, logprobs, strict=True):
        if beams is None:
            continue
        if len(beams) != N_BEAMS:
            raise ReleaseError(f"{path}: {len(beams)} strings for {name}, but needs {N_BEAMS}.")
        rows += [
            (name, beam, text, float(score))  # and no more
            for beam, (text, score) in enumerate(zip(beams, scores, strict=True))
            if not np.isnan(score)
        ]
        n_unscored += int(np.isnan(scores).sum())
    if n_unscored:
        log.warning("%s: left out %d beams, whose scores are NaN", path, n_unscored)
    return rows


def _rank(
    groups: list[list[str]], probabilities: Floats, labels: Ints, folder: str, name: str
) -> list[tuple[list[str], float, int]]:
    """Return (members, probability, label) of a question's clusters, most probable first."""

    def refuse(file: str, problem: str) -> ReleaseError:
        return ReleaseError(f"{folder}/{file}: {problem} for {name}.")

    n = len(groups)
    if n > N_BEAMS or not all(groups):
        raise refuse(GROUPS, "an empty cluster, or more clusters than beams,")
    # Comparisons are written so that NaN fails them.
    if not ((probabilities >= 0) & (probabilities <= 1 + ROUNDING)).all():
        raise refuse(PROBABILITIES, "a probability outside [0, 1]")
    if probabilities[n:].any():
        raise refuse(PROBABILITIES, f"more probabilities than its {n} clusters")
    if not np.isin(labels[:n], (NO_ANSWER, UNKNOWN, *LABELS)).all():
        raise refuse(JUDGED, "a label other than 1, 2, 3 and -1")
    # The authors never take an answer that was not judged for the prediction.
    order = np.lexsort((-probabilities[:n], labels[:n] == NO_ANSWER))
    return [(groups[j], min(float(probabilities[j]), 1.0), int(labels[j])) for j in order]


class _Rows(NamedTuple):
    beams: list[tuple[Any, ...]]
    clusters: list[tuple[Any, ...]]
    labels: list[tuple[Any, ...]]
    missing: list[str]


def _read_shard(
    shard: Shard, span: Span, dataset: str, tree: Tree, read: _Rows, top: ReleasedAnswers
) -> None:
    """Append the shard's part of `span` to `read` and write it into `top`."""
    size = shard.end - shard.begin
    target, rows = shard.of(span)
    ids = [question_id(dataset, span[0] + i) for i in range(target.start, target.stop)]
    folder = f"{shard.path}/beam"
    names = (STRINGS, SCORES, GROUPS, PROBABILITIES, JUDGED)
    absent = [name for name in names if not tree.has(f"{folder}/{name}")]
    read.missing.extend(f"{folder}/{name}" for name in absent)

    if STRINGS not in absent and SCORES not in absent:
        texts = tree.lists(f"{folder}/{STRINGS}", size, 2)[rows]
        logprobs = _load_tensor(tree, f"{folder}/{SCORES}", size, "f")[rows]
        read.beams.extend(_beam_rows(ids, texts, logprobs, tree.named(f"{folder}/{STRINGS}")))
    if GROUPS in absent or PROBABILITIES in absent:
        return
    groups = tree.lists(f"{folder}/{GROUPS}", size, 3)[rows]
    probabilities = _load_tensor(tree, f"{folder}/{PROBABILITIES}", size, "f")[rows]
    n_surplus, judged = 0, np.full((len(ids), N_BEAMS), UNKNOWN)
    if JUDGED not in absent:
        judged = _load_tensor(tree, f"{folder}/{JUDGED}", size, "i")[rows]
    for i, (name, group) in enumerate(zip(ids, groups, strict=True)):
        ranked = _rank(group or [], probabilities[i], judged[i], tree.named(folder), name)
        n_surplus += int((judged[i, len(ranked) :] > 0).sum())
        read.clusters.extend(
            (name, rank, members[0], p, members) for rank, (members, p, _) in enumerate(ranked)
        )
        read.labels.extend(
            (name, rank, LABELS[label], "release")
            for rank, (_, _, label) in enumerate(ranked)
            if label in LABELS
        )
        top.label[target.start + i] = ranked[0][2] if ranked else NO_ANSWER
        if top.label[target.start + i] != NO_ANSWER:
            top.confidence[target.start + i] = ranked[0][1]
        top.skipped[target.start + i] = group is None
    if n_surplus:  # as in the authors' evaluation
        log.info("%s: ignored %d labels beyond the clusters", f"{folder}/{JUDGED}", n_surplus)


def read_candidates(
    tree: Tree, dataset: str, repo: str, revision: str, splits: Mapping[str, Span]
) -> ReleasedCandidates:
    """Read the candidates of a checkpoint for the splits of a dataset."""
    folder = f"{dataset}/{model_folder(repo)}/{revision}"
    read = _Rows([], [], [], [])
    answers = {}
    for split, span in splits.items():
        n = span[1] - span[0]
        top = ReleasedAnswers(np.full(n, np.nan), np.full(n, UNKNOWN), np.zeros(n, bool))
        shards, gaps = tree.shards(folder, "", "", span)
        for shard in shards:
            _read_shard(shard, span, dataset, tree, read, top)
        read.missing.extend(f"{folder}/{b}-{e}/beam" for b, e in gaps)
        answers[split] = top
    beams = pd.DataFrame(read.beams, columns=["question_id", "beam", "text", "logprob"])
    return ReleasedCandidates(
        beams.reindex(columns=artifacts.BEAMS.schema.names),
        pd.DataFrame(read.clusters, columns=artifacts.CLUSTERS.schema.names),
        pd.DataFrame(read.labels, columns=artifacts.LABELS.schema.names),
        answers,
        list(dict.fromkeys(read.missing)),
    )


class Confidences(NamedTuple):
    """An estimator's confidences in a checkpoint's answers to a span of questions."""

    confidence: Floats  # in [0, 1], or NaN without a confidence
    label: Ints  # labels in the files, `UNKNOWN` for questions that no file covers
    missing: list[str]  # paths of absent files


def read_confidences(
    tree: Tree, folder: str, prefix: str, span: Span, labels: Ints
) -> Confidences:
    """Read the files `{prefix}_{begin}-{end}.pt` of `folder` that cover `span`.

    `labels` are the labels of the checkpoint's top answers; the files must agree with them.
    """
    shards, gaps = tree.shards(folder, f"{prefix}_", ".pt", span)
    n = span[1] - span[0]
    read = Confidences(
        np.full(n, np.nan),
        np.full(n, UNKNOWN),
        [f"{folder}/{prefix}_{begin}-{end}.pt" for begin, end in gaps],
    )
    for shard in shards:
        target, rows = shard.of(span)
        confidence, judged = (part[rows] for part in _load_confidences(tree, shard))
        read.confidence[target], read.label[target] = np.clip(confidence, 0, 1), judged
        expected, stated = labels[target], ~np.isnan(confidence)
        # A question that the authors blacklisted has no confidence, but can have an answer.
        differs = (
            (judged != expected) & ((judged != NO_ANSWER) | stated) & (expected != UNKNOWN)
        )
        if differs.any():
            i = int(differs.argmax())
            raise ReleaseError(
                f"{tree.named(shard.path)}: judge_labels has {judged[i]} for question "
                f"{span[0] + target.start + i}, but judge.pt has {expected[i]} for the top "
                "cluster; they must be of the same release."
            )
        if (of_nothing := stated & (judged == NO_ANSWER)).any():
            i = int(of_nothing.argmax())
            raise ReleaseError(
                f"{tree.named(shard.path)}: confs has {confidence[i]:g} for question "
                f"{span[0] + target.start + i}, but judge_labels has no answer there; "
                "download the release again."
            )
    return read


def _load_confidences(tree: Tree, shard: Shard) -> tuple[Floats, Ints]:
    """Return the confidences and labels of one file after checking them."""
    held, path = tree.arrays(shard.path), tree.named(shard.path)
    if not isinstance(held, dict):
        raise ReleaseError(f"{path}: contains no dict of 'confs' and 'judge_labels'.")
    for key, kind in (("confs", "f"), ("judge_labels", "i")):
        if not isinstance(held.get(key), np.ndarray):
            raise ReleaseError(f"{path}: contains no tensor {key!r}.")
        size = shard.end - shard.begin
        check_tensor(held[key], (size,), kind, f"{path}: {key!r}")
    eval_range = held.get("eval_range", (shard.begin, shard.end))
    if not np.array_equal(eval_range, (shard.begin, shard.end)):
        raise ReleaseError(
            f"{path}: 'eval_range' is {eval_range}, but the name of the file has "
            f"{shard.begin}-{shard.end}."
        )
    confidence, labels = held["confs"], held["judge_labels"]
    for values, wrong, name, rule in (
        (confidence, np.abs(confidence - 0.5) > 0.5 + ROUNDING, "confidence", "not in [0, 1]"),
        (labels, ~np.isin(labels, (NO_ANSWER, *LABELS)), "label", "none of 1, 2, 3 and -1"),
    ):
        if wrong.any():
            i = int(wrong.argmax())
            raise ReleaseError(
                f"{path}: {name} {values[i]} for question {shard.begin + i} is {rule}."
            )
    return confidence, labels
