"""Metrics of each named kind of change."""

import numpy as np
import pandas as pd
import pytest
from synthetic_predictions import CHECKPOINTS, make_predictions, table_of_arrays

from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.pipeline import measure_changes
from persistcal.evaluation.replicates import replicate_metrics
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import intervals
from persistcal.store import artifacts

CHANGES = {"tuned": [["a", "b"], ["b", "c"]], "same": [["c", "again"]], "absent": [["x", "y"]]}
HOW = {"min_direction": 1, "n_replicates": 50, "seed": 3}
KEY = ["estimator", "metric"]


@pytest.fixture(scope="module")
def predictions():
    frame = make_predictions(n=120)
    return pd.concat([frame, frame[frame["checkpoint"] == "c"].assign(checkpoint="again")])


@pytest.fixture(scope="module")
def measured(predictions):
    frame = predictions.assign(model="m", dataset="quiz")
    by_estimator = [rows for _, rows in frame.groupby("estimator", sort=False)]
    table = measure_changes(
        pd.concat(by_estimator),
        checkpoints={"m": [*CHECKPOINTS, "again"]},
        settings=EvaluationSettings(pairs=CHANGES, **HOW),
        controls={"tuned": "same", "same": "absent"},
    )
    artifacts.check(table, artifacts.CHANGES, "changes")
    return table


def test_a_kind_is_evaluated_like_a_study_of_its_pairs_alone(predictions, measured):
    of_kind = measured[measured["change"] == "tuned"].set_index(KEY)
    own = predictions[predictions["checkpoint"] != "again"]
    how = {"min_contrast": 1, "pairs": CHANGES["tuned"], "conditionings": ["odds"]}
    metrics = evaluate(own, CHECKPOINTS, EvaluationSettings(**how))
    metrics = metrics[(metrics["seed"] == "mean") & (metrics["scope"] == "contrast")]
    metrics = metrics.set_index(KEY)["value"]
    pd.testing.assert_series_equal(of_kind["value"], metrics.loc[of_kind.index])
    drawn = intervals(replicate_metrics(own, CHECKPOINTS, EvaluationSettings(**how, **HOW)))
    drawn = drawn[drawn["scope"] == "contrast"].set_index(KEY)
    for end in ("lower_2_5pct", "seeds_upper_97_5pct", "n_seeds"):
        pd.testing.assert_series_equal(of_kind[end], drawn.loc[of_kind.index, end])
    assert of_kind.loc["learnt", "n_seeds"].tolist() == [3, 3, 3]
    one = own[own["estimator"] == "own"]
    correct = one.pivot(index="question_id", columns="checkpoint", values="correct").astype(int)
    steps = np.concatenate([correct["b"] - correct["a"], correct["c"] - correct["b"]])
    flips = of_kind[["n_pairs", "improvement", "regression"]].drop_duplicates()
    assert flips.to_numpy().tolist() == [[2, (steps > 0).sum(), (steps < 0).sum()]]


def test_confidence_in_what_is_lost_is_a_mean_over_pairs_and_seeds(predictions, measured):
    at = predictions.set_index(["checkpoint", "question_id"]).sort_index()
    rows = measured[measured["change"] == "tuned"].drop_duplicates("estimator")
    for row in rows.to_dict("records"):
        of = at[at["estimator"] == row["estimator"]]
        before, after = [], []
        for one, other in CHANGES["tuned"]:
            right, later = of.loc[one, "correct"], of.loc[other, "correct"]
            lost = [q for q in right.index.unique() if right[q].all() and not later[q].any()]
            before += of.loc[one].loc[lost, "confidence"].tolist()
            after += of.loc[other].loc[lost, "confidence"].tolist()
        assert row["lost_before"] == pytest.approx(np.mean(before))
        assert row["lost_after"] == pytest.approx(np.mean(after))


def test_a_kind_without_a_flip_has_counts_and_no_value(measured):
    same = measured[measured["change"] == "same"]
    assert same["n_pairs"].eq(1).all() and len(same) == 3 * 4
    assert not same[["questions", "improvement", "regression"]].to_numpy().any()
    undefined = ["value", "lower_2_5pct", "seeds_lower_2_5pct", "lost_after"]
    assert same[undefined].isna().all(axis=None)
    assert "absent" not in set(measured["change"])


STATES = ("base", "changed", "again")
PAIRS = {"Change": [["base", "changed"]], "Control": [["base", "again"]]}
CONTROLS = {"Change": "Control"}


def of_states(correct, confidence, model="m"):
    columns = {"model": model, "dataset": "quiz", "train_dataset": ""}
    return table_of_arrays(confidence, correct, **columns)


def against_control(*frames):
    models = {frame["model"].iloc[0]: [*frame["checkpoint"].unique()] for frame in frames}
    settings = EvaluationSettings(pairs=PAIRS, n_replicates=200, seed=1)
    how = {"checkpoints": models, "settings": settings, "controls": CONTROLS}
    return measure_changes(pd.concat(frames), **how)


def by_hand(n_control=5):
    """20 questions: 5 gained and 5 lost by the change, and as many others by the control."""
    base = np.repeat([0, 1, 0, 1], 5)
    numbers = np.arange(20)
    correct = {"base": base, "changed": np.where(numbers < 10, 1 - base, base)}
    flipped = (numbers >= 10) & (numbers % 5 < n_control)
    correct["again"] = np.where(flipped, 1 - base, base)
    # Change: 4 of 5 signs follow gained questions, so that they have a mean of .6; 5 of 5 lost
    # ones, 1; Δ₀ᵇ is .8. Control: 3 of 5 each, a mean of .2 each
    later = np.array([0.6] * 4 + [0.4] * 6 + [0.5] * 10)
    again = np.array([0.5] * 10 + [0.6] * 3 + [0.4] * 2 + [0.4] * 3 + [0.6] * 2)
    confidence = {"base": np.full(20, 0.5), "changed": later, "again": again}
    return correct, confidence


def test_a_change_is_compared_with_its_control():
    table = against_control(of_states(*by_hand())).set_index(["change", "metric"])
    row = table.loc["Change", "delta0_balanced"]
    assert row["value"] == pytest.approx(0.8)
    # Signs of the change: sums of 3 in 5 gained and 5 in 5 lost questions. The control has sums
    # of 1 and 1, so 1 in each direction: ((3 − 1) / 5 + (5 − 1) / 5) / 2
    assert row["beyond_control"] == pytest.approx(0.6)
    assert row["beyond_lower_2_5pct"] < 0.6 < row["beyond_upper_97_5pct"]
    assert np.isnan(row["of_knowledge"])  # as many flips as the control: all can be chance
    assert row["word"] == "not shown to have followed"  # five questions of each are too few
    assert (row["control"], row["control_model"]) == ("Control", "m")
    counts = ["n_pairs", "questions", "improvement", "regression"]
    assert row[counts].tolist() == [1, 10, 5, 5]
    control = table.loc["Control", "delta0_balanced"]
    assert control["value"] == pytest.approx(0.2)
    assert control["control"] == control["word"] == ""
    assert np.isnan(control["beyond_control"])


def test_the_control_may_be_in_another_model_of_the_same_questions():
    correct, confidence = by_hand()
    whole = against_control(of_states(correct, confidence)).query("change == 'Change'")
    first, second = (
        of_states(*({c: of[c] for c in names} for of in (correct, confidence)), model=model)
        for names, model in ((STATES[:2], "m"), (STATES[::2], "n"))
    )
    split = against_control(first, second).query("change == 'Change'")
    assert split["control_model"].eq("n").all()
    columns = [name for name in whole if name != "control_model"]
    pd.testing.assert_frame_equal(split[columns], whole[columns], check_like=True)
    # two other models with the control: neither is chosen
    third = second.assign(model="o")
    of_three = against_control(first, second, third).query("change == 'Change'")
    assert of_three["beyond_control"].isna().all() and of_three["control_model"].eq("").all()


@pytest.mark.parametrize("flips", [0, 4])
def test_a_control_with_too_few_flips_gives_no_claim(flips):
    table = against_control(of_states(*by_hand(n_control=flips)))
    rows = table[table["change"] == "Change"]
    assert rows["control"].eq("Control").all() and rows["value"].notna().all()
    assert rows.filter(like="beyond").isna().all(axis=None)
    assert rows["word"].eq("").all()
