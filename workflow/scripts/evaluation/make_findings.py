"""Answer the questions about the update of each model and dataset."""

from persistcal.evaluation import findings
from persistcal.evaluation.aligned import align_subjects
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import (
    Claims,
    ContrastMembers,
    Findings,
    Predictions,
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
    *,
    checkpoints: dict[str, list[str]],
    settings: dict[str, EvaluationSettings],
) -> Findings:
    """Return what is found about each model and dataset, see `persistcal.evaluation.findings`.

    `checkpoints` maps models to evaluation checkpoints, and `settings` are by dataset.
    """
    subjects = align_subjects([predictions], checkpoints, settings, contrast_sets)
    return findings.make_findings(subjects, claims, states, thresholds, settings)


if __name__ == "__main__":
    run(make_findings, snakemake)
