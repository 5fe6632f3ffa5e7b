"""All metrics of the predictions of one model and dataset."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.arrange import ABSENT, Answers, arrange
from persistcal.evaluation.conditioning import CONDITIONINGS, Conditioning, condition
from persistcal.evaluation.contrast import ContrastSet, contrast_sets
from persistcal.evaluation.metrics import auc, balanced_gap, brier, mean_gap
from persistcal.evaluation.smooth_ece import smooth_ece

log = logging.getLogger(__name__)

CONTRAST_METRICS = (
    "delta0_balanced",
    "delta0",
    "delta_balanced",
    "delta",
    "auc",
    "brier",
    "smece",
)
FULL_METRICS = ("auc", "brier", "smece")
LOWER_IS_BETTER = frozenset({"brier", "smece"})


def evaluate(
    predictions: pd.DataFrame, checkpoints: Sequence[str], *, min_contrast: int
) -> pd.DataFrame:
    """Evaluate the predictions of one model and dataset.

    Parameters
    ----------
    predictions : DataFrame
        Columns of `persistcal.artifacts.PREDICTIONS`; see `arrange`.
    checkpoints : sequence of str
        Evaluation checkpoints, earliest first.
    min_contrast : int
        Contrast sets of fewer questions are left out of the contrast metrics.

    Returns
    -------
    DataFrame
        Columns of `persistcal.artifacts.METRICS` but for model and dataset: a row
        per seed and one with seed "mean". Rows of scope "full" have conditioning
        "odds", though they do not depend on it. Contrast metrics are unweighted
        means over the kept contrast sets. A metric that is undefined on one of
        them, or because there are none, is NaN, and a warning says why.

    Raises
    ------
    PredictionsError
        When the predictions are not fit for evaluation.
    """
    answers = arrange(predictions, checkpoints)
    sets = contrast_sets(answers.correct, min_contrast=min_contrast)
    warn_of_undefined(answers, sets, min_contrast=min_contrast)
    kept = [pair for pair in sets if pair.kept]
    rows = []
    for series, confidence in answers.confidence.items():
        values = [("odds", "full", full_metrics(confidence, answers.correct))]
        for conditioning in CONDITIONINGS:
            pairs = [contrast_metrics(confidence, pair, conditioning) for pair in kept]
            mean = {
                metric: float(np.mean([pair[metric] for pair in pairs])) if pairs else np.nan
                for metric in CONTRAST_METRICS
            }
            values.append((conditioning, "contrast", mean))
        rows += [
            (*series, conditioning, scope, metric, value)
            for conditioning, scope, metrics in values
            for metric, value in metrics.items()
        ]
    key = ["train_dataset", "estimator", "conditioning", "scope", "metric"]
    per_seed = pd.DataFrame(
        rows,
        columns=["train_dataset", "estimator", "seed", *key[2:], "value"],
    )
    means = per_seed.groupby(key, sort=False)["value"].agg(lambda v: v.mean(skipna=False))
    metrics = pd.concat(
        [
            per_seed.assign(seed=per_seed["seed"].astype(str)),
            means.reset_index().assign(seed="mean"),
        ]
    )
    return metrics[[*key, "seed", "value"]].reset_index(drop=True)


def full_metrics(
    confidence: NDArray[np.float64], correct: NDArray[np.int8]
) -> dict[str, float]:
    """AUC and Brier score of the pooled answers, and SmoothECE as a mean over checkpoints.

    Parameters
    ----------
    confidence, correct : ndarray of shape (n_checkpoints, n_questions)
        Of one series; as in `persistcal.evaluation.arrange.Answers`.
    """
    there = correct != ABSENT
    return {
        "auc": auc(confidence[there], correct[there]),
        "brier": brier(confidence[there], correct[there]),
        "smece": float(
            np.mean(
                [
                    smooth_ece(confidence[k, there[k]], correct[k, there[k]])
                    for k in range(len(correct))
                ]
            )
        ),
    }


class PairConfidences(NamedTuple):
    """What an estimator says about the questions of a contrast set.

    Attributes
    ----------
    earlier, later : ndarray of shape (n_questions,)
        Conditioned confidences in the two checkpoints' answers.
    gap : ndarray of shape (n_questions,)
        Conditioned confidence in the correct answer minus that in the incorrect.
    sign : ndarray of shape (n_questions,)
        −1, 0 or 1: the sign of that difference before conditioning.
    """

    earlier: NDArray[np.float64]
    later: NDArray[np.float64]
    gap: NDArray[np.float64]
    sign: NDArray[np.float64]


def pair_confidences(
    confidence: NDArray[np.float64], pair: ContrastSet, conditioning: Conditioning
) -> PairConfidences:
    """Condition the confidences of one series, (n_checkpoints, n_questions), on a pair."""
    first, second = confidence[[[pair.earlier], [pair.later]], pair.questions]
    earlier, later = condition(first, second, pair.improvement, conditioning)
    towards = np.where(pair.improvement, 1.0, -1.0)
    return PairConfidences(
        earlier, later, towards * (later - earlier), towards * np.sign(second - first)
    )


def contrast_metrics(
    confidence: NDArray[np.float64], pair: ContrastSet, conditioning: Conditioning
) -> dict[str, float]:
    """Metrics of one series on one contrast set.

    Parameters
    ----------
    confidence : ndarray of shape (n_checkpoints, n_questions)
        Of one series.
    pair : ContrastSet
        The two checkpoints and their questions.
    conditioning : {"odds", "fitted"}
        How confidences are conditioned; Δ₀ and Δ₀ᵇ do not depend on it.
    """
    earlier, later, gap, sign = pair_confidences(confidence, pair, conditioning)
    both = np.concatenate([earlier, later])
    correct = np.concatenate([~pair.improvement, pair.improvement])
    return {
        "delta0_balanced": balanced_gap(sign, pair.improvement),
        "delta0": mean_gap(sign),
        "delta_balanced": balanced_gap(gap, pair.improvement),
        "delta": mean_gap(gap),
        "auc": auc(both, correct),
        "brier": brier(both, correct),
        # one checkpoint alone: over both, errors of opposite sign would cancel
        "smece": smooth_ece(earlier, ~pair.improvement),
    }


def warn_of_undefined(
    answers: Answers, sets: Sequence[ContrastSet], *, min_contrast: int
) -> None:
    """Log a warning for each reason why metrics are going to be NaN."""
    given = answers.correct[answers.correct != ABSENT]
    if len(np.unique(given)) == 1:
        where = np.argwhere(answers.correct != ABSENT)[:3]
        first = ", ".join(
            f"{answers.questions[q]} at {answers.checkpoints[k]}" for k, q in where
        )
        log.warning(
            "All %d answers are %s (first: %s): the full-set AUC is undefined and NaN.",
            len(given),
            "correct" if given[0] else "incorrect",
            first,
        )
    names = [
        f"{answers.checkpoints[s.earlier]} and {answers.checkpoints[s.later]}" for s in sets
    ]
    if not any(pair.kept for pair in sets):
        sizes = "; ".join(
            f"{name}: {len(pair.questions)}" for name, pair in zip(names, sets, strict=True)
        )
        log.warning(
            "No pair of checkpoints has a contrast set of at least %d questions (%s): every "
            "contrast metric is undefined and NaN.",
            min_contrast,
            sizes or "there is only one checkpoint",
        )
    for name, pair in zip(names, sets, strict=True):
        if pair.kept and len(np.unique(pair.improvement)) < 2:
            log.warning(
                "All %d questions in the contrast set of %s are %s (first: %s): the balanced Δ "
                "metrics are undefined and NaN.",
                len(pair.questions),
                name,
                "improvements" if pair.improvement.any() else "regressions",
                ", ".join(str(q) for q in answers.questions[pair.questions[:3]]),
            )
