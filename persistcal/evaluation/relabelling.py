"""Few new labels for a later checkpoint: the answers to label, and the certified threshold.

`draw_sheet` draws the answers to label at random within strata, so that each has a known
probability of being drawn, and `certify_threshold` tests thresholds with these labels. An
unchanged answer has a *carried* label, the one from the earlier checkpoint. Carried labels only
predict: wrong ones cost power and never validity, because some unchanged answers are labelled
again. `measure_label_curve` shows how many labels a threshold needs.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import Array, Mask
from persistcal.evaluation.thresholds import (
    GRID,
    answer_above,
    check_target,
    first_tested,
    lowest_passing,
)
from persistcal.store.artifacts import LABEL_CURVE

N_BINS = 3  # bins of confidence, within changed and within unchanged answers
N_LABELS = (30, 60, 120, 250, 500, 1000, 2000)  # of a label curve
FRESH, CARRIED = "fresh", "carried"
BETS = np.arange(1, 20) / 20  # shares of the largest possible bet


class LaterAnswers(NamedTuple):
    """The answers of a later checkpoint, arrays of shape (n_questions,).

    `carried` is the label of the earlier checkpoint, 0 or 1, if the answer is unchanged, and
    NaN if it changed or if nothing is known about the change.
    """

    confidence: Array
    carried: Array

    @property
    def strata(self) -> NDArray[np.intp]:
        """The stratum of each answer: changed or unchanged, and a bin of confidence."""
        strata = np.empty(len(self.confidence), int)
        is_changed = np.isnan(self.carried)
        for number, group in enumerate((is_changed, ~is_changed)):
            stated = self.confidence[group]
            if len(stated):
                inner = np.quantile(stated, np.arange(1, N_BINS) / N_BINS)
                strata[group] = number * N_BINS + np.searchsorted(inner, stated, side="right")
        return strata


def draw_sheet(answers: LaterAnswers, n_labels: int, *, seed: int) -> pd.DataFrame:
    """Draw answers to label, at random within each stratum, at least one of each.

    The result has the `position` of each answer, its `stratum`, and the
    `inclusion_probability`, in random order.
    """
    strata, rng = answers.strata, np.random.default_rng(seed)
    numbers, sizes = np.unique(strata, return_counts=True)
    if not len(numbers) <= n_labels <= len(strata):
        raise ValueError(
            f"{n_labels} labels are asked for; give a number from {len(numbers)}, one for each "
            f"stratum, to {len(strata)}, the number of answers."
        )
    quotas = _allocate(sizes, n_labels)
    rows = [
        (position, number, quota / size)
        for number, size, quota in zip(numbers, sizes, quotas, strict=True)
        for position in rng.choice(np.flatnonzero(strata == number), quota, replace=False)
    ]
    sheet = pd.DataFrame(rows, columns=["position", "stratum", "inclusion_probability"])
    return sheet.iloc[rng.permutation(len(sheet))].reset_index(drop=True)


def _allocate(sizes: NDArray, n_labels: int) -> NDArray[np.intp]:
    """Divide labels among strata in proportion to their sizes, at least one for each.

    To draw changed answers more often raises the weight of the others. That limits the bets
    of `certify_threshold` by more than it saves.
    """
    quotas = np.ones(len(sizes), int)
    for _ in range(n_labels - len(sizes)):
        deficit = np.where(quotas < sizes, sizes / (quotas + 1), -1.0)
        quotas[int(np.argmax(deficit))] += 1
    return quotas


def certify_threshold(
    answers: LaterAnswers, sheet: pd.DataFrame, *, precision: float, delta: float = 0.1
) -> float | None:
    """Return the lowest threshold with a precision that the labels certify on these answers.

    For a threshold t let x = wrong − (1 − precision) for an answer with confidence ≥ t, and 0
    for others: the precision is below the target if and only if the mean of x over all answers
    is above 0. Each labelled answer multiplies a wealth by 1 − λ (m + w (x − x̂)). Here x̂ is a
    prediction of x, m its mean over all answers and w the weight of the stratum; carried labels
    predict unchanged answers, and the confidence predicts changed ones. If the precision is
    below the target, the expected wealth is at most 1 (Maclaurin's inequality within a stratum,
    AM–GM over strata), so that 1 / wealth is a p-value (betting, [1]_ [2]_). The wealth is the
    mean over nineteen values of λ. Thresholds are tested as in `select_threshold`.

    Parameters
    ----------
    sheet : DataFrame
        From `draw_sheet` for the same answers, with a column `correct`, 0 or 1.
    precision : float
        Target, between 0 and 1.
    delta : float, default=0.1
        Largest probability, over draws of the sheet, that the certified threshold has a lower
        precision on `answers`.

    Returns
    -------
    float or None
        None if the labels certify no threshold.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
       Journal of the Royal Statistical Society B 2024. https://arxiv.org/abs/2010.09686
    .. [2] Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, "Prediction-powered inference",
       Science 2023. https://arxiv.org/abs/2301.09633

    Examples
    --------
    All 100 answers are labelled and correct:

    >>> answers = LaterAnswers(np.full(100, 0.9), np.full(100, np.nan))
    >>> sheet = draw_sheet(answers, 100, seed=0).assign(correct=1)
    >>> certify_threshold(answers, sheet, precision=0.9)
    0.0
    """
    check_target(precision, delta)
    predicted = np.where(np.isnan(answers.carried), 1 - answers.confidence, 1 - answers.carried)
    position, stratum = sheet["position"].to_numpy(int), sheet["stratum"].to_numpy(int)
    wrong = 1 - sheet["correct"].to_numpy(float)
    strata, answered = answers.strata, answers.confidence >= GRID[:, None]
    sizes, quotas = np.bincount(strata), np.bincount(stratum)
    weight_of = np.divide(
        sizes * len(sheet), len(predicted) * quotas, out=np.zeros(len(sizes)), where=quotas > 0
    )
    weight, allowed = weight_of[strata], 1 - precision
    p_values = [
        1 / max(1.0, wealth(above, predicted, position, wrong, weight, allowed))
        for above in answered
    ]
    return lowest_passing(np.array(p_values), first_tested(answered.sum(axis=1)), delta)


def wealth(
    is_answered: Mask,
    predicted: Array,
    position: NDArray[np.intp],
    wrong: Array,
    weight: Array,
    allowed: float,
) -> float:
    """Return the wealth of a bettor against "the precision is below the target"."""
    if not is_answered.any():
        return 1.0
    mean = float(np.where(is_answered, predicted - allowed, 0.0).mean())
    residual = is_answered[position] * (wrong - predicted[position])
    factor = mean + weight[position] * residual
    # the largest factor that any label of any answer could give bounds the bet
    largest = mean + float(np.max(is_answered * weight * (1 - predicted)))
    bets = BETS / largest if largest > 0 else BETS / allowed
    with np.errstate(over="ignore"):
        return float(np.exp(np.log1p(-bets[:, None] * factor).sum(axis=1)).mean())


def curve_sizes(n_answers: int) -> list[int]:
    """Return the sizes of sheets for a curve, the last with all answers."""
    return [*(size for size in N_LABELS if size < n_answers), n_answers]


def measure_label_curve(
    answers: LaterAnswers,
    correct: Mask,
    *,
    precision: float,
    delta: float = 0.1,
    n_labels: Sequence[int],
    n_sheets: int = 50,
    seed: int = 17,
    step: Callable[[str], None] = lambda _: None,
) -> pd.DataFrame:
    """Measure which threshold a sheet of each size certifies, if all answers are labelled.

    `correct` are the labels of all answers, and `n_labels` sizes of sheets, such as
    `curve_sizes(len(correct))`; sizes below the number of strata are left out. Sheet i of each
    size is drawn with the seed `seed` + i. `step` receives a name after each size.

    The result is the table LABEL_CURVE. "carried" uses the earlier labels of unchanged answers,
    "fresh" treats all answers as changed. `certified` is the share of sheets that certify a
    threshold. `threshold`, `precision` and `coverage` are medians over these sheets, of all
    answers at or above the threshold. `below_target` is the share of sheets that certify a
    threshold with a lower precision than the target.
    """
    kinds = {FRESH: answers._replace(carried=np.full_like(answers.carried, np.nan))}
    if not np.isnan(answers.carried).all():
        kinds[CARRIED] = answers
    rows = []
    for size in n_labels:
        for kind, known_labels in kinds.items():
            if len(np.unique(known_labels.strata)) > size:
                continue
            selections = []
            for number in range(n_sheets):
                sheet = draw_sheet(known_labels, size, seed=seed + number)
                sheet["correct"] = correct[sheet["position"]]
                certified = certify_threshold(
                    known_labels, sheet, precision=precision, delta=delta
                )
                if certified is not None:
                    selections.append(answer_above(certified, answers.confidence, correct))
            row = {"labels": kind, "n_labels": size, "n_sheets": n_sheets, "target": precision}
            for name in ("threshold", "precision", "coverage"):
                values = [getattr(selection, name) for selection in selections]
                row[name] = np.median(values) if selections else np.nan
            n_below = sum(s.n_correct < precision * s.n_answered for s in selections)
            row |= {"certified": len(selections) / n_sheets, "below_target": n_below / n_sheets}
            rows.append(row)
        step(f"{size} labels")
    return pd.DataFrame(rows, columns=LABEL_CURVE.schema.names)
