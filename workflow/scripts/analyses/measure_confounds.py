"""Measure what baselines get that know a checkpoint's accuracy on groups of questions."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from persistcal import artifacts
from persistcal.analyses.confounds import attributes
from persistcal.analyses.confounds import measure_confounds as measure
from persistcal.evaluation.contrast import Pairs
from persistcal.logs import log_to
from persistcal.report.analysis_tables import confounds_table

log = logging.getLogger(__name__)


def measure_confounds(
    answers_paths: Sequence[str],
    questions_paths: Mapping[str, str],
    facts_paths: Mapping[str, str],
    tex_path: str,
    csv_path: str,
    *,
    answers: Sequence[tuple[str, str, str]],
    min_contrast: Mapping[str, int],
    pairs: Pairs,
    n_replicates: int,
    seed: int,
    labels: Mapping[str, Mapping[str, str]],
) -> None:
    """Write the table CONFOUNDS to `csv_path`, and as LaTeX to `tex_path`.

    Parameters
    ----------
    answers_paths : sequence of str
        Tables ANSWERS of evaluation checkpoints.
    questions_paths, facts_paths : mapping
        By dataset a table QUESTIONS and, where its questions ask for facts, FACTS.
    answers : sequence of (model, checkpoint, dataset)
        Whose answers each of `answers_paths` is about, checkpoints in order.
    min_contrast : mapping of str to int
        By dataset.
    pairs, n_replicates, seed
        As for `resample_metrics`.
    labels : mapping
        What is printed for each of `models` and `datasets`.
    """
    known = {}
    for dataset, path in questions_paths.items():
        facts = facts_paths.get(dataset)
        known[dataset] = attributes(
            artifacts.read(path, artifacts.QUESTIONS),
            artifacts.read(facts, artifacts.FACTS) if facts else None,
        )
    frames: dict[tuple[str, str], dict[str, pd.DataFrame]] = {}
    for path, (model, checkpoint, dataset) in zip(answers_paths, answers, strict=True):
        frames.setdefault((model, dataset), {})[checkpoint] = artifacts.read(
            path, artifacts.ANSWERS
        )
    rows = []
    for (model, dataset), by_checkpoint in frames.items():
        together = pd.concat([f.assign(checkpoint=c) for c, f in by_checkpoint.items()])
        try:
            found = measure(
                together,
                known[dataset],
                list(by_checkpoint),
                min_contrast=min_contrast[dataset],
                pairs=pairs,
                n_replicates=n_replicates,
                seed=seed,
            )
        except ValueError as error:
            raise ValueError(
                f"{model}, {dataset}: {error}; take {dataset!r} out of "
                "analyses.confounds.datasets."
            ) from error
        rows.append(found.assign(model=model, dataset=dataset))
        for row in found.itertuples():
            log.info("%s, %s, %s: Δ₀ᵇ %.3f", model, dataset, row.attribute, row.delta0_balanced)
    table = pd.concat(rows)[artifacts.CONFOUNDS.schema.names]
    text = confounds_table(table, **labels, label="confounds")
    Path(tex_path).write_text(text, encoding="utf-8")
    artifacts.write_csv(table, csv_path, artifacts.CONFOUNDS)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    files, params = snakemake.input, snakemake.params
    measure_confounds(
        files.answers,
        dict(zip(params.datasets, files.questions, strict=True)),
        dict(zip(params.with_facts, files.facts, strict=True)),
        snakemake.output.tex,
        snakemake.output.csv,
        answers=params.answers,
        min_contrast=params.min_contrast,
        pairs=params.pairs,
        n_replicates=params.n_replicates,
        seed=params.seed,
        labels=params.labels,
    )
