"""Figures of the paper's analyses: transfer, and headroom over a verifier."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from persistcal.report import drawing
from persistcal.report.drawing import Panel
from persistcal.report.layout import Names

_SHADES = LinearSegmentedColormap.from_list("shades", ["#ffffff", "#b9dcf2", "#56a5dc"])
_CHANCE = 0.5
Sets = Mapping[str, Sequence[str]]  # checkpoints of each training set, by its name


def transfer_figure(
    rows: pd.DataFrame,
    *,
    transfer_sets: Mapping[str, Mapping[str, Sets]],
    random_later: Sequence[str],
    all_checkpoints: Mapping[str, Names],
    models: Names,
    transfer_recipes: Names,
) -> Figure:
    """Draw the AUC of every adapter at every checkpoint: a panel per model and recipe.

    `rows` belong to one dataset. `transfer_sets` contains training checkpoints by model and
    recipe; the recipes in `random_later` used random labels on the last checkpoint of a set. In
    a panel adapters are rows, in order of training, and checkpoints are columns, so transfer to
    later checkpoints is above the line. An adapter's training checkpoints have a frame.
    """
    names = [model for model in models if model in set(rows["model"])]
    shown = [_CHANCE, *rows["auc"].dropna()]
    scale = Normalize(min(shown), max(shown))
    size = 0.42 * max(len(all_checkpoints[model]) for model in names) + 0.7
    values = rows.set_index(["model", "recipe", "trained_on", "checkpoint"])["auc"]

    def draw(model: str, recipe: str, axes: Axes) -> None:
        labels, trained = all_checkpoints[model], transfer_sets[model][recipe]
        columns, texts = list(labels), list(labels.values())
        matrix = np.array([[values[model, recipe, s, c] for c in columns] for s in trained])
        _draw_matrix(axes, matrix, scale)
        _frame_training(axes, trained, columns, random=recipe in random_later)
        slant = 45 if max(map(len, texts)) > 5 else 0
        axes.set_xticks(range(len(columns)), texts, rotation=slant)
        ends = [" + ".join(labels[c] for c in s) for s in trained.values()]
        axes.set_yticks(range(len(trained)), ends)

    def heading(model: str, title: str) -> str:
        return f"{models[model]}\n{title}" if len(names) > 1 else title

    handles: list[Patch | Line2D] = [Patch(label="trained on", **_frame(dashed=False))]
    if random_later:
        handles.append(Patch(label="trained on, random labels", **_frame(dashed=True)))
    line_label = "above: forward, below: backward"
    handles.append(Line2D([], [], color="k", linewidth=1.4, label=line_label))
    return drawing.draw_panels(
        [
            [
                Panel(partial(draw, m, r), heading(m, title), "Evaluated at", "Trained on")
                for r, title in transfer_recipes.items()
            ]
            for m in names
        ],
        width=size + 0.4,
        height=size,
        share_y=False,
        handles=handles,
        colours=("AUC (full set)", ScalarMappable(scale, _SHADES)),
    )


def _draw_matrix(axes: Axes, matrix: np.ndarray, scale: Normalize) -> None:
    axes.imshow(matrix, cmap=_SHADES, norm=scale, aspect="equal")
    axes.set_anchor("N")  # panels of fewer rows begin at the same height
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for (row, column), value in np.ndenumerate(matrix):
        text = "–" if np.isnan(value) else f"{value:.3f}".removeprefix("0")
        axes.text(column, row, text, ha="center", va="center")


def _frame_training(
    axes: Axes, sets: Mapping[str, Sequence[str]], columns: Sequence[str], *, random: bool
) -> None:
    """Frame the checkpoints of each row's training, and draw the line between its sides."""
    stairs = []
    for row, trained in enumerate(sets.values()):
        places = [columns.index(checkpoint) for checkpoint in trained]
        for place in places:
            style = _frame(dashed=random and place == places[-1])
            corner = (place - 0.44, row - 0.44)
            axes.add_patch(Rectangle(corner, 0.88, 0.88, clip_on=False, **style))
        stairs += [(places[0] - 0.5, row - 0.5), (places[0] - 0.5, row + 0.5)]
    x, y = zip(*stairs, strict=True)
    axes.plot(x, y, color="k", linewidth=1.4, clip_on=False, solid_joinstyle="miter")


def _frame(*, dashed: bool) -> dict[str, Any]:
    style = (0, (2.5, 1.5)) if dashed else "solid"
    return {"fill": False, "edgecolor": "k", "linewidth": 1.0, "linestyle": style}


def headroom_figure(
    rows: pd.DataFrame, *, models: Names, datasets: Names, verifier: str, oracle: str
) -> Figure:
    """Draw a verifier's headroom against the error rate of its backbone.

    Colours are models, markers are datasets, and bars are 95 % bootstrap intervals. `verifier`
    and `oracle` are display names.
    """
    points = rows.dropna(subset=["headroom", "error_rate"])
    if points.empty:
        raise ValueError("no model and dataset has a contrast AUC of both estimators")
    names = {
        kind: [name for name in labels if name in set(points[kind])]
        for kind, labels in (("model", models), ("dataset", datasets))
    }

    def draw(axes: Axes) -> None:
        axes.axhline(0, **drawing.REFERENCE)
        for point in points.to_dict("records"):
            colour, _ = drawing.colour_and_marker(names["model"].index(point["model"]))
            _, marker = drawing.colour_and_marker(names["dataset"].index(point["dataset"]))
            x = 100 * point["error_rate"]
            ends = [point["lower_2_5pct"], point["upper_97_5pct"]]
            axes.plot([x, x], ends, color=colour, linewidth=0.9, alpha=0.7, zorder=2)
            axes.scatter(
                x, point["headroom"], color=colour, marker=marker, s=26, linewidths=0, zorder=3
            )

    x_label = f"Error rate of {verifier}'s backbone\non contrast-set questions (%)"
    panel = Panel(draw, "", x_label, f"Contrast-set AUC,\n{oracle} − {verifier}")
    handles = [
        Line2D([], [], color=drawing.colour_and_marker(i)[0], linewidth=3, label=models[name])
        for i, name in enumerate(names["model"])
    ]
    for i, name in enumerate(names["dataset"]):
        look: dict[str, Any] = {"marker": drawing.colour_and_marker(i)[1], "markersize": 5}
        look |= {"color": drawing.GRAY, "linestyle": "", "label": datasets[name]}
        handles.append(Line2D([], [], **look))
    return drawing.draw_panels([[panel]], width=3.4, height=2.8, handles=handles)
