"""The functions for notebooks give the workflow's numbers and refuse unclear input."""

import inspect
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from measuring import evaluate as evaluate_one
from programs import python
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal import compare, contrast_sets, evaluate, smooth_ece, threshold
from persistcal.api.command import compare as command_compare
from persistcal.api.display import FIGURE_NAMES
from persistcal.evaluation.settings import EvaluationSettings

SETTINGS = {"min_contrast": 5}


@pytest.fixture(scope="module")
def predictions():
    return make_predictions(n=80)


def test_each_model_is_evaluated_separately(predictions):
    more = make_predictions(n=60, seed=1)
    parts = {"m1": predictions, "m2": more}
    rows_of_both = pd.concat(rows.assign(model=m, dataset="quiz") for m, rows in parts.items())
    metrics = evaluate(rows_of_both, CHECKPOINTS, **SETTINGS)
    assert list(metrics.columns[:2]) == ["model", "dataset"]
    for model, rows in parts.items():
        of_model = metrics[metrics["model"] == model].drop(columns=["model", "dataset"])
        expected = evaluate_one(rows, CHECKPOINTS, EvaluationSettings(**SETTINGS))
        pd.testing.assert_frame_equal(of_model.reset_index(drop=True), expected)
    assert set(contrast_sets(rows_of_both, CHECKPOINTS, **SETTINGS)["model"]) == {"m1", "m2"}


def test_notebook_workflow_and_command_have_the_same_defaults():
    path = Path(__file__).parents[2] / "config" / "config.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    study = config["evaluation"] | config["study"]
    expected = {name: study[name] for name in ("pairs", "seed", "min_direction")}
    expected |= {
        "n_replicates": study["replicates"],
        "min_contrast": EvaluationSettings.min_contrast,
    }
    options = {option.name: option.default for option in command_compare.params}
    for function in (evaluate, contrast_sets, compare, threshold):
        parameters = inspect.signature(function).parameters
        shared = expected.keys() & parameters.keys()
        assert {n: parameters[n].default for n in shared} == {n: expected[n] for n in shared}
    for name in expected.keys() - {"pairs"}:
        assert options[name] == expected[name]


def test_optional_columns_can_be_missing_and_skipped_rows_are_reported(predictions, caplog):
    rows = predictions[predictions["estimator"] == "own"]
    metrics = evaluate(rows.drop(columns=["estimator", "seed"]), **SETTINGS)
    expected = evaluate(rows, CHECKPOINTS, **SETTINGS).assign(estimator="confidence")
    pd.testing.assert_frame_equal(metrics, expected)
    assert not caplog.messages
    evaluate(rows, ["a", "c"], **SETTINGS)
    assert caplog.messages == ["Skipped 80 rows of checkpoint 'b', which is not chosen"]
    with pytest.raises(ValueError, match="predictions: no row has one of the checkpoints x, y"):
        evaluate(rows, ["x", "y"])


def test_a_contrast_set_contains_improvements_and_regressions():
    # From a to b, question 1 is a regression, question 2 an improvement, question 3 unchanged.
    rows = pd.DataFrame({"checkpoint": list("aaabbb"), "question_id": [1, 2, 3] * 2})
    rows = rows.assign(correct=[1, 0, 1, 0, 1, 1], confidence=0.5, estimator="mine")
    [row] = contrast_sets(rows, ["a", "b"], min_contrast=3).to_dict("records")
    keys = {"model": "model", "dataset": "dataset", "earlier": "a", "later": "b"}
    assert pd.isna(row.pop("same_answers"))
    assert row == {**keys, "size": 2, "improvement": 1, "regression": 1, "kept": False}


def test_a_comparison_marks_the_best_estimator_and_its_ties_in_the_table(predictions):
    comparison = compare(predictions, CHECKPOINTS, **SETTINGS, n_replicates=200)
    metrics, tests = comparison.tables["metrics"], comparison.tables["significance"]
    pd.testing.assert_frame_equal(metrics, evaluate(predictions, CHECKPOINTS, **SETTINGS))

    table = comparison.table()
    means = metrics[(metrics["seed"] == "mean") & (metrics["conditioning"] == "odds")]
    auc = means[(means["scope"] == "full") & (means["metric"] == "auc")]
    column = table.data["full", "auc"]
    assert len(column) == 4

    expected = auc.set_index("estimator")["value"]
    assert column.droplevel([0, 1, 2]).to_dict() == expected.to_dict()

    html = table.to_html()
    best = f"{expected.max():.3f}"
    assert "font-weight: bold" in html and "text-decoration: underline" in html and best in html

    aucs = tests[(tests["scope"] == "full") & (tests["metric"] == "auc")]
    assert set(aucs["best"]) == {expected.idxmax()} and len(aucs) == 3
    assert comparison.figure().axes[0].get_ylabel() == "Change AUC"
    for name in FIGURE_NAMES:
        assert comparison.figure(name).axes, name
    with pytest.raises(ValueError, match="name is 'state'; give one of full_vs_contrast, st"):
        comparison.figure("state")
    with pytest.raises(ValueError, match="conditioning is 'none'"):
        comparison.table(conditioning="none")
    assert "From a to c, " in comparison.summary() and "<html" in comparison.to_html()


def test_estimators_trained_on_another_dataset_have_rows_of_their_own(predictions):
    trained_on_quiz = predictions[predictions["estimator"].isin(["own", "coarse"])]
    trained_on_exam = trained_on_quiz.assign(train_dataset="exam")
    rows_of_both = pd.concat([trained_on_quiz, trained_on_exam]).assign(dataset="quiz")
    comparison = compare(rows_of_both, CHECKPOINTS, **SETTINGS, n_replicates=200)
    assert comparison.tables["significance"]["block"].nunique() == 2
    datasets = comparison.table().data.index.get_level_values("train_dataset")
    assert sorted(datasets.unique()) == ["exam", "quiz"]
    assert "m · quiz, trained on exam" in comparison.summary().replace("model", "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.drop(columns="correct"), "column 'correct' is missing"),
        (lambda p: p.assign(estimator=None), r"estimator is empty \(row 1, row 2"),
        (lambda p: p.head(0), "has no row; give one"),
        (lambda p: pd.concat([p, p["correct"]], axis=1), "column 'correct' is there twice"),
        (lambda p: p.assign(ask=1)[[*p, "ask", "ask"]], "column 'ask' is there twice"),
        (lambda p: pd.concat([p.assign(seed=s) for s in ("1", "01")]), "row 1, row 81, "),
        (lambda p: p.assign(seed=p["seed"] + 0.5), r"seed is not valid \(row 1: 17.5"),
        (lambda p: p.assign(confidence=p["confidence"] + 1j), r"\(row 1: '\(0\..*\[0, 1\]"),
        (lambda p: p.assign(correct=p["correct"] + 0j), r"correct is not valid \(row 1: "),
        (lambda p: pd.concat({"all": p}, axis=1), "columns have several levels"),
        (lambda p: p.assign(confidence="half"), r"confidence is not valid \(row 1: 'half'"),
        (lambda p: p.assign(confidence=p["confidence"].astype("Float64").mask(p.index == 7)),
         r"confidence is empty \(row 8\); give"),
        (lambda p: p.assign(correct="perhaps"), r"correct is not valid \(row 1: 'perhaps'"),
        (lambda p: p.assign(model="m").set_index("model", drop=False),
         r"'model' is in the index; call reset_index\(\)"),
    ],
)  # fmt: skip
def test_predictions_with_a_wrong_column_value_or_row_are_refused(predictions, change, message):
    with pytest.raises(ValueError, match=message):
        evaluate(change(predictions), CHECKPOINTS, **SETTINGS)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.assign(confidence=p["confidence"].astype("category")),
        lambda p: p.assign(confidence=p["confidence"].map(repr)),
        lambda p: p.assign(correct=p["correct"].map(str)),
        lambda p: p.assign(correct=p["correct"].map(int).astype("category")),
        lambda p: p.assign(correct=p["correct"].astype("boolean"), seed=p["seed"].map(str)),
    ],
)
def test_numbers_can_have_any_type(predictions, change):
    metrics = evaluate(change(predictions), CHECKPOINTS, **SETTINGS)
    pd.testing.assert_frame_equal(metrics, evaluate(predictions, CHECKPOINTS, **SETTINGS))


def test_checkpoints_can_be_numbers(predictions):
    steps = dict(zip(CHECKPOINTS, [1000, 2000, 10000], strict=True))
    numbered = predictions.assign(checkpoint=predictions["checkpoint"].map(steps))
    pairs = [[1000, 10000]]
    metrics = evaluate(numbered, list(steps.values()), **SETTINGS, pairs=pairs)
    expected = evaluate(predictions, CHECKPOINTS, **SETTINGS, pairs=[["a", "c"]])
    pd.testing.assert_frame_equal(metrics, expected)
    with pytest.raises(ValueError, match=r"no row has one of the checkpoints 1, 2\."):
        evaluate(numbered, [1, 2], **SETTINGS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": [("a", "zz")]}, "names the checkpoint 'zz', which is none of a, b, c"),
        ({"pairs": "every"}, "pairs is 'every', but it must be .all."),
        ({"pairs": ["ab"]}, "pairs is .'ab'., but it must be .all."),
        ({"pairs": [("a", "b", "c")]}, "but it must be .all."),
        ({"pairs": [("b", "a")]}, "the earlier one first"),
        *(
            ({"pairs": pairs}, rf"^pairs is {re.escape(repr(pairs))}, but it must be .all.")
            for pairs in (3, [3], [])
        ),
        ({"checkpoints": 3}, "^checkpoints is 3; give a list of names"),
        ({"min_contrast": float("nan")}, "min_contrast is nan; give a whole number"),
        ({"min_contrast": 0}, "min_contrast is 0"),
        ({"min_contrast": 2.5}, "min_contrast is 2.5"),
        ({"min_contrast": "5"}, "min_contrast is '5'"),
        ({"checkpoints": "abc"}, "checkpoints is 'abc'; give a list of names"),
        ({"checkpoints": ["a", "b", "b"]}, "each evaluation checkpoint once"),
        ({"checkpoints": []}, "each evaluation checkpoint once"),
        ({"n_replicates": 199}, "n_replicates is 199; give a whole number of at least 200"),
        ({"seed": -1}, "seed is -1; give a whole number of at least 0"),
    ],
)
def test_wrong_settings_are_refused_with_their_name(predictions, settings, message):
    with pytest.raises(ValueError, match=message):
        compare(predictions, **{"checkpoints": CHECKPOINTS, **SETTINGS, **settings})


@pytest.mark.parametrize("function", [evaluate, contrast_sets, compare])
def test_every_function_refuses_wrong_settings_and_predictions(predictions, function):
    with pytest.raises(ValueError, match="pairs is 'every'"):
        function(predictions, CHECKPOINTS, pairs="every")
    with pytest.raises(ValueError, match="column 'correct' is missing"):
        function(predictions.drop(columns="correct"), CHECKPOINTS)
    for given in (None, [], "predictions.csv"):
        with pytest.raises(ValueError, match=r"^predictions: is \w+, not a DataFrame; give "):
            function(given, CHECKPOINTS)


@pytest.mark.parametrize(
    ("spell", "misspell"),
    [
        (lambda n: f"{n:04}", lambda n: f"{n}.0"),
        (lambda n: f"q{n:04}", lambda n: f"q{n:04} "),
        (lambda n: f"q{n:04}", lambda n: f"q{n}"),
        (int, float),  # pandas reads integers as floats if a value is missing
    ],
)
def test_a_question_spelt_differently_at_a_checkpoint_is_refused(predictions, spell, misspell):
    number = predictions["question_id"].str[1:].astype(int)
    ids, other_ids = (number.map(write).astype(object) for write in (spell, misspell))
    ids = ids.mask(predictions["checkpoint"] == "c", other_ids)
    shown = f"{str(spell(0))!r} at a of model; {str(misspell(0))!r} at c of model"
    shown = re.escape(f"ids of 80 questions differ in spelling ({shown}), so that 0 of 160 ids")
    with pytest.raises(ValueError, match=shown):
        evaluate(predictions.assign(question_id=ids), CHECKPOINTS, **SETTINGS)


def test_a_question_spelt_differently_at_another_model_is_refused(predictions):
    """Both models spell 60 ids equally and 20 differently."""
    number = predictions["question_id"].str[1:].astype(int)
    ids = number.map(str)
    predictions_by_model = [
        predictions.assign(model="m", question_id=ids),
        predictions.assign(model="n", question_id=ids.where(number < 60, ids + ".0")),
    ]
    shown = "20 questions differ in spelling ('60' at a of m; '60.0' at a of n), so that 60 of"
    with pytest.raises(ValueError, match=re.escape(shown)):
        compare(pd.concat(predictions_by_model), CHECKPOINTS, n_replicates=200)


def test_questions_that_a_checkpoint_lacks_are_reported(predictions, caplog):
    kept = (predictions["checkpoint"] != "b") | (predictions["question_id"] > "q0009")
    contrast_sets(predictions, CHECKPOINTS, **SETTINGS)
    assert not caplog.messages
    contrast_sets(predictions[kept], CHECKPOINTS, **SETTINGS)
    assert caplog.messages == [
        "model, dataset: only 70 of 80 questions are at every checkpoint (a 80, b 70, c 80): a "
        "contrast set holds those that both of its checkpoints have"
    ]


@pytest.mark.parametrize(
    ("correct", "confidence", "message"),
    [
        ([[1], [0]], [0.1, 0.2], "one number of each per answer"),
        ([0, 1], [10, 90], "not in"),
        ([0.1, 0.2], [0, 1], r"the order is smooth_ece\(correct, confidence\)"),
        ([1, 0], [1j, 0.5], "A confidence is not a number"),
        ([1, 0], ["high", "low"], "A confidence is not a number"),
    ],
)
def test_smooth_ece_refuses_wrong_shapes_values_and_order(correct, confidence, message):
    with pytest.raises(ValueError, match=message):
        smooth_ece(correct, confidence)


def test_importing_the_package_loads_neither_torch_nor_its_other_dependencies():
    code = (
        "import sys; before = set(sys.modules)\n"
        "import persistcal\n"
        "others = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "assert others - set(sys.stdlib_module_names) == {'persistcal'}, others\n"
        "assert set(persistcal.__all__) <= set(dir(persistcal))\n"
        "persistcal.smooth_ece([1], [0.5]); persistcal.compare\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
        "assert all(callable(getattr(persistcal, name)) for name in persistcal.__all__)\n"
        "assert not hasattr(persistcal, 'evalute')\n"
    )
    python("-c", code)
