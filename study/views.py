"""Figures and tables of a study: their files and their settings."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from snakemake.io import expand

from persistcal.report.registry import View, declared_views
from persistcal.store.code import code_digest
from study.inputs import Inputs
from study.study import Config, Study

MODULES = Path("persistcal", "report")
SCRIPTS = Path("workflow", "scripts", "report")
MAKERS = {"figure": SCRIPTS / "draw_figure.py", "table": SCRIPTS / "make_plain_table.py"}
# Files by their key in the registry: paths, or the paths of each dataset
Sources = Mapping[str, Sequence[str] | Mapping[str, Sequence[str]]]


class ViewSettings:
    """Settings that a function can name as parameters: a public method each.

    A method can have the parameters `dataset`, which receives the dataset of the figure or
    table, and `files`, the key of the files that it reads.
    """

    def __init__(self, study: Study, inputs: Inputs) -> None:
        self._study, self._inputs = study, inputs
        self._config, self._models = study.config, study.chosen["models"]

    def _shown(self, table: str) -> list[str]:
        if table not in self._study.every_table:
            return []
        return list(dict.fromkeys(row.estimator for row in self._study.shown(table)))

    def labels(self) -> dict[str, dict[str, str]]:
        """Return the display names of models, datasets and the study's own estimators."""
        return {**self._study.labels, "estimators": self.estimators()}

    def models(self) -> dict[str, str]:
        """Return the display names of the models."""
        return self._study.labels["models"]

    def datasets(self) -> dict[str, str]:
        """Return the display names of all datasets, also of tables about transfer."""
        return self._study.labels["datasets"]

    def own_datasets(self) -> dict[str, str]:
        """Return the display names of the study's own datasets."""
        return {name: self.datasets()[name] for name in self._study.chosen["datasets"]}

    def estimators(self) -> dict[str, str]:
        """Return the display names of evaluated estimators; all names if they are in a file."""
        names = self._study.labels["estimators"]
        if not self._study.estimates:
            return names
        evaluated = {row.estimator for row in self._study.evaluated}
        return {name: label for name, label in names.items() if name in evaluated}

    def only(self) -> list[str]:
        """Return the estimators of the study's first table."""
        return [name for table in self._study.tables_made[:1] for name in self._shown(table)]

    def leaderboard(self) -> dict[str, str]:
        """Return the display names of the estimators of the table `leaderboard`."""
        shown, names = self._shown("leaderboard"), self._study.labels["estimators"]
        return {name: label for name, label in names.items() if name in shown}

    def checkpoints(self) -> dict[str, dict[str, str]]:
        """Return the display names of the evaluation checkpoints of each model, in order."""
        labels = {model: self._study.labels_of(model) for model in self._models}
        return {m: {c: labels[m].get(c, c) for c in self.evaluation()[m]} for m in labels}

    def all_checkpoints(self, files: str) -> dict[str, dict[str, str]]:
        """Return the display names of all checkpoints of each model of the analysis `files`."""
        return {m: self._study.labels_of(m) for m in self._inputs.models_analysed(files)}

    def evaluation(self) -> dict[str, list[str]]:
        """Return the evaluation checkpoints of each model."""
        return {model: self._study.evaluation(model) for model in self._models}

    def described(self) -> dict[str, dict[str, Config]]:
        """Return the config of each checkpoint that answers, by model."""
        return {model: self._study.described(model) for model in self._models}

    def dataset(self, dataset: str) -> str:
        """Return the dataset of the figure or table."""
        return dataset

    def min_contrast(self, dataset: str) -> int:
        """Return the size of the smallest contrast set that is kept."""
        return self._config["datasets"][dataset]["min_contrast"]

    def changes(self) -> dict[str, list[list[str]]]:
        """Return the pairs of checkpoints of each named kind of change."""
        return self._study.chosen["pairs"]

    def controls(self) -> dict[str, str]:
        """Return the control of each named kind of change that has one."""
        return self._study.controls

    def transfer_sets(self, files: str) -> dict[str, dict[str, dict[str, list[str]]]]:
        """Return the training sets of the recipes of the transfer matrices, by model."""
        return {m: self._inputs.transfer_sets(m) for m in self.all_checkpoints(files)}

    def transfer_recipes(self) -> dict[str, str]:
        """Return the titles of the recipes of the transfer matrices."""
        return self._config["analyses"]["transfer"]["recipes"]

    def random_later(self) -> list[str]:
        """Return the recipes of the transfer matrices with random labels on the later end."""
        recipes = {name: self._study.recipe(name) for name in self.transfer_recipes()}
        return [name for name, recipe in recipes.items() if recipe["labels"] == "random_later"]

    def verifier(self) -> str:
        """Return the display name of the verifier that the oracle is compared with."""
        return self._compared("verifier")

    def oracle(self) -> str:
        """Return the display name of the oracle that the verifier is compared with."""
        return self._compared("oracle")

    def _compared(self, role: str) -> str:
        name = self._config["analyses"]["gcm_headroom"][role]
        return self._study.labels["estimators"][name]


def plan_views(settings: ViewSettings, sources: Sources, root: Path) -> dict[str, Any]:
    """Return the figures and tables of a study by kind and file name, ordered like `sources`.

    An entry has `rows` (files), `about` and `code` (parameters of the job), `target`, and
    `labels` (in Snakemake's report).
    """
    places = {key: place for place, key in enumerate(sources)}
    declared = list(declared_views(root / MODULES))
    for view in declared:
        if view.files not in places:
            raise ValueError(
                f"{_place(view)} reads the files {view.files!r}, which are not in ROWS of "
                "workflow/rules/report.smk; add them there."
            )
    planned: dict[str, Any] = {"figure": {}, "table": {}}
    for view in sorted(declared, key=lambda view: places[view.files]):
        files = sources[view.files]
        for dataset in _datasets(view, files, settings):
            name = view.name.format(dataset=dataset)
            if first := planned[view.kind].get(name):
                raise ValueError(
                    f"{_place(view)} makes {name}, and so does {first['about']['module']}.py; "
                    "rename one."
                )
            if rows := files[dataset] if isinstance(files, Mapping) else files:
                planned[view.kind][name] = _planned(view, dataset, rows, settings, root)
    return planned


def _place(view: View) -> str:
    return f"{view.kind} {view.name} of persistcal/report/{view.module}.py"


def _datasets(view: View, files: Any, settings: ViewSettings) -> list[str]:  # noqa: ANN401
    """Return the datasets that have a figure or table each; [""] if one shows all of them."""
    if "{dataset}" not in view.name:
        return [""]
    return list(files if isinstance(files, Mapping) else settings.own_datasets())


def _planned(
    view: View, dataset: str, rows: Sequence[str], settings: ViewSettings, root: Path
) -> dict[str, Any]:
    """Return the entry of a figure or table."""
    title = settings.datasets().get(dataset, dataset)
    choices = {"dataset": dataset, "files": view.files}
    values: dict[str, Any] = {}
    for name in view.settings:
        if name != "caption":
            supply = getattr(settings, name, None)
            if name.startswith("_") or supply is None:
                raise ValueError(
                    f"{_place(view)} has the parameter {name}, but study/views.py "
                    "has no such setting; add it there."
                )
            asked = inspect.signature(supply).parameters
            values[name] = supply(**{n: value for n, value in choices.items() if n in asked})
    caption = view.caption.format(**{**values, "dataset": title})
    if "caption" in view.settings:
        values["caption"] = caption
    module = MODULES / f"{view.module}.py"
    identity = {key: getattr(view, key) for key in ("name", "module", "artifact")}
    return {
        "rows": expand(rows),
        "about": {**identity, "settings": values, "caption": caption},
        "target": view.target,
        "labels": {view.kind: view.label.format(dataset=dataset)},
        "code": [code_digest(root / file, root) for file in (MAKERS[view.kind], module)],
    }
