"""Figures of a study."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from persistcal.report.families import MATPLOTLIB_MARKERS, Look, looks

EARLIER, EVALUATION = "#D81B60", "#1E88E5"  # the paper's colours
GRAY = "#6b6b6b"
# Okabe & Ito: told apart by colour-blind readers; with a marker each also in print.
_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_UNITS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # text stays text
    "text.parse_math": False,  # also where it holds a dollar sign
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save figures in one style; the caller's settings come back afterwards."""
    with mpl.rc_context(_STYLE):
        yield


def save_figure(figure: Figure, pdf_path: str | Path, png_path: str | Path) -> None:
    """Save `figure` twice; equal figures give equal files (no dates, no versions)."""
    dates = {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None}
    # A legend may be wider than the panels.
    figure.savefig(pdf_path, metadata=dates, bbox_inches="tight")
    figure.savefig(png_path, dpi=200, metadata={"Software": None}, bbox_inches="tight")


def accuracy_figure(
    rows: pd.DataFrame,
    *,
    evaluation: Mapping[str, Sequence[str]],
    models: Mapping[str, str],
    datasets: Mapping[str, str],
) -> Figure:
    """Draw accuracy over training: a panel per model, a line per dataset.

    Parameters
    ----------
    rows : DataFrame
        As from `persistcal.report.study_tables.checkpoint_rows`.
    evaluation : mapping
        By model its evaluation checkpoints; the other ones are earlier.
    models, datasets : mapping
        Labels.
    """
    names = list(dict.fromkeys(rows["model"]))
    figure, panels = grid(1, len(names), width=2.9, height=2.6, share_x=False)
    for name, axes in zip(names, panels[0], strict=True):
        of_model = rows[rows["model"] == name]
        places = _along_training(axes, of_model)
        for marker, (dataset, line) in zip(
            _MARKERS, of_model.groupby("dataset", sort=False), strict=False
        ):
            x = [places[checkpoint] for checkpoint in line["checkpoint"]]
            y = 100 * line["accuracy"]
            axes.plot(x, y, color=GRAY, linewidth=0.9, zorder=2)
            role = [
                EVALUATION if checkpoint in evaluation[name] else EARLIER
                for checkpoint in line["checkpoint"]
            ]
            axes.scatter(x, y, c=role, marker=marker, s=22, linewidths=0, zorder=3)
            axes.annotate(
                datasets.get(str(dataset), str(dataset)),
                (x[-1], y.iloc[-1]),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color="#333333",
                annotation_clip=False,
            )
        axes.set_title(models.get(name, name), loc="left")
    panels[0][0].set_ylabel("Accuracy (%)")
    roles = [
        Line2D([], [], color=colour, marker="o", linestyle="", markersize=5, label=label)
        for colour, label in (
            (EARLIER, "earlier checkpoint (training)"),
            (EVALUATION, "evaluation checkpoint"),
        )
    ]
    figure.legend(handles=roles, loc="outside lower center", ncols=2)
    return figure


def _along_training(axes: Axes, rows: pd.DataFrame) -> dict[str, float]:
    """Return where each checkpoint stands: at its tokens, or one after the other."""
    tokens = dict(zip(rows["checkpoint"], rows["tokens"], strict=True))
    largest = max(tokens.values())
    if any(math.isnan(count) for count in tokens.values()):
        labels = dict(zip(rows["checkpoint"], rows["label"], strict=True))
        axes.set_xticks(range(len(labels)), list(labels.values()))
        axes.set_xlabel("Checkpoint")
        return {checkpoint: float(place) for place, checkpoint in enumerate(labels)}
    unit, name = next(((u, n) for u, n in _UNITS if largest >= u), (1.0, ""))
    axes.set_xlabel(f"Training data ({name} tokens)".replace("( ", "("))
    return {checkpoint: count / unit for checkpoint, count in tokens.items()}


def full_vs_contrast_figure(
    intervals: pd.DataFrame,
    *,
    models: Mapping[str, str],
    datasets: Mapping[str, str],
    estimators: Mapping[str, str],
) -> Figure:
    """Draw AUC on the full set against AUC on contrast sets, a point per estimator.

    Bars are 95 % bootstrap intervals.

    Parameters
    ----------
    intervals : DataFrame
        Table `persistcal.store.artifacts.INTERVALS`.
    models, datasets, estimators : mapping
        Labels; models and datasets in order of the panels,
        estimators in order of the legend.

    Notes
    -----
    A panel says "undefined" where no estimator has both values, for example
    because no contrast set is large enough.
    """
    points = _auc_points(intervals)
    names = in_legend_order(set(points["estimator"]), estimators)
    styles = looks(names)
    columns = [model for model in models if model in set(points["model"])] or list(models)
    rows = [d for d in datasets if d in set(points["dataset"])] or list(datasets)
    figure, panels = grid(len(rows), len(columns), width=2.5, height=2.4, share_x=True)
    for line, dataset in zip(panels, rows, strict=True):
        for axes, model in zip(line, columns, strict=True):
            chosen = points[(points["model"] == model) & (points["dataset"] == dataset)]
            draw_reference(axes, 0.5)
            axes.annotate(
                "chance",
                (1, 0.5),
                xycoords=("axes fraction", "data"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="right",
                color=GRAY,
                fontsize=7,
            )
            if chosen.empty:
                axes.text(0.5, 0.5, "undefined", transform=axes.transAxes, ha="center")
            for point in chosen.to_dict("records"):
                _draw_point(axes, point, styles[point["estimator"]])
            axes.set_title(f"{models[model]}, {datasets[dataset]}", loc="left")
        line[0].set_ylabel("Contrast-set AUC")
    for axes in panels[-1]:
        axes.set_xlabel("Full-set AUC")
    handles = [
        Line2D([], [], markersize=5, **{**line_look(styles[name]), "linestyle": ""})
        for name in names
    ]
    texts = [estimators.get(name, name) for name in names]
    if names:
        n_columns = min(len(names), 2 * len(columns))
        figure.legend(handles, texts, loc="outside lower center", ncols=n_columns)
    return figure


def _auc_points(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return one row per estimator that was trained in-domain, AUC on both scopes."""
    key = ["model", "dataset", "estimator"]
    chosen = intervals[
        (intervals["metric"] == "auc")
        & (intervals["conditioning"] == "odds")
        & (intervals["train_dataset"] == intervals["dataset"])
        & intervals["value"].notna()
    ]
    sides = [
        chosen.loc[chosen["scope"] == scope, [*key, "value", "lower_2_5pct", "upper_97_5pct"]]
        for scope in ("full", "contrast")
    ]
    return sides[0].merge(sides[1], on=key, suffixes=("_full", "_contrast"))


def in_legend_order(evaluated: set[str], labels: Mapping[str, str]) -> list[str]:
    """Return estimators in the order of their labels; those without one come last."""
    return [name for name in labels if name in evaluated] + sorted(evaluated - set(labels))


def draw_reference(axes: Axes, place: float, *, upright: bool = False) -> None:
    """Draw the dashed line of chance, or of no difference."""
    draw = axes.axvline if upright else axes.axhline
    draw(place, color=GRAY, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)


def line_look(style: Look) -> dict[str, Any]:
    """Return how lines and markers of an estimator look, for matplotlib."""
    return {
        "color": style.light,
        "marker": MATPLOTLIB_MARKERS[style.marker],
        "markerfacecolor": face(style),
        "linestyle": (0, style.dash) if style.dash else "solid",
    }


def face(style: Look) -> str:
    """Return the colour that fills a marker: variants of a family are hollow."""
    return "white" if style.variant else style.light


def _draw_point(axes: Axes, point: Mapping[Any, Any], style: Look) -> None:
    x, y = point["value_full"], point["value_contrast"]
    for scope, across in (("full", True), ("contrast", False)):
        ends = [point[f"lower_2_5pct_{scope}"], point[f"upper_97_5pct_{scope}"]]
        line = (ends, [y, y]) if across else ([x, x], ends)
        axes.plot(*line, color=style.light, linewidth=0.9, alpha=0.7, zorder=2)
    axes.scatter(
        x,
        y,
        facecolors=face(style),
        edgecolors=style.light,
        marker=MATPLOTLIB_MARKERS[style.marker],
        s=24,
        linewidths=0.9,
        zorder=3,
    )


def colour_and_marker(place: int) -> tuple[str, str]:
    """Return a colour and a marker that no other place below 49 has together."""
    n = len(_COLOURS)
    return _COLOURS[place % n], _MARKERS[(place + place // n) % n]


def grid(
    rows: int,
    columns: int,
    *,
    width: float,
    height: float,
    share_x: bool,
    share_y: bool = True,
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure of panels of `width` by `height` inches, and the panels by row."""
    figure = Figure(figsize=(width * columns + 0.4, height * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False)
    return figure, [list(line) for line in panels]
