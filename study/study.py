"""The evaluations, tables and analyses of a study.

The class `Study` is the meaning of a config. It names no file: files and settings of jobs are
in `study.inputs`.
"""

from functools import cached_property
from typing import Any, NamedTuple

from persistcal.evaluation.settings import EVERY
from persistcal.report.layout import comparison_blocks, expand_tables, sections
from study.answers import Answered
from study.checkpoints import Config
from study.confidences import StudyConfidences

IMPORTED = "imported"  # instead of an estimator if one file has all confidences


class ModelDataset(NamedTuple):
    """The answers of one model to one dataset."""

    model: str
    dataset: str


class Evaluated(NamedTuple):
    """An estimator on the answers of a model to a dataset."""

    model: str
    dataset: str
    estimator: str


def estimators_in_rows(table: Config) -> list[str]:
    """Return the estimators of a table's rows; EVERY for a block without rows."""
    rows = [row for block in table["blocks"] for row in block.get("rows", [{}])]
    return [row.get("estimator", EVERY) for row in rows]


class Study(StudyConfidences):
    """The evaluations, tables and analyses of a config that `check_config` accepted."""

    def least_questions(self, dataset: str) -> dict[str, int]:
        """Return the smallest number of questions of each split that the study needs."""
        trains = any(
            (self.recipe_of(row.estimator) or self.learns(row.estimator))
            and dataset in self.train_datasets(row.dataset)
            for row in self.evaluated
        )
        return {"few_shot": self.examples_needed, "train": int(trains)}

    @cached_property
    def labels(self) -> dict[str, dict[str, str]]:
        """Display names of models, datasets and estimators."""
        config = self.config
        return {
            "models": {m: config["models"][m].get("label", m) for m in self.chosen["models"]},
            "datasets": {d: config["datasets"][d].get("label", d) for d in self.datasets},
            "estimators": {e: a.get("label", e) for e, a in config["estimators"].items()},
        }

    @cached_property
    def controls(self) -> dict[str, str]:
        """The control of each named kind of change that has one."""
        control = self.chosen["control"] or {}
        if isinstance(control, str):  # one control for all other kinds
            return {kind: control for kind in self.chosen["pairs"] if kind != control}
        return dict(control)

    def settings(self, dataset: str) -> Config:
        """Return the fields of `EvaluationSettings` for the evaluations on a dataset."""
        keys = self.config["evaluation"]
        return self.settings_drawn(dataset) | keys["threshold"] | {"margin": keys["margin"]}

    def settings_drawn(self, dataset: str) -> Config:
        """Return `settings` without what resamples nothing: thresholds and margins."""
        keys = self.config["evaluation"]
        marks = {table.get("marks", "paper") for table in self.tables.values()}
        return {
            "min_contrast": self.config["datasets"][dataset]["min_contrast"],
            "pairs": self.chosen["pairs"],
            "conditionings": keys["conditioning"],
            "min_direction": keys["min_direction"],
            "n_replicates": keys["replicates"],
            "seed": keys["seed"],
            "paper_marks": "paper" in marks or bool(self.analysed("gcm_headroom")),
        }

    def datasets_shown(self, table: Config) -> dict[str, list[str]]:
        """Return the datasets that `table` can show, with their training datasets."""
        names = table.get("datasets", self.chosen["datasets"])
        return {d: self.train_elsewhere(d) for d in self.datasets if d in names}

    def model_datasets_shown(self, table: Config) -> set[tuple[str, str]]:
        """Return model and dataset of each section of `table`."""
        table_sections = sections(table, self.chosen["models"], self.datasets_shown(table))
        return {(section.model, section.dataset) for section in table_sections}

    @cached_property
    def tables(self) -> dict[str, Config]:
        """Descriptions of the study's tables that have something to show, by name.

        Studies that read files have a table of every estimator, too.
        """
        default_tables = [] if self.runs_models else ["all_estimators"]
        names = [*default_tables, *self.chosen["tables"]]
        listed = {name: self.config["tables"][name] for name in names}
        training = {dataset: self.train_elsewhere(dataset) for dataset in self.datasets}
        tables = expand_tables(listed, training)
        return {n: table for n, table in tables.items() if self.model_datasets_shown(table)}

    @cached_property
    def tables_left_out(self) -> list[str]:
        """A sentence with the remedy for each table that has nothing to show in the study."""
        tables = {name: self.config["tables"][name] for name in self.chosen["tables"]}
        return [
            f"Table {name} is left out, because it shows only {shown}; add one to "
            f"study.{section}, or take the table out of study.tables."
            for name, table in tables.items()
            if not self.model_datasets_shown(table)
            for section, shown in [self._shown_only(table)]
        ]

    def _shown_only(self, table: Config) -> tuple[str, str]:
        """Return the section of the config, and the table's entries that the study lacks."""
        for section, available in (
            ("models", self.chosen["models"]),
            ("datasets", self.datasets),
        ):
            names = table.get(section, available)
            if not set(names) & set(available):
                return section, f"the {section} {', '.join(names)}"
        kind = "with" if table.get("transfer") else "without"
        return "datasets", f"datasets {kind} train_datasets"

    def shown(self, table: str) -> list[Evaluated]:
        """Return the evaluations that a table shows."""
        if not self.estimates:
            return self.evaluated
        description = self.tables[table]
        names = estimators_in_rows(description)
        if self.has_own_answers or not self.chosen["complete_tables"]:
            names = [name for name in names if name in (EVERY, *self.chosen["estimators"])]
        if EVERY in names:
            names = self.chosen["estimators"]
        pairs = self.model_datasets_shown(description)
        return [
            Evaluated(model, dataset, estimator)
            for model in self.chosen["models"]
            for dataset in self.datasets
            if (model, dataset) in pairs
            for estimator in dict.fromkeys(names)
            if self.is_evaluated(model, dataset, estimator)
        ]

    @cached_property
    def evaluated(self) -> list[Evaluated]:
        """The evaluations of the study and of complete tables."""
        pairs = [(m, d) for m in self.chosen["models"] for d in self.chosen["datasets"]]
        if not self.estimates:
            return [Evaluated(*pair, IMPORTED) for pair in pairs]
        rows = [
            Evaluated(*pair, estimator)
            for pair in pairs
            for estimator in self.chosen["estimators"]
            if self.is_evaluated(*pair, estimator)
        ]
        added = [row for name in self.tables for row in self.shown(name)]
        return list(dict.fromkeys([*rows, *added]))

    @cached_property
    def model_datasets(self) -> list[ModelDataset]:
        """The models and datasets of the study and of complete tables."""
        added = {(row.model, row.dataset) for row in self.evaluated}
        return [
            ModelDataset(model, dataset)
            for model in self.chosen["models"]
            for dataset in self.datasets
            if dataset in self.chosen["datasets"] or (model, dataset) in added
        ]

    def blocks(self, table: str, model: str, dataset: str) -> list[list[tuple[str, str]]]:
        """Return the estimators that `table` compares with each other, block by block."""
        description = self.tables[table]
        if dataset not in self.datasets_shown(description):
            return []
        training = self.train_elsewhere(dataset)
        return comparison_blocks({table: description}, model, dataset, training)

    def comparisons(self, table: str) -> list[Any]:
        """Return the comparisons of a table, block by block."""
        rows = self.shown(table)
        pairs = dict.fromkeys((row.model, row.dataset) for row in rows)
        return [[m, d, self.blocks(table, m, d)] for m, d in pairs]

    def datasets_of_table(self, table: str) -> dict[str, list[str]]:
        """Return the datasets of a table, with the datasets that their estimators train on."""
        return self.datasets_shown(self.tables[table])

    def labels_shown(self, table: str) -> dict[str, dict[str, str]]:
        """Return display names; another estimator's name must not make the table again."""
        rows = {row.estimator for row in self.shown(table)}
        names = sorted(rows) if self.estimates else sorted(self.config["estimators"])
        labels = self.labels
        return {**labels, "estimators": {name: labels["estimators"][name] for name in names}}

    def wants_categories(self, dataset: str) -> bool:
        """Return whether metrics are also by the category of questions."""
        return dataset in self.config["evaluation"]["by_category"]

    @cached_property
    def answered(self) -> list[Answered]:
        """The answers in accuracies and on the page.

        Training checkpoints answer the study's own datasets only.
        """
        return [
            Answered(model, checkpoint, dataset, split)
            for model in self.chosen["models"]
            for checkpoint in self.checkpoints(model)
            for dataset in self.datasets
            if dataset in self.chosen["datasets"] or checkpoint in self.evaluation(model)
            if (model, dataset) in self.model_datasets
            for split in self.splits_shown(model, checkpoint, dataset)
        ]

    def analysed(self, analysis: str) -> list[ModelDataset]:
        """Return the models and datasets of the study that the `analysis` is about."""
        entry = self.config["analyses"][analysis]
        return [
            ModelDataset(model, dataset)
            for model in self.chosen["models"]
            if model in entry["models"]
            for dataset in self.chosen["datasets"]
            if dataset in entry["datasets"]
        ]

    def models_analysed(self, analysis: str) -> list[str]:
        """Return the study's models that an analysis is about."""
        names = self.config["analyses"][analysis]["models"]
        return [model for model in self.chosen["models"] if model in names]
