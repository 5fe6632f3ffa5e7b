"""Draw a figure, as PDF and as PNG."""

from importlib import import_module
from typing import Any

from persistcal.report.drawing import Drawing
from persistcal.report.registry import FIGURES
from persistcal.store import artifacts
from persistcal.store.jobs import log, run


def draw_figure(rows: list[str], *, figure: dict[str, Any]) -> Drawing:
    """Draw the registered `figure` from rows of its artifact, with its settings."""
    table = getattr(artifacts, figure["artifact"].upper())
    frame = artifacts.read_files(rows, table, placed=True)
    log.info("Drew %d rows", len(frame))
    import_module(f"persistcal.report.{figure['module']}")
    return FIGURES[figure["name"]](frame, **figure["settings"])


if __name__ == "__main__":
    run(draw_figure, snakemake)
