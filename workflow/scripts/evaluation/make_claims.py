"""Say of each estimator whether its confidence followed the changes."""

from persistcal.evaluation import pipeline
from persistcal.evaluation.aligned import align_subjects
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store import artifacts
from persistcal.store.jobs import run


def make_claims(
    predictions: artifacts.Predictions,
    contrast_sets: artifacts.ContrastMembers,
    replicates: artifacts.Replicates,
    *,
    checkpoints: dict[str, list[str]],
    settings: dict[str, EvaluationSettings],
    determinism: str,
) -> tuple[artifacts.Claims, artifacts.Placebos]:
    """Return claims and placebos of each model and dataset, see `persistcal.evaluation.claims`.

    `checkpoints` maps models to evaluation checkpoints, and `settings` are by dataset.
    """
    subjects = align_subjects([predictions], checkpoints, settings, contrast_sets)
    return pipeline.make_claims(subjects, replicates, settings, determinism=determinism)


if __name__ == "__main__":
    run(make_claims, snakemake)
