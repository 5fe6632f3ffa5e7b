"""Cells of a table of results: their values, comparisons and marks."""

import pandas as pd
import pytest

from persistcal import compare, evaluate
from persistcal.evaluation.settings import named_blocks, present
from persistcal.report.grid import fill_cells, lay_out
from persistcal.report.latex import results_table
from persistcal.report.layout import comparison_blocks, expand_tables, sections
from persistcal.report.page.tables import shown
from persistcal.store import artifacts

NAN = float("nan")
TABLE = {
    "layout": "models_as_blocks",
    "columns": {"contrast": ["auc"], "full": ["brier"]},
    "blocks": [{"rows": [{"estimator": "a"}, {"estimator": "b"}, {"estimator": "c"}]}],
}


def metrics_of(values, *, dataset="d", train="d"):
    """Return metrics: `values` are contrast AUC and full-set Brier score by estimator."""
    rows = [
        ("m", dataset, train, estimator, "odds", *column, "mean", value, "")
        for estimator, pair in values.items()
        for column, value in zip((("contrast", "auc"), ("full", "brier")), pair, strict=True)
    ]
    return pd.DataFrame(rows, columns=artifacts.METRICS.schema.names)


def fill(metrics, *tests, block="a+b+c", table=TABLE, dataset="d", datasets=None):
    """Return cells of a table with `tests`: scope, metric, best, other, significant."""
    names = ["model", "dataset", "block", "conditioning", "scope", "metric", "best", "other"]
    rows = [("m", dataset, block, "odds", *test) for test in tests]
    significance = pd.DataFrame(rows, columns=[*names, "significant"])
    metrics = metrics_of(metrics) if isinstance(metrics, dict) else metrics
    datasets = datasets or {"d": []}
    return fill_cells(metrics, significance, table, models=["m"], datasets=datasets)


def marks(cells):
    return {
        (cell.estimator, cell.metric): "bold" * cell.bold + "underline" * cell.underline
        for cell in cells.itertuples()
    }


@pytest.mark.parametrize(
    ("values", "tests", "expected"),
    [
        (  # AUC: larger is better; Brier score: smaller is better
            {"a": (0.7, 0.3), "b": (0.8, 0.1), "c": (0.6, 0.2)},
            [
                ("contrast", "auc", "b", "a", False),
                ("contrast", "auc", "b", "c", True),
                ("full", "brier", "b", "a", True),
                ("full", "brier", "b", "c", False),
            ],
            {"auc": ["underline", "bold", ""], "brier": ["", "bold", "underline"]},
        ),
        (  # ties of unrounded values: a's AUC is 1.2e-5 from the best, b's Brier score 0.8e-5
            {"a": (0.80001, 0.2), "b": (0.800022, 0.200008), "c": (0.1, 0.3)},
            [
                ("contrast", "auc", "b", "a", True),
                ("full", "brier", "a", "b", False),
                ("full", "brier", "a", "c", False),
            ],
            {"auc": ["", "bold", ""], "brier": ["bold", "boldunderline", "underline"]},
        ),
        (  # a and b differ by less than 1e-5, so both are bold; c is not significantly worse
            {"a": (0.8, 0.2), "b": (0.800001, 0.1), "c": (0.79, 0.3)},
            [("contrast", "auc", "b", "a", False), ("contrast", "auc", "b", "c", False)],
            {"auc": ["boldunderline", "bold", "underline"], "brier": ["", "bold", ""]},
        ),
        (  # a is significantly worse by less than 1e-5, so it is bold and not underlined
            {"a": (0.8, 0.2), "b": (0.800001, 0.1), "c": (0.79, 0.3)},
            [("contrast", "auc", "b", "a", True)],
            {"auc": ["bold", "bold", ""], "brier": ["", "bold", ""]},
        ),
    ],
)
def test_the_best_cell_is_bold_and_cells_not_worse_are_underlined(values, tests, expected):
    marks_of = marks(fill(values, *tests))
    for metric, expected_marks in expected.items():
        assert [marks_of[name, metric] for name in "abc"] == expected_marks


def test_missing_values_are_not_marked():
    test = ("full", "brier", "a", "b", False)
    cells = fill({"a": (NAN, 0.2), "b": (0.8, NAN)}, test, block="a+b")
    assert cells["value"].isna().tolist() == [True, False, True, False, True, True]
    assert set(marks(cells).values()) == {""}  # a single value is not compared


@pytest.mark.parametrize(
    ("values", "rival", "block", "message"),
    [
        ("abc", "a", "a+b", r"no block 'a\+b\+c' for model 'm'"),
        ("abc", "d:a", "a+b+c", "names other estimators"),
        ("x", "a", "a+b+c", "None of the table's estimators"),
    ],
)
def test_a_table_without_tests_or_metrics_is_refused(values, rival, block, message):
    test = ("contrast", "auc", "b", rival, False)
    with pytest.raises(ValueError, match=message):
        fill(dict.fromkeys(values, (0.7, 0.3)), test, block=block)


def test_a_block_without_rows_contains_every_estimator():
    test = ("contrast", "auc", "y", "x", False)
    values = {"x": (0.1, 0.2), "y": (0.3, 0.2)}
    cells = fill(values, test, block="x+y", table={**TABLE, "blocks": [{}]})
    assert marks(cells)["x", "auc"] == "underline"


def test_a_fitted_table_shows_fitted_contrast_metrics_and_plain_full_metrics():
    fitted = metrics_of({"a": (0.9, 0.5)}).assign(conditioning="fitted")
    metrics = pd.concat([metrics_of({"a": (0.7, 0.3)}), fitted[fitted["scope"] == "contrast"]])
    cells = fill(metrics, table={**TABLE, "conditioning": "fitted"})
    of_a = cells.loc[cells["estimator"] == "a", ["conditioning", "value"]]
    assert of_a.to_numpy().tolist() == [["fitted", 0.9], ["odds", 0.3]]


def test_a_transfer_table_shows_estimators_trained_on_another_dataset():
    rows = [{"estimator": "a", "trained": False}, {"estimator": "b"}]
    untrained = metrics_of({"a": (0.6, 0.2)}, dataset="t", train="t")
    trained = metrics_of({"b": (0.7, 0.1)}, dataset="t", train="d")
    cells = fill(
        pd.concat([untrained, trained, metrics_of({"a": (0.9, 0.9), "b": (0.9, 0.9)})]),
        ("contrast", "auc", "b", "a", False),
        block="a+d:b",
        table={**TABLE, "transfer": True, "blocks": [{"rows": rows}]},
        dataset="t",
        datasets={"d": [], "t": ["d"]},
    )
    assert set(zip(cells["dataset"], cells["train_dataset"], strict=True)) == {("t", "d")}
    assert cells["value"].tolist() == [0.6, 0.7, 0.2, 0.1]
    assert marks(cells)["a", "auc"] == "underline"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, ["m d d", "m e e", "n d d", "n e e"]),
        ({"transfer": True}, ["m t d", "m t e", "n t d", "n t e"]),
        ({"models": ["n"], "datasets": ["e"]}, ["n e e"]),
    ],
)
def test_sections_of_a_table_follow_the_study_and_the_tables_restrictions(table, expected):
    names = sections(table, ["m", "n"], {"d": [], "e": [], "t": ["d", "e"]})
    assert [" ".join(section) for section in names] == expected


def test_a_table_per_dataset_is_made_for_each_training_dataset():
    tables = expand_tables(
        {"x": {"per_dataset": True, "models": ["m"]}, "y": {}}, {"d": [], "e": [], "t": ["d"]}
    )
    assert list(tables) == ["x_d", "x_e", "y"]
    assert tables["x_e"]["datasets"] == ["e"]


def test_equal_comparisons_are_tested_once():
    rows = [{"estimator": "a", "label": "A"}, {"estimator": "b"}]
    described = {
        "x": {"blocks": [{"rows": rows}]},
        "y": {"blocks": [{"title": "again", "rows": rows}, {"rows": rows[:1]}]},
        "z": {"blocks": [{"rows": rows}], "transfer": True},
        "elsewhere": {"blocks": [{"rows": rows[1:]}], "models": ["other"]},
    }
    two_estimators, one_estimator = [("d", "a"), ("d", "b")], [("d", "a")]
    assert comparison_blocks(described, "m", "d") == [two_estimators, one_estimator]
    assert comparison_blocks(described, "m", "t", ["d"]) == [two_estimators]
    assert named_blocks([two_estimators, one_estimator], two_estimators, "d") == {
        "a+b": two_estimators
    }
    assert named_blocks([two_estimators], two_estimators, "t") == {"d:a+d:b": two_estimators}
    assert named_blocks([two_estimators], [("d", "b")], "d") == {}


def test_estimators_of_a_block_keep_the_order_of_the_block():
    available = [("d", "c"), ("d", "a"), ("e", "b")]
    assert present([("d", "a"), ("d", "b"), ("d", "c")], available) == [("d", "a"), ("d", "c")]
    assert present([("d", "*")], available) == [("d", "c"), ("d", "a")]


def test_a_cell_shows_how_many_pairs_define_it():
    """Only (a, b) has regressions, because c has no wrong answer."""
    correct = {"a": [0, 0, 1, 1], "b": [1, 1, 0, 1], "c": [1, 1, 1, 1]}
    predictions = pd.concat(
        pd.DataFrame(
            {
                "checkpoint": checkpoint,
                "question_id": ["q1", "q2", "q3", "q4"],
                "estimator": estimator,
                "confidence": [0.2 + (checkpoint == "b") / 10, 0.4, share, 0.6],
                "correct": labels,
            }
        )
        for checkpoint, labels in correct.items()
        for estimator, share in (("e", 0.5), ("f", 0.9))
    )
    settings = {"checkpoints": ["a", "b", "c"], "min_contrast": 1}
    metrics = evaluate(predictions, **settings)
    tested = compare(predictions, **settings, min_direction=1, n_replicates=200)
    columns = {"contrast": ["delta0_balanced", "delta0"], "full": ["auc"]}
    table = {"layout": "models_as_blocks", "columns": columns, "blocks": [{}]}
    place = {"models": ["model"], "datasets": {"dataset": []}}
    filled = fill_cells(metrics, tested.tables["significance"], table, **place)
    pairs = dict(zip(filled["metric"], filled["pairs"], strict=True))
    assert pairs == {"delta0_balanced": "1 of 3", "delta0": "", "auc": ""}

    [grid] = lay_out(filled, table, labels={}, intervals=tested.tables["intervals"])
    tex = results_table([grid], caption="All.", label="t")
    assert tex.count(r"{\scriptsize(1/3)}") == 2 and "mean over one of three pairs" in tex

    balanced, signs, full = next(grid.rows()).cells
    # From a to b the signs of gains are 1 (q1) and 0 (q2), of the loss 0 (q3): (1/2 + 0) / 2
    text, _, tooltip = shown(balanced)
    assert text == ".250 (1/3)" and tooltip.endswith("; 1 of 3 pairs")
    assert "pairs" not in shown(signs)[2] + shown(full)[2]
