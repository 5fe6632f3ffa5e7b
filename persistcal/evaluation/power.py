"""Power: the smallest difference that a study claims, and the number of questions for it.

A claim is a simultaneous interval of all pairs of estimators that excludes 0. A finished study
takes the standard error of a difference from its replicates. A planned study guesses it from
the share of questions that are gained and lost between two checkpoints, and from how often two
estimators agree on such a question; how many questions change is random. Standard errors
decrease with the square root of the number of questions. Accuracies need only the first guess,
and their test is exact. The tests of one estimator (*knew*, *moved*, *knows*) also need only
the first guess.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import binom, multivariate_normal, norm, qmc, t

from persistcal.evaluation.draws import PSEUDO_AUC
from persistcal.evaluation.knowledge import CHANCE
from persistcal.evaluation.predictions import Array
from persistcal.evaluation.settings import EvaluationSettings

LEVEL, POWER = 0.05, 0.8
# Standard errors in a difference that a two-sided test finds: 1.96 + 0.84
MULTIPLE = float(norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER))
MOST_QUESTIONS = 10_000_000
LEAST_DIFFERENCE = 1e-6
MOST_ESTIMATORS = 100
ONE_TEST = "AUC above .5, for knew, moved or knows"
ALL_TESTS = "AUC above .5 in all five tests, for followed"
# Simulated studies, spread evenly over all possible ones; fewer for bivariate normals
N_WORLDS, N_SLOW = 2**11, 2**8


def questions_needed(
    difference: float, error: float, n: int, multiple: float = MULTIPLE
) -> int:
    """Return how many questions it takes to find a difference that is not 0.

    `error` is its standard error in a study of n questions, and `multiple` how many standard
    errors the difference must have.

    Half of the difference takes four times the questions:

    >>> questions_needed(0.1, 0.05, 1000), questions_needed(0.05, 0.05, 1000)
    (1963, 7849)
    """
    if difference < LEAST_DIFFERENCE:
        raise ValueError(f"difference is {difference:g}; give at least {LEAST_DIFFERENCE:g}")
    needed = n * (multiple * error / difference) ** 2
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
    # the test rejects up to this number of losses (or gains); −1 if it never rejects
    most = binom.ppf(LEVEL / 2, changed, 0.5)
    most = np.where(binom.cdf(most, changed, 0.5) <= LEVEL / 2, most, most - 1)
    share = flips.lost / rate
    rejected = binom.cdf(most, changed, share) + binom.cdf(most, changed, 1 - share)
    return float(chance @ np.where(most < 0, 0, rejected))


def accuracy_difference(accuracy: float, flip_rate: float, n: int) -> float:
    """Return the smallest difference of two accuracies that n questions find; NaN if none is.

    It is at most the flip rate: then all flips are in one direction.
    """
    return _smallest(
        lambda d: accuracy_power(Flips.from_accuracy(accuracy, flip_rate, d), n),
        min(flip_rate, 2 * (1 - accuracy) - flip_rate),
    )


def _smallest(power: Callable[[float], float], most: float, least: float = 0.0) -> float:
    """Return the smallest difference with a power of 80 %; NaN if even `most` has less."""
    if most <= least or power(most) < POWER:
        return float("nan")
    return float(brentq(lambda difference: power(difference) - POWER, least, most, xtol=1e-5))


def critical_value(n_estimators: int, n_questions: ArrayLike) -> Array:
    """Guess the critical value of simultaneous intervals of all pairs of estimators.

    It is Bonferroni's for all pairs, which the bootstrap's maximum hardly exceeds, for
    Student's distribution with the effective number of questions, as in
    `persistcal.evaluation.significance.compare_all`.

    >>> [round(float(critical_value(m, 1e9)), 2) for m in (2, 5)]
    [1.96, 2.81]
    """
    normal = norm.isf(LEVEL / (n_estimators * (n_estimators - 1)))
    freedom = np.maximum(1.0, np.asarray(n_questions, float) - 1)
    return np.sqrt(1 + 1 / freedom) * t.isf(norm.sf(normal), freedom)


def delta0_power(
    flips: Flips,
    n: int,
    agreement: float,
    difference: float,
    n_estimators: int = 2,
    ties: float = 0.0,
) -> float:
    """Return how often a better estimator is claimed to be above another one, by Δ₀ᵇ.

    The study has one pair of checkpoints and asks n questions; how many it gains and loses is
    random. On a share `ties` of these an estimator's confidence stays equal, whatever the other
    one's does, so its sign is 0. `agreement` is the share of the other flipped questions on
    which both estimators have the same sign. Two signs differ by 2 or −2 if they
    disagree, and by 1 or −1 if one of them is 0. The weights of
    `persistcal.evaluation.draws.balanced_replicates` determine the error: each estimator has
    its own pseudo-questions, with variance 1 in each direction.
    """
    shares = _uniform()
    gained, lost = _changed(flips, n)
    enough = np.minimum(gained, lost) >= EvaluationSettings.min_direction
    gained, lost = np.maximum(gained, 1), np.maximum(lost, 1)
    untied, apart = 1 - ties, difference / (1 - ties)
    chances = {
        2: untied**2 * ((1 - agreement) / 2 + apart / 4),
        -2: untied**2 * max(0.0, (1 - agreement) / 2 - apart / 4),
        1: ties * untied * (1 + apart / 2),
        -1: ties * untied * (1 - apart / 2),
    }
    total = variance = np.zeros(N_WORLDS)
    for questions, uniform in ((gained, shares[[2, 3, 6, 7]]), (lost, shares[[4, 5, 8, 9]])):
        left, rest, summed, squares = questions, 1.0, 0.0 * questions, 2.0 + 0.0 * questions
        for share, (value, chance) in zip(uniform, chances.items(), strict=True):
            count = binom.ppf(share, left, min(1.0, chance / rest) if rest > 0 else 0.0)
            left, rest = left - count, rest - chance
            summed, squares = summed + value * count, squares + value**2 * count
        total = total + summed / questions
        mean = summed / (questions + 1)
        variance = variance + (squares / (questions + 1) - mean**2) / questions
    critical = critical_value(n_estimators, np.minimum(gained, lost))
    return float(np.mean(enough & (total > critical * np.sqrt(variance))))


def _changed(flips: Flips, n: int) -> tuple[Array, Array]:
    """Return how many of n questions are gained and lost in the simulated studies."""
    shares = _uniform()
    gained = binom.ppf(shares[0], n, flips.gained)
    return gained, binom.ppf(shares[1], n - gained, flips.lost / (1 - flips.gained))


@cache
def _uniform() -> Array:
    """Return the random numbers of all simulated studies, so that power rises smoothly."""
    even = qmc.Sobol(6, seed=0).random(N_WORLDS).T
    for_ties = np.random.default_rng(0).random((4, N_WORLDS))
    return np.clip(np.concatenate([even, for_ties]), 1e-9, 1 - 1e-9)


def delta0_difference(
    flips: Flips, n: int, agreement: float, n_estimators: int = 2, ties: float = 0.0
) -> float:
    """Return the smallest difference of two Δ₀ᵇ that is claimed in 80 % of studies, or NaN.

    The largest possible difference is 2 (1 − agreement) (1 − ties): a single estimator is right
    whenever both disagree.
    """
    return _smallest(
        lambda d: delta0_power(flips, n, agreement, d, n_estimators, ties),
        2 * (1 - agreement) * (1 - ties),
    )


def delta0_questions(
    flips: Flips, difference: float, agreement: float, n_estimators: int = 2, ties: float = 0.0
) -> int | None:
    """Return how many questions lead to a claim in 80 % of studies, or None.

    The inverse of `delta0_difference`, to three significant digits.
    """
    if difference > 2 * (1 - agreement) * (1 - ties):
        return None
    return _questions(
        lambda n: delta0_power(flips, n, agreement, difference, n_estimators, ties)
    )


def _questions(power: Callable[[int], float]) -> int | None:
    """Return the smallest number of questions with a power of 80 %, to three digits."""
    low, high = 1, 64
    while power(high) < POWER:
        low, high = high, 2 * high
        if high > MOST_QUESTIONS:
            return None
    while high - low > max(1, high // 500):
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    unit = 10 ** max(0, len(str(high)) - 3)
    return -(-high // unit) * unit


def _above_both(auc: ArrayLike) -> Array:
    """Return the chance that a normal confidence is above two of the lower kind."""
    return np.asarray(_normal_pair(0.5).cdf(np.stack([norm.ppf(auc)] * 2, axis=-1)))


def _normal_pair(correlation: float) -> Any:  # noqa: ANN401
    return multivariate_normal(cov=[[1, correlation], [correlation, 1]])


def knowledge_power(guess: "Guess", auc: float, *, followed: bool = False) -> float:
    """Return how often an estimator passes one test of *knew*, *moved* or *knows*, or all five.

    Each checkpoint's confidence is normal, with the AUC `auc` between right and wrong answers.
    Confidences of both checkpoints correlate by ½ in questions of the same kind: then all five
    AUCs are `auc`. Errors follow DeLong and others, with the pseudo-questions of
    `persistcal.evaluation.influence`. The tests among changed questions are the hardest. Their
    errors correlate by −6 / π arcsin ¼, because a common part of both confidences helps a
    single test.
    """
    n, flips = guess.questions, guess.flips
    gained, lost = (of[:N_SLOW] for of in _changed(flips, n))
    right, wrong = n * guess.accuracy - lost, n * (1 - guess.accuracy) - gained
    counts = np.array([gained, lost, right, wrong])
    enough = counts.min(axis=0) >= EvaluationSettings.min_direction
    gained, lost, right, wrong = np.maximum(counts, 1)
    critical = norm.isf(LEVEL / guess.estimators / 2)

    def score(*pairs: tuple[Array, Array]) -> Array:
        """Return by how many errors a mean of AUCs of two strata each passes."""

        def error(area: ArrayLike, pseudo: float) -> Array:
            """Return the standard error at an AUC: of the mean, or for an interval."""
            chance, among = np.asarray(area), _above_both(area)
            variance = np.zeros(N_SLOW)
            for a, b in pairs:
                inner = chance * (1 - chance) + (a + b - 2) * (among - chance**2)
                edges = pseudo * (chance**2 + (1 - chance) ** 2) * (a**-2 + b**-2)
                variance = variance + inner / (a * b) + edges
            return np.asarray(np.sqrt(variance) / len(pairs))

        # the interval that just passes belongs to a lower AUC, so it is wider
        border = np.minimum(0.5 + critical * error(0.5, PSEUDO_AUC), 0.999)
        lower = 0.5 + critical * error(border, PSEUDO_AUC)
        extra = 2 * PSEUDO_AUC
        shrunk = np.mean([a * b / ((a + extra) * (b + extra)) for a, b in pairs], axis=0)
        return np.asarray((shrunk * (auc - 0.5) - (lower - 0.5)) / error(auc, 0.0))

    power = norm.cdf(score((gained, wrong), (lost, right)))
    if followed:
        changed = score((gained, lost))
        both = _normal_pair(-6 / np.pi * np.arcsin(0.25)).cdf(np.stack([changed] * 2, axis=-1))
        power = power**3 * both
    return float(np.mean(enough * power))


def knowledge_difference(guess: "Guess", *, followed: bool = False) -> float:
    """Return the smallest AUC that passes in 80 % of studies, or NaN."""
    return _smallest(lambda auc: knowledge_power(guess, auc, followed=followed), 0.999, CHANCE)


def auc_power(guess: "Guess", n: int, difference: float) -> float:
    """Return how often a better estimator is claimed to be above another one, by its AUC.

    The number of changed questions among n is random. Each has one right and one wrong answer,
    with confidences that sum to 1: as many independent numbers as changed questions, m. The
    variance of an AUC is 4 (q − AUC²) / m, where q is the chance that a right answer is above
    two wrong ones [1]_, taken from normal confidences.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More
       Correlated Receiver Operating Characteristic Curves", Biometrics 1988.
    """
    changed = np.maximum(1, binom.ppf(_uniform()[0], n, guess.flip_rate))
    variance = 4 * (_above_both(guess.auc) - guess.auc**2) / (n * sum(guess.flips))
    error = float(np.sqrt(2 * variance * (1 - guess.correlation)))
    errors = error * np.sqrt(n * guess.flip_rate / changed)
    critical = critical_value(guess.estimators, changed)
    return float(norm.sf(critical - difference / errors).mean())


def auc_difference(guess: "Guess") -> float:
    """Return the smallest difference of two AUCs that is claimed in 80 %, or NaN."""
    widest = 2 * min(guess.auc, 1 - guess.auc)  # of two AUCs in [0, 1] with the mean `auc`
    return _smallest(lambda difference: auc_power(guess, guess.questions, difference), widest)


@dataclass(frozen=True)
class Guess:
    """A guess of two checkpoints, and of two estimators on the questions that change.

    The later checkpoint is expected to gain and lose that many of the `questions`; `accuracy`
    is the earlier checkpoint's. On the changed questions two of the `estimators` have the same
    sign on a share `agreement`, and a contrast AUC of about `auc`. On a share `ties` an
    estimator's confidence stays equal.
    """

    questions: int
    gained: int
    lost: int
    accuracy: float = 0.5
    agreement: float = 0.7
    auc: float = 0.65
    estimators: int = 2
    ties: float = 0.0

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be."""
        check_count("questions", self.questions)
        check_count("estimators", self.estimators, least=2, most=MOST_ESTIMATORS)
        for name in ("gained", "lost"):
            check_count(name, getattr(self, name), most=self.questions)
        if (changed := self.gained + self.lost) > self.questions:
            raise ValueError(
                f"{changed:,} questions change, but only {self.questions:,} are asked; give "
                "the gained and lost among them"
            )
        for name in ("accuracy", "agreement", "auc"):
            check_share(name, getattr(self, name))
        if self.ties != 0:
            check_share("ties", self.ties)
        gained, lost = self.flips
        Flips.from_accuracy(self.accuracy, self.flip_rate, gained - lost)

    @property
    def flips(self) -> Flips:
        """Gained and lost questions as shares of all."""
        return Flips(self.gained / self.questions, self.lost / self.questions)

    @property
    def correlation(self) -> float:
        """Correlation of two estimators' AUCs.

        Signs agree on that share if normal scores correlate by sin(π (agreement − 1/2)), and
        their ranks, on which AUCs rest, by 6 / π arcsin of half of that.
        """
        scores = np.sin(np.pi * (self.agreement - 0.5))
        return float(6 / np.pi * np.arcsin(scores / 2))

    @property
    def flip_rate(self) -> float:
        """Changed questions as a share of all."""
        return (self.gained + self.lost) / self.questions


class Findable(NamedTuple):
    """The smallest difference that a study detects, and the questions for another difference.

    For the tests of one estimator it is the AUC itself. The difference is NaN if the study
    cannot detect any. `questions` is None if two estimators cannot differ so much, and if no
    other difference was given.
    """

    measure: str
    difference: float
    questions: int | None


def findable(guess: Guess, difference: float | None = None) -> list[Findable]:
    """Return the differences that a study claims with a power of 80 %.

    `difference` is one between two estimators: how many questions lead to the claim?
    """
    n, flips = guess.questions, guess.flips
    accuracy = accuracy_difference(guess.accuracy, guess.flip_rate, n)
    of_two = guess.agreement, guess.estimators, guess.ties
    delta0 = delta0_difference(flips, n, *of_two)
    for_delta0 = for_auc = None
    if difference is not None:
        check_share("difference", difference)
        for_delta0 = delta0_questions(flips, difference, *of_two)
        if difference <= 2 * min(guess.auc, 1 - guess.auc):
            for_auc = _questions(lambda size: auc_power(guess, size, difference))
    return [
        Findable("accuracy of two checkpoints", accuracy, None),
        Findable("Δ₀ᵇ of two estimators", delta0, for_delta0),
        Findable("contrast AUC of two estimators", auc_difference(guess), for_auc),
        Findable(ONE_TEST, knowledge_difference(guess), None),
        Findable(ALL_TESTS, knowledge_difference(guess, followed=True), None),
    ]


def check_share(name: str, value: float) -> None:
    """Refuse a number that is not between 0 and 1."""
    if not isinstance(value, Real) or not 0 < value < 1:
        text = f"{value:g}" if isinstance(value, Real) else repr(value)
        raise ValueError(f"{name} is {text}; give a number between 0 and 1")


def check_count(name: str, value: float, least: int = 1, most: int = MOST_QUESTIONS) -> None:
    """Refuse a number that cannot be a count."""
    if not isinstance(value, Real) or not (least <= value <= most and value == value // 1):
        text = f"{value:,}" if isinstance(value, Real) else repr(value)
        raise ValueError(f"{name} is {text}; give a whole number from {least} to {most:,}")
