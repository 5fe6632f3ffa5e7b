"""Metrics of each pair of checkpoints, group of questions, and named kind of change."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.contrast import (
    ContrastSet,
    Pairs,
    choose_pairs,
    contrast_sets,
    control_model,
)
from persistcal.evaluation.draws import component
from persistcal.evaluation.evaluate import count_once, metrics_under, on_contrast_set, prepare
from persistcal.evaluation.metrics import CONTRAST_METRICS, compute, names
from persistcal.evaluation.predictions import ABSENT, AnswerArrays, PredictionsError, arrange
from persistcal.evaluation.proportions import compare_replicates
from persistcal.evaluation.replicates import Replicates, mean_over_seeds, replicate_metrics
from persistcal.evaluation.significance import intervals, recipe_interval
from persistcal.store.artifacts import CHANGES, MIN_CONTRAST, PAIRS, SUBSETS, empty

Levels = NDArray[np.intp]  # (n_checkpoints, n_questions), of answers; 0 is the lowest

MOVES = {-1: "falls", 0: "stays", 1: "rises"}  # a baseline, by the sign of its change

SCOPE = 8  # position in the rows of a group


def metrics_of_pairs(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int,
    pairs: Pairs = "all",
) -> pd.DataFrame:
    """Return the metrics of every contrast set: the table PAIRS but for model and dataset.

    `evaluate` averages these metrics over the kept pairs, without weights. `distance` counts
    positions among the checkpoints, `size` questions; `value`, conditioned by odds, is the mean
    over seeds, NaN where undefined.
    """
    answers = arrange(predictions, checkpoints)
    rows = []
    for pair in contrast_sets(
        answers.correct, min_contrast=min_contrast, pairs=choose_pairs(pairs, checkpoints)
    ):
        size, part = len(pair.questions), component(pair.questions, pair.improvement)
        place = checkpoints[pair.earlier], checkpoints[pair.later], pair.later - pair.earlier
        counts = size, part.n_first, size - part.n_first, pair.kept
        for estimator, seeds in answers.estimators.items():
            values = {metric: np.array([np.nan]) for metric in CONTRAST_METRICS}
            if size:
                runs = [on_contrast_set(run, pair, part, "odds") for run in seeds]
                values = compute(CONTRAST_METRICS, runs, count_once(part))
            for metric, of_seeds in values.items():
                rows.append((*estimator, *place, *counts, metric, of_seeds.mean()))
    return pd.DataFrame(rows, columns=PAIRS.but("model", "dataset"))


def sweep_min_contrast(pairs: pd.DataFrame, *, chosen: int) -> pd.DataFrame:
    """Return the contrast metrics for each value of `min_contrast` that changes the kept pairs.

    The result is the table MIN_CONTRAST but for model and dataset. `min_contrast` takes the
    sizes of the contrast sets, because other values keep the same pairs. `kept` counts the
    pairs of at least this size, `pairs` the pairs on which the metric is defined ("1 of 3"),
    and `value` is the mean over these. In the result `chosen` is True if the study's
    `min_contrast`, the argument `chosen`, keeps the same pairs.
    """
    rows = []
    sizes = sorted({int(size) for size in pairs["size"] if size})
    size_limit = min((size for size in sizes if size >= chosen), default=None)
    for least in sizes:
        large = pairs[pairs["size"] >= least]
        for series, series_rows in large.groupby(
            ["train_dataset", "estimator", "metric"], sort=False
        ):
            defined = series_rows["value"].dropna()
            kept = ", ".join(
                f"{a}–{b}" for a, b in series_rows[["earlier", "later"]].to_numpy()
            )
            share = f"{len(defined)} of {len(series_rows)}"
            counts = series_rows[["improvement", "regression"]].sum()
            rows.append(
                (
                    *series,
                    least,
                    *map(int, counts),
                    kept,
                    share,
                    defined.mean(),
                    least == size_limit,
                )
            )
    return pd.DataFrame(rows, columns=MIN_CONTRAST.but("model", "dataset"))


def margins(clusters: pd.DataFrame) -> pd.Series:
    """Return the probability of each question's first candidate minus its second's.

    `clusters` belong to one checkpoint. The margin of a single candidate is its probability.
    """
    if clusters.empty:  # a release without clusters
        return pd.Series(dtype=float)
    probability = clusters.set_index(["question_id", "cluster"])["probability"].unstack(
        "cluster"
    )
    second = probability[1].fillna(0.0) if 1 in probability else 0.0
    return probability[0] - second


def thirds(margin: NDArray[np.float64]) -> tuple[Levels, dict[int, str]]:
    """Return the third of each margin among the defined margins, and the names of the thirds.

    Equal margins are in the same third, so thirds can differ in size or be empty.
    """
    low, high = np.nanquantile(margin, [1 / 3, 2 / 3])
    called = {0: f"low: up to {low:.3f}", 1: f"middle: up to {high:.3f}", 2: "high"}
    return np.searchsorted([low, high], margin), called


def metrics_of_subsets(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int,
    pairs: Pairs,
    margin: Mapping[str, pd.Series],
    by_question: Mapping[str, Mapping[str, str]],
    rated: pd.DataFrame | None = None,
    same_answers: Callable[[str, str], set[str] | None] | None = None,
) -> pd.DataFrame:
    """Evaluate the predictions of one model and dataset on groups of questions.

    All groups keep the same pairs, by the sizes of the contrast sets of all questions.

    Parameters
    ----------
    margin : mapping of str to Series
        By checkpoint, see `margins`. Margins define no groups if one checkpoint has none.
    by_question : mapping of str to mapping of str to str
        The group of each question, by the name of the grouping, such as "category".
    rated : DataFrame, optional
        The columns checkpoint and question_id, and the confidence of a baseline in each
        answer in every other column. The questions of the contrast sets for which it falls,
        stays or rises from the earlier to the later checkpoint are one group each.
    same_answers : callable, optional
        Returns the questions to which two checkpoints give the same answer, see
        `persistcal.judge.run.same_answers`. Contrast sets without these questions
        are a group, if there are any.

    Returns
    -------
    DataFrame
        Columns of the table SUBSETS. `accuracy` is the share of correct answers among
        `n_answers`. `n_contrast`, `improvement` and `regression` count questions over the kept
        pairs, and `flips` is `n_contrast` divided by the questions that both checkpoints
        answered. `value`, conditioned by odds, is the mean over seeds. In a contrast set a
        question belongs to the lower level of its two answers. A group without answers has no
        rows. Groups by `rated` have contrast metrics only; their other numbers are those of
        all questions.
    """
    answers = arrange(predictions, checkpoints)
    chosen = choose_pairs(pairs, checkpoints)
    sets = contrast_sets(answers.correct, min_contrast=min_contrast, pairs=chosen)
    kept, answered = [pair for pair in sets if pair.kept], answers.correct != ABSENT
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
    differing = (
        [_exclude_equal_answers(pair, answers, checkpoints, same_answers) for pair in kept]
        if same_answers
        else kept
    )
    if any(part is not pair for part, pair in zip(differing, kept, strict=True)):
        of_all = _of_level(answers, differing, zeros, 0)
        rows += [("answers", "that differ", *row) for row in of_all]
    for baseline, moves in _moves(answers, checkpoints, kept, rated):
        for move, name in MOVES.items():
            restricted = [
                pair.only(pair_groups == move)
                for pair, pair_groups in zip(kept, moves, strict=True)
                if (pair_groups == move).any()
            ]
            of_all = _of_level(answers, restricted, zeros, 0)
            rows += [(baseline, name, *row) for row in of_all if row[SCOPE] == "contrast"]
    return pd.DataFrame(rows, columns=SUBSETS.schema.names)


def _moves(
    answers: AnswerArrays,
    checkpoints: Sequence[str],
    kept: Sequence[ContrastSet],
    rated: pd.DataFrame | None,
) -> Iterator[tuple[str, list[NDArray[np.float64]]]]:
    """Yield each baseline with the sign of its change on the questions of each contrast set."""
    if rated is None:
        return
    for name in rated.columns.drop(["checkpoint", "question_id"]):
        wide = rated.pivot(index="checkpoint", columns="question_id", values=name)
        table = wide.reindex(index=list(checkpoints), columns=answers.questions).to_numpy()
        changes = [
            np.sign(table[pair.later] - table[pair.earlier])[pair.questions] for pair in kept
        ]
        yield str(name).replace("_", " "), changes


def _margins_of(
    answers: AnswerArrays, checkpoints: Sequence[str], margin: Mapping[str, pd.Series]
) -> NDArray[np.float64]:
    margins = np.array([margin[c].reindex(answers.questions) for c in checkpoints], float)
    if (lacking := (answers.correct != ABSENT) & np.isnan(margins)).any():
        k, q = np.argwhere(lacking)[0]
        raise PredictionsError(
            f"{checkpoints[k]} answered question {answers.questions[q]!r}, but no candidate of "
            "its is there; make clusters and predictions of the same answers."
        )
    return margins


def _exclude_equal_answers(
    pair: ContrastSet,
    answers: AnswerArrays,
    checkpoints: Sequence[str],
    same_answers: Callable[[str, str], set[str] | None],
) -> ContrastSet:
    """Return a contrast set without questions to which its checkpoints give the same answer."""
    left_out = same_answers(checkpoints[pair.earlier], checkpoints[pair.later])
    names = np.asarray(answers.questions)[pair.questions]
    kept_series = ~np.isin(names, list(left_out or ()))
    return pair if kept_series.all() else pair.only(kept_series)


def _of_level(
    answers: AnswerArrays, kept: Sequence[ContrastSet], levels: Levels, level: int
) -> list[tuple]:
    correct = np.where(levels == level, answers.correct, ABSENT)
    n_answers = int((correct != ABSENT).sum())
    if not n_answers:
        return []
    lower = [np.minimum(levels[pair.earlier], levels[pair.later]) for pair in kept]
    restricted = [
        pair.only(members)
        for pair, levels_of_pair in zip(kept, lower, strict=True)
        for members in [levels_of_pair[pair.questions] == level]
        if members.any()
    ]
    total = sum(
        int(
            (
                (answers.correct[[pair.earlier, pair.later]] != ABSENT).all(axis=0) & members
            ).sum()
        )
        for pair, members in zip(
            kept, [pair_groups == level for pair_groups in lower], strict=True
        )
    )
    n_contrast = sum(len(pair.questions) for pair in restricted)
    gained = int(sum(pair.improvement.sum() for pair in restricted))
    counts = (
        n_answers,
        float((correct == 1).sum() / n_answers),
        n_contrast,
        gained,
        n_contrast - gained,
        n_contrast / total if total else np.nan,
    )
    answered = (correct != ABSENT).any(axis=1)  # SmoothECE is a mean over checkpoints
    subset = answers._replace(
        correct=correct[answered],
        confidence={s: c[answered] for s, c in answers.confidence.items()},
    )
    values = metrics_under(count_once, prepare(subset, [], ["odds"]))
    whole = metrics_under(count_once, prepare(answers, restricted, ["odds"]))
    rows: list[tuple] = []
    for scope, table in (("contrast", whole), ("full", values)):
        for metric in names(scope):
            of_estimators = mean_over_seeds(table["odds", scope, metric], answers)[:, 0]
            for member, value in zip(answers.estimators, of_estimators, strict=True):
                rows.append((*counts, *member, scope, metric, value))
    return rows


log = logging.getLogger(__name__)

SEP = "\x1f"  # between a model and its checkpoint, in no name
MEMBER = ["train_dataset", "estimator"]
ABOVE = [
    "above_control",
    "above_lower_2_5pct",
    "above_upper_97_5pct",
    "above_seeds_lower_2_5pct",
    "above_seeds_upper_97_5pct",
]
OF_CHANGES = ("delta0_balanced", "change_auc", "auc")  # the metrics of a kind of change


class Kind(NamedTuple):
    """A named kind of change of one model."""

    model: str
    change: str


def metrics_of_changes(
    predictions: pd.DataFrame,
    checkpoints: Mapping[str, Sequence[str]],
    changes: Mapping[str, Sequence[Sequence[str]]],
    *,
    controls: Mapping[str, str],
    min_direction: int,
    n_replicates: int,
    seed: int,
) -> pd.DataFrame:
    """Return Δ₀ᵇ, change AUC and contrast AUC (by odds) of each kind of change, with intervals.

    Parameters
    ----------
    predictions : DataFrame
        Of one dataset, with the column `model`.
    checkpoints : mapping of str to sequence of str
        Evaluation checkpoints of each model, in order.
    changes : mapping of str to sequence of (str, str)
        Pairs of checkpoints, the earlier one first, by the kind of change between them.
        Kinds without a pair among a model's checkpoints are skipped.
    controls : mapping of str to str
        The control of each kind, in the same model or else in the only other model that has it.

    Returns
    -------
    DataFrame
        Columns of the table CHANGES but for the dataset. Contrast sets count whatever their
        size; if all of a kind are empty, its metrics are NaN. `lost_before` and `lost_after`
        are mean confidences in the answers to lost questions: the earlier checkpoint's answers,
        which are right, and the later checkpoint's. `above_control` is the value minus the
        value of the control; its interval uses the same replicates of questions and the same
        seeds. `above_control` is NaN if a pair of the change or of its control has fewer than
        `min_direction` gained or lost questions.
    """
    named = predictions.assign(
        checkpoint=predictions["model"] + SEP + predictions["checkpoint"]
    )
    order = [f"{model}{SEP}{name}" for model, names in checkpoints.items() for name in names]
    kinds = {
        Kind(model, change): pairs
        for model in predictions["model"].unique()
        for change, listed in changes.items()
        if (pairs := _pairs_in(model, checkpoints[model], listed))
    }
    settings = _How(named, order, min_direction, n_replicates, seed)
    tables = []
    for kind, pairs in kinds.items():
        control = _control(kind, controls.get(kind.change, ""), kinds)
        control_pairs = kinds[control] if control else []
        drawn, sets, answers = settings.draw(pairs, also_answered=control_pairs)
        rows = _of_changes(intervals(drawn))
        size = sum(len(contrast.questions) for contrast in sets)
        gained = int(sum(contrast.improvement.sum() for contrast in sets))
        counts = {"questions": size, "improvement": gained, "regression": size - gained}
        rows = rows.merge(_in_lost_answers(answers, sets), how="left")
        above = pd.DataFrame(columns=[*MEMBER, "metric", *ABOVE])
        if control:
            control_drawn, control_sets, _ = settings.draw(control_pairs, also_answered=pairs)
            if all(min(_flips(pair)) >= min_direction for pair in (*sets, *control_sets)):
                above = _above(drawn, control_drawn)
        rows = rows.merge(above.astype(dict.fromkeys(ABOVE, float)), how="left")
        labels = {**kind._asdict(), "control": control.change if control else ""}
        labels["control_model"] = control.model if control else ""
        tables.append(rows.assign(**labels, n_pairs=len(sets), **counts))
    kept = CHANGES.but("dataset")
    return pd.concat(tables)[kept] if tables else empty(CHANGES)[kept]


class _How(NamedTuple):
    """Predictions and settings that the replicates of all kinds of change share."""

    predictions: pd.DataFrame
    order: Sequence[str]
    min_direction: int
    n_replicates: int
    seed: int

    def draw(
        self, pairs: Sequence[Sequence[str]], *, also_answered: Sequence[Sequence[str]]
    ) -> tuple[Replicates, list[ContrastSet], AnswerArrays]:
        """Return replicates of `pairs`, over the questions that `also_answered` answered, too.

        Replicates are paired if their questions are the same.
        """
        needed = {end for pair in (*pairs, *also_answered) for end in pair}
        ends = [name for name in self.order if name in needed]
        rows = self.predictions[self.predictions["checkpoint"].isin(ends)]
        drawn = replicate_metrics(
            rows,
            ends,
            min_contrast=1,
            min_direction=self.min_direction,
            n_replicates=self.n_replicates,
            seed=self.seed,
            conditionings=["odds"],
            pairs=pairs,
        )
        answers = arrange(rows, ends)
        chosen = choose_pairs(pairs, ends)
        return drawn, contrast_sets(answers.correct, min_contrast=1, pairs=chosen), answers


def _pairs_in(
    model: str, checkpoints: Sequence[str], pairs: Sequence[Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the pairs that a model has, with the model in the checkpoints' names."""
    names = [f"{model}{SEP}{name}" for name in checkpoints]
    return [
        (names[earlier], names[later]) for earlier, later in choose_pairs(pairs, checkpoints)
    ]


def _control(kind: Kind, name: str, kinds: Collection[Kind]) -> Kind | None:
    candidates = {candidate.model: candidate for candidate in kinds if candidate.change == name}
    model = control_model(kind.model, candidates)
    if name and model is None:
        models = ", ".join(candidates) or "no model"
        log.warning(
            "%s of %s is not compared with its control %s, which is in %s; add its pair of "
            "checkpoints to the model.",
            kind.change,
            kind.model,
            name,
            models,
        )
    return candidates[model] if model is not None else None


def _of_changes(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["scope"] == "contrast") & rows["metric"].isin(OF_CHANGES)]


def _flips(pair: ContrastSet) -> tuple[int, int]:
    """Return the numbers of gained and lost questions."""
    return int(pair.improvement.sum()), int((~pair.improvement).sum())


def _above(drawn: Replicates, control: Replicates) -> pd.DataFrame:
    """Return the change's metrics minus the control's metrics, with intervals."""
    rows = []
    for metric in OF_CHANGES:
        key = "odds", "contrast", metric
        values = drawn.observed[key] - control.observed[key]
        replicated = drawn.for_claims(key) - control.for_claims(key)
        for i, member in enumerate(drawn.estimators):
            sides = [drawn.by_seed[key][i], control.by_seed[key][i]]
            noise = max(drawn.noise[key][i], control.noise[key][i])
            ends = compare_replicates(0.0, values[i], replicated[i])
            recipe = recipe_interval(values[i], replicated[i], sides, noise)
            of_seeds = recipe.lower, recipe.upper
            rows.append((*member, metric, values[i], ends.lower, ends.upper, *of_seeds))
    return pd.DataFrame(rows, columns=[*MEMBER, "metric", *ABOVE])


def _in_lost_answers(answers: AnswerArrays, sets: Sequence[ContrastSet]) -> pd.DataFrame:
    """Return each estimator's mean confidence on lost questions, before and after."""
    lost = [(pair, pair.questions[~pair.improvement]) for pair in sets]
    rows = []
    for member, by_seed in answers.estimators.items():
        earlier = [
            seed[pair.earlier, positions] for seed in by_seed for pair, positions in lost
        ]
        later = [seed[pair.later, positions] for seed in by_seed for pair, positions in lost]
        rows.append((*member, *(_mean(np.concatenate(end)) for end in (earlier, later))))
    return pd.DataFrame(rows, columns=[*MEMBER, "lost_before", "lost_after"])


def _mean(values: NDArray) -> float:
    return float(values.mean()) if values.size else np.nan
