"""Evaluation of predictions: metrics by hand, means, undefined values and refusals."""

import numpy as np
import pandas as pd
import pytest
from measuring import evaluate, replicate_metrics
from synthetic_predictions import CHECKPOINTS, make_predictions, table

from persistcal.evaluation.contrast import contrast_sets, describe_sets
from persistcal.evaluation.metrics.registry import MetricKey, names
from persistcal.evaluation.predictions import PredictionsError, arrange
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.smooth_ece import smooth_ece

# q1 and q2 are improvements, q3 is a regression, q4 is correct at both checkpoints.
EARLIER = [("a", "q1", 0.2, 0), ("a", "q2", 0.5, 0), ("a", "q3", 0.8, 1), ("a", "q4", 0.9, 1)]
LATER = [("b", "q1", 0.8, 1), ("b", "q2", 0.5, 1), ("b", "q3", 0.5, 0), ("b", "q4", 0.6, 1)]
BY_HAND = table(EARLIER + LATER)


def sets_of(predictions, checkpoints, min_contrast):
    answers = arrange(predictions, checkpoints)
    sets = contrast_sets(
        answers.correct, checkpoints, EvaluationSettings(min_contrast=min_contrast)
    )
    return describe_sets(sets, checkpoints)


def values(evaluation, scope, conditioning="odds", seed="mean"):
    value = evaluation.set_index(["scope", "conditioning", "seed", "metric"])["value"]
    return value.sort_index()[scope, conditioning, seed]


def test_metrics_equal_values_by_hand():
    evaluation = evaluate(BY_HAND, ["a", "b"], EvaluationSettings(min_contrast=3))
    # Conditioned on a change, confidence in the earlier answer: q1 0.04 / (0.04 + 0.64) = 1/17,
    # q2 1/2, q3 0.4 / (0.4 + 0.1) = 4/5. Gaps: 15/17, 0, 3/5. Signs: 1, 0, 1.
    contrast = values(evaluation, "contrast")
    assert contrast["delta"] == pytest.approx((15 / 17 + 0 + 3 / 5) / 3)
    assert contrast["delta_balanced"] == pytest.approx((15 / 34 + 3 / 5) / 2)
    assert contrast["delta0"] == pytest.approx(2 / 3)
    assert contrast["delta0_balanced"] == pytest.approx((1 / 2 + 1) / 2)
    # Right answers 16/17, 1/2, 4/5; wrong answers 1/17, 1/2, 1/5: 8 of 9 pairs and a tie.
    assert contrast["auc"] == pytest.approx(8.5 / 9)
    # Both answers to a question have the same error: 1/17, 1/2, 1/5.
    assert contrast["brier"] == pytest.approx((1 / 17**2 + 1 / 4 + 1 / 25) / 3)
    assert contrast["smece"] == pytest.approx(smooth_ece([1 / 17, 1 / 2, 4 / 5], [0, 0, 1]))

    full = values(evaluation, "full")
    # Right answers 0.8 0.9 0.8 0.5 0.6; wrong answers 0.2 0.5 0.5: 15 pairs with two ties.
    assert full["auc"] == pytest.approx(14 / 15)

    errors = [0.2, 0.5, 0.2, 0.1, 0.2, 0.5, 0.5, 0.4]
    assert full["brier"] == pytest.approx(np.mean(np.square(errors)))

    at_a = smooth_ece([0.2, 0.5, 0.8, 0.9], [0, 0, 1, 1])
    at_b = smooth_ece([0.8, 0.5, 0.5, 0.6], [1, 1, 0, 1])
    assert full["smece"] == pytest.approx((at_a + at_b) / 2)

    pair = sets_of(BY_HAND, ["a", "b"], min_contrast=1).iloc[0]
    assert pair.tolist() == ["a", "b", 3, 2, 1, True]


def test_each_run_and_the_mean_over_seeds_has_every_metric():
    metrics = evaluate(make_predictions(), CHECKPOINTS, EvaluationSettings(min_contrast=10))
    sets = sets_of(make_predictions(), CHECKPOINTS, min_contrast=10)
    assert len(sets) == 3 and sets["kept"].all()
    per_run = metrics.groupby(["estimator", "seed"]).size()
    assert len(per_run) == (3 + 1) + 3 * (1 + 1)  # seeds and their mean, by estimator
    assert (per_run == 2 * len(names("contrast")) + len(names("full"))).all()
    assert not metrics["value"].isna().any()
    key = ["conditioning", "scope", "metric", "seed"]
    learnt = metrics.query("estimator == 'learnt'").set_index(key)["value"].unstack()
    np.testing.assert_allclose(learnt["mean"], learnt[["17", "18", "19"]].mean(axis=1))
    signs = metrics[metrics["metric"].str.startswith("delta0")]
    key = ["estimator", "metric", "seed", "conditioning"]
    by_conditioning = signs.set_index(key)["value"].unstack()
    assert (by_conditioning["odds"] == by_conditioning["fitted"]).all()
    assert (metrics.query("scope == 'full'")["conditioning"] == "odds").all()
    # The fit uses the labels, so it improves the Brier score of a miscalibrated estimator.
    brier = metrics.query("metric == 'brier' and scope == 'contrast' and seed == 'mean'")
    brier = brier.pivot_table(index="estimator", columns="conditioning", values="value")
    assert brier.loc["end_correct", "fitted"] < brier.loc["end_correct", "odds"]


def test_the_order_of_rows_does_not_matter():
    predictions = make_predictions(60, absent=[3, 50])
    shuffled = predictions.sample(frac=1, random_state=0)
    first = evaluate(predictions, CHECKPOINTS, EvaluationSettings(min_contrast=10))
    second = evaluate(shuffled, CHECKPOINTS, EvaluationSettings(min_contrast=10))
    pd.testing.assert_frame_equal(first, second)


def test_contrast_metrics_without_a_kept_pair_are_nan_with_a_reason(caplog):
    evaluation = evaluate(BY_HAND, ["a", "b"], EvaluationSettings(min_contrast=4))
    assert values(evaluation, "contrast").isna().all()
    assert values(evaluation, "full").notna().all()
    assert "contrast set of at least 4 questions (a and b: 3)" in caplog.text


def test_the_auc_of_answers_with_equal_labels_is_nan_with_a_reason(caplog):
    evaluation = evaluate(
        BY_HAND.assign(correct=1), ["a", "b"], EvaluationSettings(min_contrast=1)
    )
    full = values(evaluation, "full")
    assert np.isnan(full["auc"]) and full["brier"] > 0
    assert "All 8 answers are correct (first: q1 at a" in caplog.text


def test_a_contrast_set_without_regressions_has_no_balanced_delta(caplog):
    predictions = BY_HAND[BY_HAND["question_id"] != "q3"]
    contrast = values(
        evaluate(predictions, ["a", "b"], EvaluationSettings(min_contrast=1)), "contrast"
    )
    undefined = ["delta0_balanced", "delta_balanced", "change_auc"]
    assert contrast[undefined].isna().all() and contrast.drop(undefined).notna().all()
    assert "contrast set of a and b are improvements (first: q1, q2)" in caplog.text


def test_balanced_metrics_are_means_over_the_pairs_that_define_them(caplog):
    """Between b and c nothing is lost, like between a base model and a fine-tuned model."""
    late = table([("c", f"q{i}", 0.5 + i / 10, 1) for i in range(1, 5)])
    predictions, names = pd.concat([BY_HAND, late], ignore_index=True), ["a", "b", "c"]
    of_all = evaluate(predictions, names, EvaluationSettings(min_contrast=1, pairs="all"))
    of_one = evaluate(
        predictions, names, EvaluationSettings(min_contrast=1, pairs=[["a", "b"]])
    )
    means, single = values(of_all, "contrast"), values(of_one, "contrast")
    for metric in ("delta0_balanced", "delta_balanced"):
        assert means[metric] == single[metric]
    # Signs of the gaps: (a, b): 1, 0, 1. (a, c): 1, 1. (b, c): 1.
    assert means["delta0"] == pytest.approx((2 / 3 + 1 + 1) / 3)
    pairs = of_all.set_index(["scope", "metric"])["pairs"]
    assert set(pairs["contrast", "delta0_balanced"]) == {"1 of 3"}
    assert set(pairs["contrast", "delta0"]) == {"3 of 3"} and set(pairs["full"]) == {""}
    assert "contrast set of a and c are improvements" in caplog.text
    assert "contrast set of a and b" not in caplog.text
    assert "means over the other pairs. Ask more questions, or name the pairs" in caplog.text


def test_replicates_average_over_the_pairs_that_define_the_metric():
    predictions = make_predictions(n=60)
    late = predictions[predictions["checkpoint"] == "c"].assign(checkpoint="d", correct=True)
    predictions, names = pd.concat([predictions, late]), [*CHECKPOINTS, "d"]
    settings = {"min_contrast": 1, "n_replicates": 40, "seed": 3, "conditionings": ["odds"]}
    drawn = replicate_metrics(predictions, names, EvaluationSettings(**settings, pairs="all"))
    early = [["a", "b"], ["a", "c"], ["b", "c"]]
    expected = replicate_metrics(
        predictions, names, EvaluationSettings(**settings, pairs=early)
    )
    for metric in ("delta0_balanced", "delta_balanced"):
        key = MetricKey("odds", "contrast", metric)
        assert not np.isnan(drawn[key].stratified).any()
        np.testing.assert_array_equal(drawn[key].stratified, expected[key].stratified)
        assert (drawn[MetricKey("odds", "contrast", "delta")].stratified != 0).any()


def with_change(row, **columns):
    frame = BY_HAND.copy()
    for name, value in columns.items():
        frame[name] = frame[name].astype(object)
        frame.loc[row, name] = value
    return frame.infer_objects()


second_estimator = BY_HAND.assign(estimator="f")


@pytest.mark.parametrize(
    "predictions, message",
    [
        (with_change(2, confidence=1.2), r"not a number in \[0, 1\] in 1 row.*row 2:.*q3.*1.2"),
        (with_change(5, confidence=np.nan), r"not a number in \[0, 1\] in 1 row.*row 5:.*nan"),
        (with_change(1, correct=2), r"neither 0 nor 1 in 1 row.*row 1:.*correct 2"),
        (
            with_change(1, checkpoint="c"),
            r"not an evaluation checkpoint in 1 row.*checkpoint c",
        ),
        (
            with_change(1, question_id="q1"),
            r"second prediction.*row 1:.*checkpoint a.*q1.*keep",
        ),
        (BY_HAND[:4], r"'e' .*seed 0\) has no prediction at checkpoint 'b'"),
        (
            pd.concat([BY_HAND, second_estimator[second_estimator["question_id"] != "q2"]]),
            r"different questions in 2 place\(s\) \(f .*lacks question q2 at checkpoint a",
        ),
        (
            pd.concat(
                [BY_HAND, second_estimator.assign(correct=1 - second_estimator["correct"])]
            ),
            r"correct differs from another row.* in 8 row\(s\)",
        ),
        (BY_HAND[:0], "The table of predictions is empty"),
    ],
)
def test_wrong_predictions_are_refused_in_one_sentence_with_the_first_row(predictions, message):
    with pytest.raises(PredictionsError, match=message) as error:
        evaluate(predictions, ["a", "b"], EvaluationSettings(min_contrast=1))
    assert len(str(error.value)) < 600
