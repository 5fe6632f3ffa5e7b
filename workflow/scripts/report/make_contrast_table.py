"""Write the contrast-set sizes of one dataset as LaTeX and as CSV."""

import logging
from collections.abc import Mapping
from pathlib import Path

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.report.study_tables import contrast_matrix, contrast_table

log = logging.getLogger(__name__)


def make_contrast_table(
    contrast_sets_path: str,
    tex_path: str,
    csv_path: str,
    *,
    dataset: str,
    checkpoints: Mapping[str, Mapping[str, str]],
    min_contrast: int,
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Write the contrast-set sizes of `dataset` to `tex_path` and `csv_path`."""
    sets = artifacts.read_csv(contrast_sets_path, artifacts.CONTRAST_SETS)
    matrix = contrast_matrix(sets[sets["dataset"] == dataset])
    if matrix.empty:
        raise ValueError(f"{contrast_sets_path}: no contrast set of dataset {dataset!r}.")
    text = contrast_table(
        matrix,
        checkpoints=checkpoints,
        models=labels["models"],
        dataset=labels["datasets"].get(dataset, dataset),
        min_contrast=min_contrast,
        label=f"contrast-set-sizes-{dataset}",
    )
    Path(tex_path).write_text(text, encoding="utf-8")
    matrix.to_csv(csv_path, index=False)
    log.info("Wrote %s: %d pairs of checkpoints", tex_path, len(matrix) // 2)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    make_contrast_table(
        snakemake.input.contrast_sets,
        snakemake.output.tex,
        snakemake.output.csv,
        dataset=snakemake.wildcards.dataset,
        checkpoints=snakemake.params.checkpoints,
        min_contrast=snakemake.params.min_contrast,
        labels=snakemake.params.labels,
    )
