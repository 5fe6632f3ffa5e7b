"""Parts of all figures: style, the look of each estimator, panels, markers and legends.

An estimator's family is the method that its name begins with: `self_consistency_copy` belongs
to self-consistency. Methods with the same question to the model are one family. A family has
one colour, here and on the page. The first estimator of a family has a filled marker and a
solid line. Each variant has a hollow marker, and the first 28 differ in marker or dash.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from persistcal.report.layout import Names
from persistcal.store.files import write_whole

if TYPE_CHECKING:  # functions that draw import matplotlib: the page needs only the looks
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

GRAY = "#6b6b6b"

# The dashed line of chance, or of no difference
REFERENCE: dict[str, Any] = {
    "color": GRAY,
    "linewidth": 0.7,
    "linestyle": (0, (4, 3)),
    "zorder": 1,
}

# Okabe & Ito: distinct for colour-blind readers; the markers differ in print, too.
_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7")

MARKERS = ("o", "s", "^", "D", "v", "P", "X")

# No dates or versions, so that equal figures give equal files
_PDF = {"metadata": dict.fromkeys(["CreationDate", "ModDate", "Producer", "Creator"])}

_PNG = {"metadata": {"Software": None}, "dpi": 200}


class FigureFile(NamedTuple):
    """Figures as PDF or PNG, by the ending of the name, drawn with the settings `style`."""

    style: Mapping[Any, Any]

    def write(self, figure: "Figure", path: str, about: Mapping[str, Any]) -> None:
        """Write `figure` to `path`; `about` is not used, because figures have no header."""
        import matplotlib as mpl

        options: dict[str, Any] = _PDF if path.endswith(".pdf") else _PNG
        with mpl.rc_context(dict(self.style)):
            if figure.get_layout_engine():  # both files have one layout, which takes long
                figure.draw_without_rendering()
                figure.set_layout_engine(None)
            # A legend can be wider than the panels.
            box = figure.get_tightbbox().padded(mpl.rcParams["savefig.pad_inches"])
            # Matplotlib hides the error of a full disk, so it writes into memory.
            figure.savefig(drawn := BytesIO(), format=path[-3:], bbox_inches=box, **options)
        write_whole(path, drawn.getvalue())


_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # part of matplotlib
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
    "text.parse_math": False,  # text with a dollar sign stays text
}

Drawing = Annotated[Any, FigureFile(_STYLE)]


class Look(NamedTuple):
    """The colours (on a light and a dark page), marker and line of an estimator.

    `family` is the method that it is a variant of, `marker` a key of `MATPLOTLIB_MARKERS`,
    `dash` the lengths of the line's dashes and gaps (none: solid), and `variant` its place in
    the family: 0 is drawn filled, the others hollow.
    """

    family: str
    light: str
    dark: str
    marker: str
    dash: tuple[int, ...]
    variant: int


MATPLOTLIB_MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "down": "v",
    "diamond": "D",
    "plus": "P",
    "cross": "X",
}

_DASHES = ((6, 3), (2, 3), (9, 3, 2, 3), (9, 3, 2, 3, 2, 3))

# Non-oracle and oracle training have the paper's colours of earlier and of evaluation
# checkpoints. Markers differ as well: for colour-blind readers, and for print.
_KNOWN = {
    "end_correct": ("#6b6b6b", "#a8a8a8", "circle"),
    "self_consistency": ("#00856f", "#3fcfb1", "square"),
    "sequence_probability": ("#8a6a00", "#d9b341", "triangle"),
    "non_oracle": ("#d81b60", "#ff75a5", "down"),
    "oracle": ("#1e88e5", "#62b2ff", "diamond"),
    "gcm": ("#7b3fa0", "#c492ea", "plus"),
    "linear_probe": ("#c75100", "#ff9d5c", "cross"),
    "semantic_entropy": ("#2b3a8c", "#98a5f7", "circle"),
    "p_true": ("#a3195b", "#f08cbf", "cross"),
}

# Methods that share the look of another method
_RELATED = {
    "sequence_probability": "perplexity mean_token_entropy sequence_entropy "
    "min_token_probability probability_margin self_certainty",
    "semantic_entropy": "semantic_sequence_entropy semantic_sets degree_matrix eccentricity "
    "laplacian_eigenvalues lexical_similarity cocoa",
    "linear_probe": "question_probe entropy_probe",
    "p_true": "verbalised stated said",
}
_FAMILIES = {
    method: family
    for family in _KNOWN
    for method in (family, *_RELATED.get(family, "").split())
}

# Titles of families of several estimators
FAMILY_TITLES = {
    "self_consistency": "self-consistency",
    "sequence_probability": "probabilities of tokens",
    "semantic_entropy": "meanings of answers",
    "p_true": "asking the checkpoint",
    "non_oracle": "non-oracle training",
    "oracle": "oracle training",
    "gcm": "GCM",
    "linear_probe": "probes of hidden states",
}

_OTHERS = (
    ("#8c564b", "#d8a193", "triangle"),
    ("#4d4d9f", "#b3b3f0", "cross"),
    ("#5e7d1e", "#a9cf62", "circle"),
    ("#0e7f96", "#56c9e0", "down"),
    ("#b0378f", "#ef8ed8", "square"),
    ("#a36a00", "#ffc04d", "diamond"),
    ("#222222", "#eeeeee", "plus"),
)


def _distinct_pair(place: int, n: int) -> tuple[int, int]:
    """Return two numbers below `n` that no other place below n² has together."""
    return place % n, (place + place // n) % n


def colour_and_marker(place: int) -> tuple[str, str]:
    """Return a colour and a marker that no other place below 49 has together."""
    colour, marker = _distinct_pair(place, len(_COLOURS))
    return _COLOURS[colour], MARKERS[marker]


def looks(estimators: Iterable[str]) -> dict[str, Look]:
    """Return the look of each of a study's estimators; their order decides variants."""
    names = list(dict.fromkeys(estimators))
    families = {}
    for name in names:  # the known method, or else the shortest estimator, that it begins with
        known = [f for method, f in _FAMILIES.items() if f"{name}_".startswith(f"{method}_")]
        others = [other for other in names if f"{name}_".startswith(f"{other}_")]
        families[name] = min(known or others, key=len)
    styles = dict(_KNOWN)
    for family in families.values():
        if family not in styles:
            colours, marker = _distinct_pair(len(styles) - len(_KNOWN), len(_OTHERS))
            styles[family] = (*_OTHERS[colours][:2], _OTHERS[marker][2])
    markers = list(MATPLOTLIB_MARKERS)
    found: dict[str, Look] = {}
    # The estimator with the family's name is filled, at any position.
    for name in sorted(names, key=lambda name: name != families[name]):
        light, dark, marker_of = styles[families[name]]
        variant = sum(look.family == families[name] for look in found.values())
        dash: tuple[int, ...] = ()
        if variant:
            marker_of = markers[(markers.index(marker_of) + variant - 1) % len(markers)]
            dash = _DASHES[(variant - 1) % len(_DASHES)]
        found[name] = Look(families[name], light, dark, marker_of, dash, variant)
    return {name: found[name] for name in names}


def in_legend_order(evaluated: set[str], labels: Names) -> list[str]:
    """Return estimators in the order of `labels`, others last."""
    return [name for name in labels if name in evaluated] + sorted(evaluated - set(labels))


def legend_handles(
    styles: Mapping[str, Look], labels: Names, **look: float | str
) -> "list[Line2D]":
    """Return the legend's entries for estimators, drawn like their lines but for `look`."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], label=labels.get(name, name), **{**line_look(style), **look})
        for name, style in styles.items()
    ]


def draw_marker(axes: "Axes", x: float, y: float, style: Look, *, size: float) -> None:
    """Draw the marker of an estimator, hollow for variants of a family."""
    look = line_look(style)
    axes.scatter(
        x,
        y,
        facecolors=look["markerfacecolor"],
        edgecolors=look["color"],
        marker=look["marker"],
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


class Panel(NamedTuple):
    """A panel of a figure: a function that draws into its axes, and its words."""

    draw: "Callable[[Axes], object]"
    title: str = ""
    x_label: str = ""
    y_label: str = ""


def draw_panels(
    rows: Sequence[Sequence[Panel]],
    *,
    width: float,
    height: float | Sequence[float],
    handles: Sequence[Any] = (),
    share_x: bool | Literal["col"] = False,
    share_y: bool | Literal["row"] = True,
    reason: str = "",
    colours: "tuple[str, ScalarMappable] | None" = None,
) -> "Figure":
    """Return a figure of panels of `width` by `height` inches in one style, and a legend below.

    Rows can differ in length and height. `reason` is the text of a figure without panels, and
    `handles` are the legend's entries. `colours` is the heading and
    the scale of a bar of colours.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    if not rows:
        rows, width, height = [[Panel(lambda axes: axes.set_axis_off(), reason)]], 4, 0.5
    heights = [height] * len(rows) if isinstance(height, (int, float)) else height
    n_columns = max(map(len, rows))
    with mpl.rc_context(_STYLE):
        size = width * n_columns + 0.4, sum(heights) + 0.5
        figure = Figure(figsize=size, layout="constrained")
        shared: dict[str, Any] = {"sharex": share_x, "sharey": share_y}
        axes_in_rows = figure.subplots(
            len(rows), n_columns, squeeze=False, height_ratios=heights, **shared
        )
        for line, panels in zip(axes_in_rows, rows, strict=True):
            for axes, panel in zip(line, panels, strict=False):
                panel.draw(axes)
                axes.set_title(panel.title, loc="left")
                axes.set_xlabel(panel.x_label or axes.get_xlabel())
                axes.set_ylabel(panel.y_label)
            for axes in line[len(panels) :]:
                axes.set_visible(False)
        if colours:
            heading, scale = colours
            look: dict[str, Any] = {"shrink": 0.8, "aspect": 30, "panchor": False}
            figure.colorbar(scale, ax=figure.axes, label=heading, **look)
        if handles:
            labels = [str(handle.get_label()) for handle in handles]
            room = 0.55 + 0.067 * max(map(len, labels))  # inches of an entry
            n_columns = min(len(handles), max(2, int(size[0] / room)))
            figure.legend(handles, labels, loc="outside lower center", ncols=n_columns)
    return figure
