"""Parts of all figures: style, grid of panels, markers, reference lines and legends."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from persistcal.report.families import MATPLOTLIB_MARKERS, Look
from persistcal.report.layout import Names
from persistcal.store.figures import FigureFile

GRAY = "#6b6b6b"
# Okabe & Ito: told apart by colour-blind readers; with a marker each also in print.
_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

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
Drawing = Annotated[Figure, FigureFile(_STYLE)]


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in one style; the caller's settings come back afterwards."""
    with mpl.rc_context(_STYLE):
        yield


def in_legend_order(evaluated: set[str], labels: Names) -> list[str]:
    """Return estimators in the order of their display names; those without one come last."""
    return [name for name in labels if name in evaluated] + sorted(evaluated - set(labels))


def legend_handles(
    styles: Mapping[str, Look], labels: Names, **look: float | str
) -> list[Line2D]:
    """Return the legend's entries for estimators, drawn like their lines but for `look`."""
    return [
        Line2D([], [], label=labels.get(name, name), **{**line_look(style), **look})
        for name, style in styles.items()
    ]


def add_legend(figure: Figure, handles: Sequence[Any], *, columns: int) -> None:
    """Put a legend of at most so many columns below the panels, if it has entries."""
    if handles:
        labels = [str(handle.get_label()) for handle in handles]
        n_columns = min(len(handles), columns)
        figure.legend(handles, labels, loc="outside lower center", ncols=n_columns)


def draw_reference(axes: Axes, place: float, *, upright: bool = False) -> None:
    """Draw the dashed line of chance, or of no difference."""
    draw = axes.axvline if upright else axes.axhline
    draw(place, color=GRAY, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)


def draw_marker(axes: Axes, x: float, y: float, style: Look, *, size: float) -> None:
    """Draw the marker of an estimator; those of a family's variants are hollow."""
    axes.scatter(
        x,
        y,
        facecolors="white" if style.variant else style.light,
        edgecolors=style.light,
        marker=MATPLOTLIB_MARKERS[style.marker],
        s=size,
        linewidths=0.9,
        zorder=3,
    )


def line_look(style: Look) -> dict[str, Any]:
    """Return how lines and markers of an estimator look, for matplotlib."""
    return {
        "color": style.light,
        "marker": MATPLOTLIB_MARKERS[style.marker],
        "markerfacecolor": "white" if style.variant else style.light,
        "linestyle": (0, style.dash) if style.dash else "solid",
    }


def colour_and_marker(place: int) -> tuple[str, str]:
    """Return a colour and a marker that no other place below 49 has together."""
    n = len(_COLOURS)
    return _COLOURS[place % n], MARKERS[(place + place // n) % n]


def grid(
    rows: int,
    columns: int,
    *,
    width: float,
    height: float,
    share_x: bool,
    share_y: bool | Literal["row"] = True,
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure of panels of `width` by `height` inches, and the panels by row."""
    figure = Figure(figsize=(width * columns + 0.4, height * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False)
    return figure, [list(line) for line in panels]
