"""The scripts around evaluation: one estimator at a time, and where there is nothing."""

import pandas as pd
import pytest
from collect_results import collect_results
from compare_table import compare_table
from evaluate_estimator import evaluate_estimator
from list_contrast_sets import list_contrast_sets
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation.replicates import UnpairedError, digest_of_draws, replicate_metrics
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import compare_blocks
from persistcal.store import artifacts

PLACE = {"model": "m", "dataset": "quiz"}
HOW = {"min_contrast": 5, "min_direction": 5, "n_replicates": 20, "seed": 3, "pairs": "all"}


def resample(predictions):
    settings = EvaluationSettings(conditionings=["odds"], **HOW)
    made = evaluate_estimator(predictions, checkpoints=CHECKPOINTS, settings=settings)
    return made.replicates.assign(**PLACE)


def compare(parts, *blocks):
    return compare_table(pd.concat(parts), comparisons=[("m", "quiz", blocks)])


def test_estimators_resampled_one_by_one_are_tested_as_if_together():
    predictions = make_predictions(90, absent=[4, 11])
    names = ["coarse", "learnt", "own"]
    parts = [resample(predictions[predictions["estimator"] == n]) for n in names]
    block = [("quiz", name) for name in names]
    tests = compare(parts, block, [("quiz", "elsewhere"), ("quiz", "own")])
    together = replicate_metrics(
        predictions, CHECKPOINTS, EvaluationSettings(conditionings=["odds"], **HOW)
    )
    expected = compare_blocks(together, {"coarse+learnt+own": block})
    assert len(expected) == 11 * 2  # metrics, and estimators that are not the best
    pd.testing.assert_frame_equal(tests[expected.columns], expected, check_dtype=False)


def test_what_was_not_drawn_alike_is_told_by_its_digest():
    one, other = (make_predictions(90).query(f"estimator == '{e}'") for e in ("own", "coarse"))
    drawn = digest_of_draws(one, CHECKPOINTS, EvaluationSettings(**HOW))
    assert digest_of_draws(other.iloc[::-1], CHECKPOINTS, EvaluationSettings(**HOW)) == drawn
    changes = [{"seed": 4}, {"n_replicates": 21}, {"min_contrast": 6}, {"pairs": "first"}]
    changes.append({"min_direction": 4})
    changed = [
        digest_of_draws(one, CHECKPOINTS, EvaluationSettings(**HOW | change))
        for change in changes
    ]
    changed.append(digest_of_draws(one, CHECKPOINTS[::-1], EvaluationSettings(**HOW)))
    assert len({drawn, *changed}) == 1 + len(changed)


def test_other_answers_are_not_compared():
    own, coarse = (make_predictions(90).query(f"estimator == '{e}'") for e in ("own", "coarse"))
    coarse = coarse[coarse["question_id"] != "q0003"]
    said = r"('own'.*'coarse'|'coarse'.*'own').*run evaluate_estimator again"
    with pytest.raises(UnpairedError, match=said):
        compare([resample(own), resample(coarse)], [("quiz", "own"), ("quiz", "coarse")])


def test_contrast_sets_from_answers():
    rows = [
        ("a", "q1", "test", True), ("b", "q1", "test", False),
        ("a", "q2", "test", False), ("b", "q2", "test", True),
        ("a", "q3", "test", True),
        ("a", "t1", "train", True), ("b", "t1", "train", False),
    ]  # fmt: skip
    answers = pd.DataFrame(rows, columns=["checkpoint", "question_id", "split", "correct"])
    how = {"checkpoints": ["a", "b"], "settings": EvaluationSettings(min_contrast=3)}
    # q1 is lost and q2 gained; q3 was not answered at b
    counted = {"size": 2, "improvement": 1, "regression": 1, "kept": False}
    answers["answer"] = ["Oslo", "oslo.", "York", "NYC", "", "", ""]
    clusters = answers[answers["split"] == "test"].drop(columns=["split", "correct"])
    clusters["cluster"] = 0
    for new_york, same in ((["New York", "nyc"], 2), (["New York"], 1)):
        members = [new_york if answer == "York" else [] for answer in clusters["answer"]]
        listed, sets = list_contrast_sets(answers, clusters.assign(members=members), **how)
        expected = {"earlier": "a", "later": "b", **counted, "same_answers": same}
        assert sets.to_dict("records") == [expected]
        # one row per question of a pair, also of a pair that is too small to be kept
        lost, gained = listed.set_index("question_id").loc[["q1", "q2"]].to_dict("records")
        pair = {"earlier": "a", "later": "b", "kept": False}
        texts = {"earlier_answer": "Oslo", "later_answer": "oslo."}
        assert lost == {**pair, "improvement": False, **texts}
        texts = {"earlier_answer": "York", "later_answer": "NYC"}
        assert gained == {**pair, "improvement": True, **texts}
        artifacts.check(listed, artifacts.CONTRAST_QUESTIONS, "contrast_sets")
        assert len(listed) == 2
    _, unknown = list_contrast_sets(answers, clusters[:0].assign(members=[]), **how)
    assert unknown["same_answers"].isna().all()


def test_without_predictions_there_are_empty_tables_and_warnings(caplog):
    empty = artifacts.empty(artifacts.PREDICTIONS).assign(**PLACE)
    assert resample(empty).empty
    how = {"checkpoints": ["a", "b"], "settings": EvaluationSettings()}
    assert evaluate_estimator(empty, **how).metrics.empty
    assert compare([resample(empty)], [("quiz", "oracle"), ("quiz", "own")]).empty
    assert len(caplog.records) == 4


def test_metrics_have_the_conditionings_of_the_tests_as_well():
    own = make_predictions(90).query("estimator == 'own'")
    usual, more = (
        evaluate_estimator(
            own,
            checkpoints=CHECKPOINTS,
            settings=EvaluationSettings(
                min_contrast=5, conditionings=conditionings, n_replicates=2
            ),
        ).metrics
        for conditionings in (["odds"], ["odds", "cross_fitted"])
    )
    assert set(usual["conditioning"]) == {"odds", "fitted"}
    crossed = more["conditioning"] == "cross_fitted"
    pd.testing.assert_frame_equal(more[~crossed].reset_index(drop=True), usual)
    assert crossed.sum() == 8 * 2  # contrast metrics, of the seed and as their mean


def test_holm_over_tables_is_holm_over_all_tests_of_a_metric():
    key = [name for name in artifacts.SIGNIFICANCE.key if name not in ("dataset", "metric")]
    rows = [("quiz", "auc", 0.01), ("trivia", "auc", 0.03), ("quiz", "brier", 0.04)]
    once = pd.DataFrame(rows, columns=["dataset", "metric", "p_value"])
    once = once.assign(**dict.fromkeys(key, "same"), p_holm=once["p_value"])
    tests = pd.concat([once, once])  # a test that two tables share
    kinds = (artifacts.METRICS, artifacts.INTERVALS, artifacts.CONTRAST_SETS)
    metrics, intervals, sets = map(artifacts.empty, kinds)
    usual, adjusted = (
        collect_results(metrics, intervals, tests, sets, holm=holm)[2]
        for holm in ("block", "tables")
    )
    pd.testing.assert_frame_equal(usual, once)
    # of the two tests of AUC the smaller p-value counts twice
    pd.testing.assert_frame_equal(adjusted, once.assign(p_holm=[0.02, 0.03, 0.04]))
