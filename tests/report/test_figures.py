"""Figures show the numbers of the study, and equal figures are equal files."""

import pandas as pd
import pytest
from draw_figure import draw_figure
from matplotlib.colors import to_hex
from PIL import Image

from persistcal.report.drawing import Drawing
from persistcal.report.figures import (
    EARLIER,
    EVALUATION,
    accuracy_figure,
    full_vs_contrast_figure,
    leaderboard_figure,
)
from persistcal.store import artifacts

LABELS = {
    "models": {"m": "Model m", "n": "Model n"},
    "datasets": {"d": "Quiz", "e": "Exam"},
    "estimators": {"a": "The a"},
}
CHECKPOINTS = {
    "m": {"x": {"label": "10%", "tokens": 2e9}, "y": {"label": "50%", "tokens": 5e9}},
    "n": {"x": {}, "y": {}},
}
EVALUATED = {"m": ["y"], "n": ["x", "y"]}
PLACES = {kind: LABELS[kind] for kind in ("models", "datasets")}
ACCURACY = {"described": CHECKPOINTS, "evaluation": EVALUATED, **PLACES}


def files_of(figure, folder):
    """Return the bytes of a figure's PDF and PNG, as jobs write them."""
    (writer,) = Drawing.__metadata__
    paths = {kind: folder / f"figure.{kind}" for kind in ("pdf", "png")}
    for path in paths.values():
        writer.write(figure, str(path), {})
    return {kind: path.read_bytes() for kind, path in paths.items()}


def accuracies():
    return pd.DataFrame(
        [
            (model, checkpoint, dataset, "test", value, 10)
            for model in "mn"
            for dataset, values in (("d", (0.25, 0.5)), ("e", (0.75, 0.875)))
            for checkpoint, value in zip("xy", values, strict=True)
        ],
        columns=artifacts.ACCURACIES.schema.names,
    )


def intervals():
    rows = [
        ("m", "d", "d", "a", "odds", "full", "auc", 0.9, 0.88, 0.93),
        ("m", "d", "d", "a", "odds", "contrast", "change_auc", 0.55, 0.5, 0.65),
        ("m", "d", "d", "a", "odds", "contrast", "auc", 0.6, 0.5, 0.7),
        ("m", "d", "d", "a", "fitted", "contrast", "auc", 0.1, 0.1, 0.1),
        ("m", "d", "d", "b", "odds", "full", "auc", 0.8, None, None),
        ("m", "d", "d", "b", "odds", "contrast", "change_auc", 0.75, None, None),
        ("m", "d", "d", "b", "odds", "contrast", "auc", 0.7, None, None),
        ("m", "d", "e", "b", "odds", "contrast", "auc", 0.2, 0.1, 0.3),
        ("n", "d", "d", "a", "odds", "full", "auc", 0.9, 0.88, 0.93),
        ("n", "d", "d", "a", "odds", "contrast", "auc", None, None, None),
    ]
    return pd.DataFrame(rows, columns=artifacts.INTERVALS.schema.names[:10])


def test_the_accuracy_figure_shows_accuracies_by_training_tokens_or_order():
    figure = accuracy_figure(accuracies(), **ACCURACY)
    by_tokens, by_order = figure.axes
    assert by_tokens.get_title(loc="left") == "Model m"
    assert by_tokens.get_xlabel() == "Training data (billion tokens)"
    assert by_tokens.lines[0].get_xydata().tolist() == [[2, 25], [5, 50]]
    assert by_tokens.lines[1].get_xydata().tolist() == [[2, 75], [5, 87.5]]
    # Wilson interval for 25 % of ten: (.25 + .192 ± 1.96 √(.01875 + .0096)) / 1.384
    ends = by_tokens.collections[1].get_segments()[0][:, 1]
    assert ends == pytest.approx([8.1, 55.8], abs=0.1)
    colours = [to_hex(c) for c in by_tokens.collections[0].get_facecolors()]
    assert colours == [EARLIER.lower(), EVALUATION.lower()]
    assert [text.get_text() for text in by_tokens.texts] == ["Quiz", "Exam"]
    # Without numbers of tokens, checkpoints are at equal distances.
    assert by_order.lines[0].get_xydata().tolist() == [[0, 25], [1, 50]]
    assert [tick.get_text() for tick in by_order.get_xticklabels()] == ["x", "y"]


def test_the_figure_of_full_and_contrast_sets_has_a_point_per_estimator():
    figure = full_vs_contrast_figure(intervals(), **LABELS)
    (panel,) = figure.axes  # model n has no change AUC, dataset e no rows
    assert panel.get_title(loc="left") == "Model m, Quiz"
    points = [tuple(points.get_offsets()[0]) for points in panel.collections]
    assert points == [(0.9, 0.55), (0.8, 0.75)]
    _, across, upright, *_ = panel.lines  # the first line is chance
    assert across.get_xydata().tolist() == [[0.88, 0.55], [0.93, 0.55]]
    assert upright.get_xydata().tolist() == [[0.9, 0.5], [0.9, 0.65]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["The a", "b"]
    undefined = full_vs_contrast_figure(intervals().iloc[-2:], **LABELS)
    assert all("undefined" in [t.get_text() for t in axes.texts] for axes in undefined.axes)


def follows(**values):
    """Δ₀ᵇ of some estimators, of model m on dataset d."""
    rows = [
        ("m", "d", "d", name, "odds", "contrast", "delta0_balanced", v, v - 0.1, v + 0.1)
        for name, v in values.items()
    ]
    return pd.DataFrame(rows, columns=artifacts.INTERVALS.schema.names[:10])


def leaderboard(*names):
    """The settings of a leaderboard of some estimators."""
    shown = {name: LABELS["estimators"].get(name, name) for name in names}
    places = {"models": LABELS["models"], "own_datasets": LABELS["datasets"]}
    return {"leaderboard": shown, **places}


def test_a_leaderboard_is_sorted_by_delta0_and_refers_to_the_end_correct_baseline():
    """c has no Δ₀ᵇ and is last. Undefined values are not drawn."""
    undefined = follows(c=0.5).assign(value=float("nan"))
    full_auc_of_c = intervals().iloc[:1].assign(estimator="c", value=0.7)
    rows = pd.concat([intervals(), follows(a=0.25, b=0.5), undefined, full_auc_of_c])
    figure = leaderboard_figure(rows[rows["model"] == "m"], **leaderboard("a", "b", "c"))
    first, contrast, full = figure.axes
    titles = [axes.get_xlabel() for axes in figure.axes]
    assert titles == ["Δ₀ᵇ", "Contrast-set AUC", "Full-set AUC"]
    assert [label.get_text() for label in first.get_yticklabels()] == ["b", "The a", "c"]
    drawn = [[tuple(p.get_offsets()[0]) for p in axes.collections] for axes in figure.axes]
    assert drawn[:2] == [[(0.5, 0), (0.25, 1)], [(0.7, 0), (0.6, 1)]]
    assert drawn[2] == [(0.8, 0), (0.9, 1), (0.7, 2)]
    reference, _, of_a = contrast.lines
    assert set(reference.get_xdata()) == {0.5}  # end-correct was not evaluated
    assert of_a.get_xydata().tolist() == [[0.5, 1], [0.7, 1]]
    low, high = full.get_ylim()
    assert low > 2 > 0 > high  # the first row is on top
    baseline = intervals().iloc[2:3].assign(estimator="end_correct", value=0.72)
    rows = pd.concat([rows, baseline])
    figure = leaderboard_figure(rows[rows["model"] == "m"], **leaderboard("a"))
    assert [set(axes.lines[0].get_xdata()) for axes in figure.axes] == [{0}, {0.72}, {0.5}]


def test_a_leaderboard_has_a_panel_per_model_and_dataset():
    rows = pd.concat([intervals(), follows(a=0.2), follows(a_scaled=0.1).assign(model="n")])
    shown = leaderboard("a", "a_scaled", "b")
    figure = leaderboard_figure(rows, **shown)
    titles = [axes.get_title(loc="left") for axes in figure.axes[::3]]
    assert titles == ["Model m, Quiz", "Model n, Quiz"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a"]
    of_one_estimator = leaderboard_figure(intervals(), **leaderboard("b"))
    assert [label.get_text() for label in of_one_estimator.axes[0].get_yticklabels()] == ["b"]
    with pytest.raises(ValueError, match="no estimator has a value"):
        leaderboard_figure(rows.iloc[:0], **shown)


def test_families_of_estimators_look_different_and_variants_are_hollow():
    names = [*(f"method{i}" for i in range(20)), "oracle", "oracle_1answer"]
    rows = pd.concat(
        intervals().iloc[:2].assign(estimator=name, train_dataset="d") for name in names
    )
    handles = full_vs_contrast_figure(rows, **LABELS).legends[0].legend_handles
    shown = {(h.get_color(), h.get_marker()): h for h in handles}
    assert len(shown) == 20 + 1
    oracles = [h for h in handles if h.get_color() == "#1e88e5"]
    assert [h.get_markerfacecolor() for h in oracles] == ["#1e88e5", "white"]


def test_a_dollar_sign_in_a_label_is_not_a_formula(tmp_path):
    # As formulas, the first would be an error and the second an italic x.
    labels = {"models": {"m": r"$\frac{$", "n": "$x$"}, "datasets": {"d": "$5", "e": "6$"}}
    figure = accuracy_figure(accuracies(), **{**ACCURACY, **labels})
    assert files_of(figure, tmp_path)
    assert figure.axes[1].get_title(loc="left") == "$x$"
    assert not figure.findobj(lambda part: getattr(part, "get_parse_math", bool)())


def test_equal_figures_are_equal_files(tmp_path):
    entry = {"function": "persistcal.report.figures.accuracy_figure", "artifact": "accuracies"}
    entry["settings"] = ACCURACY
    table = str(tmp_path / "accuracies.csv")
    artifacts.write_csv(accuracies(), table, artifacts.ACCURACIES)

    def files():
        points = full_vs_contrast_figure(intervals(), **LABELS)
        return [files_of(f, tmp_path) for f in (draw_figure([table], figure=entry), points)]

    made, repeated = files(), files()
    assert made == repeated
    assert made[1]["pdf"].startswith(b"%PDF") and b"CreationDate" not in made[1]["pdf"]
    with Image.open(tmp_path / "figure.png") as image:
        assert image.width > 400
        assert len(image.convert("RGB").getcolors(1 << 20)) > 10  # not blank
