"""Draw a figure, as PDF and as PNG."""

from collections.abc import Mapping
from typing import Any

from persistcal.report import figures
from persistcal.report.drawing import Drawing
from persistcal.store import artifacts
from persistcal.store.jobs import log, run


def draw_figure(rows: list[str], *, figure: Mapping[str, Any]) -> Drawing:
    """Return the result of the `function` of `figure` for its `artifact` and `settings`."""
    frame = artifacts.read_files(rows, getattr(artifacts, figure["artifact"]), placed=True)
    log.info("Drew %d rows", len(frame))
    return getattr(figures, figure["function"])(frame, **figure["settings"])


if __name__ == "__main__":
    run(draw_figure, snakemake)
