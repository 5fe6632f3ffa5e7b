"""Draw the headroom of the external verifier against the error rate of its backbone."""

import logging
from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.report.analysis_figures import headroom_figure
from persistcal.report.figures import house_style, save_figure
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def draw_gcm_headroom(
    headroom_paths: Sequence[str],
    pdf_path: str,
    png_path: str,
    *,
    verifier: str,
    oracle: str,
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Draw one point per model and dataset to `pdf_path` and `png_path`."""
    rows = pd.concat(artifacts.read_csv(path, artifacts.HEADROOM) for path in headroom_paths)
    with house_style():
        try:
            figure = headroom_figure(
                rows,
                models=labels["models"],
                datasets=labels["datasets"],
                verifier=labels["estimators"][verifier],
                oracle=labels["estimators"][oracle],
            )
        except ValueError as error:
            raise ValueError(f"{headroom_paths[0]}: {error}.") from error
        save_figure(figure, pdf_path, png_path)
    log.info("Drew %d headrooms", len(rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    draw_gcm_headroom(
        snakemake.input.headroom,
        snakemake.output.pdf,
        snakemake.output.png,
        verifier=snakemake.params.verifier,
        oracle=snakemake.params.oracle,
        labels=snakemake.params.labels,
    )
