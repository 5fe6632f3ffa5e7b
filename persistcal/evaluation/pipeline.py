"""An evaluation from aligned answers to tables: estimators one by one, then all together.

Notebook, command and workflow align their predictions once and call `evaluate_estimators` for
each file of estimators, and `compare_table`, `make_claims` and `compare_study` for all of them.
These functions have frames and settings, and use neither files nor rules.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import pandas as pd

from persistcal.evaluation import claims
from persistcal.evaluation.aligned import SUBJECT, Aligned, Subject
from persistcal.evaluation.bootstrap import UNFINISHED, Step
from persistcal.evaluation.evaluate import evaluate, metrics_of_pairs, sweep_min_contrast
from persistcal.evaluation.reliability import FLOOR, noise_floors
from persistcal.evaluation.replicates import digest_of_draws, from_table, replicate, to_table
from persistcal.evaluation.settings import (
    CONDITIONINGS,
    EvaluationSettings,
    Member,
    named_blocks,
)
from persistcal.evaluation.significance import compare_blocks, intervals
from persistcal.evaluation.states import compare_states
from persistcal.evaluation.subsets import metrics_of_changes
from persistcal.evaluation.thresholds import check_thresholds
from persistcal.store import artifacts
from persistcal.store.tables import select_rows

log = logging.getLogger(__name__)

# Model, dataset, and the blocks of estimators that are compared there
Comparison = tuple[str, str, Sequence[Sequence[Member]]]


class EstimatorResult(NamedTuple):
    """The tables METRICS, INTERVALS (with noise floors) and REPLICATES of a model and dataset.

    They lack these two columns.
    """

    metrics: artifacts.Metrics
    intervals: artifacts.Intervals
    replicates: artifacts.Replicates


def evaluate_estimators(
    data: Aligned, settings: EvaluationSettings, step: Step = lambda _: None
) -> EstimatorResult:
    """Evaluate one or more estimators on one model's answers to a dataset.

    Metrics have the conditionings of the tests, and by odds and fitted in any case. Replicates
    of estimators that are evaluated one by one are paired if the answers and the settings are
    the same, see `digest_of_draws`. Answers without a confidence have empty tables.
    """
    if not data.answers.confidence:
        return _no_result()
    kinds = list(dict.fromkeys([*CONDITIONINGS, *settings.conditionings]))
    metrics = evaluate(data, replace(settings, conditionings=kinds))
    step("metrics")
    replicates = replicate(data, settings, step)
    step(f"noise floors{UNFINISHED}")
    ends = intervals(replicates).drop(columns=FLOOR)
    ends = ends.merge(noise_floors(data, settings), how="left", validate="one_to_one")
    drawn = digest_of_draws(data, settings)
    step("bootstrap")
    return EstimatorResult(metrics, ends, to_table(replicates, drawn))


def nothing_to_evaluate() -> EstimatorResult:
    """Return empty tables, and log why."""
    log.warning("There are no predictions, so nothing to evaluate")
    return _no_result()


def _no_result() -> EstimatorResult:
    tables = (artifacts.METRICS, artifacts.INTERVALS, artifacts.REPLICATES)
    return EstimatorResult(*map(artifacts.empty, tables))


def compare_table(replicates: pd.DataFrame, comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """Return the table SIGNIFICANCE: the best estimator of each block against the others.

    Estimators without replicates are left out of a block.
    """
    tests = []
    for model, dataset, blocks in comparisons:
        rows = select_rows(replicates, {"model": model, "dataset": dataset})
        if rows.empty:
            log.warning("%s on %s has no predictions, so nothing to test", model, dataset)
            continue
        paired = from_table(rows)
        members = list(next(iter(paired.values())).samples)
        table = compare_blocks(paired, named_blocks(blocks, members, dataset))
        tests.append(table.assign(model=model, dataset=dataset))
        counts = len(table), table["significant"].sum()
        log.info("%s, %s: %d tests, %d significant", model, dataset, *counts)
    return _stack(tests, artifacts.SIGNIFICANCE)


def make_claims(
    subjects: Mapping[Subject, Aligned],
    replicates: pd.DataFrame,
    settings: Mapping[str, EvaluationSettings],
    *,
    determinism: str,
) -> claims.Claims:
    """Return the tables CLAIMS and PLACEBOS of all subjects; `settings` are by dataset."""
    drawn = {key: rows for key, rows in replicates.groupby(SUBJECT, sort=False)}
    made = []
    for (model, dataset), data in subjects.items():
        if not data.answers.confidence:
            continue
        samples = from_table(drawn[model, dataset])
        pair = claims.make_claims(data, samples, settings[dataset], determinism=determinism)
        made.append([table.assign(model=model, dataset=dataset) for table in pair])
    kinds = artifacts.CLAIMS, artifacts.PLACEBOS
    tables = claims.Claims(
        *(_stack([tables[i] for tables in made], kind) for i, kind in enumerate(kinds))
    )
    about_moved = tables.claims[tables.claims["metric"] == "moved"]
    log.info("%s", about_moved["word"].value_counts().to_dict())
    return tables


class StudyComparison(NamedTuple):
    """Tables of `persistcal.store.artifacts` about the checkpoints of a study."""

    states: artifacts.States
    trends: artifacts.Trends
    pairs: artifacts.Pairs
    min_contrast: artifacts.MinContrast
    thresholds: artifacts.Thresholds
    threshold_cells: artifacts.ThresholdCells
    confident_regressions: artifacts.ConfidentRegressions
    selective: artifacts.Selective
    changes: artifacts.Changes


def compare_study(
    subjects: Mapping[Subject, Aligned],
    answers: pd.DataFrame,
    settings: Mapping[str, EvaluationSettings],
    *,
    controls: Mapping[str, str],
    step: Step = lambda _: None,
) -> StudyComparison:
    """Compare checkpoints, models, pairs, thresholds and kinds of change of a study.

    Parameters
    ----------
    subjects : mapping of (str, str) to Aligned
        By model and dataset.
    answers : DataFrame
        The table ANSWERS, for the texts of regressions.
    settings : mapping of str to EvaluationSettings
        By dataset. They differ in `min_contrast` only.
    controls : mapping of str to str
        The control of each named kind of change that has one.
    """
    first = next(iter(settings.values()))
    by_dataset = {
        name: {model: data for (model, dataset), data in subjects.items() if dataset == name}
        for name in settings
    }
    states = [
        compare_states(models, settings[name], dataset=name)
        for name, models in by_dataset.items()
        if models
    ]
    for name in [name for name, models in by_dataset.items() if not models]:
        log.warning("There are no predictions on %s, so nothing to compare", name)
    step("states")
    pairs = measure_pairs(subjects, settings)
    changes = measure_changes(by_dataset, first, controls=controls)
    step("pairs")
    thresholds = check_thresholds(subjects, answers, first)
    step("thresholds")
    return StudyComparison(
        _stack([table for table, _ in states], artifacts.STATES),
        _stack([table for _, table in states], artifacts.TRENDS),
        *pairs,
        *thresholds,
        changes,
    )


def measure_pairs(
    subjects: Mapping[Subject, Aligned], settings: Mapping[str, EvaluationSettings]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables PAIRS and MIN_CONTRAST of all predictions."""
    measured, swept = [], []
    for (model, dataset), data in subjects.items():
        for of_file in data.by_file() if data.answers.confidence else ():
            table = metrics_of_pairs(of_file)
            sweep = sweep_min_contrast(table, chosen=settings[dataset].min_contrast)
            measured.append(table.assign(model=model, dataset=dataset))
            swept.append(sweep.assign(model=model, dataset=dataset))
    return _stack(measured, artifacts.PAIRS), _stack(swept, artifacts.MIN_CONTRAST)


def measure_changes(
    by_dataset: Mapping[str, Mapping[str, Aligned]],
    settings: EvaluationSettings,
    *,
    controls: Mapping[str, str],
) -> pd.DataFrame:
    """Return the table CHANGES of all models; empty if no kind of change has a name."""
    tables = []
    for dataset, models in by_dataset.items() if isinstance(settings.pairs, Mapping) else ():
        files = (members for data in models.values() for members in data.files)
        for member in dict.fromkeys(chain.from_iterable(files)):
            parts = {
                m: d.select_members([member])
                for m, d in models.items()
                if member in d.answers.rows
            }
            table = metrics_of_changes(parts, settings, controls=controls)
            tables.append(table.assign(dataset=dataset))
    return _stack(tables, artifacts.CHANGES)


def _stack(tables: Sequence[pd.DataFrame], kind: artifacts.Table) -> pd.DataFrame:
    """Return one table; empty ones would change the types of columns."""
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else artifacts.empty(kind)
