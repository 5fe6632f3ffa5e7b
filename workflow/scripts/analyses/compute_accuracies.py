"""Compute the accuracy of every checkpoint on every dataset."""

import logging
from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal import artifacts
from persistcal.analyses.accuracy import accuracy
from persistcal.logs import log_to

log = logging.getLogger(__name__)


def compute_accuracies(
    questions_paths: Mapping[str, str],
    labels_paths: Sequence[str],
    accuracies_path: str,
    *,
    answers: Sequence[tuple[str, str, str]],
) -> None:
    """Write the accuracies on the test questions to `accuracies_path`.

    Parameters
    ----------
    questions_paths : mapping
        By dataset a table `persistcal.artifacts.QUESTIONS`.
    labels_paths : sequence of str
        Tables `persistcal.artifacts.LABELS`.
    accuracies_path : str
        CSV of `persistcal.artifacts.ACCURACIES`.
    answers : sequence of (model, checkpoint, dataset)
        Whose answers each of `labels_paths` is about.
    """
    questions = {
        dataset: artifacts.read(path, artifacts.QUESTIONS)
        for dataset, path in questions_paths.items()
    }
    rows = []
    for path, (model, checkpoint, dataset) in zip(labels_paths, answers, strict=True):
        labels = artifacts.read(path, artifacts.LABELS)
        if labels.empty:
            log.warning("%s %s, %s: no answer is labelled", model, checkpoint, dataset)
            continue
        try:
            split, value, n = accuracy(questions[dataset], labels)
        except ValueError as error:
            raise ValueError(f"{path}: {error}.") from error
        rows.append((model, checkpoint, dataset, split, value, n))
        log.info("%s %s, %s: %.3f of %d %s questions", *rows[-1][:3], value, n, split)
    frame = pd.DataFrame(rows, columns=artifacts.ACCURACIES.schema.names)
    artifacts.write_csv(frame, accuracies_path, artifacts.ACCURACIES)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    compute_accuracies(
        dict(zip(snakemake.params.datasets, snakemake.input.questions, strict=True)),
        snakemake.input.labels,
        snakemake.output.accuracies,
        answers=snakemake.params.answers,
    )
