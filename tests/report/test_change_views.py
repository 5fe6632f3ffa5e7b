"""Tables and figures of differences between checkpoints, and of kinds of change."""

import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from make_plain_table import make_plain_table

from persistcal.report import tables
from persistcal.report.analysis_tables import by_change, thresholds_by_change
from persistcal.report.catalogue import TABLES
from persistcal.report.figures import changes_figure, states_figure
from persistcal.report.page.contents import Stage
from persistcal.report.page.sentences import of_states
from persistcal.store import artifacts

LABELS = {
    "models": {"m": "Model m", "n": "Model n"},
    "datasets": {"d": "R&D"},
    "estimators": {"oracle": "Oracle", "verbalised": "No adapter"},
}
CHECKPOINTS = {"m": {"x": "40%", "y": "50%"}, "n": {"z": "last"}}
METRICS = ("auc", "change_auc", "delta0_balanced")
PLACE = {"model": "m", "dataset": "d", "train_dataset": "d"}


def print_table(name, table, rows, folder, **settings):
    """Return LaTeX and CSV of a table, for rows in a file."""
    path = str(folder / f"{table.name}.csv")
    artifacts.write_csv(rows, path, table)
    [view] = [view for view in TABLES if view.name == name]
    entry = {"function": view.path, "artifact": table.name}
    return make_plain_table([path], table={**entry, "settings": {"labels": LABELS, **settings}})


def states():
    rows = [
        ("m", "", "x", "y", "", "accuracy", "", 0.5, 0.625, 0.125, 0.05, 0.2, 0.01, 0.01),
        ("m", "", "x", "y", "oracle", "auc", "17", 0.5, 0.7, 0.2, 0.1, 0.3, 0.01, 0.01),
        ("m", "", "x", "y", "oracle", "auc", "mean", 0.5, 0.75, 0.25, -0.1, 0.5, 0.2, 0.2),
        ("m", "n", "y", "z", "", "accuracy", "", 0.5, 0.25, -0.25, -0.3, -0.2, 0.04, 0.08),
        ("m", "n", "y", "z", "oracle", "auc", "mean", 0.5, *[None] * 6),
        ("m", "n", "y", "z", "oracle", "brier", "mean", 0.25, 0.375, 0.125, *[None] * 4),
    ]
    return pd.DataFrame(rows, columns=artifacts.STATES.but("dataset")).assign(dataset="d")


def test_differences_of_checkpoints_have_intervals_and_are_bold_if_significant(tmp_path):
    tex, csv = print_table(
        "states", artifacts.STATES, states(), tmp_path, checkpoints=CHECKPOINTS
    )
    accuracy = r"\textbf{0.125} [0.050, 0.200]"
    assert rf"40\% $\to$ 50\% &  & {accuracy} &  &  &  \\" in tex
    assert r" & Oracle &  & 0.250 [$-$0.100, 0.500] &  &  \\" in tex
    assert r"Model m $\to$ Model n, R\&D" in tex
    assert r"50\% $\to$ last &  & $-$0.250 [$-$0.300, $-$0.200] &  &  &  \\" in tex
    assert r" & Oracle &  & -- & 0.125 &  \\" in tex  # a value without an interval
    rows = pd.read_csv(io.StringIO(csv))
    assert len(rows) == 5 and "seed" not in rows  # means over seeds only


def test_differences_of_accuracy_are_summarised_in_sentences():
    rows = tables.mean_rows(states())
    more = [rows.iloc[:1].assign(earlier="y", later=name, p_holm=0.3) for name in "wv"]
    stages = {"m": {"x": Stage("40%", None), "y": Stage("50%", None)}}
    study = SimpleNamespace(stages=stages, labels=LABELS)
    # A CSV reads "" as None.
    read = pd.concat([rows, *more]).replace({"other_model": {"": None}})
    assert list(of_states(study, read)) == [
        ("Model m, R&D", "1 of 3 pairs of checkpoints differ in accuracy."),
        (
            "Model m → Model n, R&D",
            "The accuracies of 50% → z (.500 to .250) cannot be told apart: the difference of "
            "−.250 [−.300, −.200] may be zero (adjusted by Holm's method).",
        ),
    ]


def test_the_figure_of_checkpoints_shows_differences_with_intervals():
    settings = {"checkpoints": CHECKPOINTS, "labels": LABELS}
    figure = states_figure(states(), only=["other"], **settings)
    accuracy, auc, *_ = figure.axes
    reference, interval = [line.get_xydata().tolist() for line in accuracy.lines]
    assert reference[:2] == [[0, -0.5], [0, 0.5]] and interval == [[0.05, 0], [0.2, 0]]
    assert drawn_at(accuracy) == [[0.125, 0]] and drawn_at(auc) == [[0.25, 0]]
    assert [tick.get_text() for tick in accuracy.get_yticklabels()] == ["40% → 50%"]
    titles = [axes.get_title(loc="left") for axes in figure.axes[::4]]
    assert titles == ["Model m, R&D", "Model m → Model n, R&D"]
    with_oracle = states_figure(states(), only=["oracle"], **settings)
    assert [text.get_text() for text in with_oracle.legends[0].get_texts()] == ["Oracle"]


def test_the_figure_without_two_comparable_checkpoints_explains_itself():
    no_states = artifacts.empty(artifacts.STATES)
    settings = {"checkpoints": {}, "labels": LABELS}
    figure = states_figure(no_states, only=[], **settings)
    assert (
        figure.axes[0].get_title(loc="left")
        == "No two checkpoints answered a question in common."
    )
    table = tables.states(no_states, **settings)
    assert table.rows.empty and r"\bottomrule" in table.tex


def changes(control=""):
    """Return two kinds of change, the second without flips. Only the oracle has seeds."""
    first, unchanged = ("Fine-tuning", 1, 9, 6, 3, 0.6, 0.75), ("Same", 1, 0, 0, 0, None, None)
    rows = [
        (*first, "oracle", "auc", 0.7, 0.6, 0.8, 3, 0.5, 0.9),
        (*first, "oracle", "delta0_balanced", 0.2, 0.1, 0.3, 3, 0.0, 0.4),
        (*first, "verbalised", "auc", 0.5, 0.4, 0.6, 0, 0.4, 0.6),
        (*first, "verbalised", "delta0_balanced", 0.1, 0, 0.2, 1, None, None),
        (*first, "oracle", "change_auc", 0.8, 0.7, 0.9, 3, None, None),
        (*first, "verbalised", "change_auc", 0.9, None, None, 0, None, None),
        *((*unchanged, "oracle", m, *[None] * 3, 3, None, None) for m in METRICS),
    ]
    beyond = (0.1, -0.1, 0.3, 0.2, -0.2, 0.7, *[None] * 3)
    above = [(control, "m", *beyond, "followed", "control")] * 2
    alone = (0.3, 0.2, 0.4, *[None] * 6)
    above += [(control, "m", *alone, "moved against", "control")] * 2
    above += [above[0], above[-1]]
    missing = [("", "", *[None] * 9, "", "")] * len(rows)
    added = [*above, *missing[6:]] if control else missing
    columns = artifacts.CHANGES.but(*PLACE)
    columns.insert(7, columns.pop(columns.index("estimator")))
    table = [(*row, *more) for row, more in zip(rows, added, strict=True)]
    return pd.DataFrame(table, columns=columns).assign(**PLACE)


def test_the_table_of_changes_shows_the_widest_interval_and_dashes(tmp_path):
    tex, csv = print_table("by_change", artifacts.CHANGES, changes(), tmp_path, only=[])
    lost = r" & 0.600 $\to$ 0.750 \\"
    wide = r"0.200 [0.000, 0.400] & 0.800 [0.700, 0.900] & 0.700 [0.500, 0.900]"
    assert rf"Fine-tuning & 6 & 3 & Oracle & {wide}{lost}" in tex
    narrow = r"0.100 [0.000, 0.200] & 0.900 & 0.500 [0.400, 0.600]"
    assert rf" &  &  & No adapter & {narrow}{lost}" in tex
    assert r"Same & 0 & 0 & Oracle & -- & -- & -- & -- \\" in tex
    assert r"Model m, R\&D" in tex and csv.count("\n") == 10


def drawn_at(axes):
    return [points.get_offsets()[0].tolist() for points in axes.collections]


def test_the_figure_of_changes_has_a_row_per_kind_and_different_markers():
    figure = changes_figure(changes(), only=[], labels=LABELS)
    delta, _, auc = figure.axes
    rows = [label.get_text() for label in delta.get_yticklabels()]
    assert rows == ["Fine-tuning\n+6 −3", "Same\n+0 −0"]
    assert sorted(x for x, _ in drawn_at(auc)) == [0.5, 0.7]
    assert all(-0.5 < y < 0.5 for _, y in drawn_at(auc))  # the row without flips is empty
    [legend] = figure.legends
    assert len({line.get_marker() for line in legend.get_lines()}) == 2
    # The end-correct baseline has a contrast AUC of 6 / 9; nothing changed in the second row.
    reference = auc.lines[0].get_xydata()
    assert reference[:2].tolist() == [[6 / 9, -0.5], [6 / 9, 0.5]]
    assert np.isnan(reference[3:, 0]).all()
    assert set(delta.lines[0].get_xdata()) == {0}


def test_table_and_figure_show_the_change_beyond_its_control():
    rows = changes(control="Same")
    tex, _ = by_change(rows, only=[], labels=LABELS)
    assert r"$\Delta_K$" in tex and "Claim" in tex and "(Same)" in tex
    oracle = next(line for line in tex.splitlines() if "Oracle" in line)
    assert "0.200 [-0.200, 0.700]" in oracle.replace("$-$", "-") and "followed" in oracle
    verbalised = next(line for line in tex.splitlines() if "No adapter" in line)
    assert "-- & -- & moved against" in verbalised  # all flips can be chance
    *_, of_knowledge = changes_figure(rows, only=[], labels=LABELS).axes
    assert of_knowledge.get_xlabel() == "Δ_K, beyond chance flips"
    assert [x for x, _ in drawn_at(of_knowledge)] == [0.2]


def test_the_table_of_changes_shows_cross_asked_metrics_and_their_claim():
    ends = {"crossed_lower_2_5pct": 0.01, "crossed_upper_97_5pct": 0.22}
    rows = changes().assign(crossed=0.11, **ends, word="followed", basis="cross")
    tex, _ = by_change(rows, only=[], labels=LABELS)
    oracle = next(line for line in tex.splitlines() if "Oracle" in line)
    assert oracle.count("0.110 [0.010, 0.220]") == 2  # Δ₀ᵇ and change AUC
    assert "followed" in oracle and "crossed" in tex and r"$\Delta_K$" not in tex
    assert "at chance if no knowledge changed" in tex

    after_other_examples = rows.assign(basis="other examples")
    tex, _ = by_change(after_other_examples, only=[], labels=LABELS)
    assert "at chance" not in tex and "a check of robustness" in tex


def test_verdicts_are_counted_by_change_and_compared_with_the_control():
    """Model m2 contains the control, because no pair of m does."""
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
    printed = thresholds_by_change(
        checked, changes=changes, controls={"Tuning": "Control"}, only=[], labels=LABELS
    )
    tuning, control = printed.rows.to_dict("records")
    assert [tuning[name] for name in ("kept", "undecided", "broken", "none")] == [1, 1, 1, 1]
    # (.9 + .7 + .8) / 3, (−.1 + .2 + .1) / 3 and (4 + 9 + 2) / 3; the control has .03 and 1.5
    assert tuning["precision"] == pytest.approx(0.8)
    assert tuning["coverage_change"] == pytest.approx(0.2 / 3)
    assert tuning["coverage_change_above_control"] == pytest.approx(0.2 / 3 - 0.03)
    assert tuning["confident_regressions"] == 5
    assert tuning["confident_regressions_above_control"] == 3.5
    assert control["control"] == "" and pd.isna(control["coverage_change_above_control"])

    line = r"Tuning & Oracle & 1 & 1 & 1 & 1 & 0.800 & 0.067 & 0.037 & 5.0 & 3.5 \\"
    assert line in printed.tex

    without_control = thresholds_by_change(
        checked, changes=changes, controls={}, only=[], labels=LABELS
    )
    assert "above control" not in without_control.tex
