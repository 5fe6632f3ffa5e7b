"""Answer the questions about the update of each model and dataset."""

import pandas as pd

from persistcal.evaluation import findings, slices
from persistcal.evaluation.aligned import align_subjects
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store import artifacts
from persistcal.store.jobs import run


def make_findings(
    predictions: artifacts.Predictions,
    contrast_sets: artifacts.ContrastMembers,
    claims: artifacts.Claims,
    states: artifacts.States,
    thresholds: artifacts.Thresholds,
    questions: artifacts.Questions,
    *,
    checkpoints: dict[str, list[str]],
    settings: dict[str, EvaluationSettings],
) -> artifacts.Findings:
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
