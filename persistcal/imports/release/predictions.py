"""Turn the authors' released results into questions, scores and predictions."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from persistcal.confidence.posthoc import calibrate
from persistcal.imports.release.candidates import ReleasedAnswers
from persistcal.imports.release.estimators import TRANSFERS, Dataset, Estimates, Key, Model, Run
from persistcal.imports.release.files import UNKNOWN, Flags, Floats, question_id
from persistcal.store.artifacts import PREDICTIONS, QUESTIONS, SCORES, empty

Confidence = Mapping[str, Floats]  # by checkpoint


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


def questions(name: str, dataset: Dataset, excluded: Mapping[str, Flags]) -> pd.DataFrame:
    """Return the table QUESTIONS of the dataset `name`, its texts and references empty."""
    parts = []
    for split, (begin, end) in dataset.splits.items():
        index = range(begin, end)
        part = pd.DataFrame({"question_id": [question_id(name, i) for i in index]})
        part = part.assign(index=index, split=split, question="", any_of=False, category="")
        part["references"] = [[] for _ in index]
        parts.append(part.assign(excluded=excluded[split]))
    return pd.concat(parts, ignore_index=True)[QUESTIONS.schema.names]


def _copied(source: Floats, model: Model) -> Confidence:
    """Give one confidence to every evaluation checkpoint; 0 where there was no answer."""
    return {checkpoint: np.nan_to_num(source) for checkpoint in model.evaluation}


def _calibrated(
    confidence: Confidence,
    train: Confidence,
    answers: Mapping[Key, ReleasedAnswers],
    model: Model,
    excluded: Flags,
    method: str,
) -> Confidence:
    """Calibrate `confidence` by `method` on the earlier checkpoints' train answers.

    Nothing is returned unless all of those answers and their confidences are known.
    """
    stated, correct = [], []
    for checkpoint in model.earlier:
        label = answers[checkpoint, "train"].label
        fit = (label > 0) & ~excluded
        if checkpoint not in train or (label == UNKNOWN).any():
            return {}
        stated.append(train[checkpoint][fit])
        correct.append(label[fit] == 1)
    if not sum(map(len, stated)) or np.isnan(np.concatenate(stated)).any():
        return {}
    known = np.concatenate(stated), np.concatenate(correct)
    return {c: calibrate(method, *known, p) for c, p in confidence.items()}


def _from_candidates(
    model: Model,
    name: str,
    estimates: Estimates,
    excluded: Mapping[str, Flags],
    posthoc: Mapping[str, str],
) -> dict[Run, Confidence]:
    """Return the estimators that have no files of their own."""
    answers = estimates.answers
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
    calibrated = "self_consistency_posthoc"
    if model.earlier and "train" in excluded and calibrated in posthoc:
        train = {c: answers[c, "train"].confidence for c in model.earlier}
        runs[Run(calibrated, name, 0)] = _calibrated(
            certainty, train, answers, model, excluded["train"], posthoc[calibrated]
        )
    return runs


def _from_files(
    model: Model,
    estimates: Estimates,
    excluded: Mapping[str, Flags],
    posthoc: Mapping[str, str],
) -> dict[Run, Confidence]:
    """Return the estimators whose confidences are files."""
    runs: dict[Run, Confidence] = {}
    for (run, split), confidence in estimates.confidences.items():
        if run.estimator in TRANSFERS:
            continue
        if split == "train":
            if run.estimator not in posthoc:
                continue
            gcm = estimates.confidences.get((run._replace(estimator="gcm"), "test"), {})
            method, flags = posthoc[run.estimator], excluded["train"]
            runs[run] = _calibrated(gcm, confidence, estimates.answers, model, flags, method)
        elif run.estimator == "non_oracle_copy":
            runs[run] = _copied(next(iter(confidence.values())), model) if confidence else {}
        else:
            runs[run] = confidence
    return runs


def predictions(
    model: Model,
    name: str,
    dataset: Dataset,
    estimates: Estimates,
    excluded: Mapping[str, Flags],
    *,
    posthoc: Mapping[str, str],
) -> pd.DataFrame:
    """Return the table PREDICTIONS of `model` on the dataset `name`.

    It holds the runs that have a confidence in every answer of every evaluation
    checkpoint, which is what evaluation needs; it is empty when the answers of one
    of them are not known. `excluded` holds by split the questions to leave out, `posthoc`
    how the estimators are calibrated that are fitted here.

    Where the last earlier checkpoint gave no answer, its copied confidence is 0: it
    puts no probability on any answer.
    """
    ids = np.array([question_id(name, i) for i in range(*dataset.test)], object)
    labels = {c: estimates.answers[c, "test"].label for c in model.evaluation}
    answered = {c: (label > 0) & ~excluded["test"] for c, label in labels.items()}
    runs = {
        **_from_candidates(model, name, estimates, excluded, posthoc),
        **_from_files(model, estimates, excluded, posthoc),
    }
    parts = []
    for run, confidence in sorted(runs.items()):
        if not all(c in confidence and asked.any() for c, asked in answered.items()):
            continue
        if any(np.isnan(confidence[c][asked]).any() for c, asked in answered.items()):
            continue
        parts += [
            pd.DataFrame(
                {
                    "checkpoint": checkpoint,
                    "question_id": ids[asked],
                    "train_dataset": run.train_dataset,
                    "estimator": run.estimator,
                    "seed": run.seed,
                    "confidence": confidence[checkpoint][asked],
                    "correct": labels[checkpoint][asked] == 1,
                }
            )
            for checkpoint, asked in answered.items()
        ]
    return pd.concat(parts, ignore_index=True) if parts else empty(PREDICTIONS)


def transfer_scores(
    name: str,
    dataset: Dataset,
    checkpoint: str,
    estimates: Estimates,
    excluded: Mapping[str, Flags],
) -> pd.DataFrame:
    """Return the table SCORES of `checkpoint`: its column of both transfer matrices."""
    ids = np.array([question_id(name, i) for i in range(*dataset.test)], object)
    asked = (estimates.answers[checkpoint, "test"].label > 0) & ~excluded["test"]
    parts = []
    for (run, _), confidence in estimates.confidences.items():
        if run.estimator in TRANSFERS and checkpoint in confidence:
            columns = {
                "answers_of": checkpoint,
                "recipe": run.estimator,
                "trained_on": run.trained_on,
                "train_dataset": run.train_dataset,
                "seed": run.seed,
                "question_id": ids[asked],
                "confidence": confidence[checkpoint][asked],
            }
            parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True) if parts else empty(SCORES)
