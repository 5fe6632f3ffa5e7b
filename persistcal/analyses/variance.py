"""How much hidden states vary between adapters, and whether that grows with training."""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ConstantInputWarning, spearmanrho


class RunningVariance:
    """Total variance of vectors of which one sample is seen at a time.

    Welford's method: only the mean of what was seen is kept, and differences are
    taken before they are squared.

    References
    ----------
    .. [1] Welford, "Note on a Method for Calculating Corrected Sums of Squares
       and Products", Technometrics 1962.

    Examples
    --------
    Two units with values (0, 2) and (1, 5): variances 1 and 4.

    >>> running = RunningVariance()
    >>> running.add(np.array([0.0, 1.0]))
    >>> running.add(np.array([2.0, 5.0]))
    >>> float(running.total())
    5.0
    """

    def __init__(self) -> None:
        self._n = 0
        self._mean: NDArray[np.float64] = np.zeros(())
        self._squares: NDArray[np.float64] = np.zeros(())

    def add(self, sample: NDArray[np.floating]) -> None:
        """See one more sample: any shape, units along the last axis."""
        self._n += 1
        before = sample - self._mean
        self._mean = self._mean + before / self._n
        self._squares = self._squares + (before * (sample - self._mean)).sum(-1)

    def total(self) -> NDArray[np.float64]:
        """Return the population variance summed over units, without their axis."""
        if self._n == 0:
            raise ValueError("There is no variance before the first sample.")
        return self._squares / self._n


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

    Parameters
    ----------
    values : ndarray of shape (n_checkpoints, ...)

    Returns
    -------
    ndarray of shape (...)
        In [-1, 1]; ties get their average rank. NaN where all values are equal
        or one is NaN.

    Examples
    --------
    Ranks (1, 3, 2) against (1, 2, 3), and values without an order:

    >>> order_correlations(np.array([[0.1, 1.0], [0.9, 1.0], [0.5, 1.0]]))
    array([0.5, nan])
    """
    order = np.arange(float(len(values))).reshape(-1, *[1] * (values.ndim - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)  # NaN says the same
        return np.asarray(spearmanrho(order, values, axis=0).statistic)


def correlations_by_layer(variances: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Summarise over questions how the variance of each layer goes with training.

    Parameters
    ----------
    variances : sequence of DataFrame
        Table VARIANCES of each checkpoint, in order of training.

    Returns
    -------
    DataFrame
        Columns layer, mean_rho, median_rho and n, the questions that have a
        correlation: those that every checkpoint answered, unless their variance is
        the same everywhere.
    """
    key = ["layer", "question_id"]
    columns = [table.set_index(key)["variance"] for table in variances]
    joined = pd.concat(columns, axis=1, join="inner").sort_index()
    rho = pd.Series(order_correlations(joined.to_numpy().T), joined.index, name="rho")
    by_layer = rho.groupby("layer")
    summary = by_layer.agg(mean_rho="mean", median_rho="median", n="count")
    return summary.reset_index()
