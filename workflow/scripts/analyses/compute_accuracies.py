"""Compute the accuracy of every checkpoint on every dataset."""

import logging

import pandas as pd

from persistcal.analyses.accuracy import accuracy
from persistcal.store.artifacts import ACCURACIES, Accuracies, Labels, Questions
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def compute_accuracies(questions: Questions, labels: Labels) -> Accuracies:
    """Return the accuracies on the test questions, in the order of the labels."""
    rows = []
    for key, labelled in labels.groupby(["model", "checkpoint", "dataset"], sort=False):
        model, checkpoint, dataset = key
        asked = questions[questions["dataset"] == dataset]
        try:
            split, value, n = accuracy(asked, labelled)
        except ValueError as error:
            raise ValueError(f"{model} {checkpoint}, {dataset}: {error}.") from error
        rows.append((model, checkpoint, dataset, split, value, n))
        log.info("%s %s, %s: %.3f of %d %s questions", *rows[-1][:3], value, n, split)
    return pd.DataFrame(rows, columns=ACCURACIES.schema.names)


if __name__ == "__main__":
    run(compute_accuracies, snakemake)
