"""Take predictions from a user's file."""

from persistcal.answers.clusters import warn_if_none_is_correct
from persistcal.readers import predictions as reader
from persistcal.store.artifacts import PREDICTIONS, Answers, Predictions
from persistcal.store.jobs import log, run
from persistcal.store.user_files import digests_of, name_files_in_errors


def import_predictions(
    file: str, *, datasets: list[str], checkpoints: dict[str, dict[str, bool]]
) -> tuple[Predictions, Answers]:
    """Return the study's predictions, and the answers that they are about.

    `checkpoints` maps models and checkpoints to whether a checkpoint can equal another one.
    """
    sources = digests_of(file)
    with name_files_in_errors(file):
        collected = reader.read_study_rows(file, checkpoints, datasets)
        rows = reader.settle_rows(collected, narrow=collected.attrs.get(reader.NARROW, ()))
        reader.check_spelling(rows)
        reader.check_predictions(rows, datasets, checkpoints)
    log.info("%d predictions", len(rows))
    predictions = rows[[*PREDICTIONS.file_columns, *PREDICTIONS.schema.names]]
    answers = reader.imported_answers(predictions)
    for names, correct in answers.groupby(["model", "checkpoint", "dataset"], observed=True)[
        "correct"
    ]:
        warn_if_none_is_correct(correct, f"answers of {', '.join(map(str, names))}")
    predictions.attrs["sources"] = sources
    return predictions, answers


if __name__ == "__main__":
    run(import_predictions, snakemake)
