"""Draw AUC on the full set against AUC on contrast sets."""

from persistcal.report.drawing import Drawing
from persistcal.report.figures import full_vs_contrast_figure
from persistcal.report.layout import DisplayNames
from persistcal.store.artifacts import Intervals
from persistcal.store.jobs import run


def draw_full_vs_contrast(intervals: Intervals, *, labels: DisplayNames) -> Drawing:
    """Draw both AUCs of every estimator."""
    return full_vs_contrast_figure(intervals, **labels)


if __name__ == "__main__":
    run(draw_full_vs_contrast, snakemake)
