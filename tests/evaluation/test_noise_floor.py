"""The noise floor of SmoothECE: values from drawn labels, and the level of the test."""

import numpy as np
import pytest
import relplot
from measuring import noise_floors
from scipy.special import expit
from synthetic_predictions import CHECKPOINTS, make_predictions

import persistcal
from persistcal.evaluation import reliability
from persistcal.evaluation.contrast import condition
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.smooth_ece import Labellings


def test_the_p_value_of_calibration_counts_the_observed_value():
    # Two of four draws are at least 0.3 (up to rounding errors): (1 + 2) / (1 + 4)
    comparison = reliability.compare_with_floor(0.3, np.array([0.1, 0.2, 0.3 - 1e-15, 0.4]))
    assert comparison == (pytest.approx(0.25), 0.6)
    assert np.isnan(reliability.compare_with_floor(np.nan, np.array([0.1]))).all()


def test_a_checkpoints_floor_equals_the_floor_of_a_study_of_this_checkpoint():
    rows = make_predictions(60).query("estimator == 'own' and checkpoint == 'b'")
    floors = noise_floors(rows, ["b"], EvaluationSettings(min_contrast=1, seed=3), n_draws=150)
    [row] = floors[floors["scope"] == "full"].to_dict("records")
    runs = rows.pivot(index="question_id", columns="seed", values="confidence").to_numpy().T
    rows_of_a_seed = rows[rows["seed"] == rows["seed"].iloc[0]].sort_values("question_id")
    correct = rows_of_a_seed["correct"].to_numpy(bool)
    calibration = reliability.checkpoint_calibration(
        list(runs), correct, np.arange(len(correct)), seed=3, n_draws=150
    )
    assert calibration.noise_floor == pytest.approx(row["noise_floor"])
    assert calibration.p_calibrated == row["p_calibrated"]
    value = np.mean([relplot.smECE(run, correct.astype(float)) for run in runs])
    assert calibration.value == pytest.approx(value, abs=1e-9)


def test_a_mean_confidence_equal_to_the_accuracy_passes_although_answers_are_miscalibrated():
    """Half of 100 answers with .9 and half of 100 answers with .1 are correct."""
    confidence = np.repeat([0.9, 0.1], 100)
    calibration = reliability.checkpoint_calibration(
        [confidence], np.arange(200) % 2 == 0, np.arange(200), seed=0
    )
    assert (calibration.confidence, calibration.accuracy) == (pytest.approx(0.5), 0.5)
    assert calibration.p_calibrated == 1 / 501


def test_floors_of_a_study_equal_means_over_drawn_labels():
    predictions = make_predictions(60)
    rows = predictions[predictions["estimator"] == "own"]
    settings = EvaluationSettings(min_contrast=1, seed=3, pairs=[("a", "b")])
    table = noise_floors(rows, CHECKPOINTS, settings, n_draws=4)
    floors = table.set_index(["conditioning", "scope"])["noise_floor"]
    wide = rows.pivot_table(index="question_id", columns="checkpoint", values="confidence")
    labels = rows.pivot_table(index="question_id", columns="checkpoint", values="correct")
    uniform = np.random.default_rng(3).random((len(wide), 4))
    full = [
        np.mean([relplot.smECE(p, (u < p).astype(float)) for u in uniform.T])
        for p in wide[list(CHECKPOINTS)].to_numpy().T
    ]
    assert floors["odds", "full"] == pytest.approx(np.mean(full), abs=1e-9)
    changed = (labels["a"] != labels["b"]).to_numpy()
    earlier, later = wide[changed][["a", "b"]].to_numpy().T
    p = condition(earlier, later, labels[changed]["b"].to_numpy() == 1, "odds").earlier
    contrast = [relplot.smECE(p, (u < p).astype(float)) for u in uniform[changed].T]
    assert floors["odds", "contrast"] == pytest.approx(np.mean(contrast), abs=1e-9)


def test_calibration_is_rarely_rejected_and_overconfidence_usually_is():
    rng, n_rejected = np.random.default_rng(0), {1.0: 0, 2.5: 0}
    for _ in range(40):
        logit = 1.5 * rng.normal(size=200)
        correct, uniform = rng.random(200) < expit(logit), rng.random((200, 60))
        for sharpness in n_rejected:
            stated = expit(sharpness * logit)
            value = float(persistcal.smooth_ece(correct, stated))
            comparison = reliability.compare_with_floor(
                value, Labellings(stated).smooth_ece(uniform < stated[:, None])
            )
            n_rejected[sharpness] += comparison.p_calibrated <= 0.05
    assert n_rejected[1.0] <= 6  # P[Bin(40, .05) > 6] < .01
    assert n_rejected[2.5] >= 36


def test_smooth_ece_has_a_noise_floor_instead_of_an_interval():
    rows = make_predictions(60).query("estimator == 'own'")
    predictions = rows.assign(dataset="quiz")
    comparison = persistcal.compare(predictions, CHECKPOINTS, min_contrast=1, n_replicates=200)
    intervals = comparison.tables["intervals"]
    is_smece = intervals["metric"] == "smece"
    floor, ends = ["noise_floor", "p_calibrated"], ["lower_2_5pct", "seeds_upper_97_5pct"]
    assert intervals.loc[is_smece, ends].isna().all(axis=None)
    assert intervals.loc[is_smece, floor].notna().all(axis=None)
    assert intervals.loc[~is_smece, floor].isna().all(axis=None)
    states = comparison.tables["states"]
    states = states[states["metric"] == "smece"]
    assert states["difference"].notna().all() and states["lower_2_5pct"].isna().all()
