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
from persistcal.store.files import FilePath

log = logging.getLogger(__name__)

ROOT = "results/conset"  # the archive's only folder
N_BEAMS = 10
STRINGS, SCORES = "beam_strs.pkl", "beam_lls.pt"
GROUPS, PROBABILITIES, JUDGED = "beam_group_strs.pkl", "beam_group_probs.pt", "judge.pt"
LABELS = {1: "correct", 2: "incorrect", 3: "not_attempted"}
NO_ANSWER = -1  # as in the release; positive labels are keys of `LABELS`
UNKNOWN = -2  # not in the release
ROUNDING = 1e-5  # tolerance for float32 sums of probabilities above 1

Span = tuple[int, int]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_PLAIN_TYPES = (str, int, float, bool, type(None))
_DIGEST = re.compile(r"([0-9a-fA-F]{64})(?:\s+\*?(\S.*))?")


class ArchiveError(ValueError):
    """An archive is damaged, is not the published one, or has members that it must not have."""


def check_digest(archive: str | Path, digest_file: str | Path) -> None:
    """Refuse an archive if its sha256 differs from the one in `digest_file`."""
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
    """Unpack a `.tar.zst` with all files `below` one folder; return the number of files."""
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


class UnsafeFileError(ValueError):
    """A file is damaged or contains something other than plain values."""


class ReleaseError(ValueError):
    """The released files contradict each other or their own description."""


class _ListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def load_lists(path: FilePath, *, depth: int) -> list[Any]:
    """Load a pickle of lists of strings, nested `depth` levels deep, without running code.

    Only entries of the outermost list can be None.
    """
    try:
        lists = _ListUnpickler(io.BytesIO(Path(path).read_bytes())).load()
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
    """Load plain values and arrays of 64 bits from a file of `torch.save`; run no code."""
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
    return _with_arrays(value, path)


def _with_arrays(value: Any, path: FilePath) -> Any:  # noqa: ANN401
    """Return a value with arrays in the place of tensors."""
    if isinstance(value, dict):
        return {key: _with_arrays(entry, path) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_with_arrays(entry, path) for entry in value)
    if type(value) in _PLAIN_TYPES:
        return value
    if type(value) is not torch.Tensor:
        raise UnsafeFileError(
            f"{path}: refused, {type(value).__name__}, not only tensors of numbers and plain "
            "containers."
        )
    is_odd = value.dtype.is_complex or value.dtype == torch.bool
    if is_odd or value.layout is not torch.strided:
        raise UnsafeFileError(f"{path}: refused, a tensor that is not plain and dense.")
    wide = torch.float64 if value.dtype.is_floating_point else torch.int64
    return value.detach().to(wide).numpy()


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


def question_id(dataset: str, index: int) -> str:
    """Return the identifier of a question of the release."""
    return f"{dataset}-{index}"


def model_folder(repo: str) -> str:
    """Return the name under which the release files a Hub repo's results."""
    return repo.rsplit("/", 1)[-1]


class Shard(NamedTuple):
    """A file or folder of the release that covers questions `begin` to `end` (exclusive)."""

    begin: int
    end: int
    path: Path

    def of(self, span: Span) -> tuple[slice, slice]:
        """Return the shard's slice of an array over `span`, and the slice of its rows."""
        begin, end = max(self.begin, span[0]), min(self.end, span[1])
        return (
            slice(begin - span[0], end - span[0]),
            slice(begin - self.begin, end - self.begin),
        )


def find_shards(
    folder: Path, prefix: str, suffix: str, span: Span
) -> tuple[list[Shard], list[str]]:
    """Return the shards `{prefix}{begin}-{end}{suffix}` of a folder, and absent names."""
    name = re.compile(f"{re.escape(prefix)}([0-9]{{1,12}})-([0-9]{{1,12}}){re.escape(suffix)}")
    shards = sorted(
        Shard(int(match[1]), int(match[2]), path)
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (match := name.fullmatch(path.name))
    )
    shards = [s for s in shards if max(s.begin, span[0]) < min(s.end, span[1])]
    absent, covered = [], span[0]
    for number, shard in enumerate(shards):
        if shard.begin < covered and number:
            raise ReleaseError(
                f"{shard.path}: covers questions that {shards[number - 1].path.name} covers "
                "too; keep one."
            )
        if shard.begin > covered:
            absent.append(f"{prefix}{covered}-{shard.begin}{suffix}")
        covered = shard.end
    if covered < span[1]:
        absent.append(f"{prefix}{covered}-{span[1]}{suffix}")
    return shards, absent


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


def read_candidates(
    root: Path, dataset: str, repo: str, revision: str, splits: Mapping[str, Span]
) -> ReleasedCandidates:
    """Read the candidates of a checkpoint for the splits of a dataset."""
    folder = f"{dataset}/{model_folder(repo)}/{revision}"
    read: dict[str, list[Any]] = {n: [] for n in ("beams", "clusters", "labels", "missing")}
    answers = {}
    for split, span in splits.items():
        n = span[1] - span[0]
        top = ReleasedAnswers(np.full(n, np.nan), np.full(n, UNKNOWN), np.zeros(n, bool))
        shards, absent = find_shards(root / folder, "", "", span)
        for shard in shards:
            _read_shard(shard, span, dataset, root, read, top)
        read["missing"].extend(f"{folder}/{name}/beam" for name in absent)
        answers[split] = top
    beams = pd.DataFrame(read["beams"], columns=["question_id", "beam", "text", "logprob"])
    return ReleasedCandidates(
        beams.reindex(columns=artifacts.BEAMS.schema.names),
        pd.DataFrame(read["clusters"], columns=artifacts.CLUSTERS.schema.names),
        pd.DataFrame(read["labels"], columns=artifacts.LABELS.schema.names),
        answers,
        list(dict.fromkeys(read["missing"])),
    )


def _read_shard(
    shard: Shard,
    span: Span,
    dataset: str,
    root: Path,
    read: dict[str, list[Any]],
    top: ReleasedAnswers,
) -> None:
    """Append the shard's part of `span` to `read` and write it into `top`."""
    size = shard.end - shard.begin
    target, rows = shard.of(span)
    ids = [question_id(dataset, span[0] + i) for i in range(target.start, target.stop)]
    folder = shard.path / "beam"

    def lists(name: str, depth: int) -> list[Any]:
        loaded = load_lists(folder / name, depth=depth)
        if len(loaded) != size:
            raise ReleaseError(
                f"{folder / name}: has {len(loaded)} questions, but the name of the folder "
                f"has {size}."
            )
        return loaded[rows]

    def numbers(name: str, kind: str) -> NDArray[Any]:
        loaded = load_arrays(folder / name)
        return check_tensor(loaded, (size, N_BEAMS), kind, f"{folder / name}:")[rows]

    names = (STRINGS, SCORES, GROUPS, PROBABILITIES, JUDGED)
    absent = [name for name in names if not (folder / name).is_file()]
    read["missing"].extend(str((folder / name).relative_to(root)) for name in absent)
    if STRINGS not in absent and SCORES not in absent:
        texts, logprobs = lists(STRINGS, 2), numbers(SCORES, "f")
        read["beams"].extend(_beam_rows(ids, texts, logprobs, folder / STRINGS))
    if GROUPS in absent or PROBABILITIES in absent:
        return
    groups, probabilities = lists(GROUPS, 3), numbers(PROBABILITIES, "f")
    n_surplus, judged = 0, np.full((len(ids), N_BEAMS), UNKNOWN)
    if JUDGED not in absent:
        judged = numbers(JUDGED, "i")
    for i, (name, group) in enumerate(zip(ids, groups, strict=True), start=target.start):
        labels = judged[i - target.start]
        ranked = _rank(group or [], probabilities[i - target.start], labels, folder, name)
        n_surplus += int((labels[len(ranked) :] > 0).sum())
        for rank, (members, probability, label) in enumerate(ranked):
            read["clusters"].append((name, rank, members[0], probability, members))
            if label in LABELS:
                read["labels"].append((name, rank, LABELS[label], "release"))
        top.label[i] = ranked[0].label if ranked else NO_ANSWER
        if top.label[i] != NO_ANSWER:
            top.confidence[i] = ranked[0].probability
        top.skipped[i] = group is None
    if n_surplus:  # as in the authors' evaluation
        judged_path = (folder / JUDGED).relative_to(root)
        log.info("%s: ignored %d labels beyond the clusters", judged_path, n_surplus)


def _beam_rows(
    ids: list[str], texts: list[list[str] | None], logprobs: Floats, path: Path
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


class RankedCluster(NamedTuple):
    """A cluster of a question's answers."""

    members: list[str]
    probability: float
    label: int


def _rank(
    groups: list[list[str]], probabilities: Floats, labels: Ints, folder: Path, name: str
) -> list[RankedCluster]:
    """Return a question's clusters, most probable first."""

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
    return [
        RankedCluster(groups[j], min(float(probabilities[j]), 1.0), int(labels[j]))
        for j in order
    ]


class Confidences(NamedTuple):
    """An estimator's confidences in a checkpoint's answers to a span of questions."""

    confidence: Floats  # in [0, 1], or NaN without a confidence
    label: Ints  # labels in the files, `UNKNOWN` for questions that no file covers
    missing: list[str]  # paths of absent files


def read_confidences(
    root: Path, folder: str, prefix: str, span: Span, labels: Ints
) -> Confidences:
    """Read the files `{prefix}_{begin}-{end}.pt` of `folder` that cover `span`.

    `labels` are the labels of the checkpoint's top answers; the files must agree with them.
    """
    shards, absent = find_shards(root / folder, f"{prefix}_", ".pt", span)
    n = span[1] - span[0]
    missing = [f"{folder}/{name}" for name in absent]
    read = Confidences(np.full(n, np.nan), np.full(n, UNKNOWN), missing)
    for shard in shards:
        target, rows = shard.of(span)
        confidence, judged = (part[rows] for part in _load_confidences(shard))
        read.confidence[target], read.label[target] = np.clip(confidence, 0, 1), judged
        expected, stated = labels[target], ~np.isnan(confidence)
        # A question that the authors blacklisted has no confidence, but can have an answer.
        differs = (
            (judged != expected) & ((judged != NO_ANSWER) | stated) & (expected != UNKNOWN)
        )
        if differs.any():
            i = int(differs.argmax())
            raise ReleaseError(
                f"{shard.path}: judge_labels has {judged[i]} for question "
                f"{span[0] + target.start + i}, but judge.pt has {expected[i]} for the top "
                "cluster; they must be of the same release."
            )
        if (of_nothing := stated & (judged == NO_ANSWER)).any():
            i = int(of_nothing.argmax())
            raise ReleaseError(
                f"{shard.path}: confs has {confidence[i]:g} for question "
                f"{span[0] + target.start + i}, but judge_labels has no answer there; "
                "download the release again."
            )
    return read


def _load_confidences(shard: Shard) -> tuple[Floats, Ints]:
    """Return the confidences and labels of one file after checking them."""
    held, path = load_arrays(shard.path), shard.path
    if not isinstance(held, dict):
        raise ReleaseError(f"{path}: contains no dict of 'confs' and 'judge_labels'.")
    for key, kind in (("confs", "f"), ("judge_labels", "i")):
        if not isinstance(held.get(key), np.ndarray):
            raise ReleaseError(f"{path}: contains no tensor {key!r}.")
        check_tensor(held[key], (shard.end - shard.begin,), kind, f"{path}: {key!r}")
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
