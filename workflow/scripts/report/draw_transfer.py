"""Draw the transfer matrices of one dataset side by side."""

import logging
from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.report.analysis_figures import transfer_figure
from persistcal.report.figures import house_style, save_figure
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def draw_transfer(
    transfer_paths: Sequence[str],
    pdf_path: str,
    png_path: str,
    *,
    sets: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]],
    random_later: Sequence[str],
    checkpoints: Mapping[str, Mapping[str, str]],
    models: Mapping[str, str],
    recipes: Mapping[str, str],
) -> None:
    """Draw the AUCs at `transfer_paths` to `pdf_path` and `png_path`."""
    rows = pd.concat(artifacts.read_csv(path, artifacts.TRANSFER) for path in transfer_paths)
    with house_style():
        figure = transfer_figure(
            rows,
            sets=sets,
            random_later=random_later,
            checkpoints=checkpoints,
            models=models,
            recipes=recipes,
        )
        save_figure(figure, pdf_path, png_path)
    log.info("Drew %d AUCs", len(rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    draw_transfer(
        snakemake.input.transfer,
        snakemake.output.pdf,
        snakemake.output.png,
        sets=snakemake.params.sets,
        random_later=snakemake.params.random_later,
        checkpoints=snakemake.params.checkpoints,
        models=snakemake.params.models,
        recipes=snakemake.params.recipes,
    )
