"""Rows of the table CLAIMS about one estimator."""

import numpy as np
import pandas as pd

from persistcal.evaluation.claims import METRICS
from persistcal.evaluation.knowledge import STATISTICS
from persistcal.store.artifacts import CLAIMS

USUAL = (0.75, 0.6, 0.9)  # value and ends of a statistic above chance
NUMBERS = {
    "n_compared": 1,
    "n_seeds": 0,
    "halvings": 1,
    "improvement": 5,
    "regression": 2,
    "other_improvement": None,
    "other_regression": None,
    "left_out": 0,
    "repeated": 0,
    "flipped": 0,
    "alike": np.nan,
    "alike_between": np.nan,
    "by_chance": np.nan,
}


def claim_rows(word, basis="one ask", *, estimator="own", lacking="", **given):
    """Return the rows of an estimator with a word.

    `given` are statistics, above chance by default, `counts` of gained and lost questions of
    both asks, and other columns of `NUMBERS`.
    """
    counts = dict(zip(list(NUMBERS)[3:7], given.pop("counts", (5, 2, None, None)), strict=True))
    numbers = NUMBERS | counts
    numbers |= {name: given.pop(name) for name in NUMBERS.keys() & given.keys()}
    rows = []
    for metric in (*METRICS, *STATISTICS):
        value, low, high = given.get(metric, USUAL)
        place = ["quiz", estimator, "one ask", metric, value, low, high, low, high]
        rows.append([*place, *numbers.values(), basis, word, lacking])
    return pd.DataFrame(rows, columns=CLAIMS.but("model", "dataset"))
