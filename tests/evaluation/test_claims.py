"""Verdicts on estimators in words, and the intervals that they depend on."""

import numpy as np
import pytest
from scipy.stats import norm, t

from persistcal.evaluation.claims import Word, bounds_of, word_of
from persistcal.evaluation.knowledge import NEEDED
from persistcal.evaluation.samples import Bounds, Sample

ABOVE, AT_CHANCE, BELOW = (0.6, 0.7), (0.4, 0.6), (0.3, 0.4)
INSIDE, MISSING = (0.47, 0.53), (np.nan, np.nan)
KNOWS_NOTHING = {"knows": AT_CHANCE, "knows_changed": AT_CHANCE}
KNEW_NOTHING = {"knew": AT_CHANCE}
ONLY_DIFFICULTY = {"knows_changed": BELOW, "change_auc": AT_CHANCE}


@pytest.mark.parametrize(
    ("basis", "changed", "word", "lacking"),
    [
        ("cross", {}, "followed", ""),
        ("other examples", {}, "followed", ""),
        ("one ask", {}, "followed", ""),
        ("declared", {}, "followed, if no answer flips by itself (declared)", ""),
        ("samples", {}, "moved with the labels", ""),
        ("cross", {"knew_changed": AT_CHANCE}, "knows the new state only", "knew_changed"),
        ("cross", {"moved": INSIDE}, "knows, and did not move", "moved"),
        ("cross", KNOWS_NOTHING, "lost its knowledge", "knows"),
        ("cross", KNOWS_NOTHING | {"change_auc": AT_CHANCE}, "not shown", "knows"),
        (
            "cross",
            {"knows_changed": BELOW, "change_auc": AT_CHANCE},
            "not shown",
            "knows_changed",
        ),
        ("cross", {"moved": AT_CHANCE}, "not shown", "moved"),
        ("cross", {"moved": BELOW}, "moved against", "moved"),
        ("cross", KNEW_NOTHING | {"moved": INSIDE}, "did not move", "moved"),
        ("cross", KNEW_NOTHING | KNOWS_NOTHING, "not shown", "knew"),
        ("samples", {"moved": MISSING}, "too few changed questions", ""),
    ],
)
def test_the_word_follows_the_tests_in_their_order(basis, changed, word, lacking):
    ends = dict.fromkeys([*NEEDED, "change_auc"], ABOVE) | changed
    bounds = {name: Bounds(0.5, *of) for name, of in ends.items()}
    assert word_of(bounds, basis) == Word(word, lacking)


def test_next_to_a_control_the_flips_beyond_it_must_be_followed_too():
    bounds = dict.fromkeys([*NEEDED, "change_auc"], Bounds(0.65, *ABOVE))
    words = [
        word_of(bounds, "control", beyond=Bounds(0.1, *ends)).word
        for ends in ((0.05, 0.2), (-0.1, 0.2))
    ]
    assert words == ["followed", "not shown"]


def test_a_word_that_a_placebo_earns_is_withheld():
    bounds = dict.fromkeys([*NEEDED, "change_auc"], Bounds(0.65, *ABOVE))
    assert word_of(bounds, "cross", placebo="same scale") == Word(
        "not shown", "placebo: same scale"
    )


def test_the_interval_of_a_claim_includes_the_variation_of_seeds():
    replicates = 0.5 + 0.1 * norm.ppf((np.arange(4000) + 0.5) / 4000)
    by_seed = {17: 0.4, 18: 0.5, 19: 0.6}
    # Variance: .01 (questions) + .1² / 3 (seeds) = .01333, four times the part of the seeds.
    # Degrees of freedom: (3 − 1) × 4 = 8
    reach = t.ppf(0.975, 8) * np.sqrt(0.01 + 0.01 / 3)
    assert Sample(0.5, replicates, by_seed).interval() == pytest.approx(
        (0.5 - reach, 0.5 + reach), abs=1e-3
    )
    assert Sample(0.5, replicates, {17: 0.5}).interval() == pytest.approx(
        (0.304, 0.696), abs=1e-3
    )


def test_the_interval_of_a_claim_over_two_seeds_stays_in_the_range_of_the_metric():
    """Two seeds have one degree of freedom: .842 ± 12.7 × .03 leaves [0, 1]."""
    auc, balance = ({17: middle - 0.03, 18: middle + 0.03} for middle in (0.842, -0.9))
    replicates = np.linspace(-0.1, 0.1, 400)
    sample = Sample(0.842, 0.842 + replicates, auc)
    assert sample.interval()[1] > 1
    order = bounds_of("change_auc", sample)
    moved = bounds_of("delta0_balanced", Sample(-0.9, -0.9 + replicates, balance))
    assert order.upper == 1 and 0 < order.lower < 0.842
    assert moved.lower == -1 and -0.9 < moved.upper < 0


@pytest.mark.parametrize("n_seeds", [3, 5])
@pytest.mark.parametrize("ratio", [0.5, 2.0, 5.0])
def test_recipes_without_an_effect_are_claimed_in_at_most_7_percent_of_studies(n_seeds, ratio):
    """Seeds vary by `ratio` times the variation of samples of questions."""
    rng = np.random.default_rng(0)
    grid = norm.ppf((np.arange(200) + 0.5) / 200)
    claimed = 0
    for _ in range(600):
        by_seed = ratio * rng.normal(size=n_seeds) + rng.normal()
        of_seeds = dict(enumerate(by_seed.tolist(), 17))
        low, high = Sample(by_seed.mean(), by_seed.mean() + grid, of_seeds).interval()
        claimed += low > 0 or high < 0
    assert claimed / 600 <= 0.07
