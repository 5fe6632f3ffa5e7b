"""Scripts of evaluation: a job per estimator, contrast sets, empty tables."""

from dataclasses import replace

import pandas as pd
import pytest
from collect_results import collect_results
from compare_table import compare_table
from evaluate_estimator import evaluate_estimator
from list_contrast_sets import list_contrast_sets
from measuring import contrast_members, replicate_metrics
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation import replicates
from persistcal.evaluation.aligned import align
from persistcal.evaluation.metrics.registry import names
from persistcal.evaluation.predictions import PredictionsError
from persistcal.evaluation.replicates import UnpairedError
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import compare_blocks
from persistcal.store import artifacts

PLACE = {"model": "m", "dataset": "quiz"}
SETTINGS = EvaluationSettings(min_contrast=5, n_replicates=20, seed=3, pairs="all")


def resample(predictions, **changes):
    settings = replace(SETTINGS, conditionings=["odds"], **changes)
    return evaluate(predictions, settings).replicates.assign(**PLACE)


def evaluate(predictions, settings):
    sets = contrast_members(predictions, CHECKPOINTS, settings)
    return evaluate_estimator(predictions, sets, checkpoints=CHECKPOINTS, settings=settings)


def compare(parts, *blocks):
    return compare_table(pd.concat(parts), comparisons=[("m", "quiz", blocks)])


def test_estimators_of_separate_jobs_are_tested_like_estimators_of_one_job():
    predictions = make_predictions(60, absent=[4, 11])
    estimators = ["coarse", "learnt", "own"]
    parts = [resample(predictions[predictions["estimator"] == n]) for n in estimators]
    block = [("quiz", name) for name in estimators]
    tests = compare(parts, block, [("quiz", "elsewhere"), ("quiz", "own")])
    resampled = replicate_metrics(
        predictions, CHECKPOINTS, replace(SETTINGS, conditionings=["odds"])
    )
    expected = compare_blocks(resampled, {"coarse+learnt+own": block})
    pd.testing.assert_frame_equal(tests[expected.columns], expected, check_dtype=False)


def test_the_log_of_an_estimators_job_has_the_doubts_about_its_confidences(caplog):
    learnt = make_predictions(60).query("estimator == 'learnt'")
    first = learnt[learnt["seed"] == 17]
    resample(pd.concat([learnt[learnt["seed"] != 18], first.assign(seed=18)]))
    assert "two seeds of learnt have equal confidences" in caplog.text


def digest_of_draws(rows, checkpoints, settings):
    return replicates.digest_of_draws(align(rows, checkpoints, settings), settings)


def test_the_digest_of_draws_depends_on_every_setting_of_the_draws():
    rows, coarse = (make_predictions(40).query("estimator == @e") for e in ("own", "coarse"))
    drawn = digest_of_draws(rows, CHECKPOINTS, SETTINGS)
    assert digest_of_draws(coarse.iloc[::-1], CHECKPOINTS, SETTINGS) == drawn
    changes = [{"seed": 4}, {"n_replicates": 21}, {"min_contrast": 6}, {"pairs": "first"}]
    changes.append({"min_direction": 4})
    changed = [
        digest_of_draws(rows, CHECKPOINTS, replace(SETTINGS, **change)) for change in changes
    ]
    changed.append(digest_of_draws(rows, CHECKPOINTS[::-1], SETTINGS))
    assert len({drawn, *changed}) == 1 + len(changed)


def test_estimators_with_different_questions_are_not_compared():
    rows, coarse = (make_predictions(40).query("estimator == @e") for e in ("own", "coarse"))
    coarse = coarse[coarse["question_id"] != "q0003"]
    message = r"('own'.*'coarse'|'coarse'.*'own').*run evaluate_estimator again"
    with pytest.raises(UnpairedError, match=message):
        compare(
            [resample(rows, n_replicates=2), resample(coarse, n_replicates=2)],
            [("quiz", "own"), ("quiz", "coarse")],
        )


def test_contrast_sets_are_listed_by_pair_and_by_question():
    rows = [
        ("a", "q1", "test", True), ("b", "q1", "test", False),
        ("a", "q2", "test", False), ("b", "q2", "test", True),
        ("a", "q3", "test", True),
        ("a", "t1", "train", True), ("b", "t1", "train", False),
    ]  # fmt: skip
    answers = pd.DataFrame(rows, columns=["checkpoint", "question_id", "split", "correct"])
    settings = {"checkpoints": ["a", "b"], "settings": EvaluationSettings(min_contrast=3)}
    # q1 is a regression and q2 an improvement; b has no answer to q3.
    counted = {"size": 2, "improvement": 1, "regression": 1, "kept": False}
    answers["answer"] = ["Oslo", "oslo.", "York", "NYC", "", "", ""]
    clusters = answers[answers["split"] == "test"].drop(columns=["split", "correct"])
    clusters["cluster"] = 0
    for new_york, same in ((["New York", "nyc"], 2), (["New York"], 1)):
        members = [new_york if answer == "York" else [] for answer in clusters["answer"]]
        listed, sets = list_contrast_sets(answers, clusters.assign(members=members), **settings)
        expected = {"earlier": "a", "later": "b", **counted, "same_answers": same}
        ids = {"gained": ["q2"], "lost": ["q1"], "stayed_wrong": [], "stayed_right": []}
        [row] = sets.assign(**{kind: sets[kind].map(list) for kind in ids}).to_dict("records")
        assert row == {**expected, **ids}
        # Contrast sets that are too small to be kept are listed, too.
        lost, gained = listed.set_index("question_id").loc[["q1", "q2"]].to_dict("records")
        pair = {"earlier": "a", "later": "b", "kept": False}
        texts = {"earlier_answer": "Oslo", "later_answer": "oslo."}
        assert lost == {**pair, "improvement": False, **texts}
        texts = {"earlier_answer": "York", "later_answer": "NYC"}
        assert gained == {**pair, "improvement": True, **texts}
        artifacts.check(listed, artifacts.CONTRAST_QUESTIONS, "contrast_sets")
        assert len(listed) == 2

    _, unknown = list_contrast_sets(answers, clusters[:0].assign(members=[]), **settings)
    assert unknown["same_answers"].isna().all()


def test_evaluations_read_the_contrast_sets_of_the_study():
    """An estimator that lacks a question leaves it out of the sets, and other labels stop."""
    rows = make_predictions(60, absent=[4, 11]).query("estimator == 'own'")
    rows["correct"] = rows["correct"].astype(bool)
    sets = contrast_members(rows, CHECKPOINTS, SETTINGS)
    subset = rows[rows["question_id"] != sets["gained"][0][0]]
    for some in (rows, subset):
        read, made = (align(some, CHECKPOINTS, SETTINGS, members=s).sets for s in (sets, None))
        assert [[*map(list, pair.kinds), pair.kept] for pair in read] == [
            [*map(list, pair.kinds), pair.kept] for pair in made
        ]
    assert len(align(rows, CHECKPOINTS, SETTINGS, members=sets[:1]).sets) == 1
    with pytest.raises(PredictionsError, match=r"other labels.*run list_contrast_sets"):
        align(rows.assign(correct=~rows["correct"]), CHECKPOINTS, SETTINGS, members=sets)


def test_scripts_without_predictions_return_empty_tables_with_warnings(caplog):
    empty = artifacts.empty(artifacts.PREDICTIONS).assign(**PLACE)
    assert resample(empty).empty
    settings = {"checkpoints": ["a", "b"], "settings": EvaluationSettings()}
    sets = artifacts.empty(artifacts.CONTRAST_MEMBERS)
    assert evaluate_estimator(empty, sets, **settings).metrics.empty
    assert compare([resample(empty)], [("quiz", "oracle"), ("quiz", "own")]).empty
    assert len(caplog.records) == 4


def test_metrics_are_also_reported_for_the_configured_conditionings():
    rows = make_predictions(40).query("estimator == 'own'")
    usual_rows, extended = (
        evaluate(
            rows,
            EvaluationSettings(min_contrast=5, conditionings=conditionings, n_replicates=2),
        ).metrics
        for conditionings in (["odds"], ["odds", "cross_fitted"])
    )
    assert set(usual_rows["conditioning"]) == {"odds", "fitted"}
    crossed = extended["conditioning"] == "cross_fitted"
    pd.testing.assert_frame_equal(extended[~crossed].reset_index(drop=True), usual_rows)
    assert set(extended.loc[crossed, "metric"]) == set(names("contrast"))


def test_holm_over_tables_corrects_for_all_tests_of_a_metric():
    key = [name for name in artifacts.SIGNIFICANCE.key if name not in ("dataset", "metric")]
    rows = [("quiz", "auc", 0.01), ("trivia", "auc", 0.03), ("quiz", "brier", 0.04)]
    single = pd.DataFrame(rows, columns=["dataset", "metric", "p_value"])
    single = single.assign(**dict.fromkeys(key, "same"), p_holm=single["p_value"])
    tests = pd.concat([single, single])  # two tables contain the same test
    kinds = (artifacts.METRICS, artifacts.INTERVALS, artifacts.CONTRAST_MEMBERS)
    metrics, intervals, sets = map(artifacts.empty, kinds)
    by_block, over_tables = (
        collect_results(metrics, intervals, tests, sets.assign(**PLACE), holm=holm)[2]
        for holm in ("block", "tables")
    )
    pd.testing.assert_frame_equal(by_block, single)
    # The smaller p-value among two tests of AUC is doubled.
    pd.testing.assert_frame_equal(over_tables, single.assign(p_holm=[0.02, 0.03, 0.04]))
