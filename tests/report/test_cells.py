"""Which cells a table shows, which estimators it compares, and which cells it marks."""

import pandas as pd
import pytest

from persistcal import compare, evaluate
from persistcal.report.grid import fill_cells, lay_out
from persistcal.report.latex import results_table
from persistcal.report.layout import (
    comparison_blocks,
    expand_tables,
    named_blocks,
    present,
    sections,
)
from persistcal.report.page.tables import about, printed
from persistcal.store import artifacts

NAN = float("nan")
TABLE = {
    "layout": "models_as_blocks",
    "columns": {"contrast": ["auc"], "full": ["brier"]},
    "blocks": [{"rows": [{"estimator": "a"}, {"estimator": "b"}, {"estimator": "c"}]}],
}


def metrics_of(values, *, dataset="d", train="d"):
    """Metrics whose `values` are contrast AUC and full-set Brier score by estimator."""
    rows = [
        ("m", dataset, train, estimator, "odds", *column, "mean", value, "")
        for estimator, pair in values.items()
        for column, value in zip((("contrast", "auc"), ("full", "brier")), pair, strict=True)
    ]
    return pd.DataFrame(rows, columns=artifacts.METRICS.schema.names)


def fill(metrics, *tests, block="a+b+c", table=TABLE, dataset="d", datasets=None):
    """Cells of a table with `tests`: scope, metric, best, other, significant."""
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
        (  # unrounded values decide: a's AUC is 1.2e-5 from the best, b's Brier score 0.8e-5
            {"a": (0.80001, 0.2), "b": (0.800022, 0.200008), "c": (0.1, 0.3)},
            [
                ("contrast", "auc", "b", "a", True),
                ("full", "brier", "a", "b", False),
                ("full", "brier", "a", "c", False),
            ],
            {"auc": ["", "bold", ""], "brier": ["bold", "boldunderline", "underline"]},
        ),
        (  # a and b are equal to 1e-5; b is the better one by a hair, c is near it too
            {"a": (0.8, 0.2), "b": (0.800001, 0.1), "c": (0.79, 0.3)},
            [("contrast", "auc", "b", "a", False), ("contrast", "auc", "b", "c", False)],
            {"auc": ["boldunderline", "bold", "underline"], "brier": ["", "bold", ""]},
        ),
        (  # a that is worse for certain by less than 1e-5 is bold only
            {"a": (0.8, 0.2), "b": (0.800001, 0.1), "c": (0.79, 0.3)},
            [("contrast", "auc", "b", "a", True)],
            {"auc": ["bold", "bold", ""], "brier": ["", "bold", ""]},
        ),
    ],
)
def test_best_is_bold_and_what_may_equal_it_underlined(values, tests, expected):
    found = marks(fill(values, *tests))
    for metric, of in expected.items():
        assert [found[name, metric] for name in "abc"] == of


def test_missing_values_are_not_marked():
    test = ("full", "brier", "a", "b", False)
    cells = fill({"a": (NAN, 0.2), "b": (0.8, NAN)}, test, block="a+b")
    assert cells["value"].isna().tolist() == [True, False, True, False, True, True]
    assert set(marks(cells).values()) == {""}  # nothing to compare with


@pytest.mark.parametrize(
    ("values", "other", "block", "message"),
    [
        ("abc", "a", "a+b", r"no block 'a\+b\+c' for model 'm'"),
        ("abc", "d:a", "a+b+c", "names other estimators"),
        ("x", "a", "a+b+c", "None of the table's estimators"),
    ],
)
def test_what_was_not_tested_or_not_evaluated_is_refused(values, other, block, message):
    test = ("contrast", "auc", "b", other, False)
    with pytest.raises(ValueError, match=message):
        fill(dict.fromkeys(values, (0.7, 0.3)), test, block=block)


def test_block_without_rows_holds_every_estimator():
    test = ("contrast", "auc", "y", "x", False)
    values = {"x": (0.1, 0.2), "y": (0.3, 0.2)}
    cells = fill(values, test, block="x+y", table={**TABLE, "blocks": [{}]})
    assert marks(cells)["x", "auc"] == "underline"


def test_fitted_table_takes_contrast_metrics_fitted_and_full_set_ones_as_they_are():
    fitted = metrics_of({"a": (0.9, 0.5)}).assign(conditioning="fitted")
    metrics = pd.concat([metrics_of({"a": (0.7, 0.3)}), fitted[fitted["scope"] == "contrast"]])
    cells = fill(metrics, table={**TABLE, "conditioning": "fitted"})
    of_a = cells.loc[cells["estimator"] == "a", ["conditioning", "value"]]
    assert of_a.to_numpy().tolist() == [["fitted", 0.9], ["odds", 0.3]]


def test_transfer_takes_what_was_trained_elsewhere():
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
def test_sections_follow_the_study_and_the_restrictions(table, expected):
    found = sections(table, ["m", "n"], {"d": [], "e": [], "t": ["d", "e"]})
    assert [" ".join(section) for section in found] == expected


def test_expand_tables_makes_one_per_dataset_that_has_its_own_training():
    both = expand_tables(
        {"x": {"per_dataset": True, "models": ["m"]}, "y": {}}, {"d": [], "e": [], "t": ["d"]}
    )
    assert list(both) == ["x_d", "x_e", "y"]
    assert both["x_e"]["datasets"] == ["e"]


def test_equal_comparisons_are_tested_once():
    rows = [{"estimator": "a", "label": "A"}, {"estimator": "b"}]
    described = {
        "x": {"blocks": [{"rows": rows}]},
        "y": {"blocks": [{"title": "again", "rows": rows}, {"rows": rows[:1]}]},
        "z": {"blocks": [{"rows": rows}], "transfer": True},
        "elsewhere": {"blocks": [{"rows": rows[1:]}], "models": ["other"]},
    }
    one, two = [("d", "a"), ("d", "b")], [("d", "a")]
    assert comparison_blocks(described, "m", "d") == [one, two]
    assert comparison_blocks(described, "m", "t", ["d"]) == [one]
    assert named_blocks([one, two], one, "d") == {"a+b": one}
    assert named_blocks([one], one, "t") == {"d:a+d:b": one}
    assert named_blocks([one], [("d", "b")], "d") == {}


def test_present_keeps_the_order_of_the_block():
    available = [("d", "c"), ("d", "a"), ("e", "b")]
    assert present([("d", "a"), ("d", "b"), ("d", "c")], available) == [("d", "a"), ("d", "c")]
    assert present([("d", "*")], available) == [("d", "c"), ("d", "a")]


def test_a_cell_says_how_many_pairs_define_it():
    """From b on nothing is forgotten: (a, b) alone has regressions."""
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
    how = {"checkpoints": ["a", "b", "c"], "min_contrast": 1}
    metrics = evaluate(predictions, **how)
    tested = compare(predictions, **how, min_direction=1, n_replicates=200)
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
    # from a to b q1 of the two gained questions has sign 1, the lost q3 has 0: (1/2 + 0) / 2
    assert printed(balanced) == ".250 (1/3)" and about(balanced).endswith("; 1 of 3 pairs")
    assert "pairs" not in about(signs) + about(full)
