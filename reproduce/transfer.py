"""Adapters: transfer to other checkpoints, variance between them, and the oracle's headroom."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ConstantInputWarning, spearmanrho

from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.replicates import Replicates
from persistcal.evaluation.samples import Bounds
from persistcal.evaluation.weighted import auc
from persistcal.store.artifacts import CORRELATIONS, TRANSFER


def transfer_matrix(
    answers: Mapping[str, pd.DataFrame],
    scores: pd.DataFrame,
    sets: Mapping[str, Iterable[str]],
    *,
    train_dataset: str,
) -> pd.DataFrame:
    """Return the full-set AUC of every adapter at every checkpoint: the table TRANSFER.

    The AUC is the mean over seeds, and NaN if all or no answers are correct. `answers` are
    predictions by checkpoint, in order, with columns question_id and correct. `scores` contains
    confidences of each checkpoint, with an adapter, in its own answers, and `sets` the names of
    the training sets of each recipe.
    """
    rows = []
    adapters = [(recipe, name) for recipe, names in sets.items() for name in names]
    of_dataset = scores[scores["train_dataset"] == train_dataset]
    for checkpoint, predicted in answers.items():
        own_scores = of_dataset[of_dataset["answers_of"] == checkpoint]
        by_adapter = dict(list(own_scores.groupby(["recipe", "trained_on"])))
        for recipe, trained_on in adapters:
            adapter = f"adapter {recipe!r} trained on {trained_on!r}"
            if (recipe, trained_on) not in by_adapter:
                raise ValueError(f"No scores of {adapter} at checkpoint {checkpoint!r}.")
            values = []
            for seed, scored in by_adapter[recipe, trained_on].groupby("seed"):
                joined = predicted.merge(scored, on="question_id", validate="one_to_one")
                if lost := len(predicted) - len(joined):
                    raise ValueError(
                        f"{lost} answers of checkpoint {checkpoint!r} have no score of "
                        f"{adapter}, seed {seed}."
                    )
                values.append(auc(joined["confidence"], joined["correct"]))
            mean = sum(values) / len(values)
            rows.append((recipe, trained_on, checkpoint, mean, len(predicted)))
    return pd.DataFrame(rows, columns=TRANSFER.but("model", "dataset"))


def headroom(replicates: Replicates, *, dataset: str, verifier: str, oracle: str) -> Bounds:
    """Return the headroom of estimators trained on `dataset`; NaN if an AUC is undefined.

    Its interval is over the paper's replicates, which keep the numbers of gained and lost
    questions, as in the released code.
    """
    metric = replicates[MetricKey("odds", "contrast", "auc")]
    members = list(metric.samples)
    better, worse = (members.index((dataset, name)) for name in (oracle, verifier))
    observed, drawn = metric.values, metric.stratified
    low, high = np.quantile(drawn[better] - drawn[worse], [0.025, 0.975])
    return Bounds(float(observed[better] - observed[worse]), float(low), float(high))


def error_rate(answers: pd.DataFrame, question_ids: Collection[str]) -> tuple[float, int]:
    """Return the share of wrong answers to `question_ids`, NaN without one, and their number.

    Questions without an answer are left out, as in the paper's released code. Here c has none:

    >>> answers = pd.DataFrame({"question_id": ["a", "b"], "correct": [False, True]})
    >>> error_rate(answers, ["a", "b", "c"])
    (0.5, 2)
    """
    correct = answers.loc[answers["question_id"].isin(question_ids), "correct"]
    return 1 - float(correct.mean()) if len(correct) else float("nan"), len(correct)


def variance_table(question_ids: Sequence[str], variances: NDArray[np.float64]) -> pd.DataFrame:
    """Return variances of shape (n_questions, n_layers) as a table VARIANCES."""
    n_questions, n_layers = variances.shape
    return pd.DataFrame(
        {
            "question_id": np.repeat(np.asarray(question_ids), n_layers),
            "layer": np.tile(np.arange(1, n_layers + 1), n_questions),
            "variance": variances.ravel(),
        }
    )


def order_correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Spearman correlation of values with their order along the first axis.

    In [-1, 1]; ties get their average rank. NaN where all values are equal or one is NaN.

    Ranks (1, 3, 2) against (1, 2, 3), and values without an order:

    >>> order_correlations(np.array([[0.1, 1.0], [0.9, 1.0], [0.5, 1.0]]))
    array([0.5, nan])
    """
    order = np.arange(float(len(values))).reshape(-1, *[1] * (values.ndim - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)  # NaN shows this, too
        return np.asarray(spearmanrho(order, values, axis=0).statistic)


def correlations_by_layer(variances: pd.DataFrame) -> pd.DataFrame:
    """Correlate the variance of each layer with the order of checkpoints, over questions.

    The input is the table VARIANCES with checkpoints in order of training, the result the table
    CORRELATIONS. n counts the questions with a correlation: questions that every checkpoint
    answered and with a variance that is not constant.
    """
    parts = []
    for (model, dataset), rows in variances.groupby(["model", "dataset"], sort=False):
        joined = rows.pivot(
            index=["layer", "question_id"], columns="checkpoint", values="variance"
        )
        joined = joined[rows["checkpoint"].unique()].dropna()
        rho = pd.Series(order_correlations(joined.to_numpy().T), joined.index, name="rho")
        summary = rho.groupby("layer").agg(mean_rho="mean", median_rho="median", n="count")
        parts.append(summary.reset_index().assign(model=str(model), dataset=str(dataset)))
    return pd.concat(parts, ignore_index=True)[CORRELATIONS.schema.names]
