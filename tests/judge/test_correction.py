"""Numbers corrected by an audit: by hand, by a peer package, and in simulations."""

import numpy as np
import pytest
from answer_tables import questions_table
from correct_results import correct_results
from measuring import evaluate
from scipy.stats import t as student_t
from sheet_files import saved_sheet
from synthetic_predictions import CHECKPOINTS, make_predictions

from benchmarks.audits import WORLDS, JudgeWorld, audit, coverage, draw
from persistcal.evaluation.predictions import arrange
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.judge import correction
from persistcal.judge.audit import AuditError, Draws, draw_sheet, states_of_sheet
from persistcal.judge.correction import (
    BOTH,
    GAINED,
    LOST,
    NEITHER,
    UNAUDITED,
    Audited,
    correct_counts,
    correct_metrics,
)

DRAWS = Draws(n_contrast=15, n_correct=12, n_incorrect=10)


def test_an_audit_without_errors_leaves_every_number_exactly():
    predictions = make_predictions(n=300)
    checkpoints = CHECKPOINTS[:2]
    predictions = predictions[predictions["checkpoint"].isin(checkpoints)]
    answers = arrange(predictions, checkpoints)
    judged = 2 * answers.correct[0].astype(int) + answers.correct[1]
    audited = audit(judged, judged, DRAWS, np.random.default_rng(0))
    counts = correct_counts(audited)

    for name, row in zip(("earlier", "later"), answers.correct, strict=True):
        assert counts[f"accuracy_{name}"].corrected == row.mean()
    assert counts["improvement"].corrected == (judged == GAINED).sum()
    metrics = evaluate(predictions, checkpoints, EvaluationSettings(min_contrast=1))
    metrics = metrics[(metrics["seed"] == "mean") & (metrics["conditioning"] == "odds")]
    metrics = metrics[metrics["scope"] == "contrast"]
    values = metrics.set_index(["train_dataset", "estimator", "metric"])["value"]

    assert any(len(runs) > 1 for runs in answers.estimators.values())
    for member, runs in answers.estimators.items():
        for metric, metric_value in correct_metrics(audited, runs).items():
            assert metric_value.corrected == metric_value.judged == values[(*member, metric)]
            assert metric_value.lower <= metric_value.corrected <= metric_value.upper
            assert metric_value.upper > metric_value.lower or member[1] == "end_correct"


def repeat_states(*counts):
    """Return states of questions, given as (state, number of questions)."""
    return np.repeat([state for state, _ in counts], [n for _, n in counts])


def test_corrected_counts_by_hand():
    # 100 judged wrong twice, 20 of them audited, 1 is gained: 100 / 20 * 1 = 5 more gained.
    # 50 judged gained, 10 of them audited, 2 are right twice: 50 / 10 * 2 = 10 fewer gained.
    judged = repeat_states((NEITHER, 100), (GAINED, 50))
    person = repeat_states((GAINED, 1), (NEITHER, 19), (UNAUDITED, 80), (BOTH, 2), (GAINED, 8))
    counts = correct_counts(Audited(judged, np.append(person, np.full(40, UNAUDITED))))
    assert counts["improvement"][:2] == (50, pytest.approx(50 + 5 - 10))
    assert counts["contrast_size"].corrected == pytest.approx(45)
    assert counts["accuracy_later"][:2] == pytest.approx((50 / 150, 55 / 150))
    assert counts["accuracy_earlier"][:2] == pytest.approx((0, 10 / 150))


def test_corrected_accuracies_equal_prediction_powered_inference(monkeypatch):
    """A judge calls 600 of 1,000 answers correct; 34 of 40 of these are, and 3 of 60 others.

    `ppi_mean_pointestimate(t, j, judged, lam=1, w=w)` of ppi-python 0.2.3 returns .53 for
    `t = repeat([1, 0, 1, 0], [34, 6, 3, 57])`, `j = repeat([1, 0], [40, 60])`,
    `judged = repeat([1, 0], [600, 400])` and `w = repeat([15, 400 / 60], [40, 60])`. If the
    answers are of one kind, with 60 and 40 audited and 54 and 3 correct, it returns .57 and
    the interval .50408574 to .63591426 (`ppi_mean_ci(..., lam=1, alpha=0.05)`).
    """
    judged = repeat_states((BOTH, 600), (NEITHER, 400))
    person = np.full(1000, UNAUDITED)
    person[:40] = repeat_states((BOTH, 34), (NEITHER, 6))
    person[600:660] = repeat_states((BOTH, 3), (NEITHER, 57))
    two_kinds = correct_counts(Audited(judged, person))["accuracy_later"]
    assert two_kinds.corrected == pytest.approx(0.53)

    # Like ppi-python: one kind of answers, and no allowance for errors that were not seen
    monkeypatch.setattr(correction, "_kinds", lambda audited: np.zeros_like(audited.judged))
    monkeypatch.setattr(correction, "UNSEEN", 0)
    monkeypatch.setattr(correction, "UNSEEN_FREEDOM", 1e12)
    person[:] = UNAUDITED
    person[:60] = repeat_states((BOTH, 54), (NEITHER, 6))
    person[600:640] = repeat_states((BOTH, 3), (NEITHER, 37))
    metric_value = correct_counts(Audited(judged, person))["accuracy_later"]
    assert metric_value.corrected == pytest.approx(0.57)
    # ppi-python treats the audited answers as others than the 1,000. So it lacks twice the
    # covariance of judgement and error: mean(j (t - j)) - mean(j) mean(t - j) = -.06 + .018,
    # over 1,000. It also divides by 100 instead of 99, and uses .6 (1 - .6) of the judged.
    ppi_variance = ((0.63591426 - 0.50408574) / 2 / 1.959964) ** 2
    error = (6 + 3) / 100 - 0.03**2
    assert ppi_variance == pytest.approx(0.24 / 1000 + error / 100)
    variance = ((metric_value.upper - metric_value.lower) / 2 / 1.959964) ** 2
    expected_variance = 0.57 * 0.43 / 1000 + (1 / 100 - 1 / 1000) * error * 100 / 99
    assert variance == pytest.approx(expected_variance)
    # The difference is the covariance and the 99.
    assert variance == pytest.approx(ppi_variance + 2 * (-0.06 + 0.018) / 1000, rel=0.02)


def test_a_corrected_interval_by_hand():
    """The judge calls 100 answers correct; a person audits 20, and 2 of these are wrong."""
    judged = repeat_states((BOTH, 100))
    person = repeat_states((BOTH, 18), (NEITHER, 2), (UNAUDITED, 80))
    accuracy = correct_counts(Audited(judged, person))["accuracy_later"]
    assert accuracy.corrected == pytest.approx(0.9)
    # An error moves the accuracy by .01. An unseen error moves it by .01 at the later answer
    # and by 0 at the earlier one. The mean square is .5e-4, and a quarter of it is added.
    spread = (2e-4 + 0.25 * 0.5e-4 - 0.02**2 / 20) / 19
    of_audit = 100**2 * (1 / 20 - 1 / 100) * spread
    variance = 0.9 * 0.1 / 100 + of_audit  # .0009 + .0040526
    # The audit has 2 (2 + 2 · .5)² / (2 + 2 · .5) = 6 degrees of freedom, the answers many.
    # Together they have .0049526² / (.0040526² / 6) = 8.961, and t is 2.264.
    degrees = variance**2 / (of_audit**2 / 6)
    reach = student_t.ppf(0.975, degrees) * variance**0.5
    assert accuracy.lower == pytest.approx(0.9 - reach) == pytest.approx(0.741, abs=5e-4)


def test_influences_equal_numerical_derivatives():
    world = JudgeWorld(0.1, 0.1)
    rng = np.random.default_rng(1)
    truth, judged, confidence = draw(world, 400, rng)
    audited = audit(truth, judged, (40, 30, 30), rng)
    runs = [confidence, np.round(confidence, 1)]  # with ties
    weights = correction._weights(audited)
    by_name = {
        "delta0_balanced": correction._influence_on_delta0(weights, runs),
        "auc": np.mean([correction._influence_on_auc(weights, run) for run in runs], axis=0),
    }
    step = 1e-6

    for question in rng.integers(400, size=10):
        for state in (GAINED, LOST):
            moved = []
            for change in (step, -step):
                moved_weights = weights.copy()
                moved_weights[question, state] += change
                moved.append(correction._values(moved_weights, runs))
            for name, influence in by_name.items():
                slope = (moved[0][name] - moved[1][name]) / (2 * step)
                assert influence[question, state] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("name", ["swayed by confidence", "half audited"])
def test_intervals_contain_the_true_value(name):
    for metric, (share, _) in coverage(WORLDS[name], 40, seed=3, population=100_000).items():
        assert share > 0.82, metric  # at .95, fewer than 34 of 40 has a chance of 1/1,000


def test_the_correction_removes_the_bias_of_a_judge_with_errors():
    """Errors of a judge create contrast questions, which lower delta0_balanced."""
    world, rng = JudgeWorld(0.1, 0.1, n=20_000), np.random.default_rng(2)
    truth, judged, confidence = draw(world, world.n, rng)
    true_value = correct_metrics(Audited(truth, truth), [confidence])["delta0_balanced"].judged
    corrected = correct_metrics(audit(truth, judged, (1000, 1000, 1000), rng), [confidence])
    delta0 = corrected["delta0_balanced"]
    assert delta0.judged < true_value - 0.2
    assert abs(delta0.corrected - true_value) < 0.07


def audited_study():
    """Return answers, predictions, and a sheet that contradicts some labels."""
    predictions = make_predictions(n=200)
    rows_of_estimator = predictions[predictions["estimator"] == "own"].assign(
        split="test", answer="x"
    )
    rows = [
        rows_of_estimator[rows_of_estimator["checkpoint"] == name] for name in CHECKPOINTS[:2]
    ]
    questions = questions_table(n_train=0, n_test=200).assign(
        question_id=rows[0]["question_id"].to_numpy()
    )
    sheet = draw_sheet(questions, *rows, draws=DRAWS, seed=5)
    for name, table in zip(("earlier", "later"), rows, strict=True):
        is_right = sheet["question_id"].map(table.set_index("question_id")["correct"])
        sheet[f"{name}_correct"] = np.where(is_right, "yes", "no")
    sheet.loc[::7, "later_correct"] = "no"
    return [questions, *rows], predictions, sheet


def test_the_rule_corrects_results_by_a_filled_sheet(tmp_path):
    (questions, *rows), predictions, sheet = audited_study()
    filled = str(tmp_path / "filled.csv")
    sheet.to_csv(filled, index=False)
    settings = {"checkpoints": CHECKPOINTS[:2], "draws": DRAWS, "seed": 5}
    corrected = correct_results(filled, questions, rows, predictions, **settings)
    assert set(corrected["n_audited"]) == {37}
    assert set(corrected["n_questions"]) == {200}
    assert corrected.set_index(["estimator", "metric"]).loc[("own", "auc"), "corrected"] > 0

    sheet[:3].to_csv(filled, index=False)
    with pytest.raises(AuditError, match=r"filled.csv: \d of \d+ contrast questions .*10"):
        correct_results(filled, questions, rows, predictions, **settings)


@pytest.mark.parametrize("checkpoints", [CHECKPOINTS, CHECKPOINTS[:1]], ids=["all", "one"])
def test_a_question_without_predictions_is_refused(checkpoints, tmp_path):
    rows, predictions, table = audited_study()
    sheet = saved_sheet(table, tmp_path)
    states = states_of_sheet(sheet, *rows, draws=DRAWS, seed=5)
    is_missing = predictions["question_id"].isin(["q0003", "q0007"])
    rest = predictions[~(is_missing & predictions["checkpoint"].isin(checkpoints))]
    with pytest.raises(AuditError, match=r"2 of 200 questions that a and b .*'q0003'"):
        correction.correct_results(states, rest, CHECKPOINTS[:2])


def test_a_sheet_of_another_draw_is_refused(tmp_path):
    rows, _, table = audited_study()
    sheet = saved_sheet(table, tmp_path)
    with pytest.raises(AuditError, match=r"'q\d+' is not on the sheet that analyses.audit"):
        states_of_sheet(sheet, *rows, draws=DRAWS, seed=6)
    partly_filled = table.copy()
    partly_filled.loc[0, "later_correct"] = ""
    partly_filled_sheet = saved_sheet(partly_filled, tmp_path)
    states = states_of_sheet(partly_filled_sheet, *rows, draws=DRAWS, seed=5).set_index(
        "question_id"
    )
    assert states.loc[partly_filled.loc[0, "question_id"], "person"] == UNAUDITED
    assert (states["person"] != UNAUDITED).sum() == 36


def test_metrics_are_undefined_if_an_audit_finds_no_lost_questions():
    judged = repeat_states((LOST, 10), (GAINED, 40), (BOTH, 50))
    person = repeat_states(
        (NEITHER, 10), (GAINED, 10), (UNAUDITED, 30), (BOTH, 10), (UNAUDITED, 40)
    )
    confidence = np.random.default_rng(0).random((2, 100))
    corrected = correct_metrics(Audited(judged, person), [confidence])
    assert np.isnan([metric_value.corrected for metric_value in corrected.values()]).all()
    assert not np.isnan([metric_value.judged for metric_value in corrected.values()]).any()
