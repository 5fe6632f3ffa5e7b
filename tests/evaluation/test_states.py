"""Comparisons of checkpoints: exact tests, and the bootstrap against repeated rows."""

import numpy as np
import pandas as pd
import pytest
import relplot
from hypothesis import given, settings
from hypothesis import strategies as st
from measuring import by_dataset
from resampling import SEED
from sklearn.metrics import brier_score_loss, roc_auc_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint
from synthetic_predictions import CHECKPOINTS, make_predictions

import persistcal
from benchmarks.checkpoint_tests import levels, simulate_tests
from persistcal.evaluation.draws import question_blocks
from persistcal.evaluation.predictions import AnswerArrays, arrange
from persistcal.evaluation.proportions import compare_accuracies, compare_replicates, wilson
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.states import (
    State,
    compare_checkpoints,
    join,
    resample_states,
)
from persistcal.evaluation.states import compare_states as compare_models
from persistcal.store.artifacts import STATES, TRENDS, check

SETTINGS = {"n_replicates": 200, "seed": SEED}
MODELS = {
    "checkpoints": dict.fromkeys("mn", CHECKPOINTS),
    "settings": EvaluationSettings(**SETTINGS),
}


def compare_states(rows, *, dataset, **settings):
    models = by_dataset(rows.assign(dataset=dataset), **settings)[dataset]
    return compare_models(models, settings["settings"], dataset=dataset)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_comparisons_of_accuracies_equal_statsmodels(answers):
    first, second = np.array(answers).T
    comparison = compare_accuracies(first, second)
    table = pd.crosstab(first, second).reindex([True, False]).T.reindex([True, False]).fillna(0)
    assert comparison.p_value == pytest.approx(mcnemar(table.to_numpy(), exact=True).pvalue)
    assert comparison.difference == pytest.approx(second.mean() - first.mean())
    assert -1 <= comparison.lower <= comparison.difference <= comparison.upper <= 1
    swapped = compare_accuracies(second, first)
    assert swapped[2:] == pytest.approx(
        (-comparison.difference, -comparison.upper, -comparison.lower, comparison[5])
    )
    ends = proportion_confint(first.sum(), len(first), method="wilson")
    assert wilson(first.mean(), len(first)) == pytest.approx(ends, abs=1e-12)


def answers_in_groups(labels, size):
    """Return labels at two checkpoints; each group is right or wrong at both as one."""
    n_groups = len(labels[0])
    names = np.array([f"q{number:04}" for number in range(n_groups * size)], object)
    copied = np.array(labels, np.int8).repeat(size, axis=1)
    return AnswerArrays(("a", "b"), names, copied, {}, np.repeat(np.arange(n_groups), size))


def p_of_accuracies(answers):
    table, _ = compare_checkpoints(answers, [(0, 1)], EvaluationSettings(**SETTINGS))
    return table.loc[table["metric"] == "accuracy", "p_value"].item()


def test_copies_of_questions_in_a_group_add_no_evidence():
    """McNemar's test counts each copy; the bootstrap draws the group as one question."""
    # 20 of 80 facts are gained and 12 lost: McNemar's p = .215. With 8 copies of each: < .0001.
    labels = np.repeat([[0, 1, 1, 0], [1, 0, 1, 0]], [20, 12, 24, 24], axis=1)
    copies = answers_in_groups(labels, 8)
    ungrouped = copies._replace(groups=np.arange(640))
    assert p_of_accuracies(answers_in_groups(labels, 1)) == pytest.approx(0.215, abs=1e-3)
    assert p_of_accuracies(copies) == pytest.approx(0.215, abs=0.1)
    assert p_of_accuracies(ungrouped) < 1e-4


def test_equal_checkpoints_rarely_differ_if_questions_share_their_facts():
    rng = np.random.default_rng(0)
    claimed = [
        p_of_accuracies(answers_in_groups(rng.integers(0, 2, (2, 60)), 4)) < 0.05
        for _ in range(150)
    ]
    assert np.mean(claimed) <= 0.09  # 5 % and two standard errors


def test_intervals_of_paired_accuracies_equal_values_by_hand():
    # 30 questions with one gain. Wilson: 29/30 in [.8333, .9941], 30/30 in [.8865, 1]. The
    # correlation is 0, because all later answers are right:
    # 1/30 − √(.1135² + .0274²) and 1/30 + √(0² + .1334²)
    paired = compare_accuracies(np.arange(30) > 0, np.ones(30, bool))
    assert paired[2:] == pytest.approx((1 / 30, -0.0834, 0.1667, 1.0), abs=1e-4)
    # 20 right at both, 5 lost, 10 gained, 15 wrong at both. φ = (300 − 50 − 25) /
    # √(25 x 25 x 30 x 20) = .3674; Wilson: .5 in [.3664, .6336] and .6 in [.4618, .7239];
    # .1 − √(.1382² − 2 φ .1382 x .1336 + .1336²), .1 + √(.1239² − 2 φ .1239 x .1336 + .1336²)
    cells = [20, 5, 10, 15]
    paired = compare_accuracies(np.repeat([1, 1, 0, 0], cells), np.repeat([1, 0, 1, 0], cells))
    assert paired[3:5] == pytest.approx((-0.0529, 0.2450), abs=1e-4)
    # 4,000 times as many questions: a width of 1 / √4000 of this, of products above 2⁶⁴
    many = 4000 * np.array(cells)
    wide = compare_accuracies(np.repeat([1, 1, 0, 0], many), np.repeat([1, 0, 1, 0], many))
    assert wide.upper - wide.lower == pytest.approx(0.2979 / 4000**0.5, rel=0.1)


def test_p_values_of_replicates_equal_values_by_hand():
    drawn = np.array([-0.2, 0.1, 0.3, 0.4, 1e-15, 0.2, 0.2, 0.2, 0.2])
    # Two of nine are not above 0 (up to rounding errors): 2 x (1 + 2) / (1 + 9) = 0.6
    assert compare_replicates(0.5, 0.7, drawn).p_value == pytest.approx(0.6)
    assert compare_replicates(0.7, 0.5, -drawn).p_value == pytest.approx(0.6)
    assert np.isnan(compare_replicates(0.5, np.nan, drawn).p_value)
    # Constant replicates give no interval.
    comparison = compare_replicates(0.5, 0.7, np.array([0.2, 0.2 + 1e-15, 0.2]))
    assert comparison.difference == pytest.approx(0.2)
    assert np.isnan(comparison[3:]).all()
    assert compare_replicates(0.0, -2.8e-17, np.array([0.1, -0.1])).difference == 0


def test_exchangeable_checkpoints_rarely_differ_significantly():
    # Tests that fix each checkpoint's accuracy would find a difference in 60 % to 100 % of
    # studies. benchmarks.checkpoint_tests has the full table.
    rates = levels(pd.concat(simulate_tests(12, 100, 60)))["found"].unstack("metric")
    assert (rates <= 4 / 12).all(axis=None), rates


@pytest.fixture(scope="module")
def answers():
    return arrange(make_predictions(120, absent=[4, 11, 70]), CHECKPOINTS)


def metrics_of_repeated_rows(answers, state, replicate):
    """Return metrics of each run of a state, for rows that are repeated as in a replicate."""
    rows = np.array(state.questions)
    if replicate is not None:
        n = len(answers.questions)
        drawn = next(question_blocks(n, SEED, replicate))[:n]
        rows = drawn[np.isin(drawn, rows)]
    right = answers.correct[state.checkpoint, rows]
    metrics = {"auc": roc_auc_score, "brier": brier_score_loss}
    metrics["smece"] = lambda right, stated: relplot.smECE(stated, right)
    return {
        (*series[:2], metric, str(series.seed)): function(right, run[state.checkpoint, rows])
        for series, run in answers.confidence.items()
        for metric, function in metrics.items()
    }


def draws_of(samples):
    return np.array([sample.draws for sample in samples])


def test_replicates_of_checkpoints_equal_metrics_of_repeated_rows(answers):
    common = tuple(answers.answered_by_all((0, 1)).tolist())
    assert len(common) == 117

    states = [
        State(0, common),
        State(1, common),
        State(2, tuple(answers.answered_by_all([2]).tolist())),
    ]
    drawn_metrics = resample_states(
        answers, states, EvaluationSettings(n_replicates=6, seed=SEED)
    )
    for replicate in [None, 0, 3, 5]:
        for row, state in enumerate(states):
            for kind, value in metrics_of_repeated_rows(answers, state, replicate).items():
                metric = drawn_metrics[kind]
                mine = metric[row].value if replicate is None else metric[row].draws[replicate]
                if kind[2] == "smece" and replicate is not None:  # SmoothECE has no interval
                    assert np.isnan(mine)
                    continue
                assert mine == pytest.approx(value, abs=1e-9), (kind, row, replicate)

    by_seed = [
        draws_of(drawn_metrics["quiz", "learnt", "auc", str(seed)]) for seed in (17, 18, 19)
    ]
    mean = draws_of(drawn_metrics["quiz", "learnt", "auc", "mean"])
    np.testing.assert_allclose(mean, np.mean(by_seed, axis=0))

    table, _ = compare_checkpoints(
        answers, [(0, 1)], EvaluationSettings(n_replicates=6, seed=SEED)
    )
    row = table.set_index(["estimator", "metric", "seed"]).loc[("own", "brier", "0")]
    replicated = draws_of(drawn_metrics["quiz", "own", "brier", "0"])
    ends = np.quantile(replicated[1] - replicated[0], [0.025, 0.975])
    assert draws_of(drawn_metrics["", "", "accuracy", ""]).std(axis=1).min() > 0
    np.testing.assert_allclose([row["lower_2_5pct"], row["upper_97_5pct"]], ends)


def test_a_trend_is_the_least_squares_slope_over_checkpoints(answers):
    table, trends = compare_checkpoints(answers, [(0, 1), (1, 2)], MODELS["settings"])
    by_all = answers.correct[:, answers.answered_by_all(range(3))].mean(axis=1)
    slope = trends.set_index(["metric", "estimator", "seed"]).loc[("accuracy", "", "")]
    # Least squares over -1, 0, 1: (last - first) / 2
    assert slope["slope"] == pytest.approx((by_all[2] - by_all[0]) / 2)
    assert slope["lower_2_5pct"] < slope["slope"] < slope["upper_97_5pct"]
    assert set(table["metric"]) == {"accuracy", "auc", "brier", "smece"}
    _, no_trends = compare_checkpoints(join(answers, answers), [(0, 1)], MODELS["settings"])
    assert no_trends.empty


def test_pairs_of_checkpoints_and_last_checkpoints_of_models_are_compared(caplog):
    predictions = make_predictions(80)
    rows_of_n = make_predictions(80, seed=1).assign(model="n")
    rows_of_n = rows_of_n[
        (rows_of_n["question_id"] > "q0009") & (rows_of_n["estimator"] != "coarse")
    ]
    rows = pd.concat([predictions.assign(model="m"), rows_of_n])
    states, trends = compare_states(rows, dataset="quiz", **MODELS)
    # n lacks the first ten questions.
    shared = "m and n share 70 of 80 questions and are compared on these"
    assert caplog.messages == [f"quiz: the last checkpoints of {shared}"]

    check(states, STATES, "states")
    check(trends, TRENDS, "trends")
    across = states[states["other_model"] == "n"]
    assert set(across["estimator"]) == {"", "learnt", "own", "end_correct"}
    assert set(zip(across["earlier"], across["later"], strict=True)) == {("c", "c")}

    accuracy = across[across["metric"] == "accuracy"].iloc[0]
    last = predictions[(predictions["checkpoint"] == "c") & (predictions["estimator"] == "own")]
    assert accuracy["earlier_value"] == last[last["question_id"] > "q0009"]["correct"].mean()

    comparisons_of_m = states[(states["model"] == "m") & (states["metric"] == "accuracy")]
    pairs = comparisons_of_m[comparisons_of_m["other_model"] == ""].sort_values("p_value")
    # Holm's correction for three pairs of a model
    assert pairs["p_holm"].iloc[0] == pytest.approx(min(1, 3 * pairs["p_value"].iloc[0]))

    own = rows[rows["estimator"] == "own"].assign(dataset="quiz")
    tables = persistcal.compare(own, CHECKPOINTS, **SETTINGS).tables
    for name, table in (("states", states), ("trends", trends)):
        expected = table.loc[table["estimator"].isin(["", "own"]), tables[name].columns]
        expected = expected.reset_index(drop=True)
        pd.testing.assert_frame_equal(tables[name], expected, check_dtype=False)

    on_other, _ = compare_states(rows, dataset="other", **MODELS)
    assert "own (trained on quiz)" in set(on_other["estimator"])


def test_the_mean_of_a_model_is_over_all_seeds_of_the_model():
    rows_of_m, rows_of_n = (
        make_predictions(80, seed=s).assign(model=m) for s, m in enumerate("mn")
    )
    all_rows = pd.concat([rows_of_m, rows_of_n[rows_of_n["seed"] != 19]])
    states, _ = compare_states(all_rows, dataset="quiz", **MODELS)
    rows = states[(states["other_model"] == "n") & (states["estimator"] == "learnt")]
    rows = rows[rows["metric"] == "auc"].set_index("seed")
    assert set(rows.index) == {"17", "18", "mean"}
    last = all_rows[(all_rows["checkpoint"] == "c") & (all_rows["estimator"] == "learnt")]
    aucs = {
        key: roc_auc_score(runs["correct"], runs["confidence"])
        for key, runs in last.groupby(["model", "seed"])
    }
    assert rows.loc["18", "later_value"] == pytest.approx(aucs["n", 18])
    means = rows.loc["mean", ["earlier_value", "later_value"]].tolist()
    of_m, of_n = ([aucs[key] for key in aucs if key[0] == model] for model in "mn")
    assert (len(of_m), len(of_n)) == (3, 2)
    assert means == pytest.approx([np.mean(of_m), np.mean(of_n)])


def test_checkpoints_without_a_common_question_are_reported_and_not_compared(caplog):
    predictions = make_predictions(60).query("estimator == 'own'")
    first, late = predictions["checkpoint"] == "a", predictions["question_id"] > "q0029"
    apart = predictions[first != late].assign(model="m")
    settings = {**MODELS, "checkpoints": {"m": CHECKPOINTS}, "dataset": "quiz"}
    states, trends = compare_states(apart, **settings)
    assert set(zip(states["earlier"], states["later"], strict=True)) == {("b", "c")}
    assert trends.empty
    assert "a and b answered no question in common" in caplog.text
