"""Evaluations of the predictions of one model and dataset, which are aligned first."""

import pandas as pd

from persistcal.evaluation import cross_asking, reliability, replicates
from persistcal.evaluation import evaluate as evaluation
from persistcal.evaluation.aligned import align, align_subjects, list_sets
from persistcal.report.page import contents


def evaluate(predictions, checkpoints, settings):
    return evaluation.evaluate(align(predictions, checkpoints, settings), settings)


def replicate_metrics(predictions, checkpoints, settings):
    return replicates.replicate(align(predictions, checkpoints, settings), settings)


def noise_floors(predictions, checkpoints, settings, **options):
    data = align(predictions, checkpoints, settings)
    return reliability.noise_floors(data, settings, **options)


def contrast_members(answers, checkpoints, settings):
    """Return the table CONTRAST_MEMBERS of answers, or of the answers of predictions."""
    answers = answers.drop_duplicates(["checkpoint", "question_id"]).assign(answer="")
    members = list_sets(answers, checkpoints, settings).members
    return members.assign(same_answers=pd.array([None] * len(members), "Int64"))


def cross_ask(predictions, checkpoints, settings):
    """Cross-ask two asks, of which the first is the usual one if no other is."""
    if not (predictions["ask"] == 0).any():
        first = predictions[predictions["ask"] == 101].assign(ask=0)
        predictions = pd.concat([predictions, first], ignore_index=True)
    return cross_asking.cross_ask(align(predictions, checkpoints, settings).crossed, settings)


def align_models(predictions, checkpoints, settings):
    """Align the predictions of all models and datasets with the same settings."""
    by_dataset = dict.fromkeys(predictions["dataset"].unique(), settings)
    return align_subjects([predictions], checkpoints, by_dataset)


def by_dataset(predictions, checkpoints, settings):
    """Align the predictions of all models, by dataset and model."""
    aligned = {}
    for (model, dataset), data in align_models(predictions, checkpoints, settings).items():
        aligned.setdefault(dataset, {})[model] = data
    return aligned


def arrange_part(predictions, subject, **texts):
    """Arrange the predictions of the page's part about one model and dataset."""
    data = align(predictions, subject.evaluation, subject.settings)
    return contents.arrange_part(data, subject, **texts)


def members(samples):
    """Return the estimators of replicates, in the order of all arrays."""
    return list(next(iter(samples.values())).samples)
