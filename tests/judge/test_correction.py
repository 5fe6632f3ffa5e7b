"""Numbers corrected by an audit: against hand, a peer package, slow derivatives, and worlds."""

import numpy as np
import pytest
from answer_tables import questions_table
from correct_results import correct_results
from sheet_files import saved_sheet
from simulated_judges import WORLDS, JudgeWorld, audit, coverage, draw
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation.evaluate import evaluate
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


def test_a_perfect_judge_gives_the_studys_numbers_to_the_bit():
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
    known = metrics.set_index(["train_dataset", "estimator", "metric"])["value"]
    assert any(len(runs) > 1 for runs in answers.estimators.values())
    for member, runs in answers.estimators.items():
        for metric, one in correct_metrics(audited, runs).items():
            assert one.corrected == one.judged == known[(*member, metric)]
            assert one.lower <= one.corrected <= one.upper
            assert one.upper > one.lower or member[1] == "end_correct"


def some(*counts):
    """States of questions: how many of each."""
    return np.repeat([state for state, _ in counts], [n for _, n in counts])


def test_counts_by_hand():
    # 100 judged wrong twice, 20 of them audited: 1 was gained, so 100 / 20 × 1 = 5 of all.
    # 50 judged gained, 10 of them audited: 2 were right twice, 50 / 10 × 2 = 10 fewer gained.
    judged = some((NEITHER, 100), (GAINED, 50))
    person = some((GAINED, 1), (NEITHER, 19), (UNAUDITED, 80), (BOTH, 2), (GAINED, 8))
    counts = correct_counts(Audited(judged, np.append(person, np.full(40, UNAUDITED))))
    assert counts["improvement"][:2] == (50, pytest.approx(50 + 5 - 10))
    assert counts["contrast_size"].corrected == pytest.approx(45)
    assert counts["accuracy_later"][:2] == pytest.approx((50 / 150, 55 / 150))
    assert counts["accuracy_earlier"][:2] == pytest.approx((0, 10 / 150))


def test_accuracies_are_those_of_prediction_powered_inference(monkeypatch):
    """Of 1,000 answers 600 are judged correct; of 40 of these 34 are, of 60 others 3.

    ppi-python 0.2.3 says .53 of `ppi_mean_pointestimate(t, j, judged, lam=1, w=w)` with
    `t = repeat([1, 0, 1, 0], [34, 6, 3, 57])`, `j = repeat([1, 0], [40, 60])`,
    `judged = repeat([1, 0], [600, 400])` and `w = repeat([15, 400 / 60], [40, 60])`; and of
    the same judge with one kind, 60 and 40 audited of which 54 and 3 are correct, .57 with
    the interval .50408574 to .63591426 (`ppi_mean_ci(..., lam=1, alpha=0.05)`).
    """
    judged = some((BOTH, 600), (NEITHER, 400))
    person = np.full(1000, UNAUDITED)
    person[:40] = some((BOTH, 34), (NEITHER, 6))
    person[600:660] = some((BOTH, 3), (NEITHER, 57))
    two_kinds = correct_counts(Audited(judged, person))["accuracy_later"]
    assert two_kinds.corrected == pytest.approx(0.53)

    # As one kind, and with no error added to those seen, as their intervals add none
    monkeypatch.setattr(correction, "_kinds", lambda of: np.zeros_like(of.judged))
    monkeypatch.setattr(correction, "UNSEEN", 0)
    monkeypatch.setattr(correction, "UNSEEN_FREEDOM", 1e12)
    person[:] = UNAUDITED
    person[:60] = some((BOTH, 54), (NEITHER, 6))
    person[600:640] = some((BOTH, 3), (NEITHER, 37))
    one = correct_counts(Audited(judged, person))["accuracy_later"]
    assert one.corrected == pytest.approx(0.57)
    # Theirs takes the audited for others than the 1,000, so that it lacks twice the covariance
    # of judgement and error, over 1,000: mean(j (t − j)) − mean(j) mean(t − j) = −.06 + .018;
    # and it divides by 1,000 and 100 where a variance takes 99, and .6 (1 − .6) of the judged.
    theirs = ((0.63591426 - 0.50408574) / 2 / 1.959964) ** 2
    error = (6 + 3) / 100 - 0.03**2
    assert theirs == pytest.approx(0.24 / 1000 + error / 100)
    ours = ((one.upper - one.lower) / 2 / 1.959964) ** 2
    mine = 0.57 * 0.43 / 1000 + (1 / 100 - 1 / 1000) * error * 100 / 99
    assert ours == pytest.approx(mine)
    # the same but for the covariance, that of j and t instead of a second sample, and the 99
    assert ours == pytest.approx(theirs + 2 * (-0.06 + 0.018) / 1000, rel=0.02)


def test_influences_are_derivatives():
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
                other = weights.copy()
                other[question, state] += change
                moved.append(correction._values(other, runs))
            for name, influence in by_name.items():
                slope = (moved[0][name] - moved[1][name]) / (2 * step)
                assert influence[question, state] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("name", ["swayed by confidence", "half audited"])
def test_intervals_hold_the_truth(name):
    for metric, (share, _) in coverage(WORLDS[name], 40, seed=3, population=100_000).items():
        assert share > 0.82, metric  # at .95, 1 in 1,000 holds fewer than 34 of 40


def test_the_judge_alone_is_wrong_and_the_audit_right():
    """A judge that errs makes contrast questions and takes Δ₀ᵇ down; corrected, it is back."""
    world, rng = JudgeWorld(0.1, 0.1, n=20_000), np.random.default_rng(2)
    truth, judged, confidence = draw(world, world.n, rng)
    true = correct_metrics(Audited(truth, truth), [confidence])["delta0_balanced"].judged
    made = correct_metrics(audit(truth, judged, (1000, 1000, 1000), rng), [confidence])
    found = made["delta0_balanced"]
    assert found.judged < true - 0.2
    assert abs(found.corrected - true) < 0.07


def answered():
    """Answers and predictions of two checkpoints, and a sheet that calls some others wrong."""
    predictions = make_predictions(n=200)
    own = predictions[predictions["estimator"] == "own"].assign(split="test", answer="x")
    rows = [own[own["checkpoint"] == name] for name in CHECKPOINTS[:2]]
    questions = questions_table(n_train=0, n_test=200).assign(
        question_id=rows[0]["question_id"].to_numpy()
    )
    sheet = draw_sheet(questions, *rows, draws=DRAWS, seed=5)
    for name, table in zip(("earlier", "later"), rows, strict=True):
        right = sheet["question_id"].map(table.set_index("question_id")["correct"])
        sheet[f"{name}_correct"] = np.where(right, "yes", "no")
    sheet.loc[::7, "later_correct"] = "no"
    return rows, predictions, sheet


def test_the_rule_reads_a_sheet(tmp_path):
    rows, predictions, sheet = answered()
    sheet.to_csv(tmp_path / "filled.csv", index=False)
    how = {"checkpoints": CHECKPOINTS[:2], "draws": DRAWS, "seed": 5}
    made = correct_results(str(tmp_path / "filled.csv"), rows, predictions, **how)
    assert set(made["n_audited"]) == {37}
    assert set(made["n_questions"]) == {200}
    assert made.set_index(["estimator", "metric"]).loc[("own", "auc"), "corrected"] > 0

    sheet[:3].to_csv(tmp_path / "filled.csv", index=False)
    with pytest.raises(AuditError, match=r"filled.csv: \d of \d+ contrast questions .*10"):
        correct_results(str(tmp_path / "filled.csv"), rows, predictions, **how)


@pytest.mark.parametrize("checkpoints", [CHECKPOINTS, CHECKPOINTS[:1]], ids=["all", "one"])
def test_a_question_without_predictions_is_refused(checkpoints, tmp_path):
    rows, predictions, table = answered()
    sheet = saved_sheet(table, tmp_path)
    states = states_of_sheet(sheet, *rows, draws=DRAWS, seed=5)
    lost = predictions["question_id"].isin(["q0003", "q0007"])
    rest = predictions[~(lost & predictions["checkpoint"].isin(checkpoints))]
    with pytest.raises(AuditError, match=r"2 of 200 questions that a and b .*'q0003'"):
        correction.correct_results(states, rest, CHECKPOINTS[:2])


def test_a_sheet_that_was_not_drawn_is_refused(tmp_path):
    rows, _, table = answered()
    sheet = saved_sheet(table, tmp_path)
    with pytest.raises(AuditError, match=r"'q\d+' is not on the sheet that analyses.audit"):
        states_of_sheet(sheet, *rows, draws=DRAWS, seed=6)
    half = table.copy()
    half.loc[0, "later_correct"] = ""
    half_sheet = saved_sheet(half, tmp_path)
    states = states_of_sheet(half_sheet, *rows, draws=DRAWS, seed=5).set_index("question_id")
    assert states.loc[half.loc[0, "question_id"], "person"] == UNAUDITED
    assert (states["person"] != UNAUDITED).sum() == 36


def test_metrics_of_questions_that_may_not_be_there_are_undefined():
    """Of the ten questions lost by the judge, a person finds none."""
    judged = some((LOST, 10), (GAINED, 40), (BOTH, 50))
    person = some((NEITHER, 10), (GAINED, 10), (UNAUDITED, 30), (BOTH, 10), (UNAUDITED, 40))
    confidence = np.random.default_rng(0).random((2, 100))
    made = correct_metrics(Audited(judged, person), [confidence])
    assert np.isnan([one.corrected for one in made.values()]).all()
    assert not np.isnan([one.judged for one in made.values()]).any()
