"""Metrics, tests and page of predictions, step by step."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from persistcal.analyses.accuracy import accuracies
from persistcal.command.files import (
    ESTIMATORS,
    IMPORTED,
    StudyOfFiles,
    as_read,
    rows_about,
)
from persistcal.evaluation import contrast, significance
from persistcal.evaluation import states as comparisons
from persistcal.evaluation.conditioning import CONDITIONINGS
from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.noise_floor import add_noise_floors, noise_floors
from persistcal.evaluation.replicates import (
    digest_of_draws,
    from_table,
    replicate_metrics,
    to_table,
)
from persistcal.judge.contradictions import count_same_answers
from persistcal.report.grid import as_csv, fill_cells, lay_out
from persistcal.report.latex import results_table
from persistcal.report.layout import EVERY, DisplayNames, named_blocks
from persistcal.report.page.compose import Origin, compose, summary
from persistcal.report.page.contents import StudyTables, gather
from persistcal.report.page.facts import about
from persistcal.report.state_views import states as table_of_states
from persistcal.report.tables import calibration, contrast_set_sizes
from persistcal.store import artifacts
from persistcal.store.tables import TableFiles

# The table of that name of the workflow
ALL_ESTIMATORS: dict[str, Any] = {
    "caption": "All metrics of every estimator. Bold: best of the block; underlined: cannot be "
    "distinguished from the best (simultaneous 95 % intervals of all pairs, bootstrap of "
    "questions).",
    "marks": "best_set",
    "layout": "models_as_blocks",
    "conditioning": "odds",
    "columns": {
        "contrast": [
            "delta0_balanced",
            "change_auc",
            "delta0",
            "delta_balanced",
            "delta",
            "auc",
            "brier",
            "smece",
        ],
        "full": ["auc", "brier", "smece"],
    },
    "blocks": [{}],
}


@dataclass(frozen=True)
class Settings:
    """What the commands let a user choose of an evaluation."""

    min_contrast: int
    min_direction: int
    replicates: int
    seed: int

    @property
    def sets(self) -> dict[str, Any]:
        """The settings of contrast sets."""
        return {"min_contrast": self.min_contrast, "pairs": "all"}

    @property
    def bootstrap(self) -> dict[str, Any]:
        """The settings of the bootstrap."""
        return {"n_replicates": self.replicates, "seed": self.seed}


def check_compared(study: StudyOfFiles) -> None:
    """Refuse estimators that were all trained elsewhere: of these there is no table."""
    of = ["dataset", "train_dataset"]
    pairs = pd.concat([rows[of].drop_duplicates() for rows in study.predictions.values()])
    if not (pairs["dataset"] == pairs["train_dataset"]).any():
        dataset, train_dataset = pairs[of].iloc[0]
        raise ValueError(
            "no estimator was trained on the dataset that it is evaluated on: train_dataset is "
            f"{train_dataset!r} where the dataset is {dataset!r}; name the dataset in a column "
            "dataset, or leave out the column train_dataset."
        )


def metrics_of(
    study: StudyOfFiles, settings: Settings, step: Callable[[str], None]
) -> pd.DataFrame:
    """Return the table METRICS of all predictions."""
    parts = []
    for (model, dataset, name), rows in study.predictions.items():
        found = evaluate(rows, study.checkpoints[model], **settings.sets)
        parts.append((found, {"model": model, "dataset": dataset}))
        step(name or dataset)
    return as_read(parts, artifacts.METRICS)


def tests_of(
    study: StudyOfFiles, settings: Settings, step: Callable[[str], None]
) -> dict[str, pd.DataFrame]:
    """Return by name the tables of tests, of intervals, of contrast sets and of states."""
    drawn, ends = [], []
    for (model, dataset, name), rows in study.predictions.items():
        names, place = study.checkpoints[model], {"model": model, "dataset": dataset}
        how = {**settings.sets, **settings.bootstrap, "min_direction": settings.min_direction}
        found = replicate_metrics(rows, names, conditionings=CONDITIONINGS, **how)
        drawn.append((to_table(found, digest_of_draws(rows, names, **how)), place))
        floors = noise_floors(rows, names, **settings.sets, seed=settings.seed)
        ends.append((add_noise_floors(significance.intervals(found), floors), place))
        step(f"bootstrap, {name or dataset}")
    replicates, sets, tests = as_read(drawn, artifacts.REPLICATES), [], []
    for model, dataset in dict.fromkeys((m, d) for m, d, _ in study.predictions):
        place = {"model": model, "dataset": dataset}
        paired = from_table(rows_about(replicates, place))
        blocks = named_blocks([[(dataset, EVERY)]], paired.estimators, dataset)
        tests.append((significance.compare_blocks(paired, blocks), place))
        sets.append((_contrast_sets(study, settings, place), place))
    compared = [
        comparisons.compare_states(
            {str(m): rows for m, rows in here.groupby("model", sort=False)},
            study.checkpoints,
            dataset=str(dataset),
            pairs="all",
            **settings.bootstrap,
        )
        for dataset, here in _predictions(study).groupby("dataset", sort=False)
    ]
    step("states")
    states, trends = zip(*compared, strict=True)
    return {
        "significance": as_read(tests, artifacts.SIGNIFICANCE),
        "intervals": as_read(ends, artifacts.INTERVALS),
        "contrast_sets": as_read(sets, artifacts.CONTRAST_SETS),
        "states": as_read([(part, {}) for part in states], artifacts.STATES),
        "trends": as_read([(part, {}) for part in trends], artifacts.TRENDS),
        "replicates": replicates,
    }


def _predictions(study: StudyOfFiles) -> pd.DataFrame:
    return pd.concat(study.predictions.values(), ignore_index=True)


def _contrast_sets(
    study: StudyOfFiles, settings: Settings, place: Mapping[str, str]
) -> pd.DataFrame:
    names = study.checkpoints[place["model"]]
    answers, clusters = (rows_about(table, place) for table in (study.answers, study.clusters))
    asked = {name: answers[answers["checkpoint"] == name] for name in names}
    correct, _ = contrast.arrange_answers(asked)
    how = {**settings.sets, "pairs": contrast.choose_pairs("all", names)}
    sets = contrast.describe_sets(contrast.contrast_sets(correct, **how), names)
    same = count_same_answers(sets, answers, clusters)
    return sets.assign(same_answers=pd.array(same, "Int64"))


def page_of(
    study: StudyOfFiles,
    settings: Settings,
    metrics: pd.DataFrame,
    tests: Mapping[str, pd.DataFrame],
) -> tuple[str, str]:
    """Return the page of a study, and its summary in a few lines of text."""
    predictions = _predictions(study)
    labels = _labels(predictions)
    config = _config(study, settings, labels)
    described = {"all_estimators": ALL_ESTIMATORS}
    empty = {
        "transfer": as_read([], artifacts.TRANSFER),
        "variance": as_read([], artifacts.CORRELATIONS),
        "headroom": as_read([], artifacts.HEADROOM),
        "similarity": as_read([], artifacts.WEIGHT_SIMILARITIES),
    }
    answered = len(study.labels) > 0
    made = StudyTables(
        predictions,
        tests["replicates"],
        tests["intervals"],
        study.questions,
        study.clusters,
        study.labels,
        checkpoints=[],
        accuracies=accuracies(study.questions, study.labels)
        if answered
        else as_read([], artifacts.ACCURACIES),
        tables=_tables(study, settings, metrics, tests, labels),
        **empty,
    )
    contents = gather(made, config, described=described, main=[], labels=labels)
    terms = about(config, commit="", weights={}, seeds=predictions["seed"].unique())
    terms += [("Taken for granted", note) for note in study.notes]
    text = json.dumps(config, indent=2, ensure_ascii=False)
    return compose(contents, Origin(terms, [], text)), summary(contents)


def _labels(predictions: pd.DataFrame) -> dict[str, dict[str, str]]:
    estimators = [str(name) for name in predictions["estimator"].unique()]
    return {
        "models": {name: name for name in map(str, predictions["model"].unique())},
        "datasets": {name: name for name in map(str, predictions["dataset"].unique())},
        "estimators": {name: ESTIMATORS.get(name, name) for name in estimators},
    }


def _config(study: StudyOfFiles, settings: Settings, labels: DisplayNames) -> dict[str, Any]:
    """Return what the page reads of a config."""
    given = IMPORTED in {name for _, _, name in study.predictions}
    judge = {"backend": "none", "model": "labels of the files"}
    return {
        "results": ".",
        "models": {m: {"evaluation": names} for m, names in study.checkpoints.items()},
        "datasets": {d: {"min_contrast": settings.min_contrast} for d in labels["datasets"]},
        "study": {
            "pairs": "all",
            "models": [*labels["models"]],
            "datasets": [*labels["datasets"]],
        },
        "judge": judge if given else {"backend": "lexical"},
        "evaluation": {
            "replicates": settings.replicates,
            "min_direction": settings.min_direction,
            "seed": settings.seed,
        },
        "analyses": {},
    }


def _tables(
    study: StudyOfFiles,
    settings: Settings,
    metrics: pd.DataFrame,
    tests: Mapping[str, pd.DataFrame],
    labels: DisplayNames,
) -> list[TableFiles]:
    """Return the tables that the page shows."""
    cells = fill_cells(
        metrics,
        tests["significance"],
        ALL_ESTIMATORS,
        models=list(labels["models"]),
        datasets={dataset: () for dataset in labels["datasets"]},
        missing_ok=True,
    )
    grids = lay_out(cells, ALL_ESTIMATORS, labels=labels)
    tex = results_table(grids, caption=ALL_ESTIMATORS["caption"], label="all-estimators")
    tables = [TableFiles("all_estimators", as_csv(cells, "all_estimators"), tex)]
    names = {m: {c: c for c in of} for m, of in study.checkpoints.items()}
    shared: dict[str, Any] = {"checkpoints": names, "labels": labels}
    printed = {}
    for dataset in labels["datasets"]:
        if (tests["contrast_sets"]["dataset"] == dataset).any():
            printed[f"contrast_set_sizes_{dataset}"] = contrast_set_sizes(
                tests["contrast_sets"],
                dataset=dataset,
                min_contrast=settings.min_contrast,
                **shared,
            )
    printed["calibration"] = calibration(tests["intervals"], labels=labels)
    if len(tests["states"]):
        printed["states"] = table_of_states(tests["states"], **shared)
    return tables + [
        TableFiles(name, made.rows.to_csv(index=False), made.tex)
        for name, made in printed.items()
    ]


def sentences_of(study: StudyOfFiles, settings: Settings) -> Sequence[str]:
    """Return what the command took for granted, to be said with every result."""
    order = [f"{m}: {' → '.join(names)}" for m, names in study.checkpoints.items()]
    return [
        f"Checkpoints in order, {'; '.join(order)}.",
        *study.notes,
        f"Contrast sets of fewer than {settings.min_contrast} questions are left out.",
    ]
