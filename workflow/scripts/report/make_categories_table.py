"""Write the categories of one dataset's questions as LaTeX and as CSV."""

import logging
from collections.abc import Mapping
from pathlib import Path

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.report.question_tables import categories_table, category_rows

log = logging.getLogger(__name__)


def make_categories_table(
    questions_path: str,
    tex_path: str,
    csv_path: str,
    *,
    dataset: str,
    labels: Mapping[str, str],
) -> None:
    """Write the categories of the questions asked to `tex_path` and `csv_path`."""
    rows = category_rows(artifacts.read(questions_path, artifacts.QUESTIONS))
    if rows.empty:
        raise ValueError(
            f"{questions_path}: no question has a category; "
            f"take {dataset!r} out of analyses.questions.categories."
        )
    text = categories_table(
        rows, dataset=labels.get(dataset, dataset), label=f"{dataset}-categories"
    )
    Path(tex_path).write_text(text, encoding="utf-8")
    rows.to_csv(csv_path, index=False)
    log.info("Wrote %s: %d categories", tex_path, len(rows))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    make_categories_table(
        snakemake.input.questions,
        snakemake.output.tex,
        snakemake.output.csv,
        dataset=snakemake.wildcards.dataset,
        labels=snakemake.params.labels,
    )
