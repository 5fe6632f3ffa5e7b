"""Check a config before anything runs: one sentence that names key and remedy."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from study.selection import runs_models

SCHEMA = Path(__file__).with_name("schema.yaml")


class ConfigError(ValueError):
    """The config asks for something that cannot be."""


def _nearest(word: str, known: Iterable[str]) -> str:
    """Say which of `known` was meant by `word`."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    return (
        f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known) or 'none'}."
    )


def _sentence(error: jsonschema.ValidationError) -> str:
    key = ".".join(str(part) for part in error.absolute_path)
    schema = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = schema.get("properties", {})
        unknown = next(name for name in error.instance if name not in known)
        where = f"{key}.{unknown}" if key else unknown
        return f"config: {where} is not a known key; {_nearest(unknown, known)}"
    if error.validator == "required":
        return f"config: {key or 'the config'} lacks a key: {error.message}."
    meaning = schema.get("description")
    return f"config: {key} is {error.instance!r}, but {error.message}." + (
        f" It means: {meaning}" if meaning else ""
    )


def check_config(config: dict[str, Any]) -> None:
    """Stop at the first thing in `config` that is not right.

    Raises
    ------
    ConfigError
        One sentence with the key and, for a misspelt name, the nearest one.
    """
    schema = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    if error := jsonschema.exceptions.best_match(validator.iter_errors(config)):
        raise ConfigError(_sentence(error))
    _check_study(config)
    for name in config["study"]["models"]:
        _check_model(config, name)
    for name in config["study"]["datasets"] + config["study"]["further"]["datasets"]:
        _check_dataset(config, name)
    for name in config["study"]["estimators"] + config["study"]["further"]["estimators"]:
        _check_estimator(config, name)


def _check_names(key: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in set(known):
            raise ConfigError(f"config: {key} names '{name}'; {_nearest(name, known)}")


def _check_study(config: dict[str, Any]) -> None:
    study = config["study"]
    for catalogue in ("models", "datasets", "estimators", "tables"):
        _check_names(f"study.{catalogue}", study[catalogue], config[catalogue])
    for catalogue in ("datasets", "estimators", "tables"):
        further = study["further"][catalogue]
        _check_names(f"study.further.{catalogue}", further, config[catalogue])
    for table, datasets in config["analyses"]["questions"].items():
        _check_names(f"analyses.questions.{table}", datasets, config["datasets"])
    if study.get("source") == "release" and not study.get("archive"):
        raise ConfigError(
            "config: study.source is release, but study.archive is empty; "
            "give the path of the authors' .tar.zst file."
        )


def _check_model(config: dict[str, Any], name: str) -> None:
    model = config["models"][name]
    if name in config["study"]["models"] and "evaluation" not in model:
        raise ConfigError(
            f"config: models.{name} lacks a key: add the checkpoints of its evaluation."
        )
    earlier, evaluation = model.get("earlier", []), model.get("evaluation", [])
    if both := [checkpoint for checkpoint in evaluation if checkpoint in earlier]:
        raise ConfigError(
            f"config: models.{name} has '{both[0]}' in both earlier and evaluation; "
            "keep it in one of them."
        )
    if config["study"].get("predictions"):
        return
    described = model.get("checkpoints", {})
    _check_names(f"models.{name}.earlier", earlier, described)
    _check_names(f"models.{name}.evaluation", evaluation, described)
    if not runs_models(config):
        return
    if ("repo" in model) == ("pretraining" in model):
        raise ConfigError(
            f"config: models.{name} needs either repo (where its checkpoints are) or "
            "pretraining (how to make them)."
        )
    needed = "revision" if "repo" in model else "step"
    for checkpoint in earlier + evaluation:
        if needed not in described[checkpoint]:
            raise ConfigError(
                f"config: models.{name}.checkpoints.{checkpoint} lacks a key: add its {needed}."
            )
    if "pretraining" in model:
        steps = [description["step"] for description in described.values()]
        if steps != sorted(set(steps)):
            raise ConfigError(
                f"config: models.{name}.checkpoints must be listed by rising step, got {steps}."
            )
        if steps[-1] > model["pretraining"]["steps"]:
            raise ConfigError(
                f"config: models.{name}.checkpoints reach step {steps[-1]}, but "
                f"models.{name}.pretraining.steps is {model['pretraining']['steps']}; raise it."
            )
        _check_names(
            f"models.{name}.pretraining.datasets",
            model["pretraining"]["datasets"],
            config["datasets"],
        )
        for dataset in model["pretraining"]["datasets"]:
            _check_dataset(config, dataset)
    for recipe, settings in config["recipes"].items():
        if isinstance(settings["train_on"], list):
            _check_names(f"recipes.{recipe}.train_on", settings["train_on"], described)


SOURCE_NEEDS = {
    "elements": ("n_test", "n_few_shot", "seed", "train_datasets"),
    "atlas": ("n_train", "n_test", "n_few_shot", "seed", "min_city_population"),
    "triviaqa": ("repo", "revision", "train", "test"),
    "jeopardy": ("repo", "revision", "train", "test", "categories"),
    "bioasq": ("file", "train_datasets"),
    "file": ("file",),
}


def _check_dataset(config: dict[str, Any], name: str) -> None:
    dataset = config["datasets"][name]
    _check_names(
        f"datasets.{name}.train_datasets",
        dataset.get("train_datasets", []),
        config["study"]["datasets"],
    )
    if "train" in dataset and "test" in dataset:
        (begin, end), (first, last) = sorted([dataset["train"], dataset["test"]])
        if begin >= end or first >= last or first < end:
            raise ConfigError(
                f"config: datasets.{name}.train {dataset['train']} and test {dataset['test']} "
                "overlap or are empty; each is [first index, index after the last]."
            )
    if not runs_models(config):
        return
    if "source" not in dataset:
        raise ConfigError(
            f"config: datasets.{name} lacks a key: add its source, one of "
            f"{', '.join(SOURCE_NEEDS)}."
        )
    for key in SOURCE_NEEDS[dataset["source"]]:
        if key not in dataset:
            raise ConfigError(
                f"config: datasets.{name} lacks the key {key}, which source "
                f"{dataset['source']} needs."
            )


def _check_verifier(config: dict[str, Any], name: str) -> None:
    verifier = config["verifiers"][name]
    model = verifier["model"]
    _check_names(f"verifiers.{name}.model", [model], config["models"])
    _check_names(
        f"verifiers.{name}.checkpoint",
        [verifier["checkpoint"]],
        config["models"][model].get("checkpoints", {}),
    )
    _check_model(config, model)


def _check_estimator(config: dict[str, Any], name: str) -> None:
    estimator = config["estimators"][name]
    if ("recipe" in estimator) == ("script" in estimator):
        raise ConfigError(
            f"config: estimators.{name} needs either a recipe or a script with reads."
        )
    if "recipe" in estimator:
        _check_names(f"estimators.{name}.recipe", [estimator["recipe"]], config["recipes"])
    elif "reads" not in estimator:
        raise ConfigError(
            f"config: estimators.{name} lacks the key reads: the groups of checkpoints whose "
            "answers its script reads."
        )
    if "verifier" in estimator:
        key = f"estimators.{name}.verifier"
        _check_names(key, [estimator["verifier"]], config["verifiers"])
        if runs_models(config):
            _check_verifier(config, estimator["verifier"])
    needs_earlier = {"earlier", "last_earlier"} & {
        *estimator.get("reads", []),
        estimator.get("weights_of"),
        estimator.get("answers_of"),
    }
    for model in config["study"]["models"] if needs_earlier and runs_models(config) else []:
        if not config["models"][model].get("earlier"):
            raise ConfigError(
                f"config: estimators.{name} needs earlier checkpoints, but "
                f"models.{model}.earlier is empty; add some or drop it from study.estimators."
            )
