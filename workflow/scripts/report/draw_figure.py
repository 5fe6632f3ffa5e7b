"""Draw a figure, as PDF and as PNG."""

from importlib import import_module
from typing import Any

from persistcal.report.drawing import Drawing
from persistcal.store import artifacts
from persistcal.store.jobs import log, run


def draw_figure(rows: list[str], *, figure: dict[str, Any]) -> Drawing:
    """Draw a `figure` of the catalogue from rows of its artifact, with its settings."""
    table = getattr(artifacts, figure["artifact"].upper())
    frame = artifacts.read_files(rows, table, placed=True)
    log.info("Drew %d rows", len(frame))
    module, name = figure["function"].rsplit(".", 1)
    function = getattr(import_module(module), name)
    return function(frame, **figure["settings"])


if __name__ == "__main__":
    run(draw_figure, snakemake)
