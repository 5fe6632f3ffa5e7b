"""Table and figure of the named kinds of change."""

import pandas as pd
import pytest
from make_plain_table import make_plain_table

from persistcal.report.change_views import by_change, changes_figure, thresholds_by_change
from persistcal.store import artifacts

LABELS = {
    "models": {"m": "Model"},
    "datasets": {"d": "R&D"},
    "estimators": {"oracle": "Oracle", "verbalised": "No adapter"},
}


def changes(folder, control=""):
    """Return two kinds of change: of one nothing flips; only the oracle has seeds."""
    first, none = ("Fine-tuning", 1, 9, 6, 3, 0.6, 0.75), ("Same", 1, 0, 0, 0, None, None)
    rows = [
        (*first, "oracle", "auc", 0.7, 0.6, 0.8, 3, 0.5, 0.9),
        (*first, "oracle", "delta0_balanced", 0.2, 0.1, 0.3, 3, 0.0, 0.4),
        (*first, "verbalised", "auc", 0.5, 0.4, 0.6, 0, 0.4, 0.6),
        (*first, "verbalised", "delta0_balanced", 0.1, 0, 0.2, 1, None, None),
        (*first, "oracle", "change_auc", 0.8, 0.7, 0.9, 3, None, None),
        (*first, "verbalised", "change_auc", 0.9, None, None, 0, None, None),
        (*none, "oracle", "auc", None, None, None, 3, None, None),
        (*none, "oracle", "change_auc", None, None, None, 3, None, None),
        (*none, "oracle", "delta0_balanced", None, None, None, 3, None, None),
    ]
    place = {"model": "m", "dataset": "d", "train_dataset": "d"}
    above = [
        (control, "m", 0.1, -0.1, 0.3, -0.2, 0.4),
        (control, "m", 0.3, 0.2, 0.4, None, None),
    ]
    missing = ("", "", *[None] * 5)
    added = [above[0]] * 2 + [above[1]] * 2 if control else [missing] * 4
    rows = [(*row, *more) for row, more in zip(rows, [*added, *[missing] * 5], strict=True)]
    columns = [name for name in artifacts.CHANGES.schema.names if name not in place]
    columns.insert(7, columns.pop(columns.index("estimator")))
    table = pd.DataFrame(rows, columns=columns).assign(**place)
    artifacts.write_csv(table, folder / "changes.csv", artifacts.CHANGES)
    return artifacts.read_csv(folder / "changes.csv", artifacts.CHANGES)


def test_table_has_the_wider_interval_and_says_what_is_undefined(tmp_path):
    changes(tmp_path)
    settings = {"only": [], "labels": LABELS}
    described = {"name": "by_change", "module": "change_views", "artifact": "changes"}
    described["settings"] = settings
    tex, csv = make_plain_table([str(tmp_path / "changes.csv")], table=described)
    lost = r" & 0.600 $\to$ 0.750 \\"
    first = (
        r"Fine-tuning & 6 & 3 & Oracle & 0.200 [0.000, 0.400] & 0.800 [0.700, 0.900] & 0.700 "
    )
    first += "[0.500, 0.900]"
    assert first + lost in tex
    assert (
        r" &  &  & No adapter & 0.100 [0.000, 0.200] & 0.900 & 0.500 [0.400, 0.600]" + lost
        in tex
    )
    assert r"Same & 0 & 0 & Oracle & -- & -- & -- & -- \\" in tex
    assert r"Model, R\&D" in tex and csv.count("\n") == 10


def test_figure_has_a_row_per_kind_and_markers_that_differ(tmp_path):
    figure = changes_figure(changes(tmp_path), only=[], labels=LABELS)
    delta, _, auc = figure.axes
    assert [label.get_text() for label in delta.get_yticklabels()] == [
        "Fine-tuning\n+6 −3",
        "Same\n+0 −0",
    ]
    at = [points.get_offsets()[0].tolist() for points in auc.collections]
    assert sorted(x for x, _ in at) == [0.5, 0.7]
    assert all(-0.5 < y < 0.5 for _, y in at)  # nothing in the row without a flip
    [legend] = figure.legends
    assert len({line.get_marker() for line in legend.get_lines()}) == 2


def test_table_and_figure_show_the_difference_from_the_control(tmp_path):
    rows = changes(tmp_path, control="Same")
    tex, _ = by_change(rows, only=[], labels=LABELS)
    values = r"0.200 [0.000, 0.400] & 0.100 [-0.200, 0.400]"
    assert values in tex.replace("$-$", "-").replace("−", "-")
    assert r"0.300 [0.200, 0.400]" in tex and "above control" in tex and "(Same)" in tex
    *_, above = changes_figure(rows, only=[], labels=LABELS).axes
    assert above.get_xlabel().endswith("above the control")
    at = [points.get_offsets()[0].tolist()[0] for points in above.collections]
    assert sorted(at) == [0.1, 0.3]


def test_verdicts_are_counted_by_change_and_compared_with_the_control():
    """The control is a pair of the only other model that has it; m2 lacks the estimator."""
    rows = [  # model, earlier, later, seed, verdict, precision, coverage change, regressions
        ("m", "a", "b", 1, "kept", 0.9, -0.1, 4),
        ("m", "a", "b", 2, "broken", 0.7, 0.2, 9),
        ("m", "b", "c", 1, "", None, None, None),
        ("m", "b", "c", 2, "undecided", 0.8, 0.1, 2),
        ("m2", "x", "y", 1, "kept", 0.85, 0.02, 1),
        ("m2", "x", "y", 2, "kept", 0.85, 0.04, 2),
    ]
    names = ["model", "earlier", "later", "seed", "verdict", "later_precision"]
    checked = pd.DataFrame(rows, columns=[*names, "coverage_change", "confident_regressions"])
    checked = checked.assign(dataset="d", train_dataset="d", estimator="oracle")
    changes = {"Tuning": [["a", "b"], ["b", "c"]], "Control": [["x", "y"]]}
    made = thresholds_by_change(
        checked, changes=changes, controls={"Tuning": "Control"}, only=[], labels=LABELS
    )
    tuning, control = made.rows.to_dict("records")
    assert [tuning[name] for name in ("kept", "undecided", "broken", "none")] == [1, 1, 1, 1]
    # (.9 + .7 + .8) / 3, (−.1 + .2 + .1) / 3 and (4 + 9 + 2) / 3; the control has .03 and 1.5
    assert tuning["precision"] == pytest.approx(0.8)
    assert tuning["coverage_change"] == pytest.approx(0.2 / 3)
    assert tuning["coverage_change_above_control"] == pytest.approx(0.2 / 3 - 0.03)
    assert tuning["confident_regressions"] == 5
    assert tuning["confident_regressions_above_control"] == 3.5
    assert control["control"] == "" and pd.isna(control["coverage_change_above_control"])
    line = r"Tuning & Oracle & 1 & 1 & 1 & 1 & 0.800 & 0.067 & 0.037 & 5.0 & 3.5 \\"
    assert line in made.tex
    alone = thresholds_by_change(checked, changes=changes, controls={}, only=[], labels=LABELS)
    assert "above control" not in alone.tex
