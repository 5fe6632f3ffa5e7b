"""Answers of one model to one dataset, aligned by question once for all that measures them.

Metrics, replicates, claims, states, pairs, thresholds and the page measure the same answers.
The caller aligns predictions (`align_subjects`) and passes the result on, so that all of them
see the same questions, groups and contrast sets.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.contrast import (
    ContrastSet,
    FourRows,
    FullSet,
    OnContrastSet,
    condition,
    contrast_sets,
    describe_sets,
    question_folds,
    read_sets,
)
from persistcal.evaluation.doubts import check_order, doubts
from persistcal.evaluation.draws import Component
from persistcal.evaluation.predictions import (
    ABSENT,
    AnswerArrays,
    Array,
    Ask,
    arrange,
    asks_that_repeat,
    count_flips,
    join_ties,
    lacks_checkpoint,
    number_groups,
)
from persistcal.evaluation.settings import Conditioning, EvaluationSettings, Member
from persistcal.store.artifacts import CONTRAST_QUESTIONS, empty
from persistcal.store.tables import select_rows

log = logging.getLogger(__name__)

DECIMALS = 12
USUAL = EvaluationSettings()
SEPARATOR = "\x1f"  # between a model and its checkpoint, in no name
MEMBER, SUBJECT = ["train_dataset", "estimator"], ["model", "dataset"]
Subject = tuple[str, str]  # model, dataset


class RatedSet(NamedTuple):
    """A contrast set, and the confidences of each run on it; they can be of another ask."""

    pair: ContrastSet
    runs: list[OnContrastSet]


class TwoAsks(NamedTuple):
    """Two asks that are crossed, on their common questions, with the contrast sets of each.

    `whole` are both asks with all questions, and `n_left_out` counts the answers that have a
    label in a single ask. `further` are other pairs of asks, halvings for example. Statistics
    are means over all pairs of asks.
    """

    asks: tuple[int, int]
    whole: tuple[AnswerArrays, AnswerArrays]
    answers: tuple[AnswerArrays, AnswerArrays]
    sets: tuple[list[ContrastSet], list[ContrastSet]]
    n_left_out: int
    further: tuple["TwoAsks", ...] = ()

    @property
    def kept(self) -> list[tuple[ContrastSet, ContrastSet]]:
        """The contrast sets of both asks where both are large enough and have both kinds."""
        return [
            roles
            for roles in zip(*self.sets, strict=True)
            if all(role.kept and role.has_both_directions for role in roles)
        ]

    def rated(self) -> list[RatedSet]:
        """Rate the questions that each ask selects by the confidences of the other.

        Sets of `further` asks are last.
        """
        return self.rated_alone() + [rated for two in self.further for rated in two.rated()]

    def rated_alone(self) -> list[RatedSet]:
        """Return `rated` without `further` asks."""
        first, second = (list(answers.confidence.values()) for answers in self.answers)
        return [
            rate(role, runs)
            for of_first, of_second in self.kept
            for role, runs in ((of_first, second), (of_second, first))
        ]

    def select_members(self, members: Collection[Member]) -> "TwoAsks | None":
        """Return the same asks with some of the estimators, or None without any of these."""
        whole, answers = (
            (_of_members(first, members), _of_members(second, members))
            for first, second in (self.whole, self.answers)
        )
        if not answers[0].confidence:
            return None
        further = tuple(asks for pair in self.further if (asks := pair.select_members(members)))
        return self._replace(whole=whole, answers=answers, further=further)


@dataclass(frozen=True, eq=False)
class Aligned:
    """A model's answers to a dataset, and the contrast sets of pairs of checkpoints.

    `answers` are the usual ask, and `sets` the contrast sets of this ask, also small ones.
    `crossed` are two asks. `flips` counts the answers that a version gave again in asks that
    are not crossed, and how many of these have another label. `files` lists the estimators that
    were given together, in order. `group_names` has a name for each question.
    """

    answers: AnswerArrays
    sets: Sequence[ContrastSet]
    crossed: TwoAsks | None = None
    flips: tuple[int, int] = (0, 0)
    files: Sequence[Sequence[Member]] = ()
    group_names: NDArray[np.object_] | None = None
    _rated: dict[str, list[RatedSet]] = field(default_factory=dict, repr=False)

    @cached_property
    def doubts(self) -> list[str]:
        """Sentences on signs of a mistake in the answers."""
        return [*doubts(self.answers, self.sets)]

    def warned(self) -> "Aligned":
        """Log the doubts, where no verdict states them."""
        for doubt in self.doubts:
            log.warning("%s", doubt)
        return self

    @cached_property
    def kept(self) -> list[ContrastSet]:
        """The contrast sets that are large enough."""
        return [pair for pair in self.sets if pair.kept]

    @cached_property
    def parts(self) -> list[Component]:
        """The answers of each checkpoint, correct ones first."""
        return [
            Component(np.concatenate([np.flatnonzero(row == label) for label in (1, 0)]), n)
            for row in self.answers.correct
            for n in [int(np.count_nonzero(row == 1))]
        ]

    @cached_property
    def on_full(self) -> list[FullSet]:
        """The answers of all checkpoints, in the order of `parts`, for each run."""
        stops = np.cumsum([0, *(part.size for part in self.parts)]).tolist()
        checkpoints = [slice(*ends) for ends in pairwise(stops)]
        correct = np.concatenate([part.is_first for part in self.parts])
        return [
            FullSet(
                np.concatenate([run[k, part.questions] for k, part in enumerate(self.parts)]),
                correct,
                checkpoints,
            )
            for run in self.answers.confidence.values()
        ]

    def rated(self, conditioning: Conditioning = "odds") -> list[RatedSet]:
        """Return the kept contrast sets with confidences; conditionings are fitted once."""
        if conditioning not in self._rated:
            runs = list(self.answers.confidence.values())
            self._rated[conditioning] = [rate(pair, runs, conditioning) for pair in self.kept]
        return self._rated[conditioning]

    def select_members(self, members: Collection[Member]) -> "Aligned":
        """Return the same answers with some of the estimators."""
        if set(members) >= set(self.answers.rows):
            return self
        crossed = self.crossed and self.crossed.select_members(members)
        files = [kept for file in self.files if (kept := [m for m in file if m in members])]
        answers = _of_members(self.answers, members)
        return replace(self, answers=answers, crossed=crossed, files=files, _rated={})

    def by_file(self) -> list["Aligned"]:
        """Return the answers once per file, with the estimators of this file."""
        return [self.select_members(members) for members in self.files]


def _of_members(answers: AnswerArrays, members: Collection[Member]) -> AnswerArrays:
    runs = {s: run for s, run in answers.confidence.items() if s.member in members}
    return answers._replace(confidence=runs)


def rate(
    pair: ContrastSet, runs: Iterable[Array], conditioning: Conditioning = "odds"
) -> RatedSet:
    """Rate a contrast set by the confidences of runs, (n_checkpoints, n_questions) each."""
    rated = []
    questions, improvement = pair.questions, pair.improvement
    in_order = np.argsort(~improvement, kind="stable")
    for confidence in runs:
        first, second = confidence[[[pair.earlier], [pair.later]], questions]
        folds = question_folds(confidence.shape[1])[questions]
        conditioned = condition(first, second, improvement, conditioning, folds)
        change = np.round(second - first, DECIMALS)  # equal but for rounding is equal
        earlier, later, moved = (column[in_order] for column in (*conditioned, change))
        run = OnContrastSet(earlier, later, moved, improvement[in_order], pair, confidence)
        rated.append(run)
    return RatedSet(pair, rated)


def align(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    settings: EvaluationSettings = USUAL,
    *,
    members: pd.DataFrame | None = None,
    files: Sequence[Sequence[Member]] = (),
) -> Aligned:
    """Align the table PREDICTIONS of one model and dataset, `checkpoints` earliest first.

    The contrast sets of the usual ask are read from `members`, the table CONTRAST_MEMBERS, or
    else made here. A PredictionsError lists invalid rows.
    """
    answers = arrange(predictions, checkpoints)
    if members is None:
        sets = contrast_sets(answers.correct, checkpoints, settings)
    else:
        sets = read_sets(members, answers, settings)
    group_names = None
    if "group" in predictions and predictions["group"].ne("").any():
        names = predictions.drop_duplicates("question_id").set_index("question_id")["group"]
        group_names = names.reindex(answers.questions).to_numpy(object)
    files = files or [[*dict.fromkeys(_members(predictions))]]
    flips = 0, 0
    if repeats := asks_that_repeat(predictions):
        flips = count_flips(predictions, repeats)
        predictions = predictions[~predictions["ask"].isin(repeats)]
    arranged: dict[int, AnswerArrays] = {Ask.WHOLE: answers}
    pairs = []
    for asks in asks_to_cross(predictions):
        for ask in asks:
            if ask not in arranged:
                of_ask = arrange(predictions, answers.checkpoints, ask=ask)
                arranged[ask] = _at(of_ask, answers)
        first, second = (arranged[ask] for ask in asks)
        pairs.append(cross(_of_members(first, second.rows), second, asks, settings))
        if asks[1] <= Ask.MOST:
            check_order(*pairs[-1].answers)
    crossed = pairs[0]._replace(further=tuple(pairs[1:])) if pairs else None
    return Aligned(answers, sets, crossed, flips, files, group_names)


def align_subjects(
    predictions: Sequence[pd.DataFrame],
    checkpoints: Mapping[str, Sequence[str]],
    settings: Mapping[str, EvaluationSettings],
    members: pd.DataFrame | None = None,
) -> dict[Subject, Aligned]:
    """Align tables PREDICTIONS of any models and datasets; `settings` are by dataset.

    The contrast sets are read from `members`, the table CONTRAST_MEMBERS, or else made here.
    """
    by_subject: dict[Subject, list[pd.DataFrame]] = {}
    for frame in predictions:
        for (model, dataset), rows in frame.groupby(SUBJECT, sort=False):
            by_subject.setdefault((str(model), str(dataset)), []).append(rows)
    return {
        (model, dataset): align(
            frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True),
            checkpoints[model],
            settings[dataset],
            members=None
            if members is None
            else select_rows(members, {"model": model, "dataset": dataset}),
            files=[list(dict.fromkeys(_members(rows))) for rows in frames],
        )
        for (model, dataset), frames in by_subject.items()
    }


def _members(rows: pd.DataFrame) -> Iterator[Member]:
    distinct = rows[MEMBER].drop_duplicates()
    return ((str(t), str(e)) for t, e in distinct.itertuples(index=False))


def asks_to_cross(predictions: pd.DataFrame) -> list[tuple[int, int]]:
    """Return the pairs of asks of PREDICTIONS that are crossed: all that share no answer.

    >>> asks = [[0, 101, 102, 201, 202], [0, 1], [0, 1, 2], [0, 90], [0]]
    >>> [asks_to_cross(pd.DataFrame({"ask": of})) for of in asks]
    [[(101, 102), (201, 202)], [(0, 1)], [(0, 1), (0, 2), (1, 2)], [(0, 90)], []]
    """
    present = sorted(map(int, predictions["ask"].unique())) if "ask" in predictions else [0]
    halves = [ask for ask in present if ask >= Ask.HALF_1]
    if halves:
        return list(zip(halves[::2], halves[1::2], strict=True))
    repeated = [ask for ask in present if ask <= Ask.MOST]
    return list(combinations(repeated if len(repeated) > 1 else present, 2))


def _at(answers: AnswerArrays, usual: AnswerArrays) -> AnswerArrays:
    """Return the answers of an ask at the questions of the usual one, or absent."""
    questions = usual.questions
    if np.array_equal(answers.questions, questions):
        return answers
    places = np.searchsorted(answers.questions, questions)
    places = np.minimum(places, len(answers.questions) - 1)
    is_asked = answers.questions[places] == questions
    return answers._replace(
        questions=questions,
        correct=np.where(is_asked, answers.correct[:, places], ABSENT).astype(np.int8),
        confidence={
            series: np.where(is_asked, run[:, places], np.nan)
            for series, run in answers.confidence.items()
        },
        groups=usual.groups,
    )


def cross(
    first: AnswerArrays,
    second: AnswerArrays,
    asks: tuple[int, int],
    settings: EvaluationSettings,
) -> TwoAsks:
    """Return two asks on the same questions.

    An answer is left out if the other ask has no labelled answer to the same question by the
    same checkpoint.
    """
    questions, *rows = np.intersect1d(first.questions, second.questions, return_indices=True)
    sides = list(zip((first, second), rows, strict=True))
    is_crossed = np.all([a.correct[:, chosen] != ABSENT for a, chosen in sides], axis=0)
    one, other = (
        answers._replace(
            questions=questions,
            correct=np.where(is_crossed, answers.correct[:, chosen], ABSENT).astype(np.int8),
            confidence={
                series: np.where(is_crossed, run[:, chosen], np.nan)
                for series, run in answers.confidence.items()
            },
            groups=answers.groups[chosen],
        )
        for answers, chosen in sides
    )
    n_answers = sum(int((answers.correct != ABSENT).sum()) for answers in (first, second))
    of_one, of_other = (
        contrast_sets(answers.correct, answers.checkpoints, settings)
        for answers in (one, other)
    )
    n_left_out = n_answers - 2 * int(is_crossed.sum())
    return TwoAsks(asks, (first, second), (one, other), (of_one, of_other), n_left_out)


def align_states(
    subjects: Mapping[str, Aligned],
    states: Sequence[tuple[str, str]],
    settings: EvaluationSettings,
) -> Aligned:
    """Align some checkpoints of one or several models as the checkpoints of one model.

    `states` are models and checkpoints; `name_state` names the checkpoints, also in `settings`.
    A PredictionsError shows an estimator that lacks one.
    """
    names = [name_state(*state) for state in states]

    def join(arranged: Mapping[str, AnswerArrays]) -> AnswerArrays:
        places = [(m, arranged[m], arranged[m].checkpoints.index(c)) for m, c in states]
        parts = [side.questions[side.correct[k] != ABSENT] for _, side, k in places]
        questions = np.unique(np.concatenate(parts))
        correct = np.full((len(states), len(questions)), ABSENT, np.int8)
        series_of_all = sorted({series for _, side, _ in places for series in side.confidence})
        confidence = {series: np.full(correct.shape, np.nan) for series in series_of_all}
        groups = np.full(len(questions), "", object)
        for row, (model, side, k) in enumerate(places):
            present = np.flatnonzero(side.correct[k] != ABSENT)
            place = np.searchsorted(questions, side.questions[present])
            correct[row, place] = side.correct[k, present]
            for series, run in confidence.items():
                if series not in side.confidence:
                    raise lacks_checkpoint(series, names[row], names)
                run[row, place] = side.confidence[series][k, present]
            if (names_of := subjects[model].group_names) is not None:
                ids = pd.Index(subjects[model].answers.questions)
                groups[place] = names_of[ids.get_indexer(pd.Index(side.questions[present]))]
        tied = {series: join_ties(run) for series, run in confidence.items()}
        numbers = number_groups(groups.tolist())
        return AnswerArrays(tuple(names), questions, correct, tied, numbers)

    answers = join({model: data.answers for model, data in subjects.items()})
    sets = contrast_sets(answers.correct, names, settings)
    pairs_of_asks = {m: data.crossed for m, data in subjects.items() if data.crossed}
    crossed = None
    if all(model in pairs_of_asks for model, _ in states):
        asks = pairs_of_asks[states[0][0]].asks
        first, second = (
            join({model: two.whole[role] for model, two in pairs_of_asks.items()})
            for role in (0, 1)
        )
        crossed = cross(first, second, asks, settings)
    return Aligned(answers, sets, crossed)


def with_pairs(data: Aligned, settings: EvaluationSettings) -> Aligned:
    """Return the same answers with the contrast sets of other pairs of checkpoints."""
    sets = contrast_sets(data.answers.correct, data.answers.checkpoints, settings)
    return replace(data, sets=sets, _rated={})


def name_state(model: str, checkpoint: str) -> str:
    """Return the name of a model's checkpoint among the checkpoints of several models."""
    return f"{model}{SEPARATOR}{checkpoint}"


class ContrastTables(NamedTuple):
    """The tables CONTRAST_MEMBERS and CONTRAST_QUESTIONS of one model and dataset."""

    members: pd.DataFrame
    questions: pd.DataFrame


def list_sets(
    answers: pd.DataFrame, checkpoints: Sequence[str], settings: EvaluationSettings
) -> ContrastTables:
    """List the contrast sets of some answers, and their changed questions with both answers.

    `answers` is the table ANSWERS of one model and dataset. Sets of fewer than `min_contrast`
    questions are listed, too.
    """
    by_checkpoint = {name: answers[answers["checkpoint"] == name] for name in checkpoints}
    labels = [rows.set_index("question_id")["correct"] for rows in by_checkpoint.values()]
    together = pd.concat(labels, axis=1, keys=checkpoints).sort_index()
    ids = together.index.to_numpy(object)
    correct = together.astype("Int8").fillna(ABSENT).to_numpy(np.int8).T
    sets = contrast_sets(correct, checkpoints, settings)
    texts = {
        name: rows.set_index("question_id")["answer"] for name, rows in by_checkpoint.items()
    }
    rows = []
    for pair in sets:
        changed = ids[pair.questions]
        earlier, later = checkpoints[pair.earlier], checkpoints[pair.later]
        columns = {
            "earlier": earlier,
            "later": later,
            "question_id": changed,
            "improvement": pair.improvement,
            "kept": pair.kept,
            "earlier_answer": texts[earlier].reindex(changed).to_numpy(),
            "later_answer": texts[later].reindex(changed).to_numpy(),
        }
        rows.append(pd.DataFrame(columns))
    filled = [table for table in rows if len(table)]
    kinds = {kind: [ids[getattr(pair, kind)] for pair in sets] for kind in FourRows._fields}
    return ContrastTables(
        describe_sets(sets, checkpoints).assign(**kinds),
        pd.concat(filled, ignore_index=True) if filled else empty(CONTRAST_QUESTIONS),
    )
