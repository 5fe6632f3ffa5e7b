"""How often the claims of a study find the difference that `persistcal plan` promises.

    python -m benchmarks.planned_power [STUDIES]

writes benchmarks/outputs/planned_power.csv. Each study asks 2,000 questions and draws which of
them are gained and lost. The first estimator is better than the others by the smallest
difference that the plan promises to find in 80 %. As in `compare`, a study claims this if the
simultaneous interval of the difference to the second estimator is above 0. A single estimator
has the smallest AUC that the plan promises for *moved* or for all five tests of *followed*.
"""

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm

from benchmarks.knew_moved_knows import bootstrap_of, rated_sets
from persistcal.evaluation.draws import (
    PSEUDO,
    balanced_replicates,
    pseudo_weights,
    question_weights,
)
from persistcal.evaluation.knowledge import CHANCE, NEEDED, sample_knowledge
from persistcal.evaluation.power import (
    LEVEL,
    Flips,
    Guess,
    auc_difference,
    delta0_difference,
    knowledge_difference,
)
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import compare_all
from persistcal.evaluation.weighted import auc, balanced_gap

OUTPUTS = Path(__file__).parent / "outputs"
N, REPLICATES, SHARED_DRAWS = 2_000, 399, 20
CELLS = [  # expected gained and lost questions, agreement of signs, share of ties
    (220, 38, 0.7, 0.0),
    (195, 70, 0.7, 0.0),
    (121, 119, 0.7, 0.0),
    (60, 20, 0.6, 0.0),
    (40, 5, 0.5, 0.0),
    (121, 119, 0.7, 0.2),
    (121, 119, 0.9, 0.2),
]


def signs(
    rng: np.random.Generator,
    n: int,
    m: int,
    agreement: float,
    difference: float,
    ties: float = 0.0,
) -> np.ndarray:
    """Draw signs of m estimators on n changed questions: (m, n); the first one is better.

    With probability √(2 agreement − 1) all estimators share a sign, which is right or wrong
    with equal probability. Otherwise each estimator draws a sign, which is right more often for
    the first estimator and less often for the others. With probability `ties` it is 0 instead.
    """
    difference = difference / (1 - ties)
    shared = np.sqrt(2 * agreement - 1)
    chance = np.full((m, 1), 0.5 - difference / (4 * (1 - shared)))
    chance[0] = 1 - chance[0]
    separate = rng.random((m, n)) < chance
    common = rng.random((m, n)) < shared
    right = np.where(common, rng.random(n) < 0.5, separate)
    made = np.where(right, 1.0, -1.0)
    return np.where(rng.random((m, n)) < ties, 0.0, made) if ties else made


def share_of_claims(
    flips: Flips,
    *,
    agreement: float,
    difference: float,
    m: int,
    studies: int,
    ties: float = 0.0,
) -> float:
    """Return the share of studies that claim that the first estimator is above the second."""
    rng, claims, questions = np.random.default_rng(5), 0, np.arange(N)
    for number in range(studies):
        if number % SHARED_DRAWS == 0:
            weights = question_weights(questions, questions, range(REPLICATES), seed=number)
        gained, lost, _ = rng.multinomial(N, [*flips, 1 - sum(flips)])
        if min(gained, lost) < EvaluationSettings.min_direction:
            continue
        drawn = signs(rng, gained + lost, m, agreement, difference, ties)
        is_gained = np.arange(gained + lost) < gained
        replicates = [
            balanced_replicates(
                row[None],
                is_gained,
                weights[: gained + lost],
                pseudo_weights([b"%d" % i], REPLICATES, seed=number, expected=PSEUDO),
            )
            for i, row in enumerate(drawn)
        ]
        values = np.asarray(balanced_gap(drawn, is_gained)).ravel()
        made = compare_all(values, np.concatenate(replicates), min(gained, lost))
        claims += bool(made.above[0, 1])
    return claims / studies


def share_of_auc_claims(guess: Guess, *, difference: float, studies: int) -> float:
    """Return the share of studies that claim a higher contrast AUC of the first estimator.

    The confidences are normal scores, higher for right answers than for wrong ones. Their rank
    correlation between estimators is `guess.correlation`.
    """
    correlation = 2 * np.sin(np.pi * guess.correlation / 6)  # Pearson from Spearman
    rng, claims = np.random.default_rng(6), 0
    means = np.full((guess.estimators, 1), norm.ppf(guess.auc - difference / 2) / np.sqrt(2))
    means[0] = norm.ppf(guess.auc + difference / 2) / np.sqrt(2)
    for number in range(studies):
        n = max(2, rng.binomial(N, guess.flip_rate))
        shared = np.sqrt(correlation) * rng.normal(size=n)
        separate = np.sqrt(1 - correlation) * rng.normal(size=(guess.estimators, n))
        right = expit(means + shared + separate)
        labels = np.repeat([True, False], n)
        counts = (
            np.random.default_rng([7, number])
            .multinomial(n, np.full(n, 1 / n), size=REPLICATES)
            .T
        )
        confidences = [np.concatenate([row, 1 - row]) for row in right]
        weights = np.tile(counts, (2, 1))
        drawn = np.array([auc(c, labels, weights=weights) for c in confidences])
        values = np.array([auc(c, labels) for c in confidences]).ravel()
        claims += bool(compare_all(values, drawn, n).above[0, 1])
    return claims / studies


def share_of_tests(guess: Guess, *, auc: float, studies: int) -> dict[str, float]:
    """Return the shares of studies in which an estimator passes *moved*, and all five tests.

    A confidence is normal, higher where the answer is right, and correlates by ½ between both
    checkpoints.
    """
    passed = np.zeros((studies, 2))
    flips, level = guess.flips, LEVEL / guess.estimators
    for number in range(studies):
        rng = np.random.default_rng([8, number])
        first = rng.random(guess.questions) < guess.accuracy
        share = np.where(
            first, flips.lost / guess.accuracy, flips.gained / (1 - guess.accuracy)
        )
        labels = np.array([first, first ^ (rng.random(guess.questions) < share)])
        noise = rng.normal(size=(3, guess.questions))
        confidence = norm.ppf(auc) * np.sqrt(2) * labels + (noise[:2] + noise[2]) / np.sqrt(2)
        settings = EvaluationSettings(min_contrast=1, n_replicates=999, seed=number)
        bootstrap = bootstrap_of(np.arange(guess.questions), settings)
        samples = sample_knowledge(rated_sets([labels], [confidence]), bootstrap)
        above = [
            bool(sample.interval(level)[0] > CHANCE)
            for name in NEEDED
            for sample in samples[name].values()
        ]
        passed[number] = above[NEEDED.index("moved")], all(above)
    return dict(zip(("moved", "followed"), passed.mean(axis=0).tolist(), strict=True))


def rows(studies: int) -> Iterator[dict[str, object]]:
    """Yield the promise of each plan and the share of studies that keep it, in per cent."""
    for gained, lost, agreement, ties in CELLS:
        flips = Flips(gained / N, lost / N)
        for m in (2, 5):
            promised = delta0_difference(flips, N, agreement, m, ties)
            row = {"metric": "Δ₀ᵇ", "gained": gained, "lost": lost, "estimators": m}
            row |= {"difference": promised, "found": np.nan, "ties": ties}
            if not np.isnan(promised):
                row["found"] = 100 * share_of_claims(
                    flips,
                    agreement=agreement,
                    difference=promised,
                    m=m,
                    studies=studies,
                    ties=ties,
                )
            yield row
    for m in (2, 5):
        guess = Guess(N, 220, 38, 0.5, 0.7, 0.65, m)
        promised = auc_difference(guess)
        share = share_of_auc_claims(guess, difference=promised, studies=studies)
        row = {"metric": "contrast AUC", "gained": 220, "lost": 38, "estimators": m}
        yield row | {"difference": promised, "found": 100 * share}
    for (gained, lost), m in product(((220, 38), (121, 119)), (2, 5)):
        guess = Guess(N, gained, lost, 0.5, 0.7, 0.65, m)
        for metric in ("moved", "followed"):
            promised = knowledge_difference(guess, followed=metric == "followed")
            share = share_of_tests(guess, auc=promised, studies=studies)[metric]
            row = {"metric": metric, "gained": gained, "lost": lost, "estimators": m}
            yield row | {"difference": promised, "found": 100 * share}


if __name__ == "__main__":
    table = []
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 500):
        table.append(row)
        print(row, flush=True)
    pd.DataFrame(table).round({"difference": 3, "found": 1}).to_csv(
        OUTPUTS / "planned_power.csv", index=False
    )
