"""Intervals over seeds and questions: values by hand, and the coverage of a known truth."""

import statistics
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from measuring import members, replicate_metrics
from scipy.stats import t as student
from synthetic_predictions import CHECKPOINTS, make_predictions

from benchmarks.seeds import coverage
from persistcal.evaluation.metrics.registry import METRICS, MetricKey
from persistcal.evaluation.samples import recipe_interval
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import compare_blocks, intervals

SETTINGS = EvaluationSettings(min_contrast=5, n_replicates=40, seed=3, conditionings=["odds"])
DRAWN = np.array([0.1, 0.2, 0.3])  # variance 0.01


def test_an_interval_adds_the_variances_of_seeds_and_questions():
    by_seed = {17: 0.2, 18: 0.3, 19: 0.1}  # variance 0.01
    # Variance: 0.01 + 0.01 / 3 = 1 / 75. Degrees of freedom: (1/75)² / ((1/300)² / 2) = 32.
    # Student's 97.5 % quantile: 2.037.
    n, low, high, p = recipe_interval(0.2, DRAWN, [by_seed])
    assert n == 3
    reach = 2.037 / 75**0.5
    assert (low, high) == pytest.approx((0.2 - reach, 0.2 + reach), abs=1e-4)
    assert p == pytest.approx(2 * 0.0464, abs=1e-4)  # P[|T| > 0.2 √75 = 1.732]
    # A single seed adds no variance. Equal seeds are paired, so their differences are 0.
    assert recipe_interval(0.2, DRAWN, [by_seed, {0: 0.5}]) == (n, low, high, p)
    paired = recipe_interval(0.0, DRAWN - 0.2, [by_seed, by_seed])
    assert paired.upper == pytest.approx(1.96 * 0.1, abs=1e-4)
    # Different seeds are not paired: 0.01 + 2 × 0.01 / 3 = 1 / 60, with
    # (1/60)² / (2 (1/300)² / 2) = 25 degrees of freedom.
    apart = recipe_interval(0.0, DRAWN - 0.2, [by_seed, {k + 9: v for k, v in by_seed.items()}])
    assert apart.upper == pytest.approx(2.0595 / 60**0.5, abs=1e-4)


def test_variation_of_seeds_that_is_noise_of_questions_counts_once():
    by_seed = {17: 0.2, 18: 0.3, 19: 0.1}
    # Variance between seeds: 0.01, including noise of 0.004. In total 0.01 + 0.006 / 3 = 0.012.
    interval = recipe_interval(0.2, DRAWN, [by_seed], 0.004)
    df = 0.012**2 / ((0.01 / 3) ** 2 / 2)
    assert interval.upper - 0.2 == pytest.approx(student.ppf(0.975, df) * 0.012**0.5)
    assert recipe_interval(0.2, DRAWN, [by_seed], 0.02).upper < interval.upper
    # The other estimator has two seeds of variance 0.005. Noise is subtracted for two seeds.
    difference = recipe_interval(0.2, DRAWN, [by_seed, {5: 0.1, 6: 0.2}], 0.004)
    variance = 0.01 + 0.01 / 3 + 0.005 / 2 - 0.004 / 2
    df = variance**2 / ((0.01 / 3) ** 2 / 2 + (0.005 / 2) ** 2)
    assert difference.upper - 0.2 == pytest.approx(student.ppf(0.975, df) * variance**0.5)


def test_an_interval_of_a_bounded_metric_is_symmetric_in_log_odds():
    by_seed = {17: 0.92, 18: 0.93, 19: 0.91}
    # Variance: 0.01 + 0.0001 / 3 = 0.010033, degrees of freedom: 181,000. Half-width:
    # 1.96 √0.010033 = 0.19632; in log-odds / (0.92 × 0.08) = 2.6674. Log-odds of 0.92: 2.4423
    _, low, high, _ = recipe_interval(0.92, DRAWN, [by_seed], 0.0, (0.0, 1.0))
    assert (low, high) == pytest.approx(
        (1 / (1 + np.exp(2.6674 - 2.4423)), 1 / (1 + np.exp(-2.6674 - 2.4423))), abs=1e-4
    )
    # In a range that is twice as long, the interval is twice as long.
    doubled = {seed: 2 * value - 1 for seed, value in by_seed.items()}
    interval = recipe_interval(0.84, 2 * DRAWN, [doubled], 0.0, (-1.0, 1.0))
    assert interval[1:3] == pytest.approx((2 * low - 1, 2 * high - 1))
    plain = recipe_interval(1.0, DRAWN, [by_seed])
    assert recipe_interval(1.0, DRAWN, [by_seed], 0.0, (0.0, 1.0)) == plain


def test_an_interval_over_seeds_needs_two_seeds_or_an_estimator_without_seeds():
    drawn = np.linspace(-0.1, 0.3, 41)
    n, low, high, p = recipe_interval(0.1, drawn, [{0: 0.3}, {0: 0.2}])
    assert (n, low, high) == pytest.approx((0, -0.09, 0.29))
    assert p == 2 * (1 + 11) / (1 + 41)
    for sides in ([{17: 0.3}], [{17: 0.3}, {17: 0.1, 18: 0.2}]):
        interval = recipe_interval(0.1, drawn, sides)
        assert interval.n_seeds == 1
        assert np.isnan(interval[1:]).all()


def test_values_and_noise_by_seed_equal_seeds_evaluated_as_estimators():
    predictions = make_predictions(60).query("estimator in ('learnt', 'own')")
    settings = replace(SETTINGS, n_replicates=4)  # few, so that some variances are negative
    joint = replicate_metrics(predictions, CHECKPOINTS, settings)
    names = predictions["estimator"] + predictions["seed"].astype(str)
    separate = replicate_metrics(
        predictions.assign(estimator=names, seed=0), CHECKPOINTS, settings
    )
    learnt, fixed = (members(joint).index(("quiz", name)) for name in ("learnt", "own"))
    rows = [members(separate).index(("quiz", f"learnt{seed}")) for seed in (17, 18, 19)]
    excess = []
    for key, of_runs in separate.items():
        trained, untrained = (list(joint[key].samples.values())[i] for i in (learnt, fixed))
        by_seed = trained.by_seed
        assert list(by_seed) == [17, 18, 19] and list(untrained.by_seed) == [0]
        assert list(by_seed.values()) == pytest.approx(of_runs.values[rows].tolist(), abs=1e-12)
        assert untrained.noise == 0
        if METRICS[key.metric].draws != "questions":
            continue  # seeds of an estimator share its pseudo-questions
        on_replicates = of_runs.draws[rows].var(axis=0, ddof=1).mean()
        excess.append(on_replicates - statistics.variance(by_seed.values()))
        assert trained.noise == pytest.approx(max(0, excess[-1]), abs=1e-12)
    assert min(excess) < -1e-6 and max(excess) > 1e-6


def test_tables_contain_intervals_over_questions_and_over_seeds():
    predictions = make_predictions(120)
    replicates = replicate_metrics(predictions, CHECKPOINTS, SETTINGS)
    samples = replicates[MetricKey("odds", "full", "auc")].samples
    assert {name for (_, name), sample in samples.items() if sample.noise > 0} == {"learnt"}

    table = intervals(replicates).set_index(["estimator", "scope", "metric"])
    of_three, of_one = table.loc["learnt"], table.loc["own"]
    assert (of_three["n_seeds"] == 3).all()
    assert (of_three["seeds_upper_97_5pct"] > of_three["upper_97_5pct"]).mean() > 0.5
    np.testing.assert_array_equal(of_one["seeds_lower_2_5pct"], of_one["lower_2_5pct"])

    tests = compare_blocks(replicates, {"block": ["learnt", "own"]})
    row = tests.set_index(["scope", "metric"]).loc[("full", "brier")]  # lower is better
    key = MetricKey("odds", "full", "brier")
    best, worse = (members(replicates).index(("quiz", row[end])) for end in ("best", "other"))
    claims, samples = replicates[key].draws, list(replicates[key].samples.values())
    of_two = [samples[i] for i in (best, worse)]
    sides = [{seed: -value for seed, value in of.by_seed.items()} for of in of_two]
    noise = max(of.noise for of in of_two)
    expected = recipe_interval(row["difference"], claims[worse] - claims[best], sides, noise)
    columns = ["n_seeds", "seeds_lower_2_5pct", "seeds_upper_97_5pct", "seeds_p_value"]
    np.testing.assert_allclose(row[columns].astype(float), expected)

    one_seed = predictions[~predictions["seed"].isin([18, 19])].query("estimator == 'learnt'")
    single = intervals(replicate_metrics(one_seed, CHECKPOINTS, SETTINGS))
    assert (single["n_seeds"] == 1).all() and single["seeds_lower_2_5pct"].isna().all()
    assert pd.notna(single["lower_2_5pct"]).any()


def test_intervals_over_seeds_contain_the_truth_in_95_percent_of_studies():
    """Intervals over questions do not if seeds differ. The documentation has 300 studies."""
    coverages = coverage(3, worlds=100, seed=1, ratios=[1.0, 3.0])
    assert coverages["seeds"].mean() == pytest.approx(0.95, abs=0.025), coverages
    # P[below .88] = .003 at a coverage of .95
    assert coverages["seeds"].between(0.88, 1).all(), coverages
    assert (coverages.loc[coverages["ratio"] == 3, "questions"] < 0.75).all()
