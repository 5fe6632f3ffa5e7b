"""The verdict on an update: marks, words and numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from synthetic_study import invent

from persistcal.evaluation import findings
from persistcal.evaluation.aligned import align_subjects
from persistcal.evaluation.predictions import AnswerArrays
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.report.page.contents import UpdateFindings, gather
from persistcal.report.page.verdict import Rated, Verdict, chance_of, verdicts
from persistcal.report.phrases import phrase_numbers, phrase_word
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
    numbers = verdict.accuracy.evidence
    assert numbers["gained"] == (~right["c2"] & right["c4"]).sum() > 0
    assert numbers["lost"] == (right["c2"] & ~right["c4"]).sum() > 0
    assert numbers["n_questions"] == 200


@pytest.mark.parametrize(
    ("n_gained", "n_lost", "mark", "word"),
    [
        (12, 1, "yes", "rises"),  # p = 2 (1 + 13) / 2¹³ = .0034
        (1, 12, "no", "falls"),
        (5, 1, "open", "can be chance"),  # p = 2 (1 + 6) / 2⁶ = .22
        (5, 0, "yes", "holds"),  # p = 2 / 2⁵ = .0625
    ],
)
def test_accuracy_rises_or_falls_if_mcnemars_test_is_significant(n_gained, n_lost, mark, word):
    answer = accuracy(n_gained, n_lost, 20)
    assert (answer.mark, answer.word) == (mark, word)
    assert answer.value == pytest.approx((n_gained - n_lost) / (20 + n_gained + n_lost))


def accuracy(n_gained, n_lost, n_same, **settings):
    """Return the finding about gained, lost and unchanged questions, which are right."""
    counts = [n_gained, n_lost, n_same]
    ends = np.stack([np.repeat(labels, counts) for labels in ([0, 1, 1], [1, 0, 1])])
    return findings.accuracy_finding(ends, np.arange(sum(counts)), **settings)


@pytest.mark.parametrize(
    ("n_gained", "n_lost", "mark", "word"),
    [
        # 1.96 √200 / 10,000 = .0028
        (100, 100, "yes", "holds"),
        (50, 150, "open", "falls, perhaps by less than the margin"),
        (0, 200, "no", "falls"),
    ],
)
def test_many_questions_show_whether_accuracy_falls_by_the_margin(n_gained, n_lost, mark, word):
    answer = accuracy(n_gained, n_lost, 10_000)
    assert (answer.mark, answer.word) == (mark, word)
    assert accuracy(n_gained, n_lost, 10_000, margin=0.05).mark == "yes"


def test_an_interval_of_accuracy_contains_zero_if_mcnemars_test_does_not_exclude_it():
    for lost in range(40):
        for gained in range(lost):
            finding = accuracy(gained, lost, 60, margin=0.0)
            assert (finding.upper < 0) == (finding.evidence["p_value"] < 0.05)
            assert (finding.mark == "no") == (finding.upper < 0)


def test_questions_in_groups_have_the_interval_of_the_bootstrap():
    ends = np.stack([np.repeat([0, 1], [12, 20]), np.ones(32)])
    tested = {"lower_2_5pct": -0.1, "upper_97_5pct": 0.8, "p_value": 0.1}
    finding = findings.accuracy_finding(ends, np.arange(32) // 2, [tested])
    assert (finding.mark, finding.word) == ("open", "can be chance")  # 12 of 32 are gained
    assert phrase_numbers(finding) == ".625 → 1.000, by .375 [−.100, .800]"


def calibration(confidence, right, n_compared=1, **settings):
    """Return the finding about an estimator at the later of two checkpoints."""
    runs = [np.stack([confidence, confidence])]
    answers = AnswerArrays((), right, np.stack([right, right]), {}, np.arange(len(right)))
    settings = EvaluationSettings(**settings)
    return findings.calibration_finding(answers, runs, (0, 1), 0, settings, n_compared)


@pytest.mark.parametrize(
    ("stated", "share", "word", "start"),
    [
        ((0.3, 0.7), (0.3, 0.7), "no error shown", "says .500, right .500, off by .000 [−"),
        ((0.1, 0.9), (0.3, 0.6), "not calibrated", "at .900, right .600, off by .3"),
        ((0.6, 0.9), (0.3, 0.7), "over-confident", "says .750, right .500, off by .250 [.1"),
        ((0.1, 0.4), (0.3, 0.7), "under-confident", "says .250, right .500, off by −.250 [−"),
    ],
)
def test_calibration_is_judged_for_all_answers_and_by_confidence(stated, share, word, start):
    """Of 300 answers, 150 have each confidence."""
    right = np.concatenate([np.arange(150) < 150 * s for s in share])
    finding = calibration(np.repeat(stated, 150), right)
    text = phrase_numbers(finding)
    assert finding.word == word and text.startswith(start)
    assert "(SmoothECE ." in text and "noise floor ." in text


def test_a_margin_makes_calibration_shown():
    right = np.arange(10_000) % 10 < 7
    for margin, mark in ((0.02, "yes"), (0.005, "open")):
        margins = {"accuracy": 0.01, "calibration": margin}
        finding = calibration(np.full(10_000, 0.705), right, margin=margins)
        assert (finding.mark, round(finding.value, 3)) == (mark, 0.005)


def test_a_mark_of_calibration_agrees_with_its_intervals_for_any_number_of_estimators():
    rng = np.random.default_rng(0)
    for n_compared in (1, 10, 60):
        for bias in (0.0, 0.1, 0.4):
            stated = rng.random(200)
            finding = calibration(stated, rng.random(200) < stated * (1 - bias), n_compared)
            beyond = [low > 0.02 or high < -0.02 for *_, low, high in finding.evidence["gaps"]]
            assert (finding.mark == "no") == any(beyond)
    widths = [calibration(stated, stated > 0.5, n).upper for n in (1, 10, 60)]
    assert widths == sorted(set(widths))


def threshold(seeds):
    """Return the finding, its mark and its word in the verdict, and means over seeds."""
    finding = findings.threshold_finding(seeds)
    return finding, (finding.mark, phrase_word(finding)), finding.evidence.get("means")


def seed_of_threshold(verdict, precision):
    """Return a row of THRESHOLDS: coverage rises from 30 % to 40 %, two answers broke."""
    return {
        **{"verdict": verdict, "seed": 17, "threshold": 0.6, "labels_to_decide": 0.0},
        **{"n_questions": 200, "delta": 0.1, "target": 0.8, "least_abstention": 0.75},
        **{"earlier_precision": 0.85, "later_precision": precision},
        "later_precision_lower_2_5pct": precision - 0.1,
        **{"later_precision_upper_97_5pct": precision + 0.05, "earlier_coverage": 0.3},
        **{"later_coverage": 0.4, "confident_regressions": 2},
    }


def test_the_worst_seed_decides_the_verdict_on_a_threshold():
    finding, answer, values = threshold(
        [seed_of_threshold("kept", 0.9), seed_of_threshold("broken", 0.6)]
    )
    assert answer == ("no", "broken (1 of 2 seeds)")
    assert values["later_precision"] == pytest.approx((0.9 + 0.6) / 2)
    assert phrase_numbers(finding) == (
        "75 % right [60, 90]; answers 30 → 40 % of questions; 2 confident answers broke"
    )


def test_a_seed_without_a_threshold_leaves_the_verdict_open():
    _, answer, _ = threshold([seed_of_threshold("kept", 0.9), seed_of_threshold("", np.nan)])
    assert answer == ("open", "kept (1 of 2 seeds)")


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
    assert chance_of(UpdateFindings(None, {"following": members}, frozenset())) == label


def test_estimators_without_a_threshold_have_no_verdict_on_it():
    finding, answer, values = threshold([seed_of_threshold("", np.nan)])
    assert (*answer, values) == ("none", "none", None)
    assert "most confident 25 % of answers" in phrase_numbers(finding)  # 1 − .75


def test_the_headline_groups_estimators_by_verdict():
    rows = [
        Rated(("quiz", name), name, findings.Finding("following", mark, word))
        for name, mark, word in [
            ("A", "yes", "followed"),
            ("B", "open", "not shown"),
            ("C", "yes", "followed"),
        ]
    ]
    rows.append(Rated(("quiz", "end"), "end"))
    verdict = Verdict("t", None, accuracy(2, 1, 6), rows, None, "chance")
    assert verdict.headline == "Yes for A and C; not shown for B."


def test_a_single_checkpoint_has_no_verdict():
    invented = invent(checkpoints=("c1",), n_earlier=0, tables=False)
    assert verdicts(gather(invented["made"], invented["shown"])) == []


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
    finding = findings.make_findings(aligned, *empty, settings)
    tables = replace(invented["made"], predictions=same, findings=finding)
    [verdict] = verdicts(gather(tables, invented["shown"]))
    numbers = verdict.accuracy.evidence
    assert (numbers["gained"], numbers["lost"]) == (0, 0)
    assert verdict.accuracy.word == "can be chance"
