"""The noise floor of SmoothECE: by drawing labels one by one, and the level of its test."""

import numpy as np
import pytest
import relplot
from scipy.special import expit
from synthetic_predictions import CHECKPOINTS, make_predictions

import persistcal
from persistcal.evaluation import reliability
from persistcal.evaluation.contrast import condition
from persistcal.evaluation.settings import EvaluationSettings


def test_the_p_value_counts_the_observed_value():
    # two of four draws are at least 0.3, one of them equal but for rounding: (1 + 2) / (1 + 4)
    found = reliability.compare_with_floor(0.3, np.array([0.1, 0.2, 0.3 - 1e-15, 0.4]))
    assert found == (pytest.approx(0.25), 0.6)
    assert np.isnan(reliability.compare_with_floor(np.nan, np.array([0.1]))).all()


def test_one_checkpoint_has_the_floor_of_a_study_with_this_checkpoint_alone():
    rows = make_predictions(60).query("estimator == 'own' and checkpoint == 'b'")
    floors = reliability.noise_floors(
        rows,
        ["b"],
        EvaluationSettings(min_contrast=1, seed=3),
        n_draws=150,
    )
    [row] = floors[floors["scope"] == "full"].to_dict("records")
    runs = rows.pivot(index="question_id", columns="seed", values="confidence").to_numpy().T
    right = rows[rows["seed"] == rows["seed"].iloc[0]].sort_values("question_id")
    correct = right["correct"].to_numpy(bool)
    found = reliability.checkpoint_calibration(
        list(runs), correct, np.arange(len(correct)), seed=3, n_draws=150
    )
    assert found.noise_floor == pytest.approx(row["noise_floor"])
    assert found.p_calibrated == row["p_calibrated"]
    value = np.mean([relplot.smECE(run, correct.astype(float)) for run in runs])
    assert found.value == pytest.approx(value, abs=1e-9)


def test_the_mean_confidence_is_tested_against_the_accuracy():
    """Of 100 answers with .9 and 100 with .1, half are right: calibrated only on average."""
    confidence = np.repeat([0.9, 0.1], 100)
    found = reliability.checkpoint_calibration(
        [confidence], np.arange(200) % 2 == 0, np.arange(200), seed=0
    )
    assert (found.confidence, found.accuracy) == (pytest.approx(0.5), 0.5)
    assert found.p_calibrated == 1 / 501 and found.p_mean == 1
    low = reliability.checkpoint_calibration(
        [confidence / 9], np.arange(200) % 2 == 0, np.arange(200), seed=0
    )
    assert low.p_mean == 1 / 501 and low.confidence < low.accuracy


def test_floors_of_a_study_are_those_of_rows():
    predictions = make_predictions(60)
    rows = predictions[predictions["estimator"] == "own"]
    settings = EvaluationSettings(min_contrast=1, seed=3, pairs=[("a", "b")])
    table = reliability.noise_floors(rows, CHECKPOINTS, settings, n_draws=4)
    found = table.set_index(["conditioning", "scope"])["noise_floor"]
    wide = rows.pivot_table(index="question_id", columns="checkpoint", values="confidence")
    right = rows.pivot_table(index="question_id", columns="checkpoint", values="correct")
    uniform = np.random.default_rng(3).random((len(wide), 4))
    full = [
        np.mean([relplot.smECE(p, (u < p).astype(float)) for u in uniform.T])
        for p in wide[list(CHECKPOINTS)].to_numpy().T
    ]
    assert found["odds", "full"] == pytest.approx(np.mean(full), abs=1e-9)
    changed = (right["a"] != right["b"]).to_numpy()
    earlier, later = wide[changed][["a", "b"]].to_numpy().T
    p = condition(earlier, later, right[changed]["b"].to_numpy() == 1, "odds").earlier
    contrast = [relplot.smECE(p, (u < p).astype(float)) for u in uniform[changed].T]
    assert found["odds", "contrast"] == pytest.approx(np.mean(contrast), abs=1e-9)


def test_calibration_is_seldom_refused_and_overconfidence_found():
    rng, refused = np.random.default_rng(0), {1.0: 0, 2.5: 0}
    for _ in range(40):
        logit = 1.5 * rng.normal(size=200)
        correct, uniform = rng.random(200) < expit(logit), rng.random((200, 60))
        for sharpness in refused:
            stated = expit(sharpness * logit)
            value = float(persistcal.smooth_ece(correct, stated))
            found = reliability.compare_with_floor(
                value, reliability.draw_smooth_ece(stated, uniform)
            )
            refused[sharpness] += found.p_calibrated <= 0.05
    assert refused[1.0] <= 6  # P(more) is below .01 at a level of 5 %
    assert refused[2.5] >= 36


def test_smooth_ece_has_a_floor_and_no_interval():
    both = make_predictions(60).query("estimator in ('own', 'coarse')")
    predictions = both.assign(dataset="quiz")
    found = persistcal.compare(predictions, CHECKPOINTS, min_contrast=1, n_replicates=200)
    intervals = found.tables["intervals"]
    is_smece = intervals["metric"] == "smece"
    floor, ends = ["noise_floor", "p_calibrated"], ["lower_2_5pct", "seeds_upper_97_5pct"]
    assert intervals.loc[is_smece, ends].isna().all(axis=None)
    assert intervals.loc[is_smece, floor].notna().all(axis=None)
    assert intervals.loc[~is_smece, floor].isna().all(axis=None)
    states = found.tables["states"]
    states = states[states["metric"] == "smece"]
    assert states["difference"].notna().all() and states["lower_2_5pct"].isna().all()
