"""Power: the smallest difference that a study detects, and the number of questions for it.

A finished study takes the standard error of a difference from its replicates. A planned study
guesses it from the share of questions that are gained and lost between two checkpoints, and
from how often two estimators agree on such a question. Standard errors decrease with the square
root of the number of questions. Accuracies need only the first guess, and their test is exact.
"""

from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, multivariate_normal, norm

from persistcal.evaluation.draws import MIN_DIRECTION

LEVEL, POWER = 0.05, 0.8
# Standard errors in a difference that a two-sided test finds: 1.96 + 0.84
MULTIPLE = float(norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER))
MOST_QUESTIONS = 10_000_000
LEAST_DIFFERENCE = 1e-6


def questions_needed(difference: float, error: float, n: int) -> int:
    """Return how many questions it takes to find a difference that is not 0.

    `error` is its standard error in a study of n questions.

    Half of the difference takes four times the questions:

    >>> questions_needed(0.1, 0.05, 1000), questions_needed(0.05, 0.05, 1000)
    (1963, 7849)
    """
    if difference < LEAST_DIFFERENCE:
        raise ValueError(f"difference is {difference:g}; give at least {LEAST_DIFFERENCE:g}")
    needed = n * (MULTIPLE * error / difference) ** 2
    return int(np.ceil(needed - 1e-9 * needed))  # rounding adds no question


class Flips(NamedTuple):
    """A guess of how answers change between two checkpoints, as shares of all questions."""

    gained: float
    lost: float

    @classmethod
    def from_accuracy(
        cls, accuracy: float, flip_rate: float, difference: float = 0.0
    ) -> "Flips":
        """Return the flips of two checkpoints with accuracies that differ by `difference`."""
        gained, lost = (flip_rate + difference) / 2, (flip_rate - difference) / 2
        if not (0 <= lost <= accuracy and 0 <= gained <= 1 - accuracy):
            raise ValueError(
                f"No {flip_rate:.0%} of answers can flip and move an accuracy of "
                f"{accuracy:.0%} by {difference:.0%}: the later checkpoint would lose "
                f"{lost:.0%} and gain {gained:.0%} of all questions; guess other changes or "
                "another accuracy."
            )
        return cls(gained, lost)


def accuracy_power(flips: Flips, n: int) -> float:
    """Return the power of McNemar's exact test on n questions.

    On 1,000 questions with 60 gained and 40 lost, and with 50 and 50:

    >>> round(accuracy_power(Flips(0.06, 0.04), 1000), 2)
    0.48
    >>> accuracy_power(Flips(0.05, 0.05), 1000) < 0.05
    True
    """
    rate = sum(flips)
    if rate == 0:
        return 0.0
    reach = 10 * (np.sqrt(n * rate) + 1)  # standard deviations, more than nine
    changed = np.arange(max(0, int(n * rate - reach)), min(n, int(n * rate + reach)) + 1)
    chance = binom.pmf(changed, n, rate)
    # the largest number of losses (or gains) at which the test rejects; −1 if it never does
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
        return accuracy_power(Flips.from_accuracy(accuracy, flip_rate, difference), n) - POWER

    most = min(flip_rate, 2 * (1 - accuracy) - flip_rate)
    if most <= 0 or lacking(most) < 0:
        return float("nan")
    return float(brentq(lacking, 0, most, xtol=1e-4))


def delta0_error(flips: Flips, n: int, agreement: float, difference: float = 0.0) -> float:
    """Guess the standard error of a difference of two estimators' Δ₀ᵇ, on one pair.

    `agreement` is the share of the flipped questions on which both estimators have the same
    sign. Ties would make the error smaller; they are not modelled. The difference of two signs
    is 0 or ±2, so it has the variance 4 (1 − agreement) minus the squared mean. Gained and lost
    questions are two samples with a weight of one half each.
    """
    gained, lost = n * flips.gained, n * flips.lost
    variance = 4 * (1 - agreement) - difference**2
    return float(np.sqrt(max(0.0, variance) / 4 * (1 / gained + 1 / lost)))


def delta0_difference(flips: Flips, n: int, agreement: float) -> float:
    """Return the smallest difference of two Δ₀ᵇ that n questions detect, or NaN.

    The largest possible difference is 2 (1 − agreement): one estimator is right on all
    questions on which they disagree. With fewer than 5 gained or lost questions no difference
    is detected.
    """
    if n < _questions_at_least(flips):
        return float("nan")
    error = delta0_error(flips, n, agreement)
    # d = m √(error² − d² s / 4), where s is 1 / gained + 1 / lost
    of_difference = error**2 / (4 * (1 - agreement))
    difference = float(MULTIPLE * error / np.sqrt(1 + MULTIPLE**2 * of_difference))
    return difference if difference <= 2 * (1 - agreement) else float("nan")


def delta0_questions(flips: Flips, difference: float, agreement: float) -> int | None:
    """Return how many questions detect a difference of two Δ₀ᵇ; None if it is impossible.

    The inverse of `delta0_difference`:

    >>> flips = Flips(0.11, 0.019)
    >>> delta0_questions(flips, delta0_difference(flips, 2000, 0.7), 0.7)
    2000
    """
    if difference > 2 * (1 - agreement):
        return None
    needed = questions_needed(difference, delta0_error(flips, 1, agreement, difference), 1)
    return max(needed, _questions_at_least(flips))


def _questions_at_least(flips: Flips) -> int:
    """Return how many questions have enough gained and lost ones among them."""
    return int(np.ceil(MIN_DIRECTION / min(flips) - 1e-9))


def auc_error(flips: Flips, n: int, auc: float, correlation: float) -> float:
    """Guess the standard error of a difference of two estimators' contrast AUCs, on one pair.

    Both AUCs are near `auc`, and `correlation` is the correlation of the two estimates.

    Each flipped question has one right and one wrong answer. Their conditioned confidences
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
    m = n * sum(flips)
    above_both = multivariate_normal(cov=[[1, 0.5], [0.5, 1]]).cdf(np.full(2, norm.ppf(auc)))
    return float(np.sqrt(2 * 4 * (above_both - auc**2) / m * (1 - correlation)))


@dataclass(frozen=True)
class Guess:
    """A guess of two checkpoints, and of two estimators on the questions that change.

    The later checkpoint gains and loses that many of the `questions`; `accuracy` is the earlier
    checkpoint's. On the changed questions two estimators have the same sign on a share
    `agreement`, a contrast AUC of about `auc`, and AUCs that correlate by `correlation`.
    """

    questions: int
    gained: int
    lost: int
    accuracy: float
    agreement: float
    auc: float
    correlation: float

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be."""
        check_count("questions", self.questions)
        for name in ("gained", "lost"):
            check_count(name, getattr(self, name), most=self.questions)
        if (changed := self.gained + self.lost) > self.questions:
            raise ValueError(
                f"{changed:,} questions change, but only {self.questions:,} are asked; give "
                "the gained and lost among them"
            )
        for name in ("accuracy", "agreement", "auc", "correlation"):
            check_share(name, getattr(self, name))
        gained, lost = self.flips
        Flips.from_accuracy(self.accuracy, self.flip_rate, gained - lost)

    @property
    def flips(self) -> Flips:
        """Gained and lost questions as shares of all."""
        return Flips(self.gained / self.questions, self.lost / self.questions)

    @property
    def flip_rate(self) -> float:
        """Changed questions as a share of all."""
        return (self.gained + self.lost) / self.questions


class Findable(NamedTuple):
    """The smallest difference that a study detects, and the questions for another difference.

    The difference is NaN if the study cannot detect any. `questions` is None if two estimators
    cannot differ so much, and if no other difference was given.
    """

    measure: str
    difference: float
    questions: int | None


def findable(guess: Guess, difference: float | None = None) -> list[Findable]:
    """Return the differences that a study finds with a power of 80 %.

    `difference` is one between two estimators: how many questions find it?
    """
    n, flips = guess.questions, guess.flips
    accuracy = accuracy_difference(guess.accuracy, guess.flip_rate, n)
    delta0 = delta0_difference(flips, n, guess.agreement)
    error = auc_error(flips, n, guess.auc, guess.correlation)
    widest = 2 * min(guess.auc, 1 - guess.auc)  # of two AUCs in [0, 1] with the mean `auc`
    auc = MULTIPLE * error if MULTIPLE * error <= widest else float("nan")
    for_delta0 = for_auc = None
    if difference is not None:
        check_share("difference", difference)
        for_delta0 = delta0_questions(flips, difference, guess.agreement)
        for_auc = questions_needed(difference, error, n) if difference <= widest else None
    return [
        Findable("accuracy of two checkpoints", accuracy, None),
        Findable("Δ₀ᵇ of two estimators", delta0, for_delta0),
        Findable("contrast AUC of two estimators", auc, for_auc),
    ]


def check_share(name: str, value: float) -> None:
    """Refuse a number that is not between 0 and 1."""
    if not isinstance(value, Real) or not 0 < value < 1:
        shown = f"{value:g}" if isinstance(value, Real) else repr(value)
        raise ValueError(f"{name} is {shown}; give a number between 0 and 1")


def check_count(name: str, value: float, most: int = MOST_QUESTIONS) -> None:
    """Refuse a number that cannot count questions."""
    if not isinstance(value, Real) or not (1 <= value <= most and value == value // 1):
        shown = f"{value:,}" if isinstance(value, Real) else repr(value)
        raise ValueError(f"{name} is {shown}; give a whole number from 1 to {most:,}")
