"""Figures and tables of a study: their files and their settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from snakemake.io import expand

from persistcal.report.catalogue import FIGURES, TABLES, View
from persistcal.store.code import code_digest
from study.checkpoints import Config
from study.inputs import Inputs
from study.study import Study

SCRIPTS = Path("workflow", "scripts", "report")
MAKERS = {"figure": SCRIPTS / "draw_figure.py", "table": SCRIPTS / "make_plain_table.py"}
FILE = "persistcal/report/catalogue.py"
Views = Mapping[str, Sequence[View]]  # by kind
CATALOGUE: Views = {"figure": FIGURES, "table": TABLES}
# Files by their key in the catalogue: paths, or the paths of each dataset
Sources = Mapping[str, Sequence[str] | Mapping[str, Sequence[str]]]


class ViewSettings:
    """Settings that an entry of the catalogue can name: a property each.

    They belong to the figure or table of `dataset`, or of all datasets if it is empty, from the
    files with the key `files`.
    """

    def __init__(
        self, study: Study, inputs: Inputs, files: str = "", dataset: str = ""
    ) -> None:
        self._study, self._inputs, self._files = study, inputs, files
        self._config, self._models = study.config, study.chosen["models"]
        self._dataset, self.root = dataset, inputs.root

    def _shown(self, table: str) -> list[str]:
        if table not in self._study.tables:
            return []
        return list(dict.fromkeys(row.estimator for row in self._study.shown(table)))

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """The display names of models, datasets and the study's own estimators."""
        return {**self._study.labels, "estimators": self.estimators}

    @property
    def models(self) -> dict[str, str]:
        """The display names of the models."""
        return self._study.labels["models"]

    @property
    def datasets(self) -> dict[str, str]:
        """The display names of all datasets, also of tables about transfer."""
        return self._study.labels["datasets"]

    @property
    def own_datasets(self) -> dict[str, str]:
        """The display names of the study's own datasets."""
        return {name: self.datasets[name] for name in self._study.chosen["datasets"]}

    @property
    def estimators(self) -> dict[str, str]:
        """The display names of evaluated estimators; all names if they are in a file."""
        names = self._study.labels["estimators"]
        if not self._study.estimates:
            return names
        evaluated = {row.estimator for row in self._study.evaluated}
        return {name: label for name, label in names.items() if name in evaluated}

    @property
    def only(self) -> list[str]:
        """The estimators of the study's first table."""
        return [name for table in [*self._study.tables][:1] for name in self._shown(table)]

    @property
    def leaderboard(self) -> dict[str, str]:
        """The display names of the estimators of the table `leaderboard`."""
        shown, names = self._shown("leaderboard"), self._study.labels["estimators"]
        return {name: label for name, label in names.items() if name in shown}

    @property
    def checkpoints(self) -> dict[str, dict[str, str]]:
        """The display names of the evaluation checkpoints of each model, in order."""
        labels = {model: self._study.checkpoint_labels(model) for model in self._models}
        return {m: {c: labels[m].get(c, c) for c in self.evaluation[m]} for m in labels}

    @property
    def evaluation(self) -> dict[str, list[str]]:
        """The evaluation checkpoints of each model."""
        return {model: self._study.evaluation(model) for model in self._models}

    @property
    def described(self) -> dict[str, dict[str, Config]]:
        """The config of each checkpoint that answers, by model."""
        return {model: self._study.described(model) for model in self._models}

    @property
    def dataset(self) -> str:
        """The dataset of the figure or table."""
        return self._dataset

    @property
    def min_contrast(self) -> int:
        """The size of the smallest contrast set that is kept."""
        return self._config["datasets"][self._dataset]["min_contrast"]

    @property
    def threshold(self) -> dict[str, float]:
        """The precision of thresholds, and the probability that a selected one misses it."""
        return self._config["evaluation"]["threshold"]

    @property
    def changes(self) -> dict[str, list[list[str]]]:
        """The pairs of checkpoints of each named kind of change."""
        return self._study.chosen["pairs"]

    @property
    def controls(self) -> dict[str, str]:
        """The control of each named kind of change that has one."""
        return self._study.controls


def plan_views(
    study: Study,
    inputs: Inputs,
    sources: Sources,
    views: Views = CATALOGUE,
    kind_of_settings: type[ViewSettings] = ViewSettings,
) -> dict[str, Any]:
    """Return the figures and tables of a study by kind and file name, ordered like `sources`.

    An entry has `rows` (files), `about` and `code` (parameters of the job), `target`, and
    `labels` (in Snakemake's report).
    """
    positions = {key: position for position, key in enumerate(sources)}
    planned: dict[str, Any] = {}
    for kind, declared in views.items():
        planned[kind] = {}
        for view in declared:
            if _key(view) not in positions:
                raise ValueError(
                    f"{kind} {view.name} of {FILE} reads the files {_key(view)!r}, which are "
                    "not in ROWS of workflow/rules/report.smk; add them there."
                )
        for view in sorted(declared, key=lambda view: positions[_key(view)]):
            files = sources[_key(view)]
            for dataset in _datasets(view, files, study):
                name = view.name.format(dataset=dataset)
                if name in planned[kind]:
                    raise ValueError(f"{FILE} has two entries that make {name}; rename one.")
                if rows := files[dataset] if isinstance(files, Mapping) else files:
                    settings = kind_of_settings(study, inputs, _key(view), dataset)
                    planned[kind][name] = _planned(kind, view, rows, settings)
    return planned


def _key(view: View) -> str:
    """Return the key of the files that a figure or table reads."""
    return view.files or view.artifact


def _datasets(view: View, files: Any, study: Study) -> list[str]:  # noqa: ANN401
    """Return the datasets that have a figure or table each; [""] if one shows all of them."""
    if "{dataset}" not in view.name:
        return [""]
    datasets = dict.fromkeys(pair.dataset for pair in study.model_datasets)
    return list(files if isinstance(files, Mapping) else datasets)


def _planned(
    kind: str, view: View, rows: Sequence[str], settings: "ViewSettings"
) -> dict[str, Any]:
    """Return the entry of a figure or table."""
    values: dict[str, Any] = {}
    names = view.settings.split()
    for name in names:
        if name == "caption":
            continue
        if not isinstance(getattr(type(settings), name, None), property):
            raise ValueError(
                f"{kind} {view.name} of {FILE} has the setting {name}, but ViewSettings of "
                "study/views.py has no such property; add it there."
            )
        values[name] = getattr(settings, name)
    dataset = settings.datasets.get(settings.dataset, settings.dataset)
    caption = view.caption.format(**{**values, "dataset": dataset})
    if "caption" in names:
        values["caption"] = caption
    description = {"function": view.path, "artifact": view.artifact, "settings": values}
    module, root = Path(*view.path.split(".")[:-1]).with_suffix(".py"), settings.root
    return {
        "rows": expand(rows),
        "about": {**description, "caption": caption},
        "target": view.target,
        "labels": {kind: view.label.format(dataset=settings.dataset)},
        "code": [code_digest(root / file, root) for file in (MAKERS[kind], module)],
    }
