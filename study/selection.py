"""A study: what is evaluated, and what its tables and analyses show."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from persistcal.report.layout import (
    EVERY,
    Section,
    comparison_blocks,
    expand_tables,
    sections,
)
from study.served import ServedCheckpoints

IMPORTED = "imported"  # takes an estimator's place where all come from one file


class Place(NamedTuple):
    """The answers of one model to one dataset."""

    model: str
    dataset: str


class Answered(NamedTuple):
    """The answers of one checkpoint to one dataset."""

    model: str
    checkpoint: str
    dataset: str


class Evaluated(NamedTuple):
    """One estimator on the answers of one model to one dataset."""

    model: str
    dataset: str
    estimator: str


def _rows_of(table: dict[str, Any]) -> list[str]:
    """Return the estimators of the rows of a table; EVERY where it has a row of each."""
    rows = [row for block in table["blocks"] for row in block.get("rows", [{}])]
    return [row.get("estimator", EVERY) for row in rows]


class Study(ServedCheckpoints):
    """Answers questions about the config of a study; it changes nothing."""

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
        if isinstance(control, str):
            return {kind: control for kind in self.chosen["pairs"] if kind != control}
        return dict(control)

    @cached_property
    def datasets_by_training(self) -> dict[str, list[str]]:
        """For each dataset what its estimators train on, if not on itself."""
        return {dataset: self.elsewhere(dataset) for dataset in self.datasets}

    def datasets_shown(self, table: dict[str, Any]) -> dict[str, list[str]]:
        """Return the datasets that `table` may show, with what their estimators train on."""
        named = table.get("datasets", self.chosen["datasets"])
        return {d: of for d, of in self.datasets_by_training.items() if d in named}

    def _described(self, *names: str) -> dict[str, dict[str, Any]]:
        """Return the descriptions of those of the tables that have something to show."""
        catalogue = {name: self.config["tables"][name] for name in names}
        tables = expand_tables(catalogue, self.datasets_by_training)
        return {name: table for name, table in tables.items() if self._sections(table)}

    def _sections(self, table: dict[str, Any]) -> list[Section]:
        return sections(table, self.chosen["models"], self.datasets_shown(table))

    @cached_property
    def tables(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the study's tables, by name.

        Of the user's answers: one of every estimator, and those all of whose rows are there.
        """
        if not self.has_own_answers:
            return self._described(*self.chosen["tables"])
        known = {EVERY, *self.chosen["estimators"]}
        asked = self._described("all_estimators", *self.chosen["tables"])
        return {name: table for name, table in asked.items() if set(_rows_of(table)) <= known}

    @cached_property
    def further_tables(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the tables that only `all` makes."""
        if self.has_own_answers:
            return {}
        names = [name for name in self.chosen["further"] if name not in self.chosen["tables"]]
        return self._described(*names)

    @cached_property
    def tables_made(self) -> list[str]:
        """Tables that the default target makes."""
        if self.chosen.get("predictions"):
            # Only the user knows which other tables their estimators fill.
            return ["all_estimators"]
        return list(self.tables if self.estimates else self.every_table)

    @cached_property
    def every_table(self) -> dict[str, dict[str, Any]]:
        """Descriptions of all tables, by name."""
        if self.estimates:
            return {**self.tables, **self.further_tables}
        # Only the file knows its estimators: what it has none of can be asked for, in vain.
        named = self.chosen["tables"], self.chosen["further"]
        return self._described("all_estimators", *named[0], *named[1])

    def shown(self, table: str) -> list[Evaluated]:
        """Return whose metrics a table shows."""
        if not self.estimates:
            return self.evaluated
        description = self.every_table[table]
        named = _rows_of(description)
        # The study's own tables show what it evaluates; `all` evaluates what its tables show.
        if table in self.tables:
            named = [name for name in named if name in (EVERY, *self.chosen["estimators"])]
        if EVERY in named:
            named = self.chosen["estimators"]
        places = {(section.model, section.dataset) for section in self._sections(description)}
        return [
            Evaluated(model, dataset, estimator)
            for model in self.chosen["models"]
            for dataset in self.datasets
            if (model, dataset) in places
            for estimator in dict.fromkeys(named)
            if self.is_evaluated(model, dataset, estimator)
        ]

    @cached_property
    def evaluated(self) -> list[Evaluated]:
        """Model, dataset and estimator of each evaluation of the study itself."""
        places = [(m, d) for m in self.chosen["models"] for d in self.chosen["datasets"]]
        if not self.estimates:
            return [Evaluated(*place, IMPORTED) for place in places]
        return [
            Evaluated(*place, estimator)
            for place in places
            for estimator in self.chosen["estimators"]
            if self.is_evaluated(*place, estimator)
        ]

    @cached_property
    def ever_evaluated(self) -> list[Evaluated]:
        """Model, dataset and estimator of each evaluation of the target `all`."""
        further = [row for name in self.further_tables for row in self.shown(name)]
        return list(dict.fromkeys([*self.evaluated, *further]))

    def blocks(self, table: str, model: str, dataset: str) -> list[list[tuple[str, str]]]:
        """Return the estimators that `table` compares with each other, block by block."""
        description = self.every_table[table]
        if dataset not in self.datasets_shown(description):
            return []
        return comparison_blocks({table: description}, model, dataset, self.elsewhere(dataset))

    def least_questions(self, dataset: str) -> dict[str, int]:
        """Return how many questions of a split the study needs at least."""
        trains = any(
            (self.recipe_of(row.estimator) or self.is_fitted(row.estimator))
            and dataset in self.train_datasets(row.dataset)
            for row in self.evaluated
        )
        return {"few_shot": self.examples_needed, "train": int(trains)}

    @cached_property
    def answered(self) -> list[Answered]:
        """The answers to the study's own datasets, in the order of the tables."""
        return [
            Answered(model, checkpoint, dataset)
            for model in self.chosen["models"]
            for checkpoint in self.checkpoints(model)
            for dataset in self.chosen["datasets"]
        ]

    def analysed(self, analysis: str) -> list[Place]:
        """Return the models and datasets of the study that the `analysis` is about."""
        about = self.config["analyses"][analysis]
        return [
            Place(model, dataset)
            for model in self.chosen["models"]
            if model in about["models"]
            for dataset in self.chosen["datasets"]
            if dataset in about["datasets"]
        ]

    def variances(self) -> Iterator[Answered]:
        """Yield whose hidden-state variance is measured."""
        recipe = self.config["analyses"]["hidden_state_variance"]["recipe"]
        for model, dataset in self.analysed("hidden_state_variance"):
            for checkpoint in self.training_sets(model, recipe):
                yield Answered(model, checkpoint, dataset)
