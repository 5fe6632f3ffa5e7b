"""Variance of hidden states between adapters, and its correlation with training."""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ConstantInputWarning, spearmanrho

from persistcal.store.artifacts import CORRELATIONS


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
