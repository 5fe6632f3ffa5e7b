r"""Flips by chance: what guesses add to contrast sets, and metrics without what they add.

Know or guess: of the k options of a question, a state that does not know the answer takes each
with probability 1/k, whatever the other state takes. Of questions that both guess, a share of
(1 − 1/k)² is wrong twice, one of (1/k)(1 − 1/k) is an improvement by chance, and as large a one
a regression. So each question that both get wrong stands for 1/(k − 1) improvements and as many
regressions by chance. Nothing is assumed of what is known, nor that questions are equally hard.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.arrange import ABSENT, AnswerArrays
from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.draws import Component, Counts, component, draw_sequences
from persistcal.evaluation.evaluate import on_contrast_set
from persistcal.evaluation.metrics import CONTRAST_METRICS, Array, OnContrastSet, compute
from persistcal.store.artifacts import CHANCE_ADJUSTED, CHANCE_FLIPS

AT_ONCE = 10_000_000  # counts of questions that are drawn at a time
NONE = 1e-9  # weights that sum to less would be zero but for rounding
BOUNDS = {"delta0_balanced": (-1.0, 1.0), "auc": (0.0, 1.0)}
LOW, HIGH = 0.025, 0.975
SHARES = ["share", "share_lower_2_5pct", "share_upper_97_5pct"]
ALONE = ["least", "most", "accuracies_lower_2_5pct", "accuracies_upper_97_5pct"]
INTERVAL = ["lower_2_5pct", "upper_97_5pct"]
CELLS = ["questions", "both_right", "both_wrong", "improvement", "regression"]
FLIPS = CHANCE_FLIPS.but("model", "dataset")
ADJUSTED = CHANCE_ADJUSTED.but("model", "dataset")


def lucky_per_wrong(n_options: NDArray[np.int_]) -> Array:
    """Return right guesses per wrong one, 1/(k − 1), by question; 0 of those without options.

    >>> lucky_per_wrong(np.array([2, 5, 0])).tolist()
    [1.0, 0.25, 0.0]
    """
    if (n_options == 1).any():
        raise ValueError(
            "a question has one option, so there is nothing to guess; leave it out"
        )
    return np.where(n_options > 1, 1 / np.maximum(n_options - 1, 1), 0.0)


def flips_by_chance(
    answers: AnswerArrays,
    sets: Sequence[ContrastSet],
    n_options: NDArray[np.int_],
    *,
    n_replicates: int,
    seed: int,
) -> pd.DataFrame:
    """Estimate how many flips of each contrast set are chance.

    Parameters
    ----------
    n_options : int ndarray of shape (n_questions,)
        0 of a question without options, where nothing is chance.
    n_replicates, seed : int
        Of the bootstrap over questions; classes have any size on its replicates.

    Returns
    -------
    DataFrame
        Columns `FLIPS`, a row per set. `chance` is how many flips to expect where both states
        guess, from all four cells of their joint table: twice the sum of 1/(k − 1) over the
        questions that both get wrong. `share` is that of all flips. Neither is cut at what
        there is: by noise, or where states err alike, a share is above 1. `least` and `most`
        are what the two accuracies alone allow: most where the better state knows all that
        the other one knows, least where they share as little as they can; the interval
        beside them is from the lower end of the one to the upper end of the other.

    Notes
    -----
    A state that guesses a share γ of the questions errs on γ (1 − 1/k). Both guess between
    max(0, γ₁ + γ₂ − 1) and min(γ₁, γ₂), and of those 2 (1/k)(1 − 1/k) flip.
    """
    per_wrong = lucky_per_wrong(n_options)
    by_option = np.where(n_options > 1, 1 / np.maximum(n_options, 1), 0.0)
    cells, terms = [], []
    for pair in sets:
        first, second = answers.correct[[pair.earlier, pair.later]]
        both = (first != ABSENT) & (second != ABSENT)
        right, wrong = (both & (first == one) & (second == one) for one in (1, 0))
        errors = [2 * by_option * (both & (side == 0)) for side in (first, second)]
        of_guesses = 2 * by_option * (1 - by_option) * both
        terms.append(
            [both, both & (first != second), 2 * per_wrong * wrong, *errors, of_guesses]
        )
        counted = [both.sum(), right.sum(), wrong.sum()]
        cells.append((*counted, pair.improvement.sum(), (~pair.improvement).sum()))
    rows = np.array(terms, float).reshape(len(sets), 6, len(n_options))
    drawn = [rows @ one.astype(float) for one in _drawn(len(n_options), n_replicates, seed)]
    sums = np.moveaxis(np.concatenate(drawn, axis=-1), 1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # as many as both answered: a replicate may draw more or fewer of these
        scaled = np.nan_to_num(sums * sums[0, :, :1] / sums[0])
        _, flips, chance, *errors, of_guesses = scaled
        share = chance / flips
    most = np.minimum(*errors)
    least = np.clip(errors[0] + errors[1] - of_guesses, 0, most)
    table = pd.DataFrame(cells, columns=CELLS, dtype=int)
    for side in ("earlier", "later"):
        table[side] = [answers.checkpoints[getattr(pair, side)] for pair in sets]
    for names, of in ((["chance", *INTERVAL], chance), (SHARES, share)):
        ends = np.quantile(of[:, 1:], [LOW, HIGH], axis=1)
        table[names] = np.stack([of[:, 0], *ends], axis=1)
    tops = [np.quantile(of[:, 1:], HIGH, axis=1) for of in errors]  # each would do
    bounds = [least[:, 0], most[:, 0]]
    ends = [np.quantile(least[:, 1:], LOW, axis=1), np.minimum(*tops)]
    table[ALONE] = np.stack([*bounds, *ends], axis=1)
    return table[FLIPS]


def _drawn(n_questions: int, n_replicates: int, seed: int) -> Iterator[Counts]:
    """Yield how often each question counts: once in the data, then as often as it is drawn."""
    yield np.ones((n_questions, 1), np.uint8)
    size = max(1, AT_ONCE // max(1, n_questions))
    for start in range(0, n_replicates, size):
        block = range(start, min(start + size, n_replicates))
        yield draw_sequences(n_questions, block, seed=seed, reach=0).counts


class WithGuesses:
    """A contrast set with the questions that both states get wrong, which stand for chance.

    Each of them is an improvement and a regression of weight −1/(k − 1), beside flips of
    weight 1, so that what flips by chance contribute to sums of weights cancels.
    """

    def __init__(self, answers: AnswerArrays, pair: ContrastSet, per_wrong: Array) -> None:
        first, second = answers.correct[[pair.earlier, pair.later]]
        wrong = np.flatnonzero((first == 0) & (second == 0) & (per_wrong > 0))
        questions = np.concatenate([pair.questions, wrong, wrong])
        gained = np.repeat([True, False], len(wrong))
        improvement = np.concatenate([pair.improvement, gained])
        weight = np.concatenate([np.ones(len(pair.questions)), *[-per_wrong[wrong]] * 2])
        every = ContrastSet(pair.earlier, pair.later, questions, improvement, pair.kept)
        self.part: Component = component(questions, improvement)
        self.weight = np.concatenate([weight[improvement], weight[~improvement]])[:, None]
        self.runs: list[OnContrastSet] = [
            on_contrast_set(run, every, self.part, "odds")
            for run in answers.confidence.values()
        ]

    def metrics_under(self, weights: Array) -> dict[str, tuple[Array, Array]]:
        """Return of each metric its values, (n_runs, n_columns), and how many flips make it.

        NaN where no flip is left in a class, or for the AUC in both together.
        """
        gained, lost = weights[: self.part.n_first].sum(0), weights[self.part.n_first :].sum(0)
        left = {"delta0_balanced": np.minimum(gained, lost), "auc": gained + lost}
        made = compute({name: CONTRAST_METRICS[name] for name in BOUNDS}, self.runs, weights)
        return {
            name: (np.where(left[name] > NONE, made[name], np.nan).clip(*bounds), left[name])
            for name, bounds in BOUNDS.items()
        }


def adjusted_metrics(
    answers: AnswerArrays,
    sets: Sequence[ContrastSet],
    n_options: NDArray[np.int_],
    *,
    n_replicates: int,
    seed: int,
) -> pd.DataFrame:
    r"""Return Δ₀ᵇ and the contrast AUC of the flips that are not chance.

    A contrast set mixes flips by chance with those of which exactly one state knows the answer.
    What the former contribute is taken out of numerators and denominators. For improvements I

    .. math:: t_I = \frac{\sum_I s_q - \sum_W d_q / (k_q - 1)}{|I| - \sum_W 1 / (k_q - 1)}

    where s are the signs that Δ₀ᵇ averages, W the questions that both states get wrong and d
    the sign of the confidence's change there; for regressions likewise, with −d. The AUC, which
    counts pairs of answers, is that of the same weights, of confidences conditioned by odds.

    Assumed, beside know or guess: on flips by chance the two confidences are distributed as on
    questions that both states guess and get wrong. That holds where the luck of a guess and the
    confidence in it are independent, question by question.

    Sets that are not kept are left out; `n_options` and the bootstrap are as in
    `flips_by_chance`.

    Returns
    -------
    DataFrame
        Columns `ADJUSTED`, a row per estimator and metric: means over seeds, and over those
        pairs whose improvements and regressions (for the AUC, flips) are more than chance in
        97.5 % of replicates. `pairs` says how many ("1 of 3"), and `unadjusted` is the metric
        of the same pairs. Where there is none, both are NaN and the interval is all that the
        metric may be: of flips that are not chance nothing is known.
    """
    per_wrong = lucky_per_wrong(n_options)
    every = [WithGuesses(answers, pair, per_wrong) for pair in sets if pair.kept]
    drawn: list[list[dict[str, tuple[Array, Array]]]] = [[] for _ in every]
    for counts in _drawn(len(n_options), n_replicates, seed):
        for one, made in zip(every, drawn, strict=True):
            made.append(one.metrics_under(one.weight * counts[one.part.questions]))
    plain = [one.metrics_under((one.weight > 0).astype(float)) for one in every]
    rows = []
    for name, bounds in BOUNDS.items():
        values = [np.concatenate([block[name][0] for block in made], axis=1) for made in drawn]
        left = [np.concatenate([block[name][1] for block in made]) for made in drawn]
        told = [n for n, of in enumerate(left) if np.quantile(of[1:], LOW) > NONE]
        for member, own in answers.rows.items():
            found: list[float] = [np.nan, np.nan, *bounds]
            if told:
                of = np.stack([values[n][own] for n in told])
                # where no flip is left in a replicate, the metric may be anything
                ends = [np.nan_to_num(of[..., 1:], nan=bound).mean((0, 1)) for bound in bounds]
                unadjusted = float(np.mean([plain[n][name][0][own] for n in told]))
                found = [unadjusted, float(of[..., 0].mean())]
                found += [
                    float(np.quantile(e, q)) for e, q in zip(ends, (LOW, HIGH), strict=True)
                ]
            rows.append((*member, name, *found, f"{len(told)} of {len(every)}"))
    return pd.DataFrame(rows, columns=ADJUSTED)
