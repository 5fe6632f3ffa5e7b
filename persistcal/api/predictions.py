"""Tables of predictions in, tables of metrics, tests and differences of states out."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from persistcal.api.inputs import PLACE, blocks, settings, whole_number
from persistcal.evaluation import contrast, significance
from persistcal.evaluation import states as comparisons
from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.directions import MIN_DIRECTION
from persistcal.evaluation.evaluate import evaluate as evaluate_one
from persistcal.evaluation.noise_floor import add_noise_floors, noise_floors
from persistcal.evaluation.predictions import arrange
from persistcal.evaluation.replicates import MIN_REPLICATES, replicate_metrics
from persistcal.evaluation.smooth_ece import smooth_ece as weighted_smooth_ece
from persistcal.report.layout import EVERY, named_blocks
from persistcal.store.artifacts import STATES, TRENDS

MIN_CONTRAST = 500  # the paper's, for TriviaQA and Jeopardy


def _for_each(
    predictions: pd.DataFrame, make: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Return what `make` returns for each model and dataset, one below the other."""
    return _stacked([make(rows).assign(**place) for place, rows in blocks(predictions)])


def _stacked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [part for part in parts if len(part)] or parts[:1]
    rows = pd.concat(filled, ignore_index=True)
    return rows[[*PLACE, *rows.columns.drop(PLACE)]]


def evaluate(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int = MIN_CONTRAST,
    pairs: Pairs = "all",
) -> pd.DataFrame:
    """Compute every metric of every estimator, on all questions and on contrast sets.

    Parameters
    ----------
    predictions : DataFrame
        One row per answer that an estimator judged: checkpoint, question_id, estimator,
        confidence (probability in [0, 1] that the answer is correct) and correct (0 or 1).
        Optional: seed (metrics are averaged over seeds), model and dataset (each pair is
        evaluated on its own) and train_dataset. Other columns are ignored.
    checkpoints : sequence of str
        Evaluation checkpoints, earliest first.
    min_contrast : int, default=500
        Smaller contrast sets are left out of the contrast metrics; where none is left,
        these are NaN, and a warning names the sizes.
    pairs : {"all", "adjacent", "first"} or sequence of (str, str), default="all"
        The pairs of checkpoints that have a contrast set.

    Returns
    -------
    DataFrame
        model, dataset, train_dataset, estimator, conditioning, scope ("full" or
        "contrast"), metric, pairs, seed and value; a row per seed and one with seed "mean".

    Raises
    ------
    ValueError
        When a column is missing, a confidence is not in [0, 1], estimators are on different
        questions, an answer has two labels, or checkpoints spell a question differently:
        with the first such rows.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"checkpoint": ["a", "a", "b", "b"], "question_id": [1, 2, 1, 2]}
    >>> rows |= {"confidence": [0.2, 0.6, 0.8, 0.7], "correct": [0, 1, 1, 1]}
    >>> predictions = pd.DataFrame(rows).assign(estimator="mine")
    >>> metrics = evaluate(predictions, ["a", "b"], min_contrast=1)
    >>> full = metrics.query("scope == 'full' and metric == 'auc' and seed == 'mean'")
    >>> full["value"].item()
    1.0
    """
    names, how = settings(checkpoints, min_contrast, pairs)
    return _for_each(predictions, lambda rows: evaluate_one(rows, names, **how))


def contrast_sets(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int = MIN_CONTRAST,
    pairs: Pairs = "all",
) -> pd.DataFrame:
    """Count the questions that one checkpoint of a pair answers correctly and the other not.

    Parameters are those of `evaluate`.

    Returns
    -------
    DataFrame
        model, dataset, earlier, later, size, improvement, regression and kept (whether
        the set has at least `min_contrast` questions).
    """
    names, how = settings(checkpoints, min_contrast, pairs)
    how["pairs"] = contrast.choose_pairs(how["pairs"], names)

    def count(rows: pd.DataFrame) -> pd.DataFrame:
        sets = contrast.contrast_sets(arrange(rows, names).correct, **how)
        return contrast.describe_sets(sets, names)

    return _for_each(predictions, count)


class BootstrapComparison(NamedTuple):
    """Results of a paired bootstrap over questions.

    Attributes
    ----------
    tests : DataFrame
        A row per metric and estimator that is not the best: model, dataset,
        train_dataset, block, conditioning, scope, metric, best, other, difference,
        lower_5pct and significant (the paper's one-sided test), lower_2_5pct, upper_97_5pct,
        p_value and p_holm (two-sided); simultaneous_lower, simultaneous_upper, p_adjusted and
        in_best_set (all pairs of the block together, so that the best can be chosen from the
        same data); and over seeds and questions n_seeds, seeds_lower_2_5pct,
        seeds_upper_97_5pct and seeds_p_value.
    intervals : DataFrame
        Each metric of each estimator with its 95 % interval; of SmoothECE, which has none,
        `noise_floor` and `p_calibrated` (see `persistcal.evaluation.noise_floor`).
    """

    tests: pd.DataFrame
    intervals: pd.DataFrame


def compare(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    min_contrast: int = MIN_CONTRAST,
    pairs: Pairs = "all",
    min_direction: int = MIN_DIRECTION,
    n_replicates: int = 10_000,
    seed: int = 17,
) -> BootstrapComparison:
    """Test the best estimator against each other one by a paired bootstrap over questions.

    Estimators that were trained on the same dataset are compared with each other, metric by
    metric. The numbers are those of the workflow with the same settings.

    Parameters
    ----------
    predictions, checkpoints, min_contrast, pairs
        As for `evaluate`.
    min_direction : int, default=5
        Questions that each pair needs to gain, and to lose, for an interval and a test of the
        metrics that rest on both: Δ₀ᵇ, Δᵇ and the change AUC.
    n_replicates : int, default=10000
        Bootstrap replicates, at least 200; all estimators are evaluated on the same ones.
    seed : int, default=17
        Seed of the replicates.
    """
    names, sets = settings(checkpoints, min_contrast, pairs)
    how = sets | _bootstrap(n_replicates, seed)
    how["min_direction"] = whole_number("min_direction", min_direction)
    tests, intervals = [], []
    drawn = [
        (
            place,
            replicate_metrics(rows, names, **how),
            noise_floors(rows, names, **sets, seed=how["seed"]),
        )
        for place, rows in blocks(predictions)
    ]
    for place, replicates, floors in drawn:
        trained_on = dict.fromkeys(train for train, _ in replicates.estimators)
        everything = [[(train, EVERY)] for train in trained_on]
        compared = named_blocks(everything, replicates.estimators, place["dataset"])
        tests.append(significance.compare_blocks(replicates, compared).assign(**place))
        ends = add_noise_floors(significance.intervals(replicates), floors)
        intervals.append(ends.assign(**place))
    return BootstrapComparison(_stacked(tests), _stacked(intervals))


class StateComparison(NamedTuple):
    """Which checkpoint is better, and by how much.

    Attributes
    ----------
    states : DataFrame
        A row per pair, metric, estimator and seed: model, other_model, dataset, earlier, later,
        estimator, metric, seed, earlier_value, later_value, difference (later − earlier),
        lower_2_5pct, upper_97_5pct, p_value and p_holm.
    trends : DataFrame
        Of more than two checkpoints the slope of each metric along their order: model, dataset,
        estimator, metric, seed, n_checkpoints, slope, lower_2_5pct, upper_97_5pct and p_value.
    """

    states: pd.DataFrame
    trends: pd.DataFrame


def compare_states(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    pairs: Pairs = "all",
    n_replicates: int = 10_000,
    seed: int = 17,
) -> StateComparison:
    """Compare the checkpoints of each model, and the last ones of each two models.

    Accuracies are compared by McNemar's exact test, with Newcombe's interval; AUC, Brier score
    and SmoothECE of each estimator on all questions by the paired bootstrap. Two states are
    compared on the questions that both answered; pairs without one are left out, with a
    warning. The numbers are those of the workflow with the same settings.

    Parameters
    ----------
    predictions, checkpoints, pairs
        As for `evaluate`; the checkpoints are those of every model.
    n_replicates, seed : int
        As for `compare`.
    """
    names, how = settings(checkpoints, 1, pairs)
    bootstrap = _bootstrap(n_replicates, seed)
    by_dataset: dict[str, dict[str, pd.DataFrame]] = {}
    for place, rows in blocks(predictions):
        by_dataset.setdefault(place["dataset"], {})[place["model"]] = rows
    made = [
        comparisons.compare_states(
            by_model,
            dict.fromkeys(by_model, names),
            dataset=dataset,
            pairs=how["pairs"],
            **bootstrap,
        )
        for dataset, by_model in by_dataset.items()
    ]
    states, trends = (pd.concat(parts, ignore_index=True) for parts in zip(*made, strict=True))
    return StateComparison(states[STATES.schema.names], trends[TRENDS.schema.names])


def _bootstrap(n_replicates: int, seed: int) -> dict[str, int]:
    return {
        "n_replicates": whole_number("n_replicates", n_replicates, least=MIN_REPLICATES),
        "seed": whole_number("seed", seed, least=0),
    }


def smooth_ece(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return SmoothECE, the calibration error that needs no bins.

    Parameters
    ----------
    confidence : array-like of shape (n_answers,)
        Stated probability that each answer is correct, in [0, 1].
    correct : array-like of shape (n_answers,)
        0 or 1.

    Returns
    -------
    float
        In [0, 1]; 0 is perfect.

    References
    ----------
    .. [1] Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams
       via Kernel Smoothing", ICLR 2024. https://arxiv.org/abs/2309.12236

    Examples
    --------
    Half of the answers at confidence 0.9 are wrong:

    >>> round(smooth_ece([0.9] * 10, [0, 1] * 5), 3)
    0.4
    """
    stated, labels = np.asarray(confidence, float), np.asarray(correct)
    if stated.shape != labels.shape or stated.ndim != 1:
        raise ValueError(
            f"confidence has the shape {stated.shape} and correct {labels.shape}; give one of "
            "each per answer."
        )
    if not ((stated >= 0) & (stated <= 1)).all() or not np.isin(labels, [0, 1]).all():
        raise ValueError("A confidence is not in [0, 1], or a label is neither 0 nor 1.")
    return float(weighted_smooth_ece(stated, labels))
