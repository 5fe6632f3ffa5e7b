"""Thresholds for notebooks: predictions of several checkpoints in, verdicts out."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from persistcal.api.inputs import PLACE, blocks, settings, whole_number
from persistcal.evaluation.contrast import Pairs
from persistcal.evaluation.thresholds import check_target, check_thresholds
from persistcal.report.threshold_views import threshold_sentences


class ThresholdCheck(NamedTuple):
    """Thresholds that were selected on earlier checkpoints, checked on later ones.

    Attributes
    ----------
    thresholds : DataFrame
        A row per model, dataset, pair, estimator and seed: the threshold, the precision and
        coverage at both checkpoints with intervals, and the verdict: "kept", "broken",
        "undecided", or empty if no threshold reaches the target.
    cells : DataFrame
        The questions by who answers them above the threshold and whose answer is correct.
    regressions : DataFrame
        Questions that both checkpoints answer above the threshold, the earlier one correctly
        and the later one not.
    """

    thresholds: pd.DataFrame
    cells: pd.DataFrame
    regressions: pd.DataFrame

    def summary(self) -> str:
        """Return one sentence per pair and estimator."""
        places = list(self.thresholds.groupby(PLACE, sort=False))
        return "\n".join(
            (f"{', '.join(map(str, place))}. " if len(places) > 1 else "") + sentence
            for place, rows in places
            for sentence in threshold_sentences(rows, {})
        )


def threshold(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    *,
    precision: float,
    delta: float = 0.1,
    pairs: Pairs = "all",
    n_replicates: int = 10_000,
    seed: int = 17,
) -> ThresholdCheck:
    """Select a threshold on each earlier checkpoint, and test whether a later one keeps it.

    Parameters
    ----------
    predictions, checkpoints, pairs
        As for `persistcal.evaluate`.
    precision : float
        The share of correct answers among the answers at or above the threshold, such as 0.9.
    delta : float, default=0.1
        Largest probability that a selected threshold does not reach the precision on the
        earlier checkpoint's questions at large.
    n_replicates, seed : int
        Bootstrap of the change in precision.

    Raises
    ------
    ValueError
        If there is only one checkpoint, a target is not between 0 and 1, or predictions are
        invalid as described for `persistcal.evaluate`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"checkpoint": ["a"] * 40 + ["b"] * 40, "question_id": [*range(40)] * 2}
    >>> rows |= {"confidence": [0.9] * 80, "correct": [1] * 40 + [0, 1] * 20}
    >>> predictions = pd.DataFrame(rows).assign(estimator="mine")
    >>> threshold(predictions, ["a", "b"], precision=0.9).thresholds["verdict"].item()
    'broken'
    """
    check_target(precision, delta)
    names, how = settings(checkpoints, 1, pairs)
    if len(names) < 2:
        raise ValueError(f"checkpoints is {names}; a threshold is checked on a second one.")
    parts = []
    for place, rows in blocks(predictions):
        made = check_thresholds(
            rows,
            names,
            precision=precision,
            delta=delta,
            pairs=how["pairs"],
            n_replicates=whole_number("n_replicates", n_replicates, least=200),
            seed=whole_number("seed", seed, least=0),
        )
        parts.append([table.assign(**place) for table in made])
    joined = [pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True)]
    return ThresholdCheck(*(rows[[*PLACE, *rows.columns.drop(PLACE)]] for rows in joined))
