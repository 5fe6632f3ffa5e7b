"""Everything that the page shows of a study, gathered from its tables."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.answers.clusters import doubts_of_form, label_predictions, take_predictions
from persistcal.evaluation.aligned import Aligned, align_subjects
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.findings import ACCURACY, NONE, Finding, read_finding
from persistcal.evaluation.predictions import ABSENT, AnswerArrays
from persistcal.evaluation.replicates import Replicates, from_table
from persistcal.evaluation.settings import EvaluationSettings, Member
from persistcal.evaluation.slices import category_names, slice_values
from persistcal.models.checkpoint import Checkpoint
from persistcal.questions.question_list import asked_by, true_at
from persistcal.report.layout import Description, DisplayNames, Names, place_title, trained_name
from persistcal.report.phrases import slice_label
from persistcal.store import artifacts
from persistcal.store.tables import TableFiles, select_rows

_ON_PAIR = ["train_dataset", "estimator", "earlier", "later", "metric"]


class Stage(NamedTuple):
    """A checkpoint's display name, and how much training it had seen (if known)."""

    label: str
    tokens: float | None = None


@dataclass(frozen=True)
class Shown:
    """Names and settings of a study that the page shows next to the tables."""

    labels: DisplayNames  # names of models, datasets and estimators, in order
    checkpoints: Mapping[str, Mapping[str, Stage]]  # by model, training checkpoints first
    settings: Mapping[str, EvaluationSettings]  # by dataset
    judge: str  # source of the labels
    results: str  # folder of the results
    descriptions: Mapping[str, Description]  # descriptions of the tables of results
    # Estimators in the sentences and the first charts; all if the study has none of them
    main: Sequence[str] = ()
    earlier: Mapping[str, Sequence[str]] = field(default_factory=dict)  # training checkpoints
    # By model, pairs of evaluation checkpoints that differ only in few-shot examples or seed
    controls: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    analyses: Sequence[str] = ()  # analyses that the page misses if their tables are empty
    recipes: Names = field(default_factory=dict)  # titles of the transfer matrices


@dataclass(frozen=True)
class StudyTables:
    """The tables of a study, empty if missing, and the records of the checkpoints."""

    predictions: artifacts.Predictions
    replicates: artifacts.Replicates
    intervals: artifacts.Intervals
    findings: artifacts.Findings
    questions: artifacts.Questions
    clusters: artifacts.Clusters
    labels: artifacts.Labels
    checkpoints: list[Checkpoint]
    accuracies: artifacts.Accuracies
    tables: list[TableFiles]
    transfer: artifacts.Transfer
    variance: artifacts.Correlations
    headroom: artifacts.Headroom
    similarity: artifacts.WeightSimilarities
    pairs: artifacts.Pairs
    slices: pd.DataFrame | None = None  # a row per question: dataset, question_id, and columns


class Texts(NamedTuple):
    """The words behind predictions: table QUESTIONS; by checkpoint CLUSTERS and LABELS."""

    questions: pd.DataFrame
    clusters: Mapping[str, pd.DataFrame]
    labels: Mapping[str, pd.DataFrame]

    def doubts(self, checkpoints: Iterable[str]) -> Iterator[str]:
        """Yield a sentence for each checkpoint whose answers have another form."""
        for name in checkpoints:
            asked = asked_by(true_at(self.questions, name), name).set_index("question_id")
            tables = self.clusters[name], self.labels[name]
            yield from doubts_of_form(asked["references"], *tables)


@dataclass(frozen=True)
class Subject:
    """A model on a dataset: checkpoints in order, and the contrast sets that are used.

    A training checkpoint (`earlier`) is shown where its answers to the evaluated questions
    were judged.
    """

    model: str
    dataset: str
    earlier: Sequence[str]
    evaluation: Sequence[str]
    settings: EvaluationSettings

    def title(self, labels: DisplayNames) -> str:
        """Return the display names of model and dataset."""
        return place_title(self.place.values(), labels, " · ")

    @property
    def place(self) -> dict[str, str]:
        """The columns that select the subject's rows of a table."""
        return {"model": self.model, "dataset": self.dataset}

    def name(self, member: Member, labels: DisplayNames) -> str:
        """Return the display name of an estimator, with a dataset that it was trained on."""
        train_dataset, estimator = member
        row: dict[Hashable, Any] = {"train_dataset": train_dataset, "estimator": estimator}
        return trained_name(row | {"dataset": self.dataset}, labels)


class Update(NamedTuple):
    """The first and the last checkpoint that are compared, by position and by display name."""

    earlier: int
    later: int
    earlier_name: str
    later_name: str


class UpdateFindings(NamedTuple):
    """The findings about the update of a part, by question and estimator."""

    update: Update
    of: Mapping[str, Mapping[Member, Finding]]
    baselines: frozenset[Member]  # the same confidence for all questions
    slices: Sequence[Mapping[Hashable, Any]] = ()  # rows of FINDINGS

    @property
    def accuracy(self) -> Finding:
        """The finding about the answers, which no estimator belongs to."""
        return self.of[ACCURACY]["", ""]


class Part(NamedTuple):
    """The answers to one dataset of one model.

    `checkpoints` are the checkpoints with labels; the first `n_earlier` are training
    checkpoints. `correct` has shape (n_checkpoints, n_questions). `answers` and `pairs` belong
    to the evaluation checkpoints. `texts` is None if a study has only predictions. `order`
    lists the estimators that come first.
    """

    subject: Subject
    checkpoints: tuple[str, ...]
    n_earlier: int
    answers: AnswerArrays
    correct: NDArray[np.int8]
    pairs: list[ContrastSet]
    texts: Texts | None
    order: tuple[str, ...]
    replicates: Replicates  # the bootstrap
    slices: Sequence[str] = ()  # a text per question, for the page's filter
    findings: UpdateFindings | None = None
    doubts: Sequence[str] = ()  # sentences on signs of a mistake
    # Metrics of PAIRS by training dataset, estimator, both checkpoints and metric
    measured: Mapping[Hashable, float] = {}

    @property
    def compared(self) -> UpdateFindings | None:
        """The findings, if two checkpoints are compared."""
        is_compared = self.findings and self.findings.accuracy.mark != NONE
        return self.findings if is_compared else None

    def on_pair(self, member: Member, pair: ContrastSet) -> dict[str, float]:
        """Return an estimator's Δ₀ᵇ and change AUC on one contrast set."""
        names = self.answers.checkpoints
        key = *member, names[pair.earlier], names[pair.later]
        metrics = "delta0_balanced", "change_auc"
        return {metric: self.measured.get((*key, metric), np.nan) for metric in metrics}

    @property
    def members(self) -> dict[Member, list[NDArray[np.float64]]]:
        """The confidences of each (train_dataset, estimator), in the order of the study."""
        gathered = self.answers.estimators
        rank = {name: i for i, name in enumerate(self.order)}
        ordered = sorted(gathered, key=lambda member: rank.get(member[1], len(rank)))
        return {member: gathered[member] for member in ordered}


def arrange_part(
    data: Aligned, subject: Subject, *, texts: Texts | None = None, order: Sequence[str] = ()
) -> Part:
    """Arrange the answers of one model and dataset, and their texts, as a `Part`."""
    answers, rows = data.answers, {}
    for checkpoint in subject.earlier:
        if texts is None or checkpoint not in texts.labels:
            continue
        taken = take_predictions(texts.questions, texts.clusters[checkpoint])
        labelled = label_predictions(taken, texts.labels[checkpoint])
        row = np.full(len(answers.questions), ABSENT, np.int8)
        positions = pd.Index(answers.questions).get_indexer(pd.Index(labelled["question_id"]))
        row[positions[positions >= 0]] = labelled["correct"].to_numpy()[positions >= 0]
        if (row != ABSENT).any():
            rows[checkpoint] = row
    return Part(
        subject,
        (*rows, *answers.checkpoints),
        len(rows),
        answers,
        np.vstack([*rows.values(), answers.correct]),
        list(data.sets),
        texts,
        tuple(order),
        {},
    )


def _read_findings(
    rows: pd.DataFrame, part: Part, stages: Mapping[str, Stage]
) -> UpdateFindings | None:
    """Return the rows of FINDINGS about a part as records."""
    is_slice = rows["slice"] != ""
    slices = rows[is_slice].to_dict("records")
    rows = rows[~is_slice]
    if rows.empty:
        return None
    names = rows["earlier"].iloc[0], rows["later"].iloc[0]
    earlier, later = (part.answers.checkpoints.index(name) for name in names)
    update = Update(earlier, later, *(stages[name].label for name in names))
    by_question: dict[str, dict[Member, Finding]] = {}
    for row in rows.to_dict("records"):
        member = row["train_dataset"], row["estimator"]
        by_question.setdefault(row["question"], {})[member] = read_finding(row)
    same = rows.loc[rows["baseline"], ["train_dataset", "estimator"]]
    baselines = frozenset(same.itertuples(index=False, name=None))
    return UpdateFindings(update, by_question, baselines, slices)


class Contents(NamedTuple):
    """The contents of the page.

    `main` are the estimators in the page's sentences and first charts. `stages` contains the
    checkpoints of each model with a part, and `rows` the rows of each table by its name.
    """

    made: StudyTables
    parts: list[Part]
    main: list[str]
    stages: Mapping[str, Mapping[str, Stage]]
    rows: Mapping[str, pd.DataFrame]
    shown: Shown

    @property
    def labels(self) -> DisplayNames:
        """The display names of models, datasets and estimators."""
        return self.shown.labels

    @property
    def seed(self) -> int:
        """The seed of the bootstrap, and of the page's samples."""
        return next(iter(self.shown.settings.values())).seed


def gather(
    made: StudyTables, shown: Shown, aligned: Mapping[tuple[str, str], Aligned] | None = None
) -> Contents:
    """Gather the contents of the page, from predictions that are `aligned` or align here."""
    parts = []
    evaluation = {
        model: [name for name in names if name not in shown.earlier.get(model, [])]
        for model, names in shown.checkpoints.items()
    }
    aligned = aligned or align_subjects([made.predictions], evaluation, shown.settings)
    for (model, dataset), data in aligned.items():
        earlier, settings = shown.earlier.get(model, []), shown.settings[dataset]
        subject = Subject(model, dataset, earlier, evaluation[model], settings)
        texts, order = _texts(made, subject), list(shown.labels["estimators"])
        part, place = arrange_part(data, subject, texts=texts, order=order), subject.place
        rows = select_rows(made.findings, place)
        part = part._replace(
            findings=_read_findings(rows, part, shown.checkpoints[model]),
            replicates=from_table(select_rows(made.replicates, place)),
            doubts=[*data.doubts, *(texts.doubts(evaluation[model]) if texts else [])],
            measured=select_rows(made.pairs, place).set_index(_ON_PAIR)["value"].to_dict(),
        )
        if sliced := part.findings.slices if part.findings else ():
            names = category_names(made.questions) if made.slices is None else made.slices
            values = slice_values(names, subject.dataset, part.answers.questions)
            text_of = {
                row["slice"]: slice_label(row) for row in sliced if row["question"] == ACCURACY
            }
            by_question = [
                "; ".join(text_of.get(f"{c}={v}", f"{c}={v}") for c, v in row.items())
                for row in values.to_dict("records")
            ]
            part = part._replace(slices=by_question)
        parts.append(part)
    estimators = list(dict.fromkeys(e for part in parts for _, e in part.members))
    main = [name for name in shown.main if name in estimators] or estimators
    stages = {part.subject.model: shown.checkpoints[part.subject.model] for part in parts}
    tables = {files.name: files.rows(missing=[""]) for files in made.tables}
    return Contents(made, parts, main, stages, tables, shown)


def _texts(made: StudyTables, subject: Subject) -> Texts | None:
    """Return the texts of a study, or None; a checkpoint can be without answers."""
    questions = select_rows(made.questions, {"dataset": subject.dataset})
    if questions.empty:
        return None
    checkpoints = [*subject.earlier, *subject.evaluation]
    clusters, labels = (
        {name: select_rows(rows, {**subject.place, "checkpoint": name}) for name in checkpoints}
        for rows in (made.clusters, made.labels)
    )
    return Texts(questions, clusters, labels)
