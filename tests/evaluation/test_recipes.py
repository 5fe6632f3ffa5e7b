"""Intervals over seeds and questions: by hand, and how often they hold a known truth."""

import statistics

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from simulated_seeds import coverage
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.replicates import replicate_metrics
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import compare_blocks, intervals, recipe_interval

HOW = {"min_contrast": 5, "n_replicates": 40, "seed": 3, "conditionings": ["odds"]}
DRAWN = np.array([0.1, 0.2, 0.3])  # of variance 0.01


def test_seeds_and_questions_by_hand():
    one = {17: 0.2, 18: 0.3, 19: 0.1}  # of variance 0.01
    # variance 0.01 + 0.01 / 3 = 1 / 75; degrees of freedom (1/75)² / ((1/300)² / 2) = 32;
    # Student's 97.5 % quantile there is 2.037
    n, low, high, p = recipe_interval(0.2, DRAWN, [one])
    assert n == 3
    reach = 2.037 / 75**0.5
    assert (low, high) == pytest.approx((0.2 - reach, 0.2 + reach), abs=1e-4)
    assert p == pytest.approx(2 * 0.0464, abs=1e-4)  # of ±0.2 √75 = ±1.732
    # An estimator that is not random adds nothing, and equal seeds are paired: 0 in all three.
    assert recipe_interval(0.2, DRAWN, [one, {0: 0.5}]) == (n, low, high, p)
    paired = recipe_interval(0.0, DRAWN - 0.2, [one, one])
    assert paired.upper == pytest.approx(1.96 * 0.1, abs=1e-4)
    # Other seeds are not: twice 0.01 / 3, with (1/60)² / (2 (1/300)² / 2) = 25 degrees
    apart = recipe_interval(0.0, DRAWN - 0.2, [one, {k + 9: v for k, v in one.items()}])
    assert apart.upper == pytest.approx(2.0595 / 60**0.5, abs=1e-4)


def test_noise_of_the_questions_counts_once():
    one = {17: 0.2, 18: 0.3, 19: 0.1}
    # the variance between seeds is 0.01, of which 0.004 is noise: 0.01 + 0.006 / 3
    found = recipe_interval(0.2, DRAWN, [one], 0.004)
    df = 0.012**2 / ((0.01 / 3) ** 2 / 2)
    assert found.upper - 0.2 == pytest.approx(student.ppf(0.975, df) * 0.012**0.5)
    all_noise = recipe_interval(0.2, DRAWN, [one], 0.02)
    assert all_noise.upper < found.upper
    # two more seeds of another estimator, of variance 0.005: the noise is that of a mean of two
    both = recipe_interval(0.2, DRAWN, [one, {5: 0.1, 6: 0.2}], 0.004)
    variance = 0.01 + 0.01 / 3 + 0.005 / 2 - 0.004 / 2
    df = variance**2 / ((0.01 / 3) ** 2 / 2 + (0.005 / 2) ** 2)
    assert both.upper - 0.2 == pytest.approx(student.ppf(0.975, df) * variance**0.5)


def test_an_interval_of_a_bounded_metric_is_symmetric_on_the_scale_of_log_odds():
    one = {17: 0.92, 18: 0.93, 19: 0.91}
    # variance 0.01 + 0.0001 / 3, so that of degrees of freedom there are 181,000;
    # reach 1.96 √0.010033 = 0.19632, over 0.92 × 0.08 it is 2.6674; log-odds of 0.92: 2.4423
    _, low, high, _ = recipe_interval(0.92, DRAWN, [one], 0.0, (0.0, 1.0))
    assert (low, high) == pytest.approx(
        (1 / (1 + np.exp(2.6674 - 2.4423)), 1 / (1 + np.exp(-2.6674 - 2.4423))), abs=1e-4
    )
    # of a range twice as long, twice as far on either side
    twice = {seed: 2 * value - 1 for seed, value in one.items()}
    found = recipe_interval(0.84, 2 * DRAWN, [twice], 0.0, (-1.0, 1.0))
    assert found[1:3] == pytest.approx((2 * low - 1, 2 * high - 1))
    plain = recipe_interval(1.0, DRAWN, [one])
    assert recipe_interval(1.0, DRAWN, [one], 0.0, (0.0, 1.0)) == plain


def test_what_has_no_seeds_and_what_has_one():
    drawn = np.linspace(-0.1, 0.3, 41)
    n, low, high, p = recipe_interval(0.1, drawn, [{0: 0.3}, {0: 0.2}])
    assert (n, low, high) == pytest.approx((0, -0.09, 0.29))
    assert p == 2 * (1 + 11) / (1 + 41)
    for sides in ([{17: 0.3}], [{17: 0.3}, {17: 0.1, 18: 0.2}]):
        found = recipe_interval(0.1, drawn, sides)
        assert found.n_seeds == 1
        assert np.isnan(found[1:]).all()


def test_values_by_seed_and_their_noise_are_those_of_seeds_as_estimators():
    """Slowly: on the same draws each seed is an estimator of its own."""
    predictions = make_predictions(60).query("estimator in ('learnt', 'own')")
    how = HOW | {"n_replicates": 4}  # so few that seeds may differ less than on the data
    found = replicate_metrics(predictions, CHECKPOINTS, EvaluationSettings(**how))
    names = predictions["estimator"] + predictions["seed"].astype(str)
    apart = replicate_metrics(
        predictions.assign(estimator=names, seed=0),
        CHECKPOINTS,
        EvaluationSettings(**how),
    )
    learnt, own = (found.estimators.index(("quiz", name)) for name in ("learnt", "own"))
    rows = [apart.estimators.index(("quiz", f"learnt{seed}")) for seed in (17, 18, 19)]
    more = []
    for key, value in apart.observed.items():
        by_seed = found.by_seed[key][learnt]
        assert list(by_seed) == [17, 18, 19] and list(found.by_seed[key][own]) == [0]
        assert list(by_seed.values()) == pytest.approx(value[rows].tolist(), abs=1e-12)
        on_replicates = apart.replicated[key][rows].var(axis=0, ddof=1).mean()
        more.append(on_replicates - statistics.variance(by_seed.values()))
        assert found.noise[key][learnt] == pytest.approx(max(0, more[-1]), abs=1e-12)
        assert found.noise[key][own] == 0
    assert min(more) < -1e-6 and max(more) > 1e-6


def test_the_tables_have_both_kinds():
    predictions = make_predictions(120)
    replicates = replicate_metrics(predictions, CHECKPOINTS, EvaluationSettings(**HOW))
    noisy = replicates.noise["odds", "full", "auc"] > 0
    assert noisy.tolist() == [name == "learnt" for _, name in replicates.estimators]
    table = intervals(replicates).set_index(["estimator", "scope", "metric"])
    of_three, alone = table.loc["learnt"], table.loc["own"]
    assert (of_three["n_seeds"] == 3).all()
    assert (of_three["seeds_upper_97_5pct"] > of_three["upper_97_5pct"]).mean() > 0.5
    np.testing.assert_array_equal(alone["seeds_lower_2_5pct"], alone["lower_2_5pct"])
    tests = compare_blocks(replicates, {"block": ["learnt", "own"]})
    row = tests.set_index(["scope", "metric"]).loc[("full", "brier")]  # lower is better
    key = MetricKey("odds", "full", "brier")
    best, other = (replicates.estimators.index(("quiz", row[end])) for end in ("best", "other"))
    claims, by_seed = replicates.for_claims(key), replicates.by_seed[key]
    sides = [{seed: -value for seed, value in by_seed[i].items()} for i in (best, other)]
    noise = max(replicates.noise[key][[best, other]])
    expected = recipe_interval(row["difference"], claims[other] - claims[best], sides, noise)
    columns = ["n_seeds", "seeds_lower_2_5pct", "seeds_upper_97_5pct", "seeds_p_value"]
    np.testing.assert_allclose(row[columns].astype(float), expected)
    one = predictions[~predictions["seed"].isin([18, 19])].query("estimator == 'learnt'")
    single = intervals(replicate_metrics(one, CHECKPOINTS, EvaluationSettings(**HOW)))
    assert (single["n_seeds"] == 1).all() and single["seeds_lower_2_5pct"].isna().all()
    assert pd.notna(single["lower_2_5pct"]).any()


def test_intervals_hold_the_truth():
    """Those of the questions alone do not, where seeds differ; 300 worlds are in the docs."""
    found = coverage(3, worlds=100, seed=1, ratios=[1.0, 3.0])
    assert found["seeds"].mean() == pytest.approx(0.95, abs=0.025), found
    assert found["seeds"].between(0.88, 1).all(), found  # of .95: 3 in 1,000 are below
    assert (found.loc[found["ratio"] == 3, "questions"] < 0.75).all()
