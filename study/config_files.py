"""Configs as they are read: laid over the defaults, and refused where YAML misreads them."""

import copy
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from persistcal.confidence.estimators.catalogue import ESTIMATORS, registration_of
from study.checkpoints import Config
from study.schema import LOADER, ConfigError

FILES = ("config.yaml", "tables.yaml")

# Octal numbers, and numbers to the base of 60: 010 is 8 and 1:30 is 90 in YAML 1.1.
_ODD_NUMBER = re.compile(r"[-+]?(?:0[0-7_]+|[1-9][\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?)")


def over_defaults(config: Config, project: Path) -> Config:
    """Return `config` laid over the defaults of the `project`, key by key.

    An estimator of the study that is not in the catalogue is `stated` in the user's answers. A
    dataset without `min_contrast` uses `evaluation.min_contrast`. A study of the user's files
    has no default tables. Snakemake's `configfile:` merges files in the same way, but reads no
    file in a module with a config.
    """
    merged = merge_defaults(config, project)
    settle_estimators(merged)
    settle_tables(merged, config)
    evaluation = merged.get("evaluation")
    if isinstance(evaluation, dict) and "min_contrast" in evaluation:
        for dataset in _mappings(merged.get("datasets")):
            dataset.setdefault("min_contrast", evaluation["min_contrast"])
    settle_sources(merged, project)
    return merged


def merge_defaults(config: Config, project: Path) -> Config:
    """Return the defaults of the `project` with the keys of `config`, as they are written."""
    # In Snakemake's order, so that no parameter of a job changes with the way in.
    merged = copy.deepcopy(config)
    for name in FILES:
        update_config(merged, load_configfile(project / "config" / name))
    update_config(merged, config)
    return merged


def limited(config: Config) -> tuple[Config, list[str]]:
    """Return `config` cut down to its `study.limit`, and notes on datasets that are left out.

    Rules limit the questions, after they are counted.
    """
    limit = (config.get("study") or {}).get("limit")
    if not isinstance(limit, dict):
        return config, []
    config = copy.deepcopy(config)
    for model in _mappings(config["models"]):
        for group, kept in (
            ("earlier", slice(-limit.get("earlier", 0), None)),
            ("evaluation", slice(limit.get("evaluation"))),
        ):
            if isinstance(model.get(group), list):
                model[group] = model[group][kept]
    notes = []
    for name, dataset in config["datasets"].items():
        dataset["min_contrast"] = limit.get("min_contrast", dataset["min_contrast"])
        if "file" in dataset and not Path(dataset["file"]).exists():
            notes += _leave_out(name, config)
    return config, notes


def _leave_out(dataset: str, config: Config) -> list[str]:
    """Take a dataset without its file out of the study and its tables; return a note."""
    study, tables = config["study"], config["tables"]
    if study["datasets"] == [dataset]:
        return []
    dataset_tables = [
        t for t in study["tables"] if dataset in tables.get(t, {}).get("datasets", [])
    ]
    for name in dataset_tables:
        tables[name]["datasets"].remove(dataset)
    dropped = [name for name in dataset_tables if not tables[name]["datasets"]]
    if dataset not in study["datasets"] and not dropped:
        return []
    study["tables"] = [name for name in study["tables"] if name not in dropped]
    study["datasets"] = [name for name in study["datasets"] if name != dataset]
    entry = config["datasets"][dataset]
    with_tables = f" (and the tables {', '.join(dropped)})" if dropped else ""
    label = entry.get("label", dataset)
    return [f"{label} is left out{with_tables}, because {entry['file']} is missing."]


def settle_sources(config: Config, project: Path) -> None:
    """Drop each `repo` and `revision` that is null, and find folders of the `project`.

    A file that is laid over another one takes a key back with null. A folder is looked for in
    the working directory and then in the project, like a prompt.
    """
    for model in _mappings(config["models"]):
        for source in (model, *_mappings(model.get("checkpoints"))):
            for key in ("repo", "revision"):
                if key in source and source[key] is None:
                    del source[key]
            repo = source.get("repo")
            if isinstance(repo, str) and not Path(repo).exists() and (project / repo).is_dir():
                source["repo"] = str(project / repo)


def settle_tables(merged: Config, given: Config) -> None:
    """Drop the default tables of a study that reads files, whose estimators they lack.

    Estimators of a study of predictions are refused, because the file contains them.
    """
    study = given.get("study")
    if not isinstance(study, dict):
        return
    is_read = study.get("predictions") and not study.get("answers")
    if is_read and "estimators" in study:
        raise ConfigError(
            "config: study.estimators has no meaning for study.predictions, whose file has the "
            "estimators; leave it out."
        )
    if study.get("answers") or study.get("predictions"):
        merged["study"]["tables"] = study.get("tables", [])


def _mappings(catalogue: Any) -> list[Config]:  # noqa: ANN401
    """Return the entries of a catalogue that are mappings; the schema refuses others."""
    entries = catalogue.values() if isinstance(catalogue, dict) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def settle_estimators(config: Config) -> None:
    """Add the registered functions to the catalogue, and to each entry its function's defaults.

    Functions that need a key of the config are not added. Keys of an entry replace defaults.
    """
    catalogue = config["estimators"]
    if not isinstance(catalogue, dict):
        return
    for name, registration in ESTIMATORS.items():
        if not registration.required:
            catalogue.setdefault(name, {"function": name})
    # Other names of a study of the user's answers are columns of these.
    study = config.get("study") or {}
    columns = study.get("estimators") if study.get("answers") else None
    for name in columns if isinstance(columns, list) else []:
        if isinstance(name, str) and name not in catalogue:
            catalogue[name] = {"label": name, "function": "stated"}
    for name, entry in catalogue.items():
        if not isinstance(entry, dict) or "recipe" in entry:
            continue
        if name in ESTIMATORS:
            entry.setdefault("function", name)
        try:
            function = str(entry["function"])
            registration = registration_of(function)
        except (KeyError, ValueError):
            continue  # a wrong entry, which is refused if the study uses it
        if registration.label and name == Path(function).stem:
            entry.setdefault("label", registration.label)
        entry.update({k: v for k, v in registration.defaults().items() if k not in entry})


def refuse_misread(paths: Iterable[str | Path]) -> None:
    """Raise `ConfigError` for the first misleading entry of a file.

    Misleading entries are keys that occur twice in a mapping, because only the last one would
    count, and numbers that YAML reads as other numbers.
    """
    for path in paths:
        _refuse_below(path, yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=LOADER))


def _refuse_below(path: str | Path, node: yaml.Node | None, *keys: str) -> None:
    if isinstance(node, yaml.ScalarNode):
        is_number = node.tag.endswith((":int", ":float"))
        if is_number and _ODD_NUMBER.fullmatch(node.value):
            raise ConfigError(
                f"{path}: line {node.start_mark.line + 1} has {node.value}, which YAML reads "
                f"as the number {yaml.load(node.value, Loader=LOADER)}; put it in quotes if it "
                "is a name, or write it without leading zeros and colons."
            )
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            _refuse_below(path, item, *keys, str(number))
    lines: dict[str, int] = {}
    for key, value in node.value if isinstance(node, yaml.MappingNode) else []:
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            raise ConfigError(
                f"{path}: {'.'.join((*keys, name))} stands in line {lines[name]} and again in "
                f"line {line}, and only the last would count; write it once."
            )
        lines[name] = line
        _refuse_below(path, key, *keys)
        _refuse_below(path, value, *keys, name)
