"""Answer the questions about the update of each model and dataset."""

import pandas as pd

from persistcal.evaluation import findings, slices
from persistcal.evaluation.aligned import align_subjects
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import (
    Claims,
    ContrastMembers,
    Findings,
    Predictions,
    Questions,
    States,
    Thresholds,
)
from persistcal.store.jobs import run


def make_findings(
    predictions: Predictions,
    contrast_sets: ContrastMembers,
    claims: Claims,
    states: States,
    thresholds: Thresholds,
    questions: Questions,
    *,
    checkpoints: dict[str, list[str]],
    settings: dict[str, EvaluationSettings],
) -> Findings:
    """Return what is found about each model and dataset, see `persistcal.evaluation.findings`.

    Categories of questions are slices. `checkpoints` maps models to evaluation checkpoints, and
    `settings` are by dataset.
    """
    subjects = align_subjects([predictions], checkpoints, settings, contrast_sets)
    found = findings.make_findings(subjects, claims, states, thresholds, settings)
    names = slices.category_names(questions)
    masks = {
        subject: slices.find_slices(names, subject[1], data, settings[subject[1]], by=False)
        for subject, data in subjects.items()
        if subject[1] in set(names["dataset"])
    }
    sliced = slices.make_slices(subjects, masks, thresholds, settings)
    return pd.concat([found, sliced], ignore_index=True)


if __name__ == "__main__":
    run(make_findings, snakemake)
