"""Compare checkpoints, models, pairs, thresholds and kinds of change of the study."""

from persistcal.evaluation import pipeline
from persistcal.evaluation.aligned import align_subjects
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import Answers, ContrastMembers, Predictions
from persistcal.store.jobs import log, run


def compare_study(
    predictions: list[Predictions],
    contrast_sets: ContrastMembers,
    answers: Answers,
    *,
    checkpoints: dict[str, list[str]],
    settings: dict[str, EvaluationSettings],
    controls: dict[str, str],
) -> pipeline.StudyComparison:
    """Return the tables of `persistcal.evaluation.pipeline.compare_study`.

    `checkpoints` contains the evaluation checkpoints of each model; `settings` are by dataset.
    """
    subjects = align_subjects(predictions, checkpoints, settings, contrast_sets)
    tables = pipeline.compare_study(subjects, answers, settings, controls=controls)
    for name, table in tables._asdict().items():
        log.info("%s: %d rows", name, len(table))
    return tables


if __name__ == "__main__":
    run(compare_study, snakemake)
