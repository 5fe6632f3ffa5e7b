"""Turn the authors' released results into the tables of a study, one after the other."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from persistcal.confidence.posthoc import calibrate
from persistcal.imports.own_predictions import imported_answers
from persistcal.imports.release.estimators import (
    TRANSFERS,
    Dataset,
    Estimates,
    Model,
    Run,
    read_estimates,
)
from persistcal.imports.release.files import UNKNOWN, Flags, Floats, Tree, question_id
from persistcal.imports.release.shards import ReleasedAnswers, read_candidates
from persistcal.store import artifacts
from persistcal.store.artifacts import PREDICTIONS, QUESTIONS, SCORES

log = logging.getLogger(__name__)

# A table, what it is about, and its rows
Made = tuple[artifacts.Table, dict[str, str], pd.DataFrame]
Confidence = Mapping[str, Floats]  # by checkpoint


def release_tables(
    tree: Tree,
    *,
    models: Mapping[str, Mapping[str, Any]],
    datasets: Mapping[str, Mapping[str, Any]],
    recipes: Sequence[str],
    seeds: Sequence[int],
    posthoc: Mapping[str, str],
) -> Iterator[Made]:
    """Yield all tables about `models` and `datasets`, those of absent files at the end.

    All together would take gigabytes. `posthoc` says how each estimator is calibrated that
    is fitted here, `recipes` which transfer matrices there are.
    """
    missing: list[tuple[str, ...]] = []
    for name, described in datasets.items():
        dataset = Dataset(name, **described)
        estimated: dict[str, Estimates] = {}
        for key, about in models.items():
            model, place = Model(**about), {"model": key, "dataset": name}
            answers: dict[tuple[str, str], ReleasedAnswers] = {}
            for checkpoint, revision in model.revisions.items():
                read = read_candidates(tree, name, model.repo, revision, dataset.splits)
                here = {**place, "checkpoint": checkpoint}
                yield artifacts.BEAMS, here, read.beams
                yield artifacts.CLUSTERS, here, read.clusters
                yield artifacts.LABELS, here, read.labels
                answers |= {(checkpoint, split): a for split, a in read.answers.items()}
                missing += [(key, name, "candidates", checkpoint, p) for p in read.missing]
            estimated[key] = read_estimates(tree, model, dataset, answers, seeds=seeds)
            missing += [(key, name, *row) for row in estimated[key].missing]
        excluded = find_excluded(dataset, list(estimated.values()))
        yield QUESTIONS, {"dataset": name}, questions(dataset, excluded)
        for key, estimates in estimated.items():
            place = {"model": key, "dataset": name}
            rows = predictions(estimates, excluded, posthoc)
            yield PREDICTIONS, place, rows
            every = imported_answers(rows.assign(**place))
            for checkpoint in estimates.model.evaluation:
                of_checkpoint = every[every["checkpoint"] == checkpoint]
                yield artifacts.ANSWERS, {**place, "checkpoint": checkpoint}, of_checkpoint
            for checkpoint in estimates.model.revisions:
                rows = transfer_scores(checkpoint, estimates, excluded)
                here = {**place, "checkpoint": checkpoint, "answers": "transfer"}
                for recipe in recipes:
                    yield SCORES, {**here, "recipe": recipe}, rows[rows["recipe"] == recipe]
    if missing:
        log.warning("The archive lacks %d files: see missing.csv", len(missing))
    yield artifacts.MISSING, {}, pd.DataFrame(missing, columns=artifacts.MISSING.schema.names)


def find_excluded(dataset: Dataset, models: Sequence[Estimates]) -> dict[str, Flags]:
    """Return by split which questions the authors left out of training and metrics.

    The release has no question texts, so they are known by what was done to them:
    some confidence file leaves them out although they were answered, or they have
    no candidates at any checkpoint of any of the `models`.
    """
    excluded = {}
    for split, (begin, end) in dataset.splits.items():
        left_out, skipped, asked = np.zeros((3, end - begin), bool)
        for estimates in models:
            left_out |= estimates.left_out[split]
            for (_, of_split), answers in estimates.answers.items():
                if of_split == split:
                    skipped |= answers.skipped
                    asked |= ~answers.skipped & (answers.label != UNKNOWN)
        excluded[split] = left_out | (skipped & ~asked)
    return excluded


def questions(dataset: Dataset, excluded: Mapping[str, Flags]) -> pd.DataFrame:
    """Return the table QUESTIONS of a dataset, its texts and references empty."""
    parts = []
    for split, (begin, end) in dataset.splits.items():
        index = range(begin, end)
        part = pd.DataFrame({"question_id": [question_id(dataset.name, i) for i in index]})
        part = part.assign(index=index, split=split, question="", any_of=False, category="")
        part["references"] = [[] for _ in index]
        unknown = dict.fromkeys(("options", "gold", "truths"))
        parts.append(part.assign(excluded=excluded[split], **unknown))
    return pd.concat(parts, ignore_index=True)[QUESTIONS.schema.names]


def _copied(source: Floats, model: Model) -> Confidence:
    """Give one confidence to every evaluation checkpoint.

    It is 0 where there was no answer: no probability is on any.
    """
    return {checkpoint: np.nan_to_num(source) for checkpoint in model.evaluation}


def _calibrated(
    estimates: Estimates, confidence: Confidence, train: Confidence, flags: Flags, method: str
) -> Confidence:
    """Calibrate `confidence` by `method` on the earlier checkpoints' train answers.

    Nothing is returned unless all of those answers and their confidences are known.
    """
    stated, correct = [], []
    for checkpoint in estimates.model.earlier:
        label = estimates.answers[checkpoint, "train"].label
        fit = (label > 0) & ~flags
        if checkpoint not in train or (label == UNKNOWN).any():
            return {}
        stated.append(train[checkpoint][fit])
        correct.append(label[fit] == 1)
    known = np.concatenate(stated), np.concatenate(correct)
    if not known[0].size or np.isnan(known[0]).any():
        return {}
    return {c: calibrate(method, *known, p) for c, p in confidence.items()}


def _from_candidates(
    estimates: Estimates, excluded: Mapping[str, Flags], posthoc: Mapping[str, str]
) -> dict[Run, Confidence]:
    """Return the estimators that have no files of their own."""
    model, name, answers = estimates.model, estimates.dataset.name, estimates.answers
    certainty = {c: answers[c, "test"].confidence for c in model.evaluation}
    runs: dict[Run, Confidence] = {Run("self_consistency", name, 0): certainty}
    if (last_time := len(model.evaluation) - 1) > 0:
        runs[Run("end_correct", name, 0)] = {
            checkpoint: np.full(len(excluded["test"]), time / last_time)
            for time, checkpoint in enumerate(model.evaluation)
        }
    if model.earlier:
        last = answers[list(model.earlier)[-1], "test"]
        if not (last.label == UNKNOWN).any():
            runs[Run("self_consistency_copy", name, 0)] = _copied(last.confidence, model)
    run = Run("self_consistency_posthoc", name, 0)
    if model.earlier and "train" in excluded and run.estimator in posthoc:
        train = {c: answers[c, "train"].confidence for c in model.earlier}
        how = excluded["train"], posthoc[run.estimator]
        runs[run] = _calibrated(estimates, certainty, train, *how)
    return runs


def _from_files(
    estimates: Estimates, excluded: Mapping[str, Flags], posthoc: Mapping[str, str]
) -> dict[Run, Confidence]:
    """Return the estimators whose confidences are files."""
    runs: dict[Run, Confidence] = {}
    for (run, split), confidence in estimates.confidences.items():
        if run.estimator in TRANSFERS:
            continue
        if split == "train":
            if run.estimator in posthoc:
                gcm = estimates.confidences.get((run._replace(estimator="gcm"), "test"), {})
                how = excluded["train"], posthoc[run.estimator]
                runs[run] = _calibrated(estimates, gcm, confidence, *how)
        elif run.estimator == "non_oracle_copy":
            of_last = next(iter(confidence.values()), None)
            runs[run] = {} if of_last is None else _copied(of_last, estimates.model)
        else:
            runs[run] = confidence
    return runs


def predictions(
    estimates: Estimates, excluded: Mapping[str, Flags], posthoc: Mapping[str, str]
) -> pd.DataFrame:
    """Return the table PREDICTIONS of one model on one dataset.

    It holds the runs that have a confidence in every answer of every evaluation checkpoint,
    which is what evaluation needs; it is empty when the answers of one of them are not known.
    """
    labels = {c: estimates.answers[c, "test"].label for c in estimates.model.evaluation}
    answered = {c: (label > 0) & ~excluded["test"] for c, label in labels.items()}
    runs = _from_candidates(estimates, excluded, posthoc)
    runs |= _from_files(estimates, excluded, posthoc)
    parts = []
    for run, confidence in sorted(runs.items()):
        if not all(c in confidence and asked.any() for c, asked in answered.items()):
            continue
        if any(np.isnan(confidence[c][asked]).any() for c, asked in answered.items()):
            continue
        for checkpoint, asked in answered.items():
            rows = _rows(estimates.dataset, run, confidence[checkpoint], asked)
            correct = labels[checkpoint][asked] == 1
            rows = rows.assign(checkpoint=checkpoint, estimator=run.estimator, correct=correct)
            parts.append(rows[PREDICTIONS.schema.names])
    return pd.concat(parts, ignore_index=True) if parts else artifacts.empty(PREDICTIONS)


def transfer_scores(
    checkpoint: str, estimates: Estimates, excluded: Mapping[str, Flags]
) -> pd.DataFrame:
    """Return the table SCORES of `checkpoint`: its column of both transfer matrices."""
    asked = (estimates.answers[checkpoint, "test"].label > 0) & ~excluded["test"]
    parts = []
    for (run, _), confidence in estimates.confidences.items():
        if run.estimator in TRANSFERS and checkpoint in confidence:
            rows = _rows(estimates.dataset, run, confidence[checkpoint], asked)
            rows = rows.assign(answers_of=checkpoint, recipe=run.estimator)
            parts.append(rows.assign(trained_on=run.trained_on)[SCORES.schema.names])
    return pd.concat(parts, ignore_index=True) if parts else artifacts.empty(SCORES)


def _rows(dataset: Dataset, run: Run, confidence: Floats, asked: Flags) -> pd.DataFrame:
    """Return a run's confidences in the answers to the test questions that were `asked`."""
    ids = np.array([question_id(dataset.name, i) for i in range(*dataset.test)], object)
    rows = pd.DataFrame({"question_id": ids[asked], "confidence": confidence[asked]})
    return rows.assign(train_dataset=run.train_dataset, seed=run.seed)
