"""An evaluation from predictions to tables: each estimator alone, then all of them together.

Notebook, command and workflow call `evaluate_estimator` for each estimator, and
`compare_table`, `make_claims` and `compare_study` for all of them. These know frames and
settings, neither files nor rules.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from persistcal.evaluation import claims
from persistcal.evaluation.blocks import Member, named_blocks
from persistcal.evaluation.contrast import arrange_answers, contrast_sets, describe_sets
from persistcal.evaluation.evaluate import metrics_of, prepare_predictions
from persistcal.evaluation.reliability import add_noise_floors, floors_of
from persistcal.evaluation.replicates import (
    UNFINISHED,
    digest_of_draws,
    from_table,
    replicate,
    to_table,
)
from persistcal.evaluation.settings import CONDITIONINGS, EvaluationSettings
from persistcal.evaluation.significance import compare_blocks, intervals
from persistcal.evaluation.states import compare_states
from persistcal.evaluation.subsets import (
    metrics_of_changes,
    metrics_of_pairs,
    sweep_min_contrast,
)
from persistcal.evaluation.thresholds import check_thresholds
from persistcal.store import artifacts

log = logging.getLogger(__name__)

# Is called with the name of each finished step, and of a part of one if it ends in UNFINISHED
Step = Callable[[str], None]
Checkpoints = Mapping[str, Sequence[str]]  # evaluation checkpoints of each model, in order
# Model, dataset, and the blocks of estimators that are compared there
Comparison = tuple[str, str, Sequence[Sequence[Member]]]
SUBJECT = ["model", "dataset"]


class EstimatorResult(NamedTuple):
    """The tables METRICS, INTERVALS (with noise floors) and REPLICATES of a model and dataset.

    They lack these two columns.
    """

    metrics: pd.DataFrame
    intervals: pd.DataFrame
    replicates: pd.DataFrame


def evaluate_estimator(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str],
    settings: EvaluationSettings,
    step: Step = lambda _: None,
) -> EstimatorResult:
    """Evaluate the predictions of one or more estimators on one model's answers to a dataset.

    Metrics have the conditionings of the tests, and by odds and fitted in any case. Replicates
    of estimators that are evaluated one by one are paired if the answers and the settings are
    the same, see `digest_of_draws`.
    """
    if predictions.empty:
        log.warning("There are no predictions, so nothing to evaluate")
        tables = (artifacts.METRICS, artifacts.INTERVALS, artifacts.REPLICATES)
        return EstimatorResult(*map(artifacts.empty, tables))
    every = list(dict.fromkeys([*CONDITIONINGS, *settings.conditionings]))
    data = prepare_predictions(predictions, checkpoints, replace(settings, conditionings=every))
    metrics = metrics_of(data, settings)
    step("metrics")
    tested = data.only(settings.conditionings)
    replicates = replicate(tested, settings, step)
    step(f"noise floors{UNFINISHED}")
    ends = add_noise_floors(intervals(replicates), floors_of(tested, settings))
    drawn = digest_of_draws(predictions, checkpoints, settings)
    step("bootstrap")
    return EstimatorResult(metrics, ends, to_table(replicates, drawn))


def compare_table(replicates: pd.DataFrame, comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """Return the table SIGNIFICANCE: the best estimator of each block against the others.

    Estimators without replicates are left out of a block.
    """
    tests = []
    for model, dataset, blocks in comparisons:
        rows = replicates[(replicates[SUBJECT] == [model, dataset]).all(axis=1)]
        if rows.empty:
            log.warning("%s on %s has no predictions, so nothing to test", model, dataset)
            continue
        paired = from_table(rows)
        table = compare_blocks(paired, named_blocks(blocks, paired.estimators, dataset))
        tests.append(table.assign(model=model, dataset=dataset))
        counts = len(table), table["significant"].sum()
        log.info("%s, %s: %d tests, %d significant", model, dataset, *counts)
    return _stack(tests, artifacts.SIGNIFICANCE)


def make_claims(
    predictions: pd.DataFrame,
    replicates: pd.DataFrame,
    checkpoints: Checkpoints,
    settings: Mapping[str, EvaluationSettings],
    *,
    is_greedy: bool,
) -> pd.DataFrame:
    """Return the table CLAIMS of each model and dataset; `settings` are by dataset."""
    drawn = {key: rows for key, rows in replicates.groupby(SUBJECT, sort=False)}
    tables = []
    for key, rows in predictions.groupby(SUBJECT, sort=False):
        model, dataset = map(str, key)
        table = claims.make_claims(
            rows,
            from_table(drawn[key]),
            checkpoints[model],
            settings[dataset],
            is_greedy=is_greedy,
        )
        tables.append(table.assign(model=model, dataset=dataset))
    made = _stack(tables, artifacts.CLAIMS)
    log.info("%s", made["word"][made["word"].ne("")].value_counts().to_dict())
    return made


class StudyComparison(NamedTuple):
    """What a study says about its checkpoints: tables of `persistcal.store.artifacts`."""

    states: pd.DataFrame
    trends: pd.DataFrame
    pairs: pd.DataFrame
    min_contrast: pd.DataFrame
    thresholds: pd.DataFrame
    threshold_cells: pd.DataFrame
    confident_regressions: pd.DataFrame
    selective: pd.DataFrame
    changes: pd.DataFrame


def compare_study(
    predictions: Sequence[pd.DataFrame],
    checkpoints: Checkpoints,
    answers: pd.DataFrame,
    settings: Mapping[str, EvaluationSettings],
    *,
    controls: Mapping[str, str],
    step: Step = lambda _: None,
) -> StudyComparison:
    """Compare checkpoints, models, pairs, thresholds and kinds of change of a study.

    Parameters
    ----------
    predictions : sequence of DataFrame
        Tables PREDICTIONS of any models and datasets.
    checkpoints : mapping of str to sequence of str
        The evaluation checkpoints of each model, earliest first.
    answers : DataFrame
        The table ANSWERS, for the texts of regressions.
    settings : mapping of str to EvaluationSettings
        By dataset. They differ in `min_contrast` only.
    controls : mapping of str to str
        The control of each named kind of change that has one.
    """
    filled = [rows for rows in predictions if len(rows)]
    together = pd.concat(filled or list(predictions), ignore_index=True)
    first = next(iter(settings.values()))
    states = [
        compare_checkpoints_of(together[together["dataset"] == dataset], checkpoints, chosen)
        for dataset, chosen in settings.items()
    ]
    step("states")
    pairs = measure_pairs(filled, checkpoints, settings)
    changes = measure_changes(together, checkpoints, first, controls=controls)
    step("pairs")
    thresholds = check_thresholds(filled, checkpoints, answers, first)
    step("thresholds")
    return StudyComparison(
        _stack([table for table, _ in states], artifacts.STATES),
        _stack([table for _, table in states], artifacts.TRENDS),
        *pairs,
        *thresholds,
        changes,
    )


def compare_checkpoints_of(
    predictions: pd.DataFrame, checkpoints: Checkpoints, settings: EvaluationSettings
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables STATES and TRENDS of all predictions on one dataset."""
    if predictions.empty:
        log.warning("There are no predictions on a dataset, so nothing to compare")
        return artifacts.empty(artifacts.STATES), artifacts.empty(artifacts.TRENDS)
    by_model = {str(model): rows for model, rows in predictions.groupby("model", sort=False)}
    dataset = str(predictions["dataset"].iloc[0])
    return compare_states(by_model, checkpoints, settings, dataset=dataset)


def measure_pairs(
    predictions: Sequence[pd.DataFrame],
    checkpoints: Checkpoints,
    settings: Mapping[str, EvaluationSettings],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables PAIRS and MIN_CONTRAST of all predictions."""
    measured, swept = [], []
    for frame in predictions:
        for key, rows in frame.groupby(SUBJECT, sort=False):
            model, dataset = map(str, key)
            chosen, labels = settings[dataset], {"model": model, "dataset": dataset}
            table = metrics_of_pairs(rows, checkpoints[model], chosen)
            measured.append(table.assign(**labels))
            sweep = sweep_min_contrast(table, chosen=chosen.min_contrast)
            swept.append(sweep.assign(**labels))
    return _stack(measured, artifacts.PAIRS), _stack(swept, artifacts.MIN_CONTRAST)


def measure_changes(
    predictions: pd.DataFrame,
    checkpoints: Checkpoints,
    settings: EvaluationSettings,
    *,
    controls: Mapping[str, str],
) -> pd.DataFrame:
    """Return the table CHANGES of all predictions; empty if no kind of change has a name."""
    if not isinstance(settings.pairs, Mapping):
        return artifacts.empty(artifacts.CHANGES)
    tables = []
    key = ["dataset", "train_dataset", "estimator"]
    for (dataset, *_), rows in predictions.groupby(key, sort=False):
        table = metrics_of_changes(rows, checkpoints, settings, controls=controls)
        tables.append(table.assign(dataset=str(dataset)))
    return _stack(tables, artifacts.CHANGES)


def _stack(tables: Sequence[pd.DataFrame], kind: artifacts.Table) -> pd.DataFrame:
    """Return one table; empty ones would change the types of columns."""
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else artifacts.empty(kind)


class ContrastTables(NamedTuple):
    """The tables CONTRAST_SETS (counts) and CONTRAST_QUESTIONS of one model and dataset."""

    sizes: pd.DataFrame
    questions: pd.DataFrame


def describe_contrast_sets(
    answers: pd.DataFrame, checkpoints: Sequence[str], settings: EvaluationSettings
) -> ContrastTables:
    """Count the contrast sets of some answers, and list their questions with both answers.

    `answers` is the table ANSWERS of one model and dataset. Sets of fewer than `min_contrast`
    questions are listed, too.
    """
    by_checkpoint = {name: answers[answers["checkpoint"] == name] for name in checkpoints}
    correct, ids = arrange_answers(by_checkpoint)
    texts = {
        name: rows.set_index("question_id")["answer"] for name, rows in by_checkpoint.items()
    }
    sets = contrast_sets(correct, checkpoints, settings)
    rows = []
    for pair in sets:
        chosen = ids[pair.questions]
        earlier, later = checkpoints[pair.earlier], checkpoints[pair.later]
        columns = {
            "earlier": earlier,
            "later": later,
            "question_id": chosen,
            "improvement": pair.improvement,
            "kept": pair.kept,
            "earlier_answer": texts[earlier].reindex(chosen).to_numpy(),
            "later_answer": texts[later].reindex(chosen).to_numpy(),
        }
        rows.append(pd.DataFrame(columns))
    return ContrastTables(
        describe_sets(sets, checkpoints), _stack(rows, artifacts.CONTRAST_QUESTIONS)
    )
