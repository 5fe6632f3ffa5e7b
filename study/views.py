"""Figures and tables of a study: their files and their settings."""

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from snakemake.io import expand

from persistcal.report.catalogue import FIGURES, TABLES, View
from persistcal.store.code import code_digest
from study.study import Study

FILE = "persistcal/report/catalogue.py"
Views = Mapping[str, Sequence[View]]  # by kind
CATALOGUE: Views = {"figure": FIGURES, "table": TABLES}
# Files by their key in the catalogue: paths, or the paths of each dataset
Sources = Mapping[str, Sequence[str] | Mapping[str, Sequence[str]]]


class ViewContext(NamedTuple):
    """A study; the key of the files of a figure or table, its dataset if any, and its name."""

    study: Study
    files: str = ""
    dataset: str = ""
    name: str = ""


Setting = Callable[[ViewContext], Any]


def labels(study: Study) -> dict[str, dict[str, str]]:
    """Return the display names of models, datasets and evaluated estimators.

    All estimators have one if they are in a file.
    """
    names = study.labels["estimators"]
    evaluated = {row.estimator for row in study.evaluated} if study.estimates else {*names}
    return {**study.labels, "estimators": _labels_of(study, "estimators", evaluated)}


def _shown(study: Study, table: str) -> list[str]:
    """Return the estimators of a table."""
    rows = study.shown(table) if table in study.tables else []
    return list(dict.fromkeys(row.estimator for row in rows))


def _of_models(read: Callable[[Study, str], Any]) -> Setting:
    """Return a setting that has a value for each model."""
    return lambda s: {model: read(s.study, model) for model in s.study.chosen["models"]}


def _checkpoint_labels(study: Study, model: str) -> dict[str, str]:
    """Return the display names of the evaluation checkpoints of a model, in order."""
    names = study.checkpoint_labels(model)
    return {name: names.get(name, name) for name in study.evaluation(model)}


def _labels_of(study: Study, kind: str, names: Collection[str]) -> dict[str, str]:
    """Return the display names of some models, datasets or estimators."""
    return {name: label for name, label in study.labels[kind].items() if name in names}


# Settings that are keyword-only parameters of functions in the catalogue
SETTINGS: dict[str, Setting] = {
    "labels": lambda s: labels(s.study),
    "models": lambda s: s.study.labels["models"],
    "datasets": lambda s: s.study.labels["datasets"],  # also of tables about transfer
    "own_datasets": lambda s: _labels_of(s.study, "datasets", s.study.chosen["datasets"]),
    "estimators": lambda s: labels(s.study)["estimators"],
    # The estimators of the study's first table
    "only": lambda s: [n for table in [*s.study.tables][:1] for n in _shown(s.study, table)],
    "leaderboard": lambda s: _labels_of(s.study, "estimators", _shown(s.study, "leaderboard")),
    "checkpoints": _of_models(_checkpoint_labels),
    "evaluation": _of_models(Study.evaluation),
    "described": _of_models(Study.described),  # the config of each checkpoint that answers
    "dataset": lambda s: s.dataset,
    "name": lambda s: s.name,
    "min_contrast": lambda s: s.study.config["datasets"][s.dataset]["min_contrast"],
    # The precision of thresholds, and the probability that a selected one misses it
    "threshold": lambda s: s.study.config["evaluation"]["threshold"],
    "changes": lambda s: s.study.chosen["pairs"],  # pairs of each named kind of change
    "controls": lambda s: s.study.controls,
}


def plan_views(
    study: Study,
    root: Path,
    sources: Sources,
    views: Views = CATALOGUE,
    settings: Mapping[str, Setting] = SETTINGS,
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
                    module = root.joinpath(*view.path.split(".")[:-1]).with_suffix(".py")
                    function = read_functions(module)[view.path.split(".")[-1]]
                    subject = ViewContext(study, _key(view), dataset, name)
                    values = _values(view, function, subject, settings)
                    planned[kind][name] = {
                        "rows": expand(rows),
                        "about": {"function": view.path, "artifact": view.artifact, **values},
                        "target": view.target,
                        "labels": {kind: view.label.format(dataset=dataset)},
                        "code": code_digest(module, root),
                    }
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


class Function(NamedTuple):
    """The keyword-only parameters of a function, and the caption in its docstring."""

    parameters: list[str]
    caption: str


@cache
def read_functions(module: Path) -> dict[str, Function]:
    """Return the functions of a module, without importing it.

    A caption is the second paragraph of the docstring, or its only one.
    """
    functions = {}
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            paragraphs = (ast.get_docstring(node) or "").split("\n\n")
            caption = " ".join(paragraphs[:2][-1].split())
            parameters = [parameter.arg for parameter in node.args.kwonlyargs]
            functions[node.name] = Function(parameters, caption)
    return functions


def _values(
    view: View, function: Function, subject: ViewContext, settings: Mapping[str, Setting]
) -> dict[str, Any]:
    """Return the settings of a figure or table, and its caption with them filled in."""
    values = {}
    for name in function.parameters:
        if name != "caption" and name not in settings:
            raise ValueError(
                f"{view.path}, which makes {view.name}, has the parameter {name}, but SETTINGS "
                "of study/views.py has no such entry; add it there."
            )
        values[name] = settings[name](subject) if name != "caption" else ""
    label = subject.study.labels["datasets"].get(subject.dataset, subject.dataset)
    caption = (view.caption or function.caption).format(**{**values, "dataset": label})
    if "caption" in values:
        values["caption"] = caption
    return {"settings": values, "caption": caption}
