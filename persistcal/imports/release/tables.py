"""All tables that the authors' released results give a study, one after the other."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.imports.answers import imported_answers
from persistcal.imports.release.candidates import ReleasedAnswers, read_candidates
from persistcal.imports.release.estimators import Dataset, Estimates, Model, read_estimates
from persistcal.imports.release.files import Tree
from persistcal.imports.release.predictions import (
    find_excluded,
    predictions,
    questions,
    transfer_scores,
)
from persistcal.store.artifacts import (
    ANSWERS,
    BEAMS,
    CLUSTERS,
    LABELS,
    MISSING,
    PREDICTIONS,
    QUESTIONS,
    SCORES,
    Table,
)

log = logging.getLogger(__name__)

Made = tuple[Table, dict[str, str], pd.DataFrame]  # a table, what it is about, its rows


def release_tables(
    tree: Tree,
    *,
    models: Mapping[str, Mapping[str, Any]],
    datasets: Mapping[str, Mapping[str, Any]],
    recipes: Sequence[str],
    seeds: Sequence[int],
    posthoc: Mapping[str, str],
) -> Iterator[Made]:
    """Yield all tables about `models` and `datasets`, those of absent files at the end.

    All together would take gigabytes. `posthoc` says how each estimator is calibrated that
    is fitted here, `recipes` which transfer matrices there are.
    """
    missing: list[tuple[str, ...]] = []
    for name, described in datasets.items():
        dataset = Dataset(name, **described)
        estimated: dict[str, Estimates] = {}
        for key, about in models.items():
            model, place = Model(**about), {"model": key, "dataset": name}
            answers: dict[tuple[str, str], ReleasedAnswers] = {}
            for checkpoint, revision in model.revisions.items():
                read = read_candidates(tree, name, model.repo, revision, dataset.splits)
                here = {**place, "checkpoint": checkpoint}
                yield BEAMS, here, read.beams
                yield CLUSTERS, here, read.clusters
                yield LABELS, here, read.labels
                answers |= {(checkpoint, split): a for split, a in read.answers.items()}
                missing += [(key, name, "candidates", checkpoint, p) for p in read.missing]
            estimated[key] = read_estimates(tree, model, dataset, answers, seeds=seeds)
            missing += [(key, name, *row) for row in estimated[key].missing]
        excluded = find_excluded(dataset, list(estimated.values()))
        yield QUESTIONS, {"dataset": name}, questions(dataset, excluded)
        for key, estimates in estimated.items():
            place = {"model": key, "dataset": name}
            rows = predictions(estimates, excluded, posthoc)
            yield PREDICTIONS, place, rows
            every = imported_answers(rows.assign(**place))
            for checkpoint in estimates.model.evaluation:
                of_checkpoint = every[every["checkpoint"] == checkpoint]
                yield ANSWERS, {**place, "checkpoint": checkpoint}, of_checkpoint
            for checkpoint in estimates.model.revisions:
                rows = transfer_scores(checkpoint, estimates, excluded)
                here = {**place, "checkpoint": checkpoint, "answers": "transfer"}
                for recipe in recipes:
                    yield SCORES, {**here, "recipe": recipe}, rows[rows["recipe"] == recipe]
    if missing:
        log.warning("The archive lacks %d files: see missing.csv", len(missing))
    yield MISSING, {}, pd.DataFrame(missing, columns=MISSING.schema.names)
