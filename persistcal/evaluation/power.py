"""Power: the smallest difference that a study would find, and the questions that it takes.

Of a finished study the standard error of a difference comes from its replicates. Before there
is one, it comes from a guess: how often answers change between two checkpoints, and how often
two estimators agree on such a question. A standard error falls with the square root of the
number of questions; normal quantiles do the rest. Accuracies need no guess but the first, and
their test is exact.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, multivariate_normal, norm

LEVEL, POWER = 0.05, 0.8


def multiple() -> float:
    """Return how many standard errors a difference has that a two-sided test finds.

    1.96 + 0.84:

    >>> round(multiple(), 2)
    2.8
    """
    return float(norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER))


def questions_needed(difference: float, error: float, n: int) -> int:
    """Return how many questions it takes to find a difference that is not 0.

    `error` is its standard error in a study of n questions.

    Half of the difference takes four times the questions:

    >>> questions_needed(0.1, 0.05, 1000), questions_needed(0.05, 0.05, 1000)
    (1963, 7849)
    """
    return int(np.ceil(n * (multiple() * error / difference) ** 2))


class Flips(NamedTuple):
    """A guess of how answers change between two checkpoints, as shares of all questions."""

    gained: float
    lost: float

    @classmethod
    def of(cls, accuracy: float, flip_rate: float, difference: float = 0.0) -> "Flips":
        """Return the flips of two checkpoints whose accuracies differ by `difference`."""
        gained, lost = (flip_rate + difference) / 2, (flip_rate - difference) / 2
        if not (0 <= lost <= accuracy and 0 <= gained <= 1 - accuracy):
            raise ValueError(
                f"No {flip_rate:.0%} of answers can flip and move an accuracy of "
                f"{accuracy:.0%} by {difference:.0%}: the later checkpoint would lose "
                f"{lost:.0%} and gain {gained:.0%} of all questions; guess another flip rate."
            )
        return cls(gained, lost)


def accuracy_power(flips: Flips, n: int) -> float:
    """Return the power of McNemar's exact test on n questions.

    On 1,000 questions, of which 60 are gained and 40 lost, or 50 and 50:

    >>> round(accuracy_power(Flips(0.06, 0.04), 1000), 2)
    0.48
    >>> accuracy_power(Flips(0.05, 0.05), 1000) < 0.05
    True
    """
    rate = flips.gained + flips.lost
    if rate == 0:
        return 0.0
    changed = np.arange(n + 1)
    chance = binom.pmf(changed, n, rate)
    # the most losses, or gains, of that many changes at which the test rejects; −1: none
    most = binom.ppf(LEVEL / 2, changed, 0.5)
    most = np.where(binom.cdf(most, changed, 0.5) <= LEVEL / 2, most, most - 1)
    share = flips.lost / rate
    rejected = binom.cdf(most, changed, share) + binom.cdf(most, changed, 1 - share)
    return float(chance @ np.where(most < 0, 0, rejected))


def accuracy_difference(accuracy: float, flip_rate: float, n: int) -> float:
    """Return the smallest difference of two accuracies that n questions find; NaN if none is.

    It is at most the flip rate: then all flips are in one direction.
    """

    def lacking(difference: float) -> float:
        return accuracy_power(Flips.of(accuracy, flip_rate, difference), n) - POWER

    most = min(flip_rate, 2 * (1 - accuracy) - flip_rate)
    if most <= 0 or lacking(most) < 0:
        return float("nan")
    return float(brentq(lacking, 0, most, xtol=1e-4))


def delta0_error(flips: Flips, n: int, agreement: float, difference: float = 0.0) -> float:
    """Guess the standard error of a difference of two estimators' Δ₀ᵇ, on one pair.

    `agreement` is the share of the flipped questions on which both estimators have the same
    sign. Ties, which make the error smaller, are not guessed.

    Notes
    -----
    A difference of two signs is 0 or ±2, so that its variance is 4 (1 − agreement) minus the
    square of its mean. Gains and losses are two samples, and weigh one half each.
    """
    gained, lost = n * flips.gained, n * flips.lost
    variance = 4 * (1 - agreement) - difference**2
    return float(np.sqrt(max(0.0, variance) / 4 * (1 / gained + 1 / lost)))


def delta0_difference(flips: Flips, n: int, agreement: float) -> float:
    """Return the smallest difference of two Δ₀ᵇ that n questions find; at most as guessed."""
    error = delta0_error(flips, n, agreement)
    # d = m √(error² − d² s / 4), where s is 1 / gained + 1 / lost
    of_difference = error**2 / (4 * (1 - agreement))
    return multiple() * error / np.sqrt(1 + multiple() ** 2 * of_difference)


def auc_error(flips: Flips, n: int, auc: float, correlation: float) -> float:
    """Guess the standard error of a difference of two estimators' contrast AUCs, on one pair.

    Both are about `auc`; `correlation` is that of the two estimates.

    Notes
    -----
    Each flipped question is one right and one wrong answer, whose conditioned confidences
    sum to 1: as many independent numbers as questions, m = n (gained + lost). A question
    weighs by the share of wrong answers that its right one is above, so that the variance of
    an AUC is 4 (q − AUC²) / m, where q is the chance that a right answer is above two wrong
    ones. That is taken from normal confidences: both comparisons share the right answer, so
    that they correlate by one half.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More
       Correlated Receiver Operating Characteristic Curves", Biometrics 1988.
    """
    m = n * (flips.gained + flips.lost)
    above_both = multivariate_normal(cov=[[1, 0.5], [0.5, 1]]).cdf(np.full(2, norm.ppf(auc)))
    return float(np.sqrt(2 * 4 * (above_both - auc**2) / m * (1 - correlation)))
