"""Convert the authors' released records to this project's tables."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from persistcal.confidence.calibration import calibrate
from persistcal.readers.predictions import imported_answers
from persistcal.store import artifacts
from persistcal.store.artifacts import PREDICTIONS, QUESTIONS, SCORES
from reproduce.release_files import (
    NO_ANSWER,
    UNKNOWN,
    Flags,
    Floats,
    ReleasedAnswers,
    ReleaseError,
    Span,
    model_folder,
    question_id,
    read_candidates,
    read_confidences,
)

log = logging.getLogger(__name__)

SURROGATE, ORDINARY = "pred_confs_surrogate", "pred_confs"

# Estimators of adapters: the checkpoints trained on, and how the configuration's name ends.
ADAPTERS = {
    "non_oracle": ("earlier", "_ncand2"),
    "non_oracle_1answer": ("earlier", ""),
    "non_oracle_single": ("last_earlier", "_ncand2"),
    "non_oracle_single_1answer": ("last_earlier", ""),
    "oracle": ("evaluation", "_ncand2"),
    "oracle_1answer": ("evaluation", ""),
    "oracle_respective": ("own", "_ncand2"),
    "oracle_respective_1answer": ("own", ""),
}
ABLATIONS = {
    "oracle_single_data": ("evaluation", "_ncand2_onedata"),
    "oracle_pooled_data": ("own", "_ncand2_pooldata"),
}
TRANSFERS = ("transfer", "transfer_random")
# Blacklisted questions are a few in thousands; more of them means a damaged file.
MAX_LEFT_OUT = 0.05

Key = tuple[str, str]  # checkpoint and split


class Model(NamedTuple):
    """A model's Hub repo, and its revisions by checkpoint in order of training."""

    repo: str
    earlier: Mapping[str, str]
    evaluation: Mapping[str, str]

    @property
    def revisions(self) -> dict[str, str]:
        """Revisions of all checkpoints."""
        return {**self.earlier, **self.evaluation}


class Dataset(NamedTuple):
    """A dataset's splits as spans of indices; without a train split, its training sets."""

    name: str
    test: Span
    train: Span | None = None
    train_datasets: Sequence[str] = ()

    @property
    def splits(self) -> dict[str, Span]:
        """Spans of the splits that the dataset has."""
        spans = {"train": self.train, "test": self.test}
        return {split: (span[0], span[1]) for split, span in spans.items() if span}


class Run(NamedTuple):
    """A run of an estimator; `trained_on` identifies an adapter of a transfer matrix."""

    estimator: str
    train_dataset: str
    seed: int
    trained_on: str = ""


class Source(NamedTuple):
    """The folder and file prefix of a run's confidences in the answers of `checkpoint`."""

    run: Run
    checkpoint: str
    folder: str
    prefix: str
    split: str = "test"


class Estimates(NamedTuple):
    """All that the release estimates about one model on one dataset."""

    model: Model
    dataset: Dataset
    answers: Mapping[Key, ReleasedAnswers]
    # By run and split: confidences of each checkpoint with complete files
    confidences: dict[tuple[Run, str], dict[str, Floats]]
    left_out: dict[str, Flags]  # by split, questions that were answered, without a confidence
    missing: list[tuple[str, str, str]]  # estimator, checkpoint and path of absent files


def _adapter(
    model: Model, train_dataset: str, revisions: Iterable[str], ending: str, seed: int
) -> str:
    """Return the folder of an adapter's confidences."""
    return (
        f"{train_dataset}/{model_folder(model.repo)}/{'_'.join(revisions)}/"
        f"confidence_lora_{train_dataset}_acc_lr2e-4_bs16_5k{ending}/seed{seed}/epoch1"
    )


def _evaluated(
    model: Model,
    name: str,
    train_dataset: str,
    adapters: Mapping[str, tuple[str, str]],
    seeds: Sequence[int],
) -> Iterator[Source]:
    """Yield the sources of adapters at the evaluation checkpoints."""
    joint = {
        "earlier": list(model.earlier.values()),
        "last_earlier": list(model.earlier.values())[-1:],
        "evaluation": list(model.evaluation.values()),
    }
    for estimator, (trained_on, ending) in adapters.items():
        for seed in seeds:
            for checkpoint, revision in model.evaluation.items():
                revisions = [revision] if trained_on == "own" else joint[trained_on]
                folder = _adapter(model, train_dataset, revisions, ending, seed)
                run = Run(estimator, train_dataset, seed)
                yield Source(run, checkpoint, folder, f"{ORDINARY}_{name}_{revision}")


def _ablated(root: Path, model: Model, name: str, seeds: Sequence[int]) -> Iterator[Source]:
    """Yield the sources that involve the last earlier checkpoint's weights or answers."""
    last, last_revision = list(model.earlier.items())[-1]
    own_folder = f"{name}/{model_folder(model.repo)}/sc_surrogate/{last_revision}"
    for checkpoint, revision in model.evaluation.items():
        run = Run("self_consistency_surrogate", name, 0)
        prefix = f"pred_confs_sc_surrogate_{name}_{revision}"
        yield Source(run, checkpoint, own_folder, prefix)
    for seed in seeds:
        folder = _adapter(model, name, model.earlier.values(), "_ncand2", seed)
        for checkpoint, revision in model.evaluation.items():
            run = Run("non_oracle_surrogate", name, seed)
            yield Source(run, checkpoint, folder, f"{SURROGATE}_{name}_{revision}")
        # The last earlier checkpoint is its own surrogate: the authors kept one of the two.
        prefix = f"{SURROGATE}_{name}_{last_revision}"
        if not any((root / folder).glob(f"{prefix}_*.pt")):
            prefix = f"{ORDINARY}_{name}_{last_revision}"
        yield Source(Run("non_oracle_copy", name, seed), last, folder, prefix)


def _gcm(model: Model, name: str) -> Iterator[Source]:
    """Yield the sources of GCM and of the calibrator's training data."""
    folder = f"{name}/{model_folder(model.repo)}/gcm/GCM-Qwen3-8B-TriviaQA"
    for estimator, split, revisions in (
        ("gcm", "test", model.evaluation),
        ("gcm_posthoc", "train", model.earlier),
    ):
        for checkpoint, revision in revisions.items():
            prefix = f"pred_confs_gcm_{name}_{revision}"
            yield Source(Run(estimator, name, 0), checkpoint, folder, prefix, split)


def _transfers(model: Model, name: str, seed: int) -> Iterator[Source]:
    """Yield the sources of both transfer matrices: every adapter at every checkpoint."""
    single = [(checkpoint,) for checkpoint in model.revisions]
    matrices = zip(TRANSFERS, (single, pairwise(model.revisions)), strict=True)
    for (recipe, sets), ending in zip(matrices, ("", "_ncand2_random"), strict=True):
        for trained_on in sets:
            revisions = [model.revisions[checkpoint] for checkpoint in trained_on]
            folder = _adapter(model, name, revisions, ending, seed)
            run = Run(recipe, name, seed, "+".join(trained_on))
            for checkpoint, revision in model.revisions.items():
                yield Source(run, checkpoint, folder, f"{ORDINARY}_{name}_{revision}")


def sources(
    root: Path, model: Model, dataset: Dataset, seeds: Sequence[int]
) -> Iterator[Source]:
    """Yield the expected source of each estimator's confidences for a dataset."""
    name = dataset.name
    for train_dataset in dataset.train_datasets or [name]:
        yield from _evaluated(model, name, train_dataset, ADAPTERS, seeds)
    if not dataset.train_datasets:
        yield from _evaluated(model, name, name, ABLATIONS, seeds)
        yield from _ablated(root, model, name, seeds)
        yield from _gcm(model, name)
        yield from _transfers(model, name, seeds[0])


def read_estimates(
    root: Path,
    model: Model,
    dataset: Dataset,
    answers: Mapping[Key, ReleasedAnswers],
    *,
    seeds: Sequence[int],
) -> Estimates:
    """Read all confidences of the release for `model` on `dataset`.

    Labels missing in judge.pt are filled into `answers` from the confidence files. The transfer
    matrices use the first of `seeds`.
    """
    no_question = {
        split: np.zeros(end - begin, bool) for split, (begin, end) in dataset.splits.items()
    }
    estimates = Estimates(model, dataset, answers, {}, no_question, [])
    for source in sources(root, model, dataset, seeds):
        run, checkpoint, split = source.run, source.checkpoint, source.split
        span, label = dataset.splits[split], answers[checkpoint, split].label
        read = read_confidences(root, source.folder, source.prefix, span, label)
        filled = (label == UNKNOWN) & (read.label != UNKNOWN) & (read.label != NO_ANSWER)
        label[filled] = read.label[filled]
        left_out = np.isnan(read.confidence) & (read.label != UNKNOWN) & (label > 0)
        n_left_out, n_answered = left_out.sum(), (label > 0).sum()
        if n_left_out > MAX_LEFT_OUT * n_answered:
            raise ReleaseError(
                f"{root / source.folder}/{source.prefix}_*.pt: no confidence for "
                f"{n_left_out} of {n_answered} answered questions, the first of them "
                f"{span[0] + int(left_out.argmax())}; download the release again."
            )
        estimates.left_out[split][left_out] = True
        estimates.missing.extend((run.estimator, checkpoint, path) for path in read.missing)
        by_checkpoint = estimates.confidences.setdefault((run, split), {})
        if not read.missing:
            by_checkpoint[checkpoint] = read.confidence
    answered = any((read.label != UNKNOWN).any() for read in answers.values())
    if not answered and not any(estimates.confidences.values()):
        raise ReleaseError(
            f"{root / dataset.name}/{model_folder(model.repo)}: the release holds nothing "
            f"about {model.repo} on {dataset.name}; check the model's repo and the dataset's "
            "name, or leave them out of the study."
        )
    return estimates


# A table, what it is about, and its rows
Made = tuple[artifacts.Table, dict[str, str], pd.DataFrame]

Confidence = Mapping[str, Floats]  # by checkpoint


def release_tables(
    root: Path,
    *,
    models: Mapping[str, Mapping[str, Any]],
    datasets: Mapping[str, Mapping[str, Any]],
    recipes: Sequence[str],
    seeds: Sequence[int],
    posthoc: Mapping[str, str],
) -> Iterator[Made]:
    """Yield all tables of `models` and `datasets`, and the table of missing files at the end.

    Tables are yielded one by one because together they take gigabytes. `posthoc` maps
    estimators fitted here to calibration methods; `recipes` names the transfer matrices.
    """
    missing: list[tuple[str, ...]] = []
    for name, described in datasets.items():
        dataset = Dataset(name, **described)
        estimated: dict[str, Estimates] = {}
        for key, described_model in models.items():
            model, subject = Model(**described_model), {"model": key, "dataset": name}
            answers: dict[tuple[str, str], ReleasedAnswers] = {}
            for checkpoint, revision in model.revisions.items():
                read = read_candidates(root, name, model.repo, revision, dataset.splits)
                keys = {**subject, "checkpoint": checkpoint}
                for split, span in dataset.splits.items():
                    ids = {question_id(name, index) for index in range(*span)}
                    for table in (artifacts.BEAMS, artifacts.CLUSTERS, artifacts.LABELS):
                        rows = getattr(read, table.name)
                        is_in_split = rows["question_id"].isin(ids)
                        yield table, {**keys, "split": split}, rows[is_in_split]
                answers |= {(checkpoint, split): a for split, a in read.answers.items()}
                missing += [(key, name, "candidates", checkpoint, p) for p in read.missing]
            estimated[key] = read_estimates(root, model, dataset, answers, seeds=seeds)
            missing += [(key, name, *row) for row in estimated[key].missing]
        excluded = find_excluded(dataset, list(estimated.values()))
        yield QUESTIONS, {"dataset": name}, questions(dataset, excluded)
        for key, estimates in estimated.items():
            subject = {"model": key, "dataset": name}
            rows = predictions(estimates, excluded, posthoc)
            yield PREDICTIONS, subject, rows
            answer_rows = imported_answers(rows.assign(**subject))
            for checkpoint in estimates.model.evaluation:
                answered = answer_rows[answer_rows["checkpoint"] == checkpoint]
                keys = {**subject, "checkpoint": checkpoint, "split": "test"}
                yield artifacts.ANSWERS, keys, answered
            for checkpoint in estimates.model.revisions:
                rows = transfer_scores(checkpoint, estimates, excluded)
                keys = {**subject, "checkpoint": checkpoint, "answers": "transfer"}
                for recipe in recipes:
                    yield SCORES, {**keys, "recipe": recipe}, rows[rows["recipe"] == recipe]
    if missing:
        log.warning("The archive lacks %d files: see missing.csv", len(missing))
    yield artifacts.MISSING, {}, pd.DataFrame(missing, columns=artifacts.MISSING.schema.names)


def find_excluded(dataset: Dataset, models: Sequence[Estimates]) -> dict[str, Flags]:
    """Return by split which questions the authors left out of training and metrics.

    The release does not list them, so they are inferred: a confidence file leaves out an
    answered question, or no checkpoint of any of the `models` has candidates for it.
    """
    excluded = {}
    for split, (begin, end) in dataset.splits.items():
        left_out, skipped, answered = np.zeros((3, end - begin), bool)
        for estimates in models:
            left_out |= estimates.left_out[split]
            for (_, answered_split), answers in estimates.answers.items():
                if answered_split == split:
                    skipped |= answers.skipped
                    answered |= ~answers.skipped & (answers.label != UNKNOWN)
        excluded[split] = left_out | (skipped & ~answered)
    return excluded


def questions(dataset: Dataset, excluded: Mapping[str, Flags]) -> pd.DataFrame:
    """Return the table QUESTIONS of a dataset, its texts and references empty."""
    tables = []
    for split, (begin, end) in dataset.splits.items():
        index = range(begin, end)
        table = pd.DataFrame({"question_id": [question_id(dataset.name, i) for i in index]})
        table = table.assign(index=index, split=split, question="", any_of=False, category="")
        table["references"] = [[] for _ in index]
        unknown = dict.fromkeys(("options", "gold", "truths"))
        tables.append(table.assign(excluded=excluded[split], **unknown))
    return QUESTIONS.fill(pd.concat(tables, ignore_index=True))[QUESTIONS.schema.names]


def _calibrated(
    estimates: Estimates, confidence: Confidence, train: Confidence, flags: Flags, method: str
) -> Confidence:
    """Calibrate on the earlier checkpoints' train answers; nothing if one is unknown."""
    stated, correct = [], []
    for checkpoint in estimates.model.earlier:
        label = estimates.answers[checkpoint, "train"].label
        fit = (label > 0) & ~flags
        if checkpoint not in train or (label == UNKNOWN).any():
            return {}
        stated.append(train[checkpoint][fit])
        correct.append(label[fit] == 1)
    train_answers = np.concatenate(stated), np.concatenate(correct)
    if not train_answers[0].size or np.isnan(train_answers[0]).any():
        return {}
    return {c: calibrate(method, *train_answers, p) for c, p in confidence.items()}


def _confidences(
    estimates: Estimates, excluded: Mapping[str, Flags], posthoc: Mapping[str, str]
) -> dict[Run, Confidence]:
    """Return the confidences in the evaluation checkpoints' answers by run.

    They are read from files, computed from candidates, or calibrated here. A copy of the last
    earlier checkpoint has confidence 0 in answers that this checkpoint did not give.
    """
    model, name, answers = estimates.model, estimates.dataset.name, estimates.answers

    def copied(source: Floats) -> Confidence:
        return {checkpoint: np.nan_to_num(source) for checkpoint in model.evaluation}

    runs: dict[Run, Confidence] = {}
    train: dict[str, Confidence] = {}  # by estimator that is calibrated on it
    for (run, split), confidence in estimates.confidences.items():
        if split == "train":
            train[run.estimator] = confidence
        elif run.estimator == "non_oracle_copy":
            runs[run] = copied(*confidence.values()) if confidence else {}
        elif run.estimator not in TRANSFERS:
            runs[run] = confidence
    certainty = {c: answers[c, "test"].confidence for c in model.evaluation}
    runs[Run("self_consistency", name, 0)] = certainty
    if (last_time := len(model.evaluation) - 1) > 0:
        runs[Run("end_correct", name, 0)] = {
            checkpoint: np.full(len(excluded["test"]), time / last_time)
            for time, checkpoint in enumerate(model.evaluation)
        }
    if model.earlier:
        last = answers[list(model.earlier)[-1], "test"]
        if not (last.label == UNKNOWN).any():
            runs[Run("self_consistency_copy", name, 0)] = copied(last.confidence)
        if "train" in excluded:
            earlier = {c: answers[c, "train"].confidence for c in model.earlier}
            train["self_consistency_posthoc"] = earlier
    for estimator, stated in train.items():
        if estimator in posthoc:
            raw = runs.get(Run(estimator.removesuffix("_posthoc"), name, 0), {})
            calibration = excluded["train"], posthoc[estimator]
            runs[Run(estimator, name, 0)] = _calibrated(estimates, raw, stated, *calibration)
    return runs


def predictions(
    estimates: Estimates, excluded: Mapping[str, Flags], posthoc: Mapping[str, str]
) -> pd.DataFrame:
    """Return the table PREDICTIONS of one model on one dataset.

    It contains the runs with a confidence in every answer of every evaluation checkpoint.
    """
    labels = {c: estimates.answers[c, "test"].label for c in estimates.model.evaluation}
    answered = {c: (label > 0) & ~excluded["test"] for c, label in labels.items()}
    runs = _confidences(estimates, excluded, posthoc)
    tables = []
    for run, confidence in sorted(runs.items()):
        if not all(c in confidence and mask.any() for c, mask in answered.items()):
            continue
        if any(np.isnan(confidence[c][mask]).any() for c, mask in answered.items()):
            continue
        for checkpoint, mask in answered.items():
            rows = _rows(estimates.dataset, run, confidence[checkpoint], mask)
            correct = labels[checkpoint][mask] == 1
            rows = rows.assign(checkpoint=checkpoint, estimator=run.estimator, correct=correct)
            tables.append(PREDICTIONS.fill(rows)[PREDICTIONS.schema.names])
    return pd.concat(tables, ignore_index=True) if tables else artifacts.empty(PREDICTIONS)


def transfer_scores(
    checkpoint: str, estimates: Estimates, excluded: Mapping[str, Flags]
) -> pd.DataFrame:
    """Return the table SCORES of `checkpoint`: its column of both transfer matrices."""
    mask = (estimates.answers[checkpoint, "test"].label > 0) & ~excluded["test"]
    tables = []
    for (run, _), confidence in estimates.confidences.items():
        if run.estimator in TRANSFERS and checkpoint in confidence:
            rows = _rows(estimates.dataset, run, confidence[checkpoint], mask)
            rows = rows.assign(answers_of=checkpoint, recipe=run.estimator)
            tables.append(rows.assign(trained_on=run.trained_on)[SCORES.schema.names])
    return pd.concat(tables, ignore_index=True) if tables else artifacts.empty(SCORES)


def _rows(dataset: Dataset, run: Run, confidence: Floats, mask: Flags) -> pd.DataFrame:
    """Return a run's confidences in the answers to the test questions that were `mask`."""
    ids = np.array([question_id(dataset.name, i) for i in range(*dataset.test)], object)
    rows = pd.DataFrame({"question_id": ids[mask], "confidence": confidence[mask]})
    return rows.assign(train_dataset=run.train_dataset, seed=run.seed)
