"""Measure what baselines get that know a checkpoint's accuracy on groups of questions."""

import logging
from collections.abc import Mapping
from typing import Any

import pandas as pd

from persistcal.analyses import confounds
from persistcal.evaluation.contrast import Pairs
from persistcal.report.analysis_tables import confounds_table
from persistcal.store.artifacts import CONFOUNDS, Answers, Confounds, Facts, Questions
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def measure_confounds(
    answers: Answers,
    questions: Questions,
    facts: Facts,
    *,
    min_contrast: Mapping[str, int],
    pairs: Pairs,
    n_replicates: int,
    seed: int,
    labels: Mapping[str, Mapping[str, str]],
) -> tuple[str, Confounds]:
    """Return what each attribute of a question gives alone, as a LaTeX table and as rows.

    Parameters
    ----------
    answers : Answers
        Of evaluation checkpoints, in order.
    questions, facts : Questions, Facts
        Of each dataset and, where its questions ask for facts, those.
    min_contrast : mapping of str to int
        By dataset.
    pairs, n_replicates, seed
        As for `resample_metrics`.
    labels : mapping
        What is printed for each of `models` and `datasets`.
    """
    how: dict[str, Any] = {"pairs": pairs, "n_replicates": n_replicates, "seed": seed}
    parts = []
    for key, given in answers.groupby(["model", "dataset"], sort=False):
        model, dataset = map(str, key)
        of_dataset = facts[facts["dataset"] == dataset]
        known = confounds.attributes(
            questions[questions["dataset"] == dataset], None if of_dataset.empty else of_dataset
        )
        checkpoints = list(given["checkpoint"].unique())
        how["min_contrast"] = min_contrast[dataset]
        try:
            found = confounds.measure_confounds(given, known, checkpoints, **how)
        except ValueError as error:
            raise ValueError(
                f"{model}, {dataset}: {error}; take {dataset!r} out of "
                "analyses.confounds.datasets."
            ) from error
        parts.append(found.assign(model=model, dataset=dataset))
        for row in found.itertuples():
            log.info("%s, %s, %s: Δ₀ᵇ %.3f", model, dataset, row.attribute, row.delta0_balanced)
    rows = pd.concat(parts)[CONFOUNDS.schema.names]
    return confounds_table(rows, **labels, label="confounds"), rows


if __name__ == "__main__":
    run(measure_confounds, snakemake)
