"""Compute the accuracy of every checkpoint on every dataset."""

from persistcal.judge.accuracy import accuracies
from persistcal.store.artifacts import Accuracies, Labels, Questions
from persistcal.store.jobs import run


def compute_accuracies(questions: Questions, labels: Labels) -> Accuracies:
    """Return the accuracies on the test questions, in the order of the labels."""
    return accuracies(questions, labels)


if __name__ == "__main__":
    run(compute_accuracies, snakemake)
