"""Metrics of groups of questions, and of named kinds of change."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.aligned import (
    MEMBER,
    Aligned,
    align_states,
    name_state,
    with_pairs,
)
from persistcal.evaluation.bootstrap import Bootstrap, Samples
from persistcal.evaluation.claims import (
    BALANCE,
    CONTROL,
    ORDER,
    basis_of,
    bounds_of,
    word_of,
)
from persistcal.evaluation.contrast import ContrastSet, choose_pairs, control_model
from persistcal.evaluation.control import compare_with_control
from persistcal.evaluation.cross_asking import cross_ask
from persistcal.evaluation.evaluate import count_once, mean_over_seeds, metrics_under
from persistcal.evaluation.knowledge import sample_knowledge
from persistcal.evaluation.metrics.registry import MetricKey, Scope, names, statistics_of_change
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, Array, PredictionsError
from persistcal.evaluation.replicates import replicate
from persistcal.evaluation.samples import Bounds
from persistcal.evaluation.settings import EvaluationSettings, Member
from persistcal.evaluation.significance import intervals
from persistcal.store.artifacts import CHANGES, SUBSETS, empty

log = logging.getLogger(__name__)

Pair = tuple[tuple[str, str], tuple[str, str]]  # an earlier and a later (model, checkpoint)
Levels = NDArray[np.intp]  # (n_checkpoints, n_questions), of answers; 0 is the lowest
MOVES = {-1: "falls", 0: "stays", 1: "rises"}  # a baseline, by the sign of its change
BEYOND = [
    *("beyond_control", "beyond_lower_2_5pct", "beyond_upper_97_5pct"),
    *("of_knowledge", "of_knowledge_lower_2_5pct", "of_knowledge_upper_97_5pct"),
]
CROSSED = ["crossed", "crossed_lower_2_5pct", "crossed_upper_97_5pct"]


def margins(clusters: pd.DataFrame) -> pd.Series:
    """Return the probability of each question's first candidate minus its second's.

    `clusters` belong to one checkpoint. The margin of a single candidate is its probability.
    """
    if clusters.empty:  # a release without clusters
        return pd.Series(dtype=float)
    by_cluster = clusters.set_index(["question_id", "cluster"])["probability"].unstack(
        "cluster"
    )
    second = by_cluster[1].fillna(0.0) if 1 in by_cluster else 0.0
    return by_cluster[0] - second


def thirds(margin: Array) -> tuple[Levels, dict[int, str]]:
    """Return the third of each margin among the defined margins, and the names of the thirds.

    Equal margins are in the same third, so thirds can differ in size or be empty.
    """
    low, high = np.nanquantile(margin, [1 / 3, 2 / 3])
    called = {0: f"low: up to {low:.3f}", 1: f"middle: up to {high:.3f}", 2: "high"}
    return np.searchsorted([low, high], margin), called


def metrics_of_subsets(
    data: Aligned,
    *,
    margin: Mapping[str, pd.Series],
    by_question: Mapping[str, Mapping[str, str]],
    rated: pd.DataFrame | None = None,
    same_answers: Callable[[str, str], set[str] | None] | None = None,
) -> pd.DataFrame:
    """Evaluate the predictions of one model and dataset on groups of questions.

    All groups keep the same pairs, by the sizes of the contrast sets of all questions. In a
    contrast set a question belongs to the lower level of its two answers. A group without
    answers has no rows.

    Parameters
    ----------
    margin : mapping of str to Series
        By checkpoint, see `margins`. Margins define no groups if one checkpoint has none.
    by_question : mapping of str to mapping of str to str
        The group of each question, by the name of the grouping, such as "category".
    rated : DataFrame, optional
        The columns checkpoint and question_id, and a column for each baseline with its
        confidence in each answer. The questions of the contrast sets for which it falls, stays
        or rises from the earlier to the later checkpoint are one group each, with contrast
        metrics only; their other numbers are those of all questions.
    same_answers : callable, optional
        Returns the questions to which two checkpoints give the same answer. Contrast sets
        without these questions are a group, if there are any.

    Returns
    -------
    DataFrame
        The table SUBSETS. `n_contrast`, `improvement` and `regression` count questions over the
        kept pairs, and `flips` is `n_contrast` divided by the questions that both checkpoints
        answered. `value`, conditioned by odds, is the mean over seeds.
    """
    answers, checkpoints, kept = data.answers, data.answers.checkpoints, data.kept
    answered = answers.correct != ABSENT
    zeros = np.zeros(answered.shape, int)
    parts = [("all", zeros, {0: "all"})]
    if all(len(margin[c]) for c in checkpoints):
        margins = _margins_of(answers, checkpoints, margin)
        parts.append(("margin", *thirds(np.where(answered, margins, np.nan))))
    for group_name, groups in by_question.items():
        codes, called = pd.factorize(pd.Series(answers.questions).map(groups), sort=True)
        parts.append((group_name, zeros + codes, dict(enumerate(called))))
    rows = [
        (name, called[level], *row)
        for name, levels, called in parts
        for level in called
        for row in _of_level(answers, kept, levels, level)
    ]
    if same_answers:
        differing = []
        for pair in kept:
            same = same_answers(checkpoints[pair.earlier], checkpoints[pair.later])
            differing.append(pair.among(~np.isin(answers.questions, list(same or ()))))
        if sum(pair.counts[0] for pair in differing) < sum(pair.counts[0] for pair in kept):
            level_rows = _of_level(answers, differing, zeros, 0)
            rows += [("answers", "that differ", *row) for row in level_rows]
    for baseline, moves in _moves(answers, kept, rated):
        for move, name in MOVES.items():
            moved = [pair.among(m == move) for pair, m in zip(kept, moves, strict=True)]
            level_rows = _of_level(answers, [p for p in moved if p.counts.changed], zeros, 0)
            rows += [(baseline, name, *row) for row in level_rows if row.scope == "contrast"]
    return pd.DataFrame(rows, columns=SUBSETS.schema.names)


def _moves(
    answers: AnswerArrays, kept: Sequence[ContrastSet], rated: pd.DataFrame | None
) -> Iterator[tuple[str, list[Array]]]:
    """Yield each baseline with the sign of its change on all questions, for each pair."""
    if rated is None:
        return
    for baseline in rated.columns.drop(["checkpoint", "question_id"]):
        wide = rated.pivot(index="checkpoint", columns="question_id", values=baseline)
        names = list(answers.checkpoints)
        table = wide.reindex(index=names, columns=answers.questions).to_numpy()
        changes = [np.sign(table[pair.later] - table[pair.earlier]) for pair in kept]
        yield str(baseline).replace("_", " "), changes


def _margins_of(
    answers: AnswerArrays, checkpoints: Sequence[str], margin: Mapping[str, pd.Series]
) -> Array:
    margins = np.array([margin[c].reindex(answers.questions) for c in checkpoints], float)
    if (lacking := (answers.correct != ABSENT) & np.isnan(margins)).any():
        k, q = np.argwhere(lacking)[0]
        raise PredictionsError(
            f"{checkpoints[k]} answered question {answers.questions[q]!r}, but no candidate of "
            "its is there; make clusters and predictions of the same answers."
        )
    return margins


class LevelRow(NamedTuple):
    """A row of the table SUBSETS but for its group."""

    n_answers: int
    accuracy: float
    n_contrast: int
    improvement: int
    regression: int
    flips: float
    train_dataset: str
    estimator: str
    scope: Scope
    metric: str
    value: float


def _of_level(
    answers: AnswerArrays, kept: Sequence[ContrastSet], levels: Levels, level: int
) -> list[LevelRow]:
    """Return the rows of the table SUBSETS, but for their group, about one level."""
    correct = np.where(levels == level, answers.correct, ABSENT)
    n_answers = int((correct != ABSENT).sum())
    if not n_answers:
        return []
    total, restricted = 0, []
    for pair in kept:
        ends = [pair.earlier, pair.later]
        is_member = levels[ends].min(axis=0) == level
        total += int((is_member & (answers.correct[ends] != ABSENT).all(axis=0)).sum())
        of_level = pair.among(is_member)
        if of_level.counts.changed:
            restricted.append(of_level)
    counted = [pair.counts for pair in restricted]
    n_contrast, gained, lost = np.sum(counted, axis=0).tolist() if counted else (0, 0, 0)
    accuracy = float((correct == 1).sum() / n_answers)
    flips = n_contrast / total if total else np.nan
    counts = n_answers, accuracy, n_contrast, gained, lost, flips
    answered = (correct != ABSENT).any(axis=1)  # SmoothECE is a mean over checkpoints
    subset = answers._replace(
        correct=correct[answered],
        confidence={s: c[answered] for s, c in answers.confidence.items()},
    )
    values = metrics_under(count_once, Aligned(subset, []), ["odds"])
    whole = metrics_under(count_once, Aligned(answers, restricted), ["odds"])
    rows: list[LevelRow] = []
    scopes: tuple[Scope, Scope] = ("contrast", "full")
    for scope, table in zip(scopes, (whole, values), strict=True):
        for metric in names(scope):
            means = mean_over_seeds(table[MetricKey("odds", scope, metric)], answers)[:, 0]
            for member, value in zip(answers.rows, means, strict=True):
                rows.append(LevelRow(*counts, *member, scope, metric, value))
    return rows


class Kind(NamedTuple):
    """A named kind of change of one model."""

    model: str
    change: str


def metrics_of_changes(
    subjects: Mapping[str, Aligned],
    settings: EvaluationSettings,
    *,
    controls: Mapping[str, str],
) -> pd.DataFrame:
    """Return Δ₀ᵇ, change AUC and contrast AUC (by odds) of each kind of change, with intervals.

    `subjects` are models on one dataset. `settings.pairs` contains pairs of checkpoints, the
    earlier one first, by the kind of change between them; kinds without a pair among a model's
    checkpoints are skipped. `controls` names the control of each kind, in the same model or
    else in the only other model that has it.

    The result has the columns of the table CHANGES but for the dataset. Contrast sets count
    whatever their size; if all of a kind are empty, its metrics are NaN. `lost_before` and
    `lost_after` are mean confidences in the answers to lost questions: the earlier checkpoint's
    answers, which are right, and the later checkpoint's. For kinds with a
    control `beyond_control` is the numerator of Δ_K or AUC_K with its 95 % interval, and
    `of_knowledge` the ratio, see `persistcal.evaluation.control`. They are missing if a pair of
    the change, or the control, has too few gained or lost questions. `crossed` is the
    cross-asked metric of predictions of two asks. The claim `word` rests on it if there is one,
    else on the control, as `basis` shows.
    """
    if not isinstance(settings.pairs, Mapping):
        raise ValueError("pairs must map each kind of change to its pairs of checkpoints.")
    order = [(m, name) for m, data in subjects.items() for name in data.answers.checkpoints]

    def join(pairs: Sequence[Pair], control: Sequence[Pair] = ()) -> tuple[Aligned, Aligned]:
        """Align `pairs` and the pairs of a control over the questions of both."""
        needed = {end for pair in (*pairs, *control) for end in pair}
        states = [state for state in order if state in needed]
        by_role = [
            replace(
                settings,
                pairs=[[name_state(*end) for end in pair] for pair in role],
                min_contrast=1,
                conditionings=["odds"],
            )
            for role in (pairs, control)
        ]
        aligned = align_states(subjects, states, by_role[0])
        return aligned, with_pairs(aligned, by_role[1])

    kinds = {
        Kind(model, change): pairs
        for model, data in subjects.items()
        for change, listed in settings.pairs.items()
        if (pairs := _pairs_in(model, data.answers.checkpoints, listed))
    }
    tables = []
    for kind, pairs in kinds.items():
        control = _control(kind, controls.get(kind.change, ""), kinds)
        control_pairs = kinds[control] if control else []
        changes, of_control = join(pairs, control_pairs)
        of_kinds = replace(settings, min_contrast=1, conditionings=["odds"])
        rows = intervals(replicate(changes, of_kinds))
        rows = rows[
            (rows["scope"] == "contrast")
            & rows["metric"].isin([*statistics_of_change(), "auc"])
        ]
        rows = rows.merge(_in_lost_answers(changes), how="left")
        rows = rows.merge(_beyond_control(changes, of_control, settings), how="left")
        crossed = _cross_ask(join(pairs)[0], settings)
        rows = rows.merge(crossed, how="left", on=[*MEMBER, "metric"], suffixes=("", "_cross"))
        for name in ("word", "basis"):
            rows[name] = rows.pop(f"{name}_cross").combine_first(rows[name]).fillna("")
        counts = np.sum([pair.counts for pair in changes.sets], axis=0)
        tables.append(
            rows.assign(
                **kind._asdict(),
                control=control.change if control else "",
                control_model=control.model if control else "",
                n_pairs=len(changes.sets),
                **dict(zip(("questions", "improvement", "regression"), counts, strict=True)),
            )
        )
    kept = CHANGES.but("dataset")
    return pd.concat(tables)[kept] if tables else empty(CHANGES)[kept]


def _pairs_in(
    model: str, checkpoints: Sequence[str], pairs: Sequence[Sequence[str]]
) -> list[Pair]:
    """Return the pairs of states that a model has."""
    return [
        ((model, checkpoints[earlier]), (model, checkpoints[later]))
        for earlier, later in choose_pairs(pairs, checkpoints)
    ]


def _control(kind: Kind, name: str, kinds: Collection[Kind]) -> Kind | None:
    candidates = {candidate.model: candidate for candidate in kinds if candidate.change == name}
    model = control_model(kind.model, candidates)
    if name and model is None:
        log.warning(
            "%s of %s is not compared with its control %s, which is in %s; add its pair of "
            "checkpoints to the model.",
            kind.change,
            kind.model,
            name,
            ", ".join(candidates) or "no model",
        )
    return None if model is None else candidates[model]


def _beyond_control(
    data: Aligned, control: Aligned, settings: EvaluationSettings
) -> pd.DataFrame:
    """Return each metric beyond a control, and each estimator's word; no rows without one."""
    by_metric = compare_with_control(data, control, settings)
    rows: list[tuple[object, ...]] = []
    knowledge = sample_knowledge(data.rated(), Bootstrap(data.answers, settings))
    for member in next(iter(by_metric.values()), ()):
        ratios = {metric: by_member[member] for metric, by_member in by_metric.items()}
        bounds = {
            metric: Bounds(ratio.excess.value, *ratio.excess.interval())
            for metric, ratio in ratios.items()
        }
        of_knowledge = _bounds(knowledge, member)
        of_knowledge[ORDER] = Bounds(*(0.5 + end for end in bounds[ORDER]))
        word = word_of(of_knowledge, CONTROL, beyond=bounds[BALANCE]).word
        for metric, ratio in ratios.items():
            claim = word, CONTROL
            rows.append((*member, metric, *bounds[metric], *ratio.estimate(), *claim))
    return _claimed(rows, BEYOND)


def _cross_ask(data: Aligned, settings: EvaluationSettings) -> pd.DataFrame:
    """Return the cross-asked metrics of each estimator, and its word; no rows with one ask."""
    if data.crossed is None:
        return _claimed([], CROSSED)
    crossed = cross_ask(data.crossed, settings)
    rows: list[tuple[object, ...]] = []
    basis, answers = basis_of(crossed), data.crossed.answers[0]
    knowledge = sample_knowledge(data.crossed.rated(), Bootstrap(answers, settings))
    for member in answers.rows:
        bounds = _bounds(crossed.samples, member)
        claim = word_of(bounds | _bounds(knowledge, member), basis).word, basis
        rows += [(*member, metric, *ends, *claim) for metric, ends in bounds.items()]
    return _claimed(rows, CROSSED)


def _bounds(samples: Mapping[str, Samples], member: Member) -> dict[str, Bounds]:
    """Return an estimator's values and intervals, by metric."""
    return {name: bounds_of(name, by_member[member]) for name, by_member in samples.items()}


def _claimed(rows: Sequence[tuple[object, ...]], columns: Sequence[str]) -> pd.DataFrame:
    """Return a table of numbers, and of a claim and its basis, by estimator and metric."""
    names = [*MEMBER, "metric", *columns, "word", "basis"]
    table = pd.DataFrame(rows, columns=names)
    return table.astype(dict.fromkeys(columns, float) | dict.fromkeys([*MEMBER, "metric"], str))


def _in_lost_answers(data: Aligned) -> pd.DataFrame:
    """Return each estimator's mean confidence on lost questions, before and after."""
    rows = []
    for member, runs in data.answers.estimators.items():
        ends = [
            np.concatenate([run[k, pair.lost] for run in runs for pair, k in places])
            for places in (
                [(pair, pair.earlier) for pair in data.sets],
                [(pair, pair.later) for pair in data.sets],
            )
        ]
        means = [float(stated.mean()) if stated.size else np.nan for stated in ends]
        rows.append((*member, *means))
    return pd.DataFrame(rows, columns=[*MEMBER, "lost_before", "lost_after"])
