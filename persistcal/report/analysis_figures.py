"""Figures of the analyses: transfer, the headroom of a verifier, distance of checkpoints."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from persistcal.report import drawing
from persistcal.report.layout import Names
from persistcal.report.registry import figure

# Light enough for black numbers and lines, and in order of brightness for all readers.
_SHADES = LinearSegmentedColormap.from_list("shades", ["#ffffff", "#b9dcf2", "#56a5dc"])
_CHANCE = 0.5
Sets = Mapping[str, Sequence[str]]  # checkpoints of each training set, by its name


@figure(
    "transfer_{dataset}",
    artifact="transfer",
    target="all",
    label="transfer between checkpoints, {dataset}",
    caption="Full-set AUC of adapters trained at one checkpoint (left: on it alone; right: on "
    "two neighbours, the later one's labels replaced by coin flips) and used at every "
    "checkpoint.",
)
@drawing.house_style()
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
    figure, panels = drawing.grid(
        len(names), len(transfer_recipes), width=size + 0.4, height=size, share_y=False
    )
    values = rows.set_index(["model", "recipe", "trained_on", "checkpoint"])["auc"]
    for line, model in zip(panels, names, strict=True):
        labels = all_checkpoints[model]
        columns, texts = list(labels), list(labels.values())
        for axes, (recipe, title) in zip(line, transfer_recipes.items(), strict=True):
            trained = transfer_sets[model][recipe]
            matrix = np.array([[values[model, recipe, s, c] for c in columns] for s in trained])
            _draw_matrix(axes, matrix, scale)
            _frame_training(axes, trained, columns, random=recipe in random_later)
            slant = 45 if max(map(len, texts)) > 5 else 0
            axes.set_xticks(range(len(columns)), texts, rotation=slant)
            ends = [" + ".join(labels[c] for c in s) for s in trained.values()]
            axes.set_yticks(range(len(trained)), ends)
            heading = f"{models[model]}\n{title}" if len(names) > 1 else title
            axes.set_title(heading, loc="left")
            axes.set_ylabel("Trained on")
            axes.set_xlabel("Evaluated at")
    drawn = [axes for line in panels for axes in line]
    colours = ScalarMappable(scale, _SHADES)
    figure.colorbar(
        colours, ax=drawn, label="AUC (full set)", shrink=0.8, aspect=30, panchor=False
    )
    drawing.add_legend(figure, _transfer_legend(bool(random_later)), columns=3)
    return figure


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


def _transfer_legend(random: bool) -> list[Patch | Line2D]:
    dashed = [Patch(label="trained on, random labels", **_frame(dashed=True))] if random else []
    return [
        Patch(label="trained on", **_frame(dashed=False)),
        *dashed,
        Line2D([], [], color="k", linewidth=1.4, label="above: forward, below: backward"),
    ]


@figure(
    "gcm_headroom",
    artifact="headroom",
    target="all",
    label="headroom of the external verifier",
    caption="Gain of oracle training over an external verifier in contrast-set AUC, with its "
    "95 % bootstrap interval, against how often the verifier's backbone is wrong about the "
    "same questions.",
)
@drawing.house_style()
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
    shown = {
        kind: [name for name in labels if name in set(points[kind])]
        for kind, labels in (("model", models), ("dataset", datasets))
    }
    figure, [[axes]] = drawing.grid(1, 1, width=3.4, height=2.8)
    drawing.draw_reference(axes, 0)
    for point in points.to_dict("records"):
        colour, _ = drawing.colour_and_marker(shown["model"].index(point["model"]))
        _, marker = drawing.colour_and_marker(shown["dataset"].index(point["dataset"]))
        x = 100 * point["error_rate"]
        ends = [point["lower_2_5pct"], point["upper_97_5pct"]]
        axes.plot([x, x], ends, color=colour, linewidth=0.9, alpha=0.7, zorder=2)
        axes.scatter(
            x, point["headroom"], color=colour, marker=marker, s=26, linewidths=0, zorder=3
        )
    axes.set_xlabel(f"Error rate of {verifier}'s backbone\non contrast-set questions (%)")
    axes.set_ylabel(f"Contrast-set AUC,\n{oracle} − {verifier}")
    handles = [
        Line2D([], [], color=drawing.colour_and_marker(i)[0], linewidth=3, label=models[name])
        for i, name in enumerate(shown["model"])
    ]
    for i, name in enumerate(shown["dataset"]):
        look: dict[str, Any] = {"marker": drawing.colour_and_marker(i)[1], "markersize": 5}
        look |= {"color": drawing.GRAY, "linestyle": "", "label": datasets[name]}
        handles.append(Line2D([], [], **look))
    drawing.add_legend(figure, handles, columns=3)
    return figure


@figure(
    "distance",
    artifact="pairs",
    files="distances",
    label="over the distance between checkpoints",
    caption="How well estimators notice a change, over the distance of the two checkpoints of "
    "a pair: means over pairs of that distance, with one standard deviation to either side. "
    "Dashed: chance.",
)
@drawing.house_style()
def distance_figure(pairs: pd.DataFrame, *, models: Names, estimators: Names) -> Figure:
    """Draw metrics of change over the distance between checkpoints: a row of panels per model.

    Lines are means over the pairs of a distance and the datasets, bands one standard
    deviation to either side where a distance has several pairs. Pairs that are not kept are
    left out, and so are estimators that were trained on another dataset than the evaluated one.
    """
    in_domain = pairs[(pairs["train_dataset"] == pairs["dataset"]) & pairs["kept"]]
    if in_domain.empty:
        return drawing.only_text(
            "No contrast set is kept of what was trained on the evaluated dataset."
        )
    names = drawing.in_legend_order(set(in_domain["estimator"]), estimators)
    styles = drawing.looks(names)
    rows = [model for model in models if model in set(in_domain["model"])]
    titles = {"delta0_balanced": "Δ₀ᵇ", "change_auc": "Change AUC", "auc": "Contrast AUC"}
    figure, panels = drawing.grid(len(rows), len(titles), width=3.2, height=2.5, share_y=False)
    for line, model in zip(panels, rows, strict=True):
        for axes, (metric, title) in zip(line, titles.items(), strict=True):
            chosen = in_domain[(in_domain["model"] == model) & (in_domain["metric"] == metric)]
            drawing.draw_reference(axes, 0.0 if metric == "delta0_balanced" else _CHANCE)
            for name, style in styles.items():
                of_name = chosen[chosen["estimator"] == name].groupby("distance")["value"]
                mean, spread = of_name.mean(), of_name.std()
                low, high = mean - spread, mean + spread
                axes.fill_between(mean.index, low, high, color=style.light, alpha=0.12, lw=0)
                look = drawing.line_look(style)
                axes.plot(mean.index, mean, markersize=3.5, linewidth=0.9, **look)
            axes.set_title(f"{models[model]}: {title}", loc="left")
            axes.set_xlabel("Checkpoints apart")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    handles = drawing.legend_handles(styles, estimators, markersize=4, linewidth=0.9)
    drawing.add_legend(figure, handles, columns=3)
    return figure
