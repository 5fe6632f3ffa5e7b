"""Let an estimator, a function of the project's or of the user's, rate predictions."""

import contextlib
import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.answers.clusters import RATED, RUN, open_equivalence, take_predictions
from persistcal.answers.options import has_options
from persistcal.confidence.calibration import calibrate
from persistcal.confidence.evidence import (
    KEY,
    EntrySettings,
    Estimator,
    Evidence,
    check_needs,
    rate,
)
from persistcal.models.checkpoint import Checkpoint
from persistcal.questions.question_list import asked_by
from persistcal.questions.splits import FURTHER_ASKS
from persistcal.store import artifacts
from persistcal.store.code import function_of

log = logging.getLogger(__name__)

NEITHER = 0.5  # the confidence of an answer without a readable stated confidence


@dataclass(frozen=True)
class Estimation(EntrySettings):
    """The config's entry of an estimator, and the checkpoints that a job rates."""

    estimator: str
    # A function in `persistcal.confidence.estimators`, or a Python file with a function of the
    # same name
    function: str
    dataset: str
    read: Sequence[str]  # checkpoints with answers that the estimator reads
    earlier: Sequence[str]  # training checkpoints of the model
    evaluation: Sequence[str]  # checkpoints that it rates
    equivalence: Mapping[str, Any]  # the config's section, for estimators that compare answers
    split: str = "test"  # split of the rated answers
    further_asks: Sequence[str] = ()  # splits that are rated in the same way
    posthoc: str | None = None  # calibration on the earlier checkpoints' train answers
    compares_answers: bool = False
    # Registered: the function's module in `estimators`, and the columns of answers it needs
    family: str = ""
    needs: Sequence[str] = ()
    may_lack: bool = False  # whether confidences can be missing


@dataclass(frozen=True)
class AnswerTables:
    """Tables of one model and dataset that an estimation reads, and records of models.

    QUESTIONS are followed by CONTEXTS if the estimator asks a checkpoint with contexts. `beams`
    and `clusters` belong to the checkpoints that it reads, and `rated` contains the clusters of
    the answers that it rates or is fitted on. Only the earlier checkpoints' `answers` have
    labels, and only an estimator that is fitted needs them. Further asks are splits.
    """

    questions: artifacts.Questions
    beams: artifacts.Beams
    clusters: artifacts.Clusters
    rated: artifacts.Clusters
    answers: artifacts.Answers | None = None
    verified: artifacts.Verified | None = None
    replies: artifacts.Replies | None = None
    checkpoints: list[Checkpoint] | None = (
        None  # checkpoints with weights that the estimator reads
    )
    entailment_model: str = ""  # record of the model that compares answers

    def predictions(self, checkpoints: Sequence[str], split: str) -> pd.DataFrame:
        """Return predictions on a split, with the questions as their checkpoints are asked."""
        rows = self.rated[self.rated["split"] == split]
        names = [name for name in rows["checkpoint"].unique() if name in checkpoints]
        taken = [
            take_predictions(
                asked_by(self.questions, name), rows[rows["checkpoint"] == name], split=split
            ).assign(checkpoint=name)
            for name in names
        ]
        columns = [*KEY, "question", "answer", "probability"]
        if not taken:
            return pd.DataFrame(columns=columns)
        return pd.concat(taken, ignore_index=True)[columns]

    def of_ask(self, checkpoints: Sequence[str], split: str) -> "AnswerTables":
        """Return the tables with one ask of `checkpoints`: test, or a further one."""
        other_asks = {*FURTHER_ASKS} - {split} | ({"test"} if split in FURTHER_ASKS else set())

        def keep(table: pd.DataFrame) -> pd.DataFrame:
            if "split" not in table:
                return table
            is_other = table["split"].isin(other_asks) & table["checkpoint"].isin(checkpoints)
            return table[~is_other]

        return replace(
            self,
            beams=keep(self.beams),
            clusters=keep(self.clusters),
            rated=keep(self.rated),
            replies=None if self.replies is None else keep(self.replies),
        )

    def labelled(self, checkpoints: Sequence[str]) -> pd.DataFrame:
        """Return predictions on the train split with a column correct, if there are labels."""
        predictions = self.predictions(checkpoints, "train")
        if self.answers is None:
            return predictions.head(0).assign(correct=False)
        correct = self.answers.loc[self.answers["split"] == "train", [*KEY, "correct"]]
        return predictions.merge(correct, on=KEY, validate="one_to_one")


def estimate(settings: Estimation, tables: AnswerTables, *, threads: int = 1) -> pd.DataFrame:
    """Return the predictions that `settings` selects, with the estimator's confidences.

    An answer without a readable stated confidence has the confidence `NEITHER` and is marked as
    `unsaid`.
    """
    function = find_estimator(settings.function, settings.family)
    tables = tables.of_ask(settings.evaluation, settings.split)
    beams, clusters = (
        table.loc[:, ~table.columns.isin(["model", "dataset", "split"])]
        for table in (tables.beams, tables.clusters)
    )
    check_needs(settings.estimator, settings.needs, beams)
    answers = tables.predictions(settings.evaluation, settings.split)
    labelled = tables.labelled(settings.earlier)
    fitted_at = settings.evaluation if settings.fit_at == "each" else []
    train = tables.predictions(fitted_at, "train")
    options = has_options(tables.questions)
    comparing: Any = contextlib.nullcontext()
    if settings.compares_answers and not options:
        comparing = open_equivalence(
            settings.equivalence,
            tables.entailment_model,
            settings.dataset,
            questions=asked_by(tables.questions, None)["question"],
            answers={*tables.rated["answer"], *clusters["members"].explode()},
            threads=threads,
        )
    with comparing as equivalent:
        evidence = Evidence(
            earlier=tuple(settings.earlier),
            evaluation=tuple(settings.evaluation),
            labelled=labelled,
            clusters=clusters,
            beams=beams,
            verified=tables.verified,
            equivalent=equivalent,
            load=_loader(settings, tables.checkpoints, threads) if tables.checkpoints else None,
            options=options,
            estimator=settings.estimator,
            replies=tables.replies,
            train=train,
            questions=tables.questions,
            **{field.name: getattr(settings, field.name) for field in fields(EntrySettings)},
        )
        may_lack = settings.may_lack or tables.replies is not None

        def rated(predictions: pd.DataFrame) -> pd.DataFrame:
            unlabelled = predictions.drop(columns="correct", errors="ignore")
            confidence = rate(
                function, unlabelled, evidence, settings.estimator, may_lack=may_lack
            )
            unsaid = np.isnan(confidence)
            _check_said(settings.estimator, predictions["checkpoint"], unsaid)
            confidence[unsaid] = NEITHER
            rows = predictions.assign(train_dataset=settings.dataset, seed=0, unsaid=unsaid)
            return rows.assign(split=settings.split, confidence=confidence)

        confidences = rated(answers)
        if settings.posthoc:
            fitted_on = rated(labelled)
            confidences = calibrate_runs(
                confidences, fitted_on, settings.posthoc, settings.estimator
            )
            log.info("%s fitted on %d answers", settings.posthoc, len(labelled))
    mean = confidences["confidence"].mean()
    log.info("%d predictions, mean confidence %.3f", len(answers), mean)
    return confidences


def estimate_asks(
    settings: Estimation, tables: AnswerTables, *, threads: int = 1
) -> pd.DataFrame:
    """Return `estimate` of the test answers, and of further asks that all checkpoints have."""
    further_asks = []
    for split in settings.further_asks:
        rated = set(tables.predictions(settings.evaluation, split)["checkpoint"])
        if lacking := [name for name in settings.evaluation if name not in rated]:
            log.info("Not cross-asked: too few samples of %s", ", ".join(lacking))
            break
        further_asks.append(split)
    parts = [
        estimate(replace(settings, split=split), tables, threads=threads)
        for split in ("test", *further_asks)
    ]
    return pd.concat(parts, ignore_index=True)


def _check_said(estimator: str, checkpoints: pd.Series, unsaid: NDArray[np.bool_]) -> None:
    """Refuse a checkpoint without any stated confidence; log the counts of the others."""
    counts = pd.Series(unsaid).groupby(checkpoints.to_numpy(), sort=False)
    for checkpoint, n, answers in counts.agg(["sum", "size"]).itertuples():
        if n == answers:
            raise ValueError(
                f"estimators.{estimator}: none of the {n} answers of checkpoint {checkpoint!r} "
                "has a readable confidence; correct its prompt or its column, or drop it from "
                "study.estimators"
            )
        if n:
            log.warning(
                "%s: %d of %d answers of %s have no readable confidence; these count as %g",
                *(estimator, n, answers, checkpoint, NEITHER),
            )


def find_estimator(function: str, family: str = "") -> Estimator:
    """Return the function in a user's file, or in a family of the project's estimators."""
    name = Path(function).stem
    if function.endswith(".py"):
        estimator = function_of(function)
    else:
        module = importlib.import_module(f"persistcal.confidence.estimators.{family}")
        estimator = getattr(module, name, None)
    if not callable(estimator):
        raise ValueError(f"{function}: define a function {name}(answers, evidence) in it.")
    return estimator


def _loader(
    settings: Estimation, records: Sequence[Checkpoint], threads: int
) -> Callable[[str], tuple[Any, Any]]:
    """Return a function that loads model and tokenizer of a checkpoint by its name.

    The records are in the rule's order: checkpoints that the estimator reads, and its rater.
    """
    import torch  # which other estimators do not need

    from persistcal.models import load

    torch.set_num_threads(threads)
    names = dict.fromkeys([*settings.read, *([settings.rater] if settings.rater else [])])
    by_name = dict(zip(names, records, strict=True))

    def load_checkpoint(name: str) -> tuple[Any, Any]:
        tokenizer = load.open_tokenizer(by_name[name])
        return load.open_model(by_name[name]), tokenizer

    return load_checkpoint


def gather_scores(scores: pd.DataFrame, uses: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """Return the columns `RATED` of SCORES: an adapter's confidences at each checkpoint.

    Each of `uses` selects rows by the keys checkpoint, scored_at, answers and answers_of.
    """
    parts = []
    for use in uses:
        is_used = scores["checkpoint"] == use["scored_at"]
        is_used &= scores["answers"] == use["answers"]
        rows = scores[is_used & (scores["answers_of"] == use["answers_of"])]
        parts.append(rows.assign(checkpoint=use["checkpoint"]))
    return pd.concat(parts)[RATED]


def calibrate_runs(
    confidences: pd.DataFrame, labelled: pd.DataFrame, method: str, estimator: str
) -> pd.DataFrame:
    """Calibrate each run of `estimator` on its own confidences in labelled answers.

    Both frames have columns train_dataset, seed and confidence, `labelled` a column correct.
    """
    labelled_runs = dict(list(labelled.groupby(RUN)))
    parts = []
    for run, rows in confidences.groupby(RUN, sort=False):
        fitted_on = labelled_runs.get(run, labelled.head(0))
        stated, correct = fitted_on["confidence"], fitted_on["correct"]
        try:
            calibrated = calibrate(method, stated, correct, rows["confidence"])
        except ValueError as error:
            raise ValueError(f"estimators.{estimator}, posthoc {method}: {error}") from error
        parts.append(rows.assign(confidence=calibrated))
    return pd.concat(parts)
