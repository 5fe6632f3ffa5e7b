"""Metrics by kind of change, next to a control."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from measuring import by_dataset, cross_ask, evaluate, replicate_metrics
from synthetic_predictions import CHECKPOINTS, make_predictions, table_of_arrays

from persistcal.evaluation.pipeline import measure_changes
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import intervals
from persistcal.store import artifacts

CHANGES = {
    "tuned": [["a", "b"], ["b", "c"]],
    "same": [["c", "repeated"]],
    "absent": [["x", "y"]],
}
SETTINGS = EvaluationSettings(min_direction=1, n_replicates=50, seed=3)
KEY = ["estimator", "metric"]


@pytest.fixture(scope="module")
def predictions():
    frame = make_predictions(n=120)
    return pd.concat([frame, frame[frame["checkpoint"] == "c"].assign(checkpoint="repeated")])


@pytest.fixture(scope="module")
def measured(predictions):
    frame = predictions.assign(model="m", dataset="quiz")
    settings = replace(SETTINGS, pairs=CHANGES)
    table = measure_changes(
        by_dataset(frame, {"m": [*CHECKPOINTS, "repeated"]}, settings),
        settings,
        controls={"tuned": "same", "same": "absent"},
    )
    artifacts.check(table, artifacts.CHANGES, "changes")
    return table


def test_a_kind_of_change_is_evaluated_like_a_study_of_its_pairs(predictions, measured):
    of_kind = measured[measured["change"] == "tuned"].set_index(KEY)
    rows = predictions[predictions["checkpoint"] != "repeated"]
    settings = {"min_contrast": 1, "pairs": CHANGES["tuned"], "conditionings": ["odds"]}
    metrics = evaluate(rows, CHECKPOINTS, EvaluationSettings(**settings))
    metrics = metrics[(metrics["seed"] == "mean") & (metrics["scope"] == "contrast")]
    metrics = metrics.set_index(KEY)["value"]
    pd.testing.assert_series_equal(of_kind["value"], metrics.loc[of_kind.index])
    drawn = intervals(replicate_metrics(rows, CHECKPOINTS, replace(SETTINGS, **settings)))
    drawn = drawn[drawn["scope"] == "contrast"].set_index(KEY)
    for end in ("lower_2_5pct", "seeds_upper_97_5pct", "n_seeds"):
        pd.testing.assert_series_equal(of_kind[end], drawn.loc[of_kind.index, end])
    assert of_kind.loc["learnt", "n_seeds"].tolist() == [3, 3, 3]
    run = rows[rows["estimator"] == "own"]
    correct = run.pivot(index="question_id", columns="checkpoint", values="correct").astype(int)
    steps = np.concatenate([correct["b"] - correct["a"], correct["c"] - correct["b"]])
    flips = of_kind[["n_pairs", "improvement", "regression"]].drop_duplicates()
    assert flips.to_numpy().tolist() == [[2, (steps > 0).sum(), (steps < 0).sum()]]


def test_confidence_around_a_regression_is_a_mean_over_pairs_and_seeds(predictions, measured):
    by_question = predictions.set_index(["checkpoint", "question_id"]).sort_index()
    rows = measured[measured["change"] == "tuned"].drop_duplicates("estimator")
    for row in rows.to_dict("records"):
        run = by_question[by_question["estimator"] == row["estimator"]]
        before_regression, after_regression = [], []
        for earlier, later in CHANGES["tuned"]:
            labels, later_labels = run.loc[earlier, "correct"], run.loc[later, "correct"]
            questions = labels.index.unique()
            lost = [q for q in questions if labels[q].all() and not later_labels[q].any()]
            before_regression += run.loc[earlier].loc[lost, "confidence"].tolist()
            after_regression += run.loc[later].loc[lost, "confidence"].tolist()
        assert row["lost_before"] == pytest.approx(np.mean(before_regression))
        assert row["lost_after"] == pytest.approx(np.mean(after_regression))


def test_a_kind_of_change_without_flips_has_counts_and_undefined_metrics(measured):
    same = measured[measured["change"] == "same"]
    assert same["n_pairs"].eq(1).all() and set(same["metric"]) == set(measured["metric"])
    assert not same[["questions", "improvement", "regression"]].to_numpy().any()
    undefined = ["value", "lower_2_5pct", "seeds_lower_2_5pct", "lost_after"]
    assert same[undefined].isna().all(axis=None)
    assert "absent" not in set(measured["change"])


STATES = ("base", "changed", "repeated")
PAIRS = {"Change": [["base", "changed"]], "Control": [["base", "repeated"]]}
CONTROLS = {"Change": "Control"}


def predictions_of(correct, confidence, model="m"):
    columns = {"model": model, "dataset": "quiz", "train_dataset": ""}
    return table_of_arrays(confidence, correct, **columns)


def measure(*frames):
    models = {frame["model"].iloc[0]: [*frame["checkpoint"].unique()] for frame in frames}
    settings = EvaluationSettings(pairs=PAIRS, n_replicates=200, seed=1)
    aligned = by_dataset(pd.concat(frames), models, settings)
    return measure_changes(aligned, settings, controls=CONTROLS)


def small_study(n_control=5):
    """Return 20 questions: 5 gained and 5 lost by the change, as many by the control."""
    base = np.repeat([0, 1, 0, 1], 5)
    numbers = np.arange(20)
    correct = {"base": base, "changed": np.where(numbers < 10, 1 - base, base)}
    flipped = (numbers >= 10) & (numbers % 5 < n_control)
    correct["repeated"] = np.where(flipped, 1 - base, base)
    # Change: signs follow 4 of 5 gains, (4 − 1) / 5 = .6, and 5 of 5 losses, 1. Δ₀ᵇ = .8.
    # Control: signs follow 3 of 5 gains and losses, (3 − 2) / 5 = .2. Δ₀ᵇ = .2.
    later = np.array([0.6] * 4 + [0.4] * 6 + [0.5] * 10)
    repeated = np.array([0.5] * 10 + [0.6] * 3 + [0.4] * 2 + [0.4] * 3 + [0.6] * 2)
    confidence = {"base": np.full(20, 0.5), "changed": later, "repeated": repeated}
    return correct, confidence


def test_a_change_is_compared_with_its_control():
    table = measure(predictions_of(*small_study())).set_index(["change", "metric"])
    row = table.loc["Change", "delta0_balanced"]
    assert row["value"] == pytest.approx(0.8)
    # Sums of signs: 3 for gains and 5 for losses of the change, 1 and 1 for the control:
    # ((3 − 1) / 5 + (5 − 1) / 5) / 2 = .6
    assert row["beyond_control"] == pytest.approx(0.6)
    assert row["beyond_lower_2_5pct"] < 0.6 < row["beyond_upper_97_5pct"]
    # The control has equally many flips, so all can be chance.
    assert np.isnan(row["of_knowledge"])
    assert row["word"] == "not shown"  # five questions of each are too few
    assert (row["control"], row["control_model"]) == ("Control", "m")
    counts = ["n_pairs", "questions", "improvement", "regression"]
    assert row[counts].tolist() == [1, 10, 5, 5]
    control = table.loc["Control", "delta0_balanced"]
    assert control["value"] == pytest.approx(0.2)
    assert control["control"] == control["word"] == ""
    assert np.isnan(control["beyond_control"])


def test_the_control_can_be_a_model_with_the_same_questions():
    correct, confidence = small_study()
    whole = measure(predictions_of(correct, confidence)).query("change == 'Change'")
    first, second = (
        predictions_of(
            *({c: values[c] for c in names} for values in (correct, confidence)), model=model
        )
        for names, model in ((STATES[:2], "m"), (STATES[::2], "n"))
    )
    split = measure(first, second).query("change == 'Change'")
    assert split["control_model"].eq("n").all()
    columns = [name for name in whole if name != "control_model"]
    pd.testing.assert_frame_equal(split[columns], whole[columns], check_like=True)
    # With two models that have the control, no control is used.
    third = second.assign(model="o")
    of_three = measure(first, second, third).query("change == 'Change'")
    assert of_three["beyond_control"].isna().all() and of_three["control_model"].eq("").all()


@pytest.mark.parametrize("flips", [0, 4])
def test_a_control_with_too_few_flips_gives_no_claim(flips):
    table = measure(predictions_of(*small_study(n_control=flips)))
    rows = table[table["change"] == "Change"]
    assert rows["control"].eq("Control").all() and rows["value"].notna().all()
    assert rows.filter(like="beyond").isna().all(axis=None)
    assert rows["word"].eq("").all()


@pytest.mark.parametrize(("second", "basis"), [(1, "cross"), (90, "other examples")])
def test_a_change_asked_twice_is_claimed_by_its_cross_asked_metrics(second, basis):
    rng = np.random.default_rng(0)

    def ask():
        correct = {name: rng.integers(0, 2, 60) for name in ("base", "changed")}
        return predictions_of(correct, {name: rng.random(60) for name in correct})

    asks = pd.concat([ask().assign(ask=0), ask().assign(ask=second)], ignore_index=True)
    table = measure(asks).set_index("metric")
    settings = EvaluationSettings(
        pairs=[("base", "changed")], min_contrast=1, n_replicates=200, seed=1
    )
    crossed = cross_ask(asks, ["base", "changed"], settings)
    values = {name: of["", "e"].value for name, of in crossed.samples.items()}
    for metric, value in values.items():
        assert table.loc[metric, "crossed"] == pytest.approx(value)
        low, high = table.loc[metric, ["crossed_lower_2_5pct", "crossed_upper_97_5pct"]]
        assert low < value < high
    claimed = table.loc[list(values), ["word", "basis"]].drop_duplicates()
    assert claimed.to_numpy().tolist() == [["not shown", basis]]


def test_a_change_with_fewer_flips_than_its_control_is_not_said_to_move_against():
    """Each confidence follows its label; the control flips 60 answers, the change 32."""
    numbers = np.arange(300)
    base = numbers % 2
    is_changed = (numbers < 12) | ((numbers >= 260) & (base == 0))
    is_repeated = (numbers >= 100) & (numbers < 160)
    correct = {
        "base": base,
        "changed": np.where(is_changed, 1 - base, base),
        "repeated": np.where(is_repeated, 1 - base, base),
    }
    confidence = {name: np.where(labels, 0.9, 0.1) for name, labels in correct.items()}
    table = measure(predictions_of(correct, confidence)).set_index(["change", "metric"])
    row = table.loc["Change", "delta0_balanced"]
    # 26 gains and 6 losses, all the right way, minus 30 of the control in each direction:
    # ((26 − 30) / 26 + (6 − 30) / 6) / 2 = −2.08
    assert row["beyond_control"] == pytest.approx(((26 - 30) / 26 + (6 - 30) / 6) / 2)
    assert row["beyond_upper_97_5pct"] < 0
    assert row["word"] == "not shown"
