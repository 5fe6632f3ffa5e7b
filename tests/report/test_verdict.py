"""The verdict on an update: marks, words and numbers."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from synthetic_study import invent

from persistcal.evaluation import findings
from persistcal.evaluation.aligned import align_subjects
from persistcal.evaluation.reliability import CheckpointCalibration
from persistcal.report.page.contents import Found, gather
from persistcal.report.page.verdict import Rated, Verdict, chance_of, verdicts
from persistcal.report.phrases import (
    NONE,
    OPEN,
    OPPOSITE,
    SHOWN,
    Answer,
    answer_to,
)
from persistcal.store import artifacts


@pytest.fixture(scope="module")
def study():
    invented = invent(n=200)
    return gather(invented["made"], invented["shown"])


@pytest.fixture(scope="module")
def verdict(study):
    [verdict] = verdicts(study)
    return verdict


def test_estimators_are_sorted_by_change_auc_with_baselines_last(verdict):
    values = [row.follows.value for row in verdict.rows if not row.is_baseline]
    assert values == sorted(values, reverse=True)
    assert [row.label for row in verdict.rows if row.is_baseline] == ["End correct"]
    assert verdict.rows[-1].is_baseline


def test_the_verdict_counts_gained_and_lost_questions(study, verdict):
    answers = study.made.predictions.query("estimator == 'end_correct'")
    right = answers.pivot(index="question_id", columns="checkpoint", values="correct")
    assert verdict.gained == (~right["c2"] & right["c4"]).sum() > 0
    assert verdict.lost == (right["c2"] & ~right["c4"]).sum() > 0
    assert verdict.n_questions == 200


@pytest.mark.parametrize(
    ("n_gained", "n_lost", "mark", "word"),
    [
        (12, 1, SHOWN, "rises"),  # p = 2 (1 + 13) / 2¹³ = .0034
        (1, 12, OPPOSITE, "falls"),
        (5, 1, OPEN, "can be chance"),  # p = 2 (1 + 6) / 2⁶ = .22
    ],
)
def test_accuracy_rises_or_falls_if_mcnemars_test_is_significant(n_gained, n_lost, mark, word):
    earlier = np.repeat([0, 1, 1], [n_gained, n_lost, 20])
    later = np.repeat([1, 0, 1], [n_gained, n_lost, 20])
    ends = np.stack([earlier, later])
    answer = answer_to(findings.accuracy_finding(ends, np.arange(len(earlier))))
    assert (answer.mark, answer.word) == (mark, word)
    assert answer.value == pytest.approx((n_gained - n_lost) / (20 + n_gained + n_lost))


def test_an_adjusted_p_value_replaces_the_p_value_of_the_pair():
    earlier, later = np.repeat([0, 1], [12, 20]), np.ones(32)
    tested = {"lower_2_5pct": -0.1, "upper_97_5pct": 0.8, "p_value": 0.1, "p_holm": 0.2}
    ends = np.stack([earlier, later])
    answer = answer_to(findings.accuracy_finding(ends, np.arange(32), [tested]))
    # 12 of 32 are gained
    assert answer[:2] == (OPEN, "can be chance")
    assert answer.text == ".625 → 1.000, by .375 [−.100, .800]"


@pytest.mark.parametrize(
    ("p_calibrated", "p_mean", "word", "cell"),
    [
        (0.3, 0.9, "no error shown", "says .560, right .500"),
        (0.01, 0.9, "not calibrated", "off by .083, noise .040"),
        (0.01, 0.01, "over-confident", "says .560, right .500"),
    ],
)
def test_a_calibration_error_without_a_bias_is_shown_beside_its_noise_floor(
    p_calibrated, p_mean, word, cell, monkeypatch
):
    tested = CheckpointCalibration(0.083, 0.04, p_calibrated, 0.56, 0.5, p_mean, 0.05)
    monkeypatch.setattr(findings, "checkpoint_calibration", lambda *args, **_: tested)
    answers = SimpleNamespace(correct=np.array([[0, 1]] * 2), groups=np.arange(2))
    runs = [np.full((2, 2), 0.56)]
    answer = answer_to(findings.calibration_finding(answers, runs, (0, 1), 0, seed=17))
    assert (answer.word, answer.brief) == (word, cell)


def threshold(seeds):
    """Return the answer of the verdict, and means over seeds."""
    found = findings.threshold_finding(seeds)
    return answer_to(found), found.evidence.get("means")


def seed_of_threshold(verdict, precision):
    """Return a row of THRESHOLDS: coverage rises from 30 % to 40 %, two answers broke."""
    return {
        "verdict": verdict,
        "seed": 17,
        "threshold": 0.6,
        "labels_to_decide": 0.0,
        "n_questions": 200,
        "delta": 0.1,
        "target": 0.8,
        "least_abstention": 0.75,
        "earlier_precision": 0.85,
        "later_precision": precision,
        "later_precision_lower_2_5pct": precision - 0.1,
        "later_precision_upper_97_5pct": precision + 0.05,
        "earlier_coverage": 0.3,
        "later_coverage": 0.4,
        "confident_regressions": 2,
    }


def test_the_worst_seed_decides_the_verdict_on_a_threshold():
    answer, values = threshold(
        [seed_of_threshold("kept", 0.9), seed_of_threshold("broken", 0.6)]
    )
    assert (answer.mark, answer.word) == (OPPOSITE, "broken (1 of 2 seeds)")
    assert values["later_precision"] == pytest.approx((0.9 + 0.6) / 2)
    assert answer.text == (
        "75 % right [60, 90]; answers 30 → 40 % of questions; 2 confident answers broke"
    )


def test_a_seed_without_a_threshold_leaves_the_verdict_open():
    answer, _ = threshold([seed_of_threshold("kept", 0.9), seed_of_threshold("", np.nan)])
    assert (answer.mark, answer.word) == (OPEN, "kept (1 of 2 seeds)")


@pytest.mark.parametrize(
    ("bases", "label"),
    [
        (["one ask", ""], "chance"),
        (["cross", "control"], "chance"),
        (["cross", "other examples"], "about chance, as all share the other examples"),
        (["cross", "samples"], "chance, if no answer flips by itself"),
        ([], "chance, if no answer flips by itself"),
    ],
)
def test_the_label_of_the_chance_line_depends_on_the_basis_of_the_claims(bases, label):
    claimed = enumerate(bases)
    members = {n: findings.Finding("following", "open", "", basis=b) for n, b in claimed}
    assert chance_of(Found(None, {"following": members}, frozenset())) == label


def test_estimators_without_a_threshold_have_no_verdict_on_it():
    answer, values = threshold([seed_of_threshold("", np.nan)])
    assert (answer.mark, answer.word, values) == (NONE, "none", None)
    assert "most confident 25 % of answers" in answer.text  # 1 − .75


def test_the_headline_groups_estimators_by_verdict():
    rows = [
        Rated(
            ("quiz", name), name, follows=answer_to(findings.Finding("following", mark, word))
        )
        for name, mark, word in [
            ("A", "yes", "followed"),
            ("B", "open", "not shown to have followed"),
            ("C", "yes", "followed"),
        ]
    ]
    rows.append(Rated(("quiz", "end"), "end"))
    verdict = Verdict("t", None, 9, 2, 1, Answer(OPEN, "can be chance"), rows, None, "chance")
    assert verdict.headline == "Yes for A and C; not shown for B."


def test_a_single_checkpoint_has_no_verdict():
    invented = invent(checkpoints=("c1",), n_earlier=0, tables=False)
    assert verdicts(gather(invented["made"], invented["shown"])) == [None]


def test_a_checkpoint_without_changed_answers_has_no_gains_and_no_losses():
    invented = invent(n=60)
    rows = invented["made"].predictions
    first = rows[rows["checkpoint"] == "c2"].set_index(["estimator", "seed", "question_id"])
    key = pd.MultiIndex.from_frame(rows[["estimator", "seed", "question_id"]])
    same = rows.assign(correct=first["correct"].reindex(key).to_numpy())
    same = same[same["estimator"] == "self_consistency"]
    empty = (
        artifacts.empty(t) for t in (artifacts.CLAIMS, artifacts.STATES, artifacts.THRESHOLDS)
    )
    settings = invented["shown"].settings
    aligned = align_subjects([same], {"m": ["c2", "c3", "c4"]}, settings)
    found = findings.make_findings(aligned, *empty, settings)
    tables = replace(invented["made"], predictions=same, findings=found)
    [verdict] = verdicts(gather(tables, invented["shown"]))
    assert (verdict.gained, verdict.lost, verdict.accuracy.word) == (0, 0, "can be chance")
