"""The figure of many estimators: a row for each, the one that follows knowledge best on top."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from persistcal.report.families import FAMILY_TITLES, MATPLOTLIB_MARKERS, Look, looks
from persistcal.report.figures import draw_reference, face, in_legend_order

# Of each panel: the measure, its title, and its value where confidence follows nothing
_FOLLOWS = ("contrast", "delta0_balanced")
_PANELS = (
    (_FOLLOWS, "Δ₀ᵇ", 0.0),
    (("contrast", "auc"), "Contrast-set AUC", 0.5),
    (("full", "auc"), "Full-set AUC", 0.5),
)
Bounds = tuple[float, float, float]  # value, ends of its interval


def leaderboard_figure(
    intervals: pd.DataFrame,
    *,
    models: Mapping[str, str],
    datasets: Mapping[str, str],
    estimators: Mapping[str, str],
) -> Figure:
    """Draw Δ₀ᵇ, contrast-set AUC and full-set AUC beside each other, with 95 % intervals.

    A row per estimator, in order of Δ₀ᵇ; those without it come last. Colours are families.

    Parameters
    ----------
    intervals : DataFrame
        Table `persistcal.store.artifacts.INTERVALS`; estimators that were trained on another
        dataset than the evaluated one are left out.
    models, datasets, estimators : mapping
        Labels; models and datasets in order of the panels.

    Raises
    ------
    ValueError
        When no estimator has a value.
    """
    found = _by_place(intervals)
    places = [(m, d) for m in models for d in datasets if (m, d) in found]
    if not places:
        raise ValueError("no estimator has a value on any of the study's datasets")
    styles = looks(in_legend_order({e for place in places for e in found[place]}, estimators))
    ranked = [_ranked(found[place], list(styles)) for place in places]
    heights = [0.19 * len(rows) + 0.5 for rows in ranked]
    figure = Figure(figsize=(8.4, sum(heights) + 0.5), layout="constrained")
    panels = figure.subplots(
        len(places), len(_PANELS), sharex="col", squeeze=False, height_ratios=heights
    )
    for line, place, rows in zip(panels, places, ranked, strict=True):
        for axes, (measure, title, reference) in zip(line, _PANELS, strict=True):
            draw_reference(axes, reference, upright=True)
            for height, name in enumerate(rows):
                if measure in found[place][name]:
                    _draw_row(axes, height, found[place][name][measure], styles[name])
            axes.set_ylim(len(rows) - 0.4, -0.6)
            axes.grid(visible=False, axis="y")
            axes.spines["left"].set_visible(False)
            axes.set_yticks([])
            axes.set_title(title)
        line[0].set_yticks(range(len(rows)), [estimators.get(name, name) for name in rows])
        line[0].tick_params(axis="y", length=0)
        for label, name in zip(line[0].get_yticklabels(), rows, strict=True):
            label.set_color(styles[name].light)
        if len(places) > 1:
            line[0].set_title(f"{models[place[0]]}, {datasets[place[1]]}", loc="left")
    _name_families(figure, styles)
    return figure


def _by_place(
    intervals: pd.DataFrame,
) -> dict[tuple[str, str], dict[str, dict[tuple[str, str], Bounds]]]:
    """Return what is defined by (model, dataset), estimator and measure."""
    own = intervals[
        (intervals["conditioning"] == "odds")
        & (intervals["train_dataset"] == intervals["dataset"])
        & intervals["value"].notna()
    ]
    found: dict[tuple[str, str], dict[str, dict[tuple[str, str], Bounds]]] = {}
    for row in own.to_dict("records"):
        of = found.setdefault((row["model"], row["dataset"]), {}).setdefault(
            row["estimator"], {}
        )
        of[row["scope"], row["metric"]] = (
            row["value"],
            row["lower_2_5pct"],
            row["upper_97_5pct"],
        )
    return found


def _ranked(
    found: Mapping[str, Mapping[tuple[str, str], Bounds]], names: list[str]
) -> list[str]:
    """Return the estimators that there are, the highest Δ₀ᵇ first."""
    undefined = (-2.0, 0.0, 0.0)  # below any
    return sorted(
        (name for name in names if name in found),
        key=lambda name: -found[name].get(_FOLLOWS, undefined)[0],
    )


def _draw_row(axes: Axes, height: int, bounds: Bounds, style: Look) -> None:
    value, *ends = bounds
    axes.plot(ends, [height, height], color=style.light, linewidth=1.1, zorder=2)
    axes.scatter(
        value,
        height,
        facecolors=face(style),
        edgecolors=style.light,
        marker=MATPLOTLIB_MARKERS[style.marker],
        s=20,
        linewidths=0.9,
        zorder=3,
    )


def _name_families(figure: Figure, styles: Mapping[str, Look]) -> None:
    """Name the families of which several estimators are drawn."""
    colours = {look.family: look.light for look in styles.values() if look.variant}
    handles = [
        Line2D([], [], color=colour, linewidth=3, label=FAMILY_TITLES.get(family, family))
        for family, colour in colours.items()
    ]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 4))
