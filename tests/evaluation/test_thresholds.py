"""Thresholds: selected with a guarantee, checked on later answers, and explained."""

import json
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from synthetic_predictions import table_of_arrays

from benchmarks.threshold_worlds import (
    CURVES,
    TRANSFORMS,
    broken_promises,
    certified,
    same_verdicts,
    verdicts_of_pairs,
)
from persistcal.evaluation import selective
from persistcal.evaluation.predictions import ABSENT
from persistcal.evaluation.proportions import exact_interval
from persistcal.evaluation.relabelling import (
    certify_threshold,
    curve_sizes,
    draw_order,
    measure_label_curve,
    take_look,
)
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.thresholds import (
    candidates,
    chance_to_decide,
    check_threshold,
    check_thresholds,
    explain_change,
    select_threshold,
)
from persistcal.report.threshold_views import mean_curve, risk_coverage_figure
from persistcal.report.threshold_views import thresholds as threshold_table
from persistcal.store import artifacts


def select_slowly(confidence, correct, precision, delta, tail=binom.cdf):
    """Return what `select_threshold` documents, threshold by threshold.

    `tail` returns the p-value of k wrong among n answers.
    """
    n = len(confidence)
    tested = sorted(set(confidence))
    counts = [sum(c >= t for c in confidence) for t in tested]
    starts = [
        max(i for i in range(len(tested)) if counts[i] >= share * n)
        for share in (0.125, 0.25, 0.5, 1)
    ]
    passed = set()
    for start in starts:
        for place in range(start, -1, -1):
            wrong = sum(
                c >= tested[place] and not z for c, z in zip(confidence, correct, strict=True)
            )
            if tail(wrong, counts[place], 1 - precision) > delta / 4:
                break
            passed.add(place)
    return tested[min(passed)] if passed else None


@pytest.mark.parametrize("precision", [0.6, 0.8, 0.9])
def test_selection_is_that_of_a_slow_loop(precision):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        confidence = np.round(rng.beta(3, 1, 150), 2)
        correct = rng.random(150) < confidence
        found = select_threshold(confidence, correct, precision=precision)
        slow = select_slowly(confidence, correct, precision, 0.1)
        assert (found.threshold if found else None) == slow


def test_a_worked_example():
    """Thirty answers at .9 of which one is wrong, and ten at .4 that are all wrong.

    Target .8. At .9: P[Bin(30, .2) ≤ 1] = .8³⁰ + 30 · .2 · .8²⁹ = .00124 + .00928 = .0105,
    below .1 / 4. At .4: P[Bin(40, .2) ≤ 11] = .91: .9 is selected.
    """
    confidence = [0.9] * 30 + [0.4] * 10
    correct = [1] * 29 + [0] * 11
    assert 0.8**30 + 30 * 0.2 * 0.8**29 == pytest.approx(0.0105, abs=5e-5)
    found = select_threshold(confidence, correct, precision=0.8)
    assert (found.threshold, found.n_answered, found.n_correct) == (0.9, 30, 29)
    assert (found.coverage, found.precision) == (30 / 40, 29 / 30)


def test_no_threshold_reaches_a_target_that_the_sample_cannot_show():
    assert select_threshold([0.9] * 35, [1] * 35, precision=0.9) is None
    assert select_threshold([0.5] * 1000, [1, 0] * 500, precision=0.6) is None
    for wrong in (0, 1, -0.2, float("nan")):
        with pytest.raises(ValueError, match="give a number between 0 and 1"):
            select_threshold([0.9], [1], precision=wrong)


def test_verdicts_rest_on_exact_bounds():
    for k, n in [(95, 100), (85, 100), (70, 100), (0, 3), (3, 3), (0, 0)]:
        check = check_threshold(0.5, [0.7] * n, [1] * k + [0] * (n - k), precision=0.9)
        if not n:
            assert (check.verdict, check.n_to_decide) == ("undecided", np.inf)
            continue
        above, below = (
            binomtest(k, n, alternative=way).proportion_ci(0.95, "exact")
            for way in ("greater", "less")
        )
        decided = "kept" if above.low >= 0.9 else "broken" if below.high < 0.9 else "undecided"
        assert check.verdict == decided
        two_sided = binomtest(k, n).proportion_ci(0.95, "exact")
        assert [check.lower, check.upper] == pytest.approx([two_sided.low, two_sided.high])


def test_distinct_confidences_are_candidates_and_at_most_a_hundred_by_rank():
    assert candidates([0.5, 0.9999, 0.5, 0.99999]).tolist() == [0.5, 0.9999, 0.99999]
    crowded = 1 - np.linspace(0.001, 1e-6, 1000)
    # of 1,000 answers every tenth one
    assert candidates(crowded[::-1]).tolist() == crowded[::10].tolist()
    tied = np.repeat([0.1, 0.2], [995, 1005])
    assert candidates(tied).tolist() == [0.1, 0.2]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_increasing_all_confidences_changes_no_verdict(name):
    rates = same_verdicts(TRANSFORMS[name], n=200, target=0.8, worlds=25)
    assert rates["other_verdict"] == 0 and rates["selected"] > 80


def test_the_hundred_most_confident_answers_reach_a_target_wherever_they_are_crowded():
    """97 of the 100 most confident of 400 answers are right, and half of the others."""
    correct = np.concatenate([np.arange(300) % 2, np.arange(100) >= 3])
    for confidence in (np.linspace(0, 1, 400), 1 - 1e-6 * np.linspace(1, 0, 400)):
        selected = select_threshold(confidence, correct, precision=0.9)
        assert selected.n_answered >= 100 and selected.precision >= 0.9


def test_the_number_of_labels_that_decides_does_so_in_80_percent():
    check = check_threshold(0.5, [0.7] * 100, [1] * 93 + [0] * 7, precision=0.9)
    assert check.verdict == "undecided"
    n = int(check.n_to_decide)
    # k of n are enough if their exact lower bound reaches the target
    enough = min(k for k in range(n) if exact_interval(k, n, level=0.9)[0] >= 0.9)
    assert binom.sf(enough - 1, n, 0.93) >= 0.8
    assert chance_to_decide(0.93, np.array([n, n - 1]), 0.9) == pytest.approx(
        [binom.sf(enough - 1, n, 0.93), 0.8], abs=0.04
    )
    exactly = check_threshold(0.5, [0.7] * 100, [1] * 90 + [0] * 10, precision=0.9)
    assert exactly.n_to_decide == np.inf  # the rate is the target: no number decides
    broken = check_threshold(0.5, [0.7] * 100, [1] * 75 + [0] * 25, precision=0.8)
    n = int(broken.n_to_decide)
    most = max(k for k in range(n) if exact_interval(k, n, level=0.9)[1] < 0.8)
    assert binom.cdf(most, n, 0.75) >= 0.8


def test_counts_add_up_to_the_change_in_errors():
    rng = np.random.default_rng(0)
    before, after, first, second = rng.random((4, 500)) < 0.6
    n = {cell[:3]: cell.n_questions for cell in explain_change(before, after, first, second)}
    assert sum(n.values()) == 500
    change = n["both", True, False] - n["both", False, True]
    change += n["later", True, False] + n["later", False, False]
    change -= n["earlier", False, True] + n["earlier", False, False]
    assert change == (after & ~second).sum() - (before & ~first).sum()


# At v1 the counts of the worked example; at v2 six of the thirty are wrong.
WORKED = {
    "confidence": [[0.9] * 30 + [0.4] * 10, [0.9] * 32 + [0.4] * 8],
    "correct": [[1] * 29 + [0] * 11, [1] * 24 + [0] * 16],
}


def frame(confidence, correct):
    """Predictions of two checkpoints, from arrays of shape (2, n_questions)."""
    by_checkpoint = (
        dict(zip(("v1", "v2"), rows, strict=True)) for rows in (confidence, correct)
    )
    return table_of_arrays(*by_checkpoint, train_dataset="d", estimator="mine")


def checked(rows):
    """Return the tables of predictions of one model on one dataset, without texts."""
    rows = rows.assign(model="m", dataset="d")
    answers = rows.assign(answer="")
    return check_thresholds(
        [rows],
        {"m": ["v1", "v2"]},
        answers,
        EvaluationSettings(precision=0.8),
    )


def test_a_row_per_pair_estimator_and_seed():
    made = checked(frame(**WORKED))
    [row] = made.thresholds.to_dict("records")
    assert (row["threshold"], row["earlier_answered"], row["earlier_correct"]) == (0.9, 30, 29)
    assert (row["later_answered"], row["later_correct"]) == (32, 24)
    assert row["verdict"] == "undecided"  # 24 of 32 is .75: [.57, .88]
    assert row["precision_change"] == pytest.approx(24 / 32 - 29 / 30)
    assert row["precision_change_lower_2_5pct"] < 24 / 32 - 29 / 30
    assert row["coverage_change"] == pytest.approx(2 / 40)
    assert row["confident_regressions"] == 5
    lost = [f"q{number:03}" for number in range(24, 29)]
    assert made.confident_regressions["question_id"].tolist() == lost
    assert made.threshold_cells["n_questions"].sum() == 40


def test_without_a_threshold_a_row_says_how_far_the_sample_is():
    """20 of 25 at .9 are right: .8 is observed, not certain, at an abstention of 15 / 40."""
    made = checked(frame([[0.9] * 25 + [0.4] * 15] * 2, [[1] * 20 + [0] * 20] * 2))
    [row] = made.thresholds.to_dict("records")
    assert np.isnan(row["threshold"]) and row["verdict"] == ""
    assert row["least_abstention"] == 15 / 40
    assert made.threshold_cells.empty and made.confident_regressions.empty


def test_a_pair_without_a_common_question_has_a_row_without_a_verdict():
    rows = frame([[0.9] * 4] * 2, [[1] * 4] * 2)
    rows = rows[(rows["checkpoint"] == "v1") == (rows["question_id"] < "q002")]
    [row] = checked(rows).thresholds.to_dict("records")
    assert (row["n_questions"], row["verdict"]) == (0, "")
    assert np.isnan(row["threshold"])


def test_questions_of_a_group_count_once():
    """Four copies of each question in one group are as good as the question itself."""
    one = frame(**WORKED)
    copies = [one.assign(question_id=one["question_id"] + f"_{k}") for k in range(4)]
    rows = pd.concat(copies).assign(group=pd.concat([one["question_id"]] * 4).to_numpy())
    [row] = checked(rows).thresholds.to_dict("records")
    [alone] = checked(one).thresholds.to_dict("records")
    same = ["n_questions", "threshold", "earlier_correct", "later_answered", "verdict"]
    assert [row[name] for name in same] == [alone[name] for name in same]
    assert checked(rows.assign(group="")).thresholds["n_questions"].item() == 160


@pytest.mark.parametrize("curve", [*CURVES])
def test_the_promise_holds_in_simulated_worlds(curve):
    for target in (0.8, 0.9):
        rates = broken_promises(CURVES[curve], n=200, target=target, decimals=1, worlds=60)
        assert rates["misses_own"] <= 10 and rates["misses"] <= 10


def test_verdicts_are_seldom_wrong_on_the_questions_of_the_selection():
    for stays in (0.5, 1.0):
        rates = verdicts_of_pairs(kept_label=stays, drift=0.0, n=400, worlds=100)
        assert rates["wrong_kept"] <= 10 and rates["wrong_broken"] <= 5


@pytest.mark.parametrize(
    ("looks", "planned"), [([120], True), ([60, 120, 250], True), ([60, 120, 250], False)]
)
def test_certification_is_seldom_wrong_at_any_of_several_looks(looks, planned):
    for curve in ("constant .898", "worst at the top"):
        rates = certified(CURVES[curve], looks=looks, planned=planned, target=0.9, worlds=40)
        assert rates["wrong"] <= rates["allowed"] + 5  # twice the standard error of 40 worlds
    assert (
        certified(CURVES["calibrated"], looks=[120], planned=True, target=0.8, worlds=40)[
            "certified"
        ]
        > 60
    )  # with betting about 6 percent


def test_the_exact_test_rejects_a_true_precision_below_the_target_at_its_level():
    """All samples of 8 of 12 answers, as likely; 3 wrong ones are more than 20 %.

    With one sequence at level δ / 4 = .05: a sample passes if it has no wrong answer, which is
    C(9, 8) / C(12, 8) = 9 / 495 of all samples. With one, (3 · C(9, 7)) / 495 = .218.
    """
    correct = np.arange(12) >= 3
    passed = [
        certify_threshold(np.ones(12), place, correct[place], precision=0.8, delta=0.2)
        for place in map(np.array, combinations(range(12), 8))
    ]
    assert sum(threshold is not None for threshold in passed) == 9
    assert len(passed) == 495


@pytest.mark.parametrize("precision", [0.6, 0.8])
def test_a_certified_threshold_is_that_of_a_slow_loop(precision):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        confidence = np.round(rng.beta(3, 1, 150), 2)
        correct, order = rng.random(150) < confidence, draw_order(150, seed)
        labelled = order[:90]

        def tail(wrong, n, allowed, sample=labelled, stated=confidence, right=correct):
            """Return the share of samples with as few wrong answers, given their number."""
            threshold = np.sort(stated)[-n]
            drawn = stated[sample] >= threshold
            n_wrong = int(n * allowed + 1e-9) + 1
            seen = int((drawn & ~right[sample]).sum())
            return sum(
                comb(n_wrong, k) * comb(n - n_wrong, drawn.sum() - k) for k in range(seen + 1)
            ) / comb(n, int(drawn.sum()))

        slow = select_slowly(confidence, correct, precision, 0.1, tail)
        found = certify_threshold(confidence, labelled, correct[labelled], precision=precision)
        assert found == slow


def test_looks_share_the_error_probability():
    planned = [take_look(n, [60, 120], [60], 0.1).level for n in (60, 120)]
    assert sum(planned) == pytest.approx(0.1)
    unplanned, earlier = [], []
    for n in (30, 45, 70, 71, 90):
        unplanned.append(take_look(n, [60], earlier, 0.1).level)
        earlier.append(n)
    # .1 / 4 + .1 / 8 + … + .1 / 64
    assert unplanned == pytest.approx([0.1 / 2**k for k in range(2, 7)])
    assert take_look(45, [60], earlier, 0.1).level == unplanned[1]  # the same look again


def test_all_labels_certify_exactly_the_thresholds_that_reach_the_target():
    rng = np.random.default_rng(5)
    confidence, correct = rng.random(80), rng.random(80) < 0.7
    threshold = certify_threshold(confidence, np.arange(80), correct, precision=0.65)
    assert correct[confidence >= threshold].mean() >= 0.65


def test_a_label_curve_equals_sheets_that_are_drawn_one_by_one():
    rng = np.random.default_rng(5)
    stated = rng.beta(3, 1, 300)
    correct = rng.random(300) < stated
    assert curve_sizes(300) == [30, 60, 120, 250, 300]
    curve = measure_label_curve(
        stated, correct, precision=0.7, n_labels=[60, 300], n_sheets=4, seed=9
    )
    assert curve["n_labels"].tolist() == [60, 300]
    for row in curve.itertuples():
        found = []
        for seed in range(9, 13):
            labelled = draw_order(300, seed)[: row.n_labels]
            found.append(certify_threshold(stated, labelled, correct[labelled], precision=0.7))
        certain = [threshold for threshold in found if threshold is not None]
        assert row.certified == len(certain) / 4
        if certain:
            assert row.threshold == np.median(certain)
            assert row.precision == np.median([correct[stated >= t].mean() for t in certain])
            assert row.coverage == np.median([(stated >= t).mean() for t in certain])
            assert row.below_target == np.mean(
                [t is not None and correct[stated >= t].mean() < 0.7 for t in found]
            )
    assert (curve["certified"] == 1).any()


def test_aurc_is_an_expectation_over_the_order_of_ties():
    rng = np.random.default_rng(1)
    confidence, correct = np.round(rng.random(20), 1), (rng.random(20) < 0.7).astype(int)
    risks = []
    for _ in range(4000):
        order = np.lexsort((rng.random(20), -confidence))
        risks.append(np.mean(np.cumsum(1 - correct[order]) / np.arange(1, 21)))
    assert selective.aurc(confidence, correct) == pytest.approx(np.mean(risks), abs=0.003)


ELSEWHERE = json.loads((Path(__file__).parent / "selective_elsewhere.json").read_text())


@pytest.mark.parametrize("sample", ELSEWHERE["samples"], ids=lambda sample: sample["name"])
def test_selective_metrics_are_those_of_other_libraries(sample):
    """Values that fd-shifts, torch-uncertainty and lm-polygraph returned for these answers.

    With n answers and risks r_1 … r_n, ours is AURC = Σ r_k / n. torch-uncertainty integrates
    from coverage 1 / n and rescales: (Σ r_k − (r_1 + r_n) / 2) / (n − 1). fd-shifts integrates
    from coverage 0 with risk 0: (Σ r_k − r_n / 2) / n. Both AUGRC treat G_k = r_k k / n alike.
    The random order of lm-polygraph's PRR is the mean of 1,000 draws.
    """
    confidence, correct = np.array(sample["confidence"]), np.array(sample["correct"])
    n, error = len(correct), 1 - correct.mean()
    found = selective.aurc(confidence, correct), selective.augrc(confidence, correct)
    fd_shifts, torch_uncertainty = sample["fd_shifts"], sample["torch_uncertainty"]
    assert found[1] == pytest.approx(fd_shifts["augrc"], abs=1e-12)  # with ties, too
    if len(set(confidence)) < n:  # the others' values depend on the order of the rows
        assert found[0] != pytest.approx(sample["lm_polygraph"]["rcc_auc"], abs=1e-3)
        return
    first = selective.risk_coverage(confidence, correct)[1][0]
    assert found[0] == pytest.approx(sample["lm_polygraph"]["rcc_auc"], abs=1e-12)
    assert found[0] - error / (2 * n) == pytest.approx(fd_shifts["aurc"], abs=1e-12)
    trapezoid = (n * found[0] - (first + error) / 2) / (n - 1)
    assert trapezoid == pytest.approx(torch_uncertainty["aurc"], abs=1e-6)
    trapezoid = (n * found[1] - first / (2 * n)) / (n - 1)
    assert trapezoid == pytest.approx(torch_uncertainty["augrc"], abs=1e-6)
    prr = selective.prediction_rejection_ratio(confidence, correct)
    assert prr == pytest.approx(sample["lm_polygraph"]["prr"], abs=3e-3)


def test_prr_is_one_for_the_best_order_and_zero_for_none():
    labels = np.array([1, 0, 1, 1, 0])
    assert selective.prediction_rejection_ratio(labels * 0.5 + 0.1, labels) == pytest.approx(1)
    assert selective.prediction_rejection_ratio(np.full(5, 0.3), labels) == pytest.approx(0)
    assert np.isnan(selective.prediction_rejection_ratio([0.1, 0.2], [1, 1]))


def test_tables_have_texts_and_selective_metrics():
    rows = frame(**WORKED).assign(model="m", dataset="d")
    answers = rows.assign(split="test", probability=0.5, answer="at " + rows["checkpoint"])
    settings = EvaluationSettings(precision=0.8, n_replicates=200)
    tables = check_thresholds([rows], {"m": ["v1", "v2"]}, answers, settings)
    expected = [artifacts.THRESHOLDS, artifacts.THRESHOLD_CELLS]
    expected += [artifacts.CONFIDENT_REGRESSIONS, artifacts.SELECTIVE]
    for table, made in zip(expected, tables, strict=True):
        artifacts.check(made[table.schema.names], table, table.name)
    assert set(tables[2]["later_answer"]) == {"at v2"}
    assert set(tables[2]["earlier_answer"]) == {"at v1"}
    printed = threshold_table(
        tables[0],
        only=["mine"],
        checkpoints={"m": {"v1": "first", "v2": "second"}},
        labels={"models": {}, "datasets": {}, "estimators": {"mine": "Mine & more"}},
    ).tex
    cells = r"Mine \& more & .90 & 75 \% [57, 89] & .75 $\to$ .80 & undecided & 5"
    assert cells in printed


def test_curves_are_means_over_seeds_from_ten_answers_on():
    """By hand: of twelve answers two are wrong, the third and the last in order of seed 1."""
    correct = np.array([1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, ABSENT])
    falling = np.append(np.linspace(0.9, 0.1, 12), 1.0)
    rising = np.append(falling[11::-1], 1.0)
    coverage, risk = mean_curve([falling, rising], correct)
    assert coverage.tolist() == [10 / 12, 11 / 12, 1]
    # 10 answers: 1 wrong with seed 1, 2 with seed 2; 11: 1 and 2; 12: 2 and 2
    assert risk.tolist() == pytest.approx([0.15, 1.5 / 11, 2 / 12])
    curve = pd.DataFrame({"checkpoint": "a", "question_id": [f"q{i:02}" for i in range(12)]})
    both = [curve.assign(confidence=c[:12], seed=s) for s, c in ((1, falling), (2, rising))]
    about = {"model": "m", "dataset": "d", "train_dataset": "d", "estimator": "e"}
    first = pd.concat(both).assign(correct=np.tile(correct[:12], 2), **about)
    rows = pd.concat([first, first.assign(checkpoint="b", correct=1 - first["correct"])])
    figure = risk_coverage_figure(
        rows,
        checkpoints={"m": {"a": "v1", "b": "v2"}},
        labels={"models": {"m": "M"}, "datasets": {"d": "D"}, "estimators": {"e": "E"}},
        only=["e"],
    )
    [axes] = figure.axes
    first, last = (line.get_ydata().tolist() for line in axes.lines)
    assert first == pytest.approx([0.15, 1.5 / 11, 2 / 12])
    # At b the other ten are wrong: 9 and 8 of 10, 10 and 9 of 11
    assert last == pytest.approx([0.85, 9.5 / 11, 10 / 12])
    assert [line.get_linestyle() for line in axes.lines] == ["--", "-"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["E", "first checkpoint: v1", "last checkpoint: v2"]
