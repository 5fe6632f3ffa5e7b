"""The config against its schema: the first thing that is wrong, in one sentence."""

import difflib
import functools
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from persistcal.evaluation.metrics.registry import names
from persistcal.judge.backends import BACKENDS
from persistcal.questions.catalogue import SHARED_KEYS, SOURCES
from persistcal.training.methods import METHODS

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it is built


class ConfigError(ValueError):
    """The config asks for something that cannot be."""


def _nearest(word: str, names: Iterable[str]) -> str:
    """Return a hint with the name most similar to `word`."""
    names = list(names)
    close = difflib.get_close_matches(word, names, n=1)
    return (
        f"did you mean '{close[0]}'?" if close else f"known are {', '.join(names) or 'none'}."
    )


def check_names(key: str, names: Iterable[str], choices: Iterable[str]) -> None:
    """Refuse a name under `key` that is not a known one."""
    for name in names:
        if name not in set(choices):
            raise ConfigError(f"config: {key} names '{name}'; {_nearest(name, choices)}")


@functools.cache
def load_schema() -> dict[str, Any]:
    """Return the schema of the config, with the values that are registered next to the code."""
    schema = yaml.load(SCHEMA.read_text(encoding="utf-8"), Loader=LOADER)
    columns = schema["properties"]["tables"]["additionalProperties"]["properties"]["columns"]
    columns["properties"]["contrast"]["items"]["enum"] = names("contrast")
    columns["properties"]["full"]["items"]["enum"] = names("full")
    dataset = schema["properties"]["datasets"]["additionalProperties"]
    dataset["properties"]["source"]["enum"] = [*SOURCES]
    dataset["allOf"] = [
        _needed_by("source", name, source.needs, (*SHARED_KEYS, *source.optional))
        for name, source in SOURCES.items()
    ]
    judge = schema["properties"]["judge"]
    judge["properties"]["backend"] = _choices(BACKENDS)
    judge["allOf"] = [
        _needed_by("backend", name, back_end.needs) for name, back_end in BACKENDS.items()
    ]
    change = schema["$defs"]["change"]
    change["properties"]["method"] = _choices(METHODS)
    change["allOf"] = [
        _needed_by("method", name, method.required()) for name, method in METHODS.items()
    ]
    return schema


def _choices(classes: Mapping[str, type]) -> dict[str, Any]:
    """Return the schema of a key with names of classes as values; docstrings describe them."""
    firsts = {name: (class_.__doc__ or "").split(".")[0] for name, class_ in classes.items()}
    meanings = [f"{name} - {text[:1].lower()}{text[1:]}" for name, text in firsts.items()]
    return {"description": f"{'; '.join(meanings)}.", "enum": [*classes]}


def _needed_by(
    key: str, value: str, needs: Iterable[str], optional: Iterable[str] | None = None
) -> dict[str, Any]:
    """Return the schema of an entry that needs further keys if `key` has a value.

    With `optional`, it can have no keys except these.
    """
    condition = {"required": [key], "properties": {key: {"const": value}}}
    then: dict[str, Any] = {"required": [*needs]}
    if optional is not None:
        then["propertyNames"] = {"enum": [*needs, *optional]}
    return {"if": condition, "then": then}


def resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the schema merged with its reference; keys of `node` take precedence."""
    while "$ref" in node:
        parts = node["$ref"].removeprefix("#/").split("/")
        target = functools.reduce(dict.__getitem__, parts, schema)
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def without_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """Return a config without optional keys that are set to the `default` of the schema.

    A key that is written with its default is then no other parameter of a job.
    """
    return _drop_defaults(config, load_schema())


def _drop_defaults(value: Any, schema: Any) -> Any:  # noqa: ANN401
    if not isinstance(schema, dict):
        return value
    schema = resolved(schema, load_schema())
    if isinstance(value, list):
        return [_drop_defaults(item, schema.get("items")) for item in value]
    if not isinstance(value, dict):
        return value
    further = schema.get("additionalProperties")
    below = {key: schema.get("properties", {}).get(key, further) for key in value}
    defaults = {
        k: s["default"] for k, s in below.items() if isinstance(s, dict) and "default" in s
    }
    return {
        key: _drop_defaults(item, below[key])
        for key, item in value.items()
        if not (
            key in defaults
            and item == defaults[key]
            and isinstance(item, bool) == isinstance(defaults[key], bool)  # 1 == True
        )
    }


def check_schema(config: dict[str, Any]) -> None:
    """Raise `ConfigError` for the most telling thing that the schema does not allow."""
    validator = jsonschema.Draft202012Validator(load_schema())
    if error := jsonschema.exceptions.best_match(validator.iter_errors(config)):
        raise ConfigError(_sentence(error))


def _sentence(error: jsonschema.ValidationError) -> str:
    key = ".".join(str(part) for part in error.absolute_path)
    schema = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        properties = schema.get("properties", {})
        unknown = next(name for name in error.instance if name not in properties)
        path = f"{key}.{unknown}" if key else unknown
        return f"config: {path} is not a known key; {_nearest(unknown, properties)}"
    if error.validator == "required" and "then" in error.absolute_schema_path:
        instance: dict[str, Any] = error.instance  # type: ignore[assignment]
        needed: list[str] = error.validator_value  # type: ignore[assignment]
        missing = next(name for name in needed if name not in instance)
        decides = next(name for name in ("source", "backend", "method") if name in instance)
        return (
            f"config: {key} lacks the key {missing}, which {decides} {instance[decides]} needs."
        )
    if {"propertyNames", "then"} <= {*error.absolute_schema_path}:
        return (
            f"config: {key}.{error.instance} is a key that the dataset's source does not read; "
            "remove it, or, if the dataset has the name and so the keys of a default one, "
            "rename the dataset."
        )
    if error.validator == "required":
        return f"config: {key or 'the config'} lacks a key: {error.message}."
    meaning = schema.get("description")
    if schema.get("writeOnly"):  # it can contain a password
        return f"config: {key} is not as it should be. It means: {meaning}"
    misread = error.validator == "type" and "string" in str(error.validator_value)
    if misread and isinstance(error.instance, bool | int | float | date):
        kind = type(error.instance).__name__
        return (
            f"config: {key} is {error.instance}, which YAML reads as {kind} and not as text; "
            "put it in quotes."
        )
    if remedy := schema.get("$comment"):
        return f"config: {key} is {error.instance!r}, but {remedy}"
    problem = "which it cannot be" if error.validator == "oneOf" else f"but {error.message}"
    about = f" It means: {meaning}" if meaning else ""
    return f"config: {key} is {error.instance!r}, {problem}.{about}"
