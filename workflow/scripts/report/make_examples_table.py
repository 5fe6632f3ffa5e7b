"""Write example questions of one dataset as LaTeX and as CSV."""

import logging
from collections.abc import Mapping
from pathlib import Path

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.report.question_tables import example_questions, example_rows, examples_table

log = logging.getLogger(__name__)


def make_examples_table(
    questions_path: str,
    tex_path: str,
    csv_path: str,
    *,
    dataset: str,
    labels: Mapping[str, str],
) -> None:
    """Write two test questions of each category to `tex_path` and `csv_path`."""
    examples = example_questions(artifacts.read(questions_path, artifacts.QUESTIONS))
    if examples.empty:
        raise ValueError(
            f"{questions_path}: no test question; "
            f"take {dataset!r} out of analyses.questions.examples."
        )
    text = examples_table(
        examples, dataset=labels.get(dataset, dataset), label=f"{dataset}-examples"
    )
    Path(tex_path).write_text(text, encoding="utf-8")
    example_rows(examples).to_csv(csv_path, index=False)
    log.info("Wrote %s: %d questions", tex_path, len(examples))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    make_examples_table(
        snakemake.input.questions,
        snakemake.output.tex,
        snakemake.output.csv,
        dataset=snakemake.wildcards.dataset,
        labels=snakemake.params.labels,
    )
