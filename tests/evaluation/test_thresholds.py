"""Thresholds: selection with a guarantee, verdicts on later answers, and labels."""

import json
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from measuring import align_models
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
from persistcal.evaluation.predictions import RatedAnswers
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
from persistcal.report.analysis_tables import thresholds as threshold_table
from persistcal.report.curves import mean_curve
from persistcal.report.update_figures import risk_coverage_figure
from persistcal.store import artifacts


def select_slowly(confidence, correct, precision, delta, tail=binom.cdf):
    """Return the threshold that `select_threshold` documents, by a loop over all thresholds.

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
        for position in range(start, -1, -1):
            wrong = sum(
                c >= tested[position] and not z
                for c, z in zip(confidence, correct, strict=True)
            )
            if tail(wrong, counts[position], 1 - precision) > delta / 4:
                break
            passed.add(position)
    return tested[min(passed)] if passed else None


@pytest.mark.parametrize("precision", [0.6, 0.8, 0.9])
def test_the_selected_threshold_equals_a_slow_loop(precision):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        confidence = np.round(rng.beta(3, 1, 150), 2)
        correct = rng.random(150) < confidence
        selected = select_threshold(confidence, correct, precision=precision)
        expected = select_slowly(confidence, correct, precision, 0.1)
        assert (selected.threshold if selected else None) == expected


def test_the_worked_example_selects_its_higher_threshold():
    """29 of 30 answers at .9 are right, and ten answers at .4 are wrong. The target is .8.

    At .9: P[Bin(30, .2) ≤ 1] = .8³⁰ + 30 · .2 · .8²⁹ = .00124 + .00928 = .0105, below .1 / 4.
    At .4: P[Bin(40, .2) ≤ 11] = .91. The threshold .9 is selected.
    """
    confidence = [0.9] * 30 + [0.4] * 10
    correct = [1] * 29 + [0] * 11
    assert 0.8**30 + 30 * 0.2 * 0.8**29 == pytest.approx(0.0105, abs=5e-5)
    selected = select_threshold(confidence, correct, precision=0.8)
    assert (selected.threshold, selected.n_answered, selected.n_correct) == (0.9, 30, 29)
    assert (selected.coverage, selected.precision) == (30 / 40, 29 / 30)


def test_no_threshold_is_selected_if_the_sample_cannot_confirm_the_target():
    assert select_threshold([0.9] * 35, [1] * 35, precision=0.9) is None
    assert select_threshold([0.5] * 1000, [1, 0] * 500, precision=0.6) is None
    for wrong in (0, 1, -0.2, float("nan")):
        with pytest.raises(ValueError, match="give a number between 0 and 1"):
            select_threshold([0.9], [1], precision=wrong)


def test_a_threshold_is_kept_or_broken_by_exact_binomial_bounds():
    for k, n in [(95, 100), (85, 100), (70, 100), (0, 3), (3, 3), (0, 0)]:
        check = check_threshold(0.5, [0.7] * n, [1] * k + [0] * (n - k), precision=0.9)
        if not n:
            assert (check.verdict, check.n_to_decide) == ("undecided", np.inf)
            continue
        above, below = (
            binomtest(k, n, alternative=alternative).proportion_ci(0.95, "exact")
            for alternative in ("greater", "less")
        )
        decided = "kept" if above.low >= 0.9 else "broken" if below.high < 0.9 else "undecided"
        assert check.verdict == decided
        two_sided = binomtest(k, n).proportion_ci(0.95, "exact")
        assert [check.lower, check.upper] == pytest.approx([two_sided.low, two_sided.high])


def test_at_most_a_hundred_confidences_are_candidates():
    assert candidates([0.5, 0.9999, 0.5, 0.99999]).tolist() == [0.5, 0.9999, 0.99999]
    crowded = 1 - np.linspace(0.001, 1e-6, 1000)
    # every tenth of 1,000 answers
    assert candidates(crowded[::-1]).tolist() == crowded[::10].tolist()
    assert candidates(np.repeat([0.1, 0.2], [995, 1005])).tolist() == [0.1, 0.2]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_increasing_transformation_of_confidences_changes_no_verdict(name):
    rates = same_verdicts(TRANSFORMS[name], n=200, target=0.8, worlds=25)
    assert rates["other_verdict"] == 0 and rates["selected"] > 80


def test_the_reported_number_of_labels_decides_with_80_percent_power():
    check = check_threshold(0.5, [0.7] * 100, [1] * 93 + [0] * 7, precision=0.9)
    assert check.verdict == "undecided"
    n = int(check.n_to_decide)
    # k right of n answers are enough if the exact lower bound reaches the target.
    enough = min(k for k in range(n) if exact_interval(k, n, level=0.9)[0] >= 0.9)
    assert binom.sf(enough - 1, n, 0.93) >= 0.8
    assert chance_to_decide(0.93, np.array([n, n - 1]), 0.9) == pytest.approx(
        [binom.sf(enough - 1, n, 0.93), 0.8], abs=0.04
    )
    exactly = check_threshold(0.5, [0.7] * 100, [1] * 90 + [0] * 10, precision=0.9)
    assert exactly.n_to_decide == np.inf  # the precision equals the target
    broken = check_threshold(0.5, [0.7] * 100, [1] * 75 + [0] * 25, precision=0.8)
    n = int(broken.n_to_decide)
    most = max(k for k in range(n) if exact_interval(k, n, level=0.9)[1] < 0.8)
    assert binom.cdf(most, n, 0.75) >= 0.8


def test_counts_of_questions_add_up_to_the_change_in_errors():
    rng = np.random.default_rng(0)
    answered, later_answered, earlier_right, later_right = rng.random((4, 500)) < 0.6
    n = {
        cell[:3]: cell.n_questions
        for cell in explain_change(answered, later_answered, earlier_right, later_right)
    }
    assert sum(n.values()) == 500
    change = n["both", True, False] - n["both", False, True]
    change += n["later", True, False] + n["later", False, False]
    change -= n["earlier", False, True] + n["earlier", False, False]
    assert change == (later_answered & ~later_right).sum() - (answered & ~earlier_right).sum()


# v1 is the worked example. At v2, 24 of 32 confident answers are right.
WORKED = {
    "confidence": [[0.9] * 30 + [0.4] * 10, [0.9] * 32 + [0.4] * 8],
    "correct": [[1] * 29 + [0] * 11, [1] * 24 + [0] * 16],
}


def two_versions(confidence, correct):
    """Return predictions of two checkpoints, from arrays of shape (2, n_questions)."""
    by_checkpoint = (dict(zip(("v1", "v2"), r, strict=True)) for r in (confidence, correct))
    return table_of_arrays(*by_checkpoint, train_dataset="d", estimator="mine")


def check_versions(rows):
    """Return the tables of one model on one dataset, for answers without texts."""
    rows = rows.assign(model="m", dataset="d")
    answers = rows.assign(answer="")
    settings = EvaluationSettings(precision=0.8)
    aligned = align_models(rows, {"m": ["v1", "v2"]}, settings)
    return check_thresholds(aligned, answers, settings)


def test_a_row_contains_the_verdict_and_the_changes_of_precision_and_coverage():
    tables = check_versions(two_versions(**WORKED))
    [row] = tables.thresholds.to_dict("records")
    assert (row["threshold"], row["earlier_answered"], row["earlier_correct"]) == (0.9, 30, 29)
    assert (row["later_answered"], row["later_correct"]) == (32, 24)
    assert row["verdict"] == "undecided"  # 24 of 32 is .75: [.57, .88]
    assert row["precision_change"] == pytest.approx(24 / 32 - 29 / 30)
    assert row["precision_change_lower_2_5pct"] < 24 / 32 - 29 / 30
    assert row["coverage_change"] == pytest.approx(2 / 40)
    assert row["confident_regressions"] == 5
    lost = [f"q{number:03}" for number in range(24, 29)]
    assert tables.confident_regressions["question_id"].tolist() == lost
    assert tables.threshold_cells["n_questions"].sum() == 40


def test_a_row_without_a_threshold_contains_the_least_abstention():
    """20 of 25 answers at .9 are right: .8, but not certain. Abstention: 15 / 40."""
    tables = check_versions(
        two_versions([[0.9] * 25 + [0.4] * 15] * 2, [[1] * 20 + [0] * 20] * 2)
    )
    [row] = tables.thresholds.to_dict("records")
    assert np.isnan(row["threshold"]) and row["verdict"] == ""
    assert row["least_abstention"] == 15 / 40
    assert tables.threshold_cells.empty and tables.confident_regressions.empty


def test_a_pair_without_a_common_question_has_a_row_without_a_verdict():
    rows = two_versions([[0.9] * 4] * 2, [[1] * 4] * 2)
    rows = rows[(rows["checkpoint"] == "v1") == (rows["question_id"] < "q002")]
    [row] = check_versions(rows).thresholds.to_dict("records")
    assert (row["n_questions"], row["verdict"]) == (0, "")
    assert np.isnan(row["threshold"])


def test_questions_of_a_group_count_once():
    """Four copies of each question in a group are as informative as the question."""
    single = two_versions(**WORKED)
    copies = [single.assign(question_id=single["question_id"] + f"_{k}") for k in range(4)]
    rows = pd.concat(copies).assign(group=pd.concat([single["question_id"]] * 4).to_numpy())
    [row] = check_versions(rows).thresholds.to_dict("records")
    [expected] = check_versions(single).thresholds.to_dict("records")
    columns = ["n_questions", "threshold", "earlier_correct", "later_answered", "verdict"]
    assert [row[name] for name in columns] == [expected[name] for name in columns]
    assert check_versions(rows.assign(group="")).thresholds["n_questions"].item() == 160


@pytest.mark.parametrize("curve", [*CURVES])
def test_selected_thresholds_miss_their_target_in_at_most_10_percent_of_studies(curve):
    for target in (0.8, 0.9):
        rates = broken_promises(CURVES[curve], n=200, target=target, decimals=1, worlds=60)
        assert rates["misses_own"] <= 10 and rates["misses"] <= 10


def test_verdicts_on_the_questions_of_the_selection_are_rarely_wrong():
    for stays in (0.5, 1.0):
        rates = verdicts_of_pairs(kept_label=stays, drift=0.0, n=400, worlds=100)
        assert rates["wrong_kept"] <= 10 and rates["wrong_broken"] <= 5


@pytest.mark.parametrize(
    ("looks", "planned"), [([120], True), ([60, 120, 250], True), ([60, 120, 250], False)]
)
def test_certification_with_several_looks_is_rarely_wrong(looks, planned):
    for curve in ("constant .898", "worst at the top"):
        rates = certified(CURVES[curve], looks=looks, planned=planned, target=0.9, worlds=40)
        assert rates["wrong"] <= rates["allowed"] + 5  # twice the standard error of 40 worlds


def test_120_labels_usually_certify_a_threshold_of_a_calibrated_estimator():
    rates = certified(CURVES["calibrated"], looks=[120], planned=True, target=0.8, worlds=40)
    assert rates["certified"] > 60  # a betting test would certify about 6 percent


def test_the_exact_test_rejects_a_true_precision_below_the_target_at_its_level():
    """All samples of 8 among 12 answers, 3 of them wrong, which is more than the allowed 20 %.

    A single sequence is tested at the level δ / 4 = .05. A sample without a wrong answer
    passes: C(9, 8) / C(12, 8) = 9 / 495. With one wrong answer: (3 · C(9, 7)) / 495 = .218.
    """
    correct = np.arange(12) >= 3
    passed = [
        certify_threshold(np.ones(12), labelled, correct[labelled], precision=0.8, delta=0.2)
        for labelled in map(np.array, combinations(range(12), 8))
    ]
    assert sum(threshold is not None for threshold in passed) == 9
    assert len(passed) == 495


@pytest.mark.parametrize("precision", [0.6, 0.8])
def test_a_certified_threshold_equals_a_slow_loop(precision):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        confidence = np.round(rng.beta(3, 1, 150), 2)
        correct, order = rng.random(150) < confidence, draw_order(150, seed)
        labelled = order[:90]

        def tail(wrong, n, allowed, sample=labelled, stated=confidence, labels=correct):
            """Return the share of samples with as few wrong answers, given their number."""
            threshold = np.sort(stated)[-n]
            drawn = stated[sample] >= threshold
            n_wrong = int(n * allowed + 1e-9) + 1
            n_wrong_seen = int((drawn & ~labels[sample]).sum())
            return sum(
                comb(n_wrong, k) * comb(n - n_wrong, drawn.sum() - k)
                for k in range(n_wrong_seen + 1)
            ) / comb(n, int(drawn.sum()))

        expected = select_slowly(confidence, correct, precision, 0.1, tail)
        certified_threshold = certify_threshold(
            confidence, labelled, correct[labelled], precision=precision
        )
        assert certified_threshold == expected


def test_planned_and_unplanned_looks_share_the_error_probability():
    planned = [take_look(n, [60, 120], [60], 0.1).level for n in (60, 120)]
    assert sum(planned) == pytest.approx(0.1)
    unplanned, earlier_looks = [], []
    for n in (30, 45, 70, 71, 90):
        unplanned.append(take_look(n, [60], earlier_looks, 0.1).level)
        earlier_looks.append(n)
    # .1 / 4 + .1 / 8 + … + .1 / 64
    assert unplanned == pytest.approx([0.1 / 2**k for k in range(2, 7)])
    assert take_look(45, [60], earlier_looks, 0.1).level == unplanned[1]  # a repeated look


def test_a_threshold_certified_with_all_labels_reaches_the_target():
    rng = np.random.default_rng(5)
    confidence, correct = rng.random(80), rng.random(80) < 0.7
    threshold = certify_threshold(confidence, np.arange(80), correct, precision=0.65)
    assert correct[confidence >= threshold].mean() >= 0.65


def test_a_label_curve_equals_separately_drawn_sheets():
    rng = np.random.default_rng(5)
    stated = rng.beta(3, 1, 300)
    correct = rng.random(300) < stated
    assert curve_sizes(300) == [30, 60, 120, 250, 300]

    curve = measure_label_curve(
        stated, correct, precision=0.7, n_labels=[60, 300], n_sheets=4, seed=9
    )
    assert curve["n_labels"].tolist() == [60, 300]

    for row in curve.itertuples():
        thresholds = []
        for seed in range(9, 13):
            labelled = draw_order(300, seed)[: row.n_labels]
            thresholds.append(
                certify_threshold(stated, labelled, correct[labelled], precision=0.7)
            )
        certain = [threshold for threshold in thresholds if threshold is not None]
        assert row.certified == len(certain) / 4
        if certain:
            assert row.threshold == np.median(certain)
            assert row.precision == np.median([correct[stated >= t].mean() for t in certain])
            assert row.coverage == np.median([(stated >= t).mean() for t in certain])
            assert row.below_target == np.mean(
                [t is not None and correct[stated >= t].mean() < 0.7 for t in thresholds]
            )
    assert (curve["certified"] == 1).any()


def test_aurc_is_the_mean_over_random_orders_of_ties():
    rng = np.random.default_rng(1)
    confidence, correct = np.round(rng.random(20), 1), (rng.random(20) < 0.7).astype(int)
    risks = []
    for _ in range(4000):
        order = np.lexsort((rng.random(20), -confidence))
        risks.append(np.mean(np.cumsum(1 - correct[order]) / np.arange(1, 21)))
    assert selective.aurc(confidence, correct) == pytest.approx(np.mean(risks), abs=0.003)


PEERS = json.loads((Path(__file__).parent / "selective_elsewhere.json").read_text())


@pytest.mark.parametrize("sample", PEERS["samples"], ids=lambda sample: sample["name"])
def test_selective_metrics_agree_with_three_other_libraries(sample):
    """Values that fd-shifts, torch-uncertainty and lm-polygraph returned for these answers.

    With n answers and risks r_1 … r_n, ours is AURC = Σ r_k / n. torch-uncertainty integrates
    from coverage 1 / n and rescales: (Σ r_k − (r_1 + r_n) / 2) / (n − 1). fd-shifts integrates
    from coverage 0 with risk 0: (Σ r_k − r_n / 2) / n. Both AUGRC integrate r_k k / n.
    The random order of lm-polygraph's PRR is the mean of 1,000 draws.
    """
    confidence, correct = np.array(sample["confidence"]), np.array(sample["correct"])
    n, error = len(correct), 1 - correct.mean()
    values = selective.aurc(confidence, correct), selective.augrc(confidence, correct)
    fd_shifts, torch_uncertainty = sample["fd_shifts"], sample["torch_uncertainty"]
    assert values[1] == pytest.approx(fd_shifts["augrc"], abs=1e-12)  # with ties, too
    if len(set(confidence)) < n:  # other libraries depend on the order of the rows
        assert values[0] != pytest.approx(sample["lm_polygraph"]["rcc_auc"], abs=1e-3)
        return
    first = selective.risk_coverage(confidence, correct)[1][0]
    assert values[0] == pytest.approx(sample["lm_polygraph"]["rcc_auc"], abs=1e-12)
    assert values[0] - error / (2 * n) == pytest.approx(fd_shifts["aurc"], abs=1e-12)
    trapezoid = (n * values[0] - (first + error) / 2) / (n - 1)
    assert trapezoid == pytest.approx(torch_uncertainty["aurc"], abs=1e-6)
    trapezoid = (n * values[1] - first / (2 * n)) / (n - 1)
    assert trapezoid == pytest.approx(torch_uncertainty["augrc"], abs=1e-6)
    prr = selective.prediction_rejection_ratio(confidence, correct)
    assert prr == pytest.approx(sample["lm_polygraph"]["prr"], abs=3e-3)


def test_prr_is_one_for_the_best_order_and_zero_for_constant_confidences():
    labels = np.array([1, 0, 1, 1, 0])
    assert selective.prediction_rejection_ratio(labels * 0.5 + 0.1, labels) == pytest.approx(1)
    assert selective.prediction_rejection_ratio(np.full(5, 0.3), labels) == pytest.approx(0)
    assert np.isnan(selective.prediction_rejection_ratio([0.1, 0.2], [1, 1]))


def test_threshold_tables_have_texts_selective_metrics_and_a_printed_row():
    rows = two_versions(**WORKED).assign(model="m", dataset="d")
    answers = rows.assign(split="test", probability=0.5, answer="at " + rows["checkpoint"])
    settings = EvaluationSettings(precision=0.8, n_replicates=200)
    aligned = align_models(rows, {"m": ["v1", "v2"]}, settings)
    tables = check_thresholds(aligned, answers, settings)
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


def test_risk_coverage_curves_are_means_over_seeds_from_ten_answers():
    """Two of twelve answers are wrong: the third and the last by seed 1."""
    correct = np.array([1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0])
    falling = np.linspace(0.9, 0.1, 12)
    rising = falling[::-1]
    coverage, risk = mean_curve(RatedAnswers([falling, rising], correct == 1, np.arange(12))).T
    assert coverage.tolist() == [10 / 12, 11 / 12, 1]
    # Errors with seeds 1 and 2: 1 and 2 among 10 answers, 1 and 2 among 11, 2 and 2 among 12
    assert risk.tolist() == pytest.approx([0.15, 1.5 / 11, 2 / 12])

    curve = pd.DataFrame({"checkpoint": "a", "question_id": [f"q{i:02}" for i in range(12)]})
    runs = [curve.assign(confidence=c, seed=s) for s, c in ((1, falling), (2, rising))]
    columns = {"model": "m", "dataset": "d", "train_dataset": "d", "estimator": "e"}
    first = pd.concat(runs).assign(correct=np.tile(correct, 2), **columns)
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
    # Errors at b: 9 and 8 among 10 answers, 10 and 9 among 11, 10 and 10 among 12
    assert last == pytest.approx([0.85, 9.5 / 11, 10 / 12])
    assert [line.get_linestyle() for line in axes.lines] == ["--", "-"]

    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["E", "v1", "v2"]
