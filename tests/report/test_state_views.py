"""Table and figure of states against each other."""

import io
from types import SimpleNamespace

import pandas as pd
from make_plain_table import make_plain_table

from persistcal.report.change_views import mean_rows, states_figure
from persistcal.report.change_views import states as states_table
from persistcal.report.page.contents import Stage
from persistcal.report.page.overview import of_states
from persistcal.store import artifacts
from persistcal.store.tables import TableFiles

LABELS = {
    "models": {"m": "Model m", "n": "Model n"},
    "datasets": {"d": "R&D"},
    "estimators": {"own": "Self-consistency"},
}
CHECKPOINTS = {"m": {"x": "40%", "y": "50%"}, "n": {"z": "last"}}


def states(folder):
    rows = [
        ("m", "", "x", "y", "", "accuracy", "", 0.5, 0.625, 0.125, 0.05, 0.2, 0.01, 0.01),
        ("m", "", "x", "y", "own", "auc", "17", 0.5, 0.7, 0.2, 0.1, 0.3, 0.01, 0.01),
        ("m", "", "x", "y", "own", "auc", "mean", 0.5, 0.75, 0.25, -0.1, 0.5, 0.2, 0.2),
        ("m", "n", "y", "z", "", "accuracy", "", 0.5, 0.25, -0.25, -0.3, -0.2, 0.04, 0.08),
        ("m", "n", "y", "z", "own", "auc", "mean", 0.5, *[None] * 6),
        ("m", "n", "y", "z", "own", "brier", "mean", 0.25, 0.375, 0.125, *[None] * 4),
    ]
    names = [name for name in artifacts.STATES.schema.names if name != "dataset"]
    table = pd.DataFrame(rows, columns=names).assign(dataset="d")
    artifacts.write_csv(table, folder / "states.csv", artifacts.STATES)
    return table


def test_table(tmp_path):
    states(tmp_path)
    settings = {"checkpoints": CHECKPOINTS, "labels": LABELS}
    described = {"name": "states", "module": "change_views", "artifact": "states"}
    described["settings"] = settings
    tex, csv = make_plain_table([str(tmp_path / "states.csv")], table=described)
    accuracy = r"\textbf{0.125} [0.050, 0.200]"
    assert rf"40\% $\to$ 50\% &  & {accuracy} &  &  &  \\" in tex
    assert r" & Self-consistency &  & 0.250 [$-$0.100, 0.500] &  &  \\" in tex
    assert r"Model m $\to$ Model n, R\&D" in tex
    assert r"50\% $\to$ last &  & $-$0.250 [$-$0.300, $-$0.200] &  &  &  \\" in tex
    assert r" & Self-consistency &  & -- & 0.125 &  \\" in tex  # a value without an interval
    rows = pd.read_csv(io.StringIO(csv))
    assert len(rows) == 5 and "seed" not in rows  # no single seed's


def test_sentences(tmp_path):
    rows = mean_rows(states(tmp_path))
    more = pd.concat(
        [rows.iloc[:1].assign(earlier="y", later=name, p_holm=0.3) for name in "wv"]
    )
    files = TableFiles("states", pd.concat([rows, more]).to_csv(index=False), "")
    of = {"m": {"x": Stage("40%", None), "y": Stage("50%", None)}}
    study = SimpleNamespace(stages=of, labels=LABELS)
    assert list(of_states(study, files.rows(missing=[""]))) == [
        ("Model m, R&D", "1 of 3 pairs of checkpoints differ in accuracy."),
        (
            "Model m → Model n, R&D",
            "The accuracies of 50% → z (.500 to .250) cannot be told apart: the "
            "difference of −.250 [−.300, −.200] may be zero (McNemar's test after Holm).",
        ),
    ]


def test_figure(tmp_path):
    table = states(tmp_path)
    figure = states_figure(table, checkpoints=CHECKPOINTS, labels=LABELS, only=["other"])
    accuracy, auc, *_ = figure.axes
    zero, interval, point = (drawn.get_xydata().tolist() for drawn in accuracy.lines)
    assert zero == [[0, 0], [0, 1]]
    assert (interval, point) == ([[0.05, 0], [0.2, 0]], [[0.125, 0]])
    assert auc.lines[2].get_xydata().tolist() == [[0.25, 0]]
    assert [tick.get_text() for tick in accuracy.get_yticklabels()] == ["40% → 50%"]
    assert [axes.get_title(loc="left") for axes in figure.axes[::4]] == [
        "Model m, R&D",
        "Model m → Model n, R&D",
    ]
    again = states_figure(table, checkpoints=CHECKPOINTS, labels=LABELS, only=["own"])
    assert [text.get_text() for text in again.legends[0].get_texts()] == ["Self-consistency"]


def test_a_study_without_two_states_says_so():
    nothing = artifacts.empty(artifacts.STATES)
    figure = states_figure(nothing, checkpoints={}, labels=LABELS, only=[])
    assert figure.axes[0].get_title() == "No two checkpoints answered a question in common."
    table = states_table(nothing, checkpoints={}, labels=LABELS)
    assert table.rows.empty and r"\bottomrule" in table.tex
