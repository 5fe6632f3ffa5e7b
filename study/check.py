"""Check a config before anything runs: one sentence that names key and remedy."""

import difflib
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from persistcal.confidence.needs import SEVERAL
from persistcal.evaluation.measures import names
from study.needs import FUNCTIONS, needs_of
from study.selection import Study

SCHEMA = Path(__file__).with_name("schema.yaml")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it is built
LONGEST_NAME = 240  # of a file that ends in .log; a disk takes 255
_ASKS_FOR_WORDS = ("p_true", "p_true_few_shot")
_SOURCES = ("atlas", "elements", "triviaqa", "jeopardy", "bioasq", "file")


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
    if error.validator == "required" and "then" in error.absolute_schema_path:
        there: dict[str, Any] = error.instance  # type: ignore[assignment]
        needed: list[str] = error.validator_value  # type: ignore[assignment]
        missing = next(name for name in needed if name not in there)
        decides = next(name for name in ("source", "backend") if name in there)
        return f"config: {key} lacks the key {missing}, which {decides} {there[decides]} needs."
    if error.validator == "required":
        return f"config: {key or 'the config'} lacks a key: {error.message}."
    meaning = schema.get("description")
    if schema.get("writeOnly"):  # it may hold a password
        return f"config: {key} is not as it should be. It means: {meaning}"
    misread = error.validator == "type" and "string" in str(error.validator_value)
    if misread and isinstance(error.instance, bool | int | float | date):
        kind = type(error.instance).__name__
        return (
            f"config: {key} is {error.instance}, which YAML reads as {kind} and not as text; "
            "put it in quotes."
        )
    return f"config: {key} is {error.instance!r}, but {error.message}." + (
        f" It means: {meaning}" if meaning else ""
    )


def load_schema() -> dict[str, Any]:
    """Return the schema of the config; tables may ask for every metric that there is."""
    schema = yaml.load(SCHEMA.read_text(encoding="utf-8"), Loader=LOADER)
    columns = schema["properties"]["tables"]["additionalProperties"]["properties"]["columns"]
    for scope, described in columns["properties"].items():
        described["items"]["enum"] = names(scope)
    return schema


def check_config(config: dict[str, Any]) -> None:
    """Stop at the first thing in `config` that is not right.

    Raises
    ------
    ConfigError
        One sentence with the key and, for a misspelt name, the nearest one.
    """
    validator = jsonschema.Draft202012Validator(load_schema())
    if error := jsonschema.exceptions.best_match(validator.iter_errors(config)):
        raise ConfigError(_sentence(error))
    _check_study(config)
    _check_paths(config)
    study = Study(config)
    for name in config["study"]["models"]:
        _check_model(study, name)
    for name in study.datasets:
        _check_dataset(study, name)
    names = list(dict.fromkeys([*config["study"]["estimators"], *_named_by_tables(study)]))
    for name in names:
        _check_estimator(study, name)
    if study.runs_models:
        _check_decoding(study, names)
        for name in config["study"]["estimators"]:
            _check_earlier(study, name)
        for name, table in study.tables.items():
            _check_table(study, name, table)
    if study.has_own_answers:
        for name in config["study"]["estimators"]:
            _check_weights(study, name)
            _check_earlier(study, name)
    _check_labels(study, names)


def _check_decoding(study: Study, estimators: Iterable[str]) -> None:
    """Refuse answers that cannot be made, or that lack what `estimators` need."""
    decoding = study.config["decoding"]
    if decoding["strategy"] == "sample" and decoding["backend"] == "vllm":
        raise ConfigError(
            "config: decoding.strategy is sample, but decoding.backend vllm only searches for "
            "beams; set backend to transformers."
        )
    number = "n_samples" if decoding["strategy"] == "sample" else "n_beams"
    for name in estimators:
        about = study.config["estimators"][name]
        needs = needs_of(about["function"]) if "function" in about else ()
        if "entropy" in needs and decoding["backend"] == "vllm":
            raise ConfigError(
                f"config: estimators.{name} needs the entropy of each answer's tokens, which "
                "decoding.backend vllm does not give; set backend to transformers, or leave "
                "the estimator out."
            )
        if SEVERAL in needs and decoding[number] == 1:
            raise ConfigError(
                f"config: estimators.{name} needs several answers to each question, but "
                f"decoding.{number} is 1; raise it, or leave the estimator out."
            )


def _check_names(key: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in set(known):
            raise ConfigError(f"config: {key} names '{name}'; {_nearest(name, known)}")


def _check_study(config: dict[str, Any]) -> None:
    study = config["study"]
    for catalogue in ("models", "datasets", "estimators", "tables"):
        _check_names(f"study.{catalogue}", study[catalogue], config[catalogue])
    _check_names("study.further", study["further"], config["tables"])
    if not isinstance(study["pairs"], str):
        known = [c for m in study["models"] for c in config["models"][m].get("evaluation", [])]
        _check_names("study.pairs", [c for pair in study["pairs"] for c in pair], known)
    for table in study["further"]:
        about = config["tables"][table]
        _check_names(f"tables.{table}.datasets", about.get("datasets", []), config["datasets"])
        rows = [row["estimator"] for block in about["blocks"] for row in block.get("rows", [])]
        if not study.get("predictions"):
            _check_names(f"tables.{table}", rows, config["estimators"])
    for name, about in config["estimators"].items():
        if isinstance(about.get("recipe"), dict) and name in config["recipes"]:
            raise ConfigError(
                f"config: recipes.{name} and estimators.{name}.recipe are two recipes of one "
                f"name; write what you change into estimators.{name}.recipe."
            )
    for table, datasets in config["analyses"]["questions"].items():
        _check_names(f"analyses.questions.{table}", datasets, config["datasets"])
    sources = [key for key in ("predictions", "answers") if study.get(key)]
    sources += ["source: release"] if study.get("source") == "release" else []
    if len(sources) > 1:
        raise ConfigError(
            f"config: study.{sources[0]} and study.{sources[1]} both say where results come "
            "from; keep one."
        )
    if study.get("source") == "release" and not study.get("archive"):
        raise ConfigError(
            "config: study.source is release, but study.archive is empty; "
            "give the path of the authors' .tar.zst file."
        )


def _check_labels(study: Study, estimators: Iterable[str]) -> None:
    """Refuse two things of a kind that figures and tables would call the same."""
    labels = study.labels
    shown = {name: labels["estimators"][name] for name in estimators}
    groups = {"models": labels["models"], "datasets": labels["datasets"], "estimators": shown}
    for model in study.chosen["models"]:
        groups[f"models.{model}.checkpoints"] = study.labels_of(model)
    for kind, by_name in groups.items():
        first: dict[str, str] = {}
        for name, label in by_name.items():
            if (other := first.setdefault(label, name)) != name:
                raise ConfigError(
                    f"config: {kind}.{other} and {kind}.{name} both have the label {label!r}, "
                    "so nobody could tell them apart; give one another label."
                )


def _check_paths(config: dict[str, Any]) -> None:
    """Refuse braces in paths that rules read or write: to Snakemake they are wildcards."""
    paths = {"results": config["results"]}
    paths |= {f"study.{key}": config["study"].get(key) for key in ("predictions", "archive")}
    if study := config["study"].get("answers"):
        files = [study] if isinstance(study, str) else [entry["file"] for entry in study]
        paths |= {f"study.answers[{number}]": file for number, file in enumerate(files)}
    paths |= {
        f"datasets.{d}.file": about.get("file") for d, about in config["datasets"].items()
    }
    paths |= {
        f"estimators.{name}.function": about.get("function")
        for name, about in config["estimators"].items()
    }
    for key, path in paths.items():
        if path and set("{}") & set(path):
            raise ConfigError(
                f"config: {key} is {path!r}, but braces in a path are wildcards to Snakemake; "
                "rename it."
            )


def _named_by_tables(study: Study) -> list[str]:
    """Return the estimators of the rows that `all` evaluates for its tables."""
    return [row.estimator for row in study.ever_evaluated] if study.estimates else []


def _check_table(study: Study, name: str, table: dict[str, Any]) -> None:
    if not study.shown(name):
        rows = [row["estimator"] for block in table["blocks"] for row in block.get("rows", [])]
        raise ConfigError(
            f"config: study.tables names '{name}', but none of its estimators is in "
            f"study.estimators; add one of {', '.join(dict.fromkeys(rows))} or drop the table."
        )


def _check_model(study: Study, name: str) -> None:
    config = study.config
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
    pairs = config["study"]["pairs"]
    for one, other in [] if isinstance(pairs, str) else pairs:
        if {one, other} <= set(evaluation) and evaluation.index(one) >= evaluation.index(other):
            raise ConfigError(
                f"config: study.pairs lists [{one}, {other}], but {one} is not before {other} "
                f"in models.{name}.evaluation; name two checkpoints, the earlier one first."
            )
    if config["study"].get("predictions") or study.has_own_answers:
        return
    described = model.get("checkpoints", {})
    _check_names(f"models.{name}.earlier", earlier, described)
    _check_names(f"models.{name}.evaluation", evaluation, described)
    if not study.runs_models:
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
            _check_dataset(study, dataset)
        _check_drift(f"models.{name}.pretraining", model["pretraining"])
        _check_worlds(config, name)
    for recipe, settings in study.recipes.items():
        # A verifier's model answers nothing, so no adapter is trained on it.
        if name in study.chosen["models"] and isinstance(settings["train_on"], list):
            own = recipe not in config["recipes"]
            key = f"estimators.{recipe}.recipe" if own else f"recipes.{recipe}"
            _check_names(f"{key}.train_on", settings["train_on"], described)


def _check_worlds(config: dict[str, Any], name: str) -> None:
    """Refuse several seeds where one model is meant, or another has the name of one."""
    seeds = config["models"][name]["pretraining"]["seed"]
    if not isinstance(seeds, list):
        return
    if taken := [f"{name}-{seed}" for seed in seeds if f"{name}-{seed}" in config["models"]]:
        raise ConfigError(
            f"config: models.{name}.pretraining.seed makes a model {taken[0]}, but models has "
            "one of that name; rename it."
        )
    if name in [verifier["model"] for verifier in config["verifiers"].values()]:
        raise ConfigError(
            f"config: models.{name}.pretraining.seed lists several, but verifiers name the "
            "model; give it one seed."
        )


def _check_drift(key: str, pretraining: dict[str, Any]) -> None:
    phases = pretraining["drift"]
    ends = [phase["until"] for phase in phases]
    if ends != sorted(set(ends)) or ends[-1] != 1:
        raise ConfigError(
            f"config: {key}.drift has phases until {ends}; let until rise and end at 1.0."
        )
    n_sets = pretraining.get("fact_sets", {}).get("n", 0)
    for place, phase in enumerate(phases):
        rare = phase.get("rare", [])
        if unknown := [number for number in rare if number > n_sets]:
            raise ConfigError(
                f"config: {key}.drift.{place}.rare names set {unknown[0]}, but there are "
                f"{n_sets} sets of facts; raise {key}.fact_sets.n."
            )
        if rare and len(rare) == n_sets:
            raise ConfigError(
                f"config: {key}.drift.{place}.rare names every set of facts, so none would be "
                "met more than another; leave one out."
            )


def _check_dataset(study: Study, name: str) -> None:
    config = study.config
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
    if not study.runs_models:
        return
    if "source" not in dataset:
        raise ConfigError(
            f"config: datasets.{name} lacks a key: add its source, one of "
            f"{', '.join(_SOURCES)}."
        )
    _check_few_shot(study, name)


def _check_verifier(study: Study, name: str) -> None:
    config = study.config
    verifier = config["verifiers"][name]
    model = verifier["model"]
    _check_names(f"verifiers.{name}.model", [model], config["models"])
    _check_names(
        f"verifiers.{name}.checkpoint",
        [verifier["checkpoint"]],
        config["models"][model].get("checkpoints", {}),
    )
    _check_model(study, model)


def _check_estimator(study: Study, name: str) -> None:
    config = study.config
    estimator = config["estimators"][name]
    if ("recipe" in estimator) == ("function" in estimator):
        raise ConfigError(
            f"config: estimators.{name} needs either a recipe or a function with reads."
        )
    if "recipe" in estimator:
        recipe = str(study.recipe_of(name))
        _check_names(f"estimators.{name}.recipe", [recipe], study.recipes)
        _check_one_adapter(study, name)
        _check_folders(study, name, recipe)
    else:
        _check_function(estimator["function"], f"estimators.{name}.function")
        if "reads" not in estimator:
            raise ConfigError(
                f"config: estimators.{name} lacks the key reads: the groups of checkpoints "
                "whose answers its function reads."
            )
        if estimator["function"] in _ASKS_FOR_WORDS and "words" not in estimator:
            raise ConfigError(
                f"config: estimators.{name} lacks the key words: what follows its prompt after "
                "a right answer and after a wrong one."
            )
    if estimator.get("by_checkpoint") and name in study.recipes:
        raise ConfigError(
            f"config: estimators.{name} works by_checkpoint and is named like a recipe, beside "
            "whose scores its own would lie; give it another name, or leave by_checkpoint out."
        )
    if "verifier" in estimator:
        key = f"estimators.{name}.verifier"
        _check_names(key, [estimator["verifier"]], config["verifiers"])
        if study.runs_models:
            _check_verifier(study, estimator["verifier"])


def _check_folders(study: Study, name: str, recipe: str) -> None:
    """Refuse adapters whose folder no disk takes: it is named after all that they train on."""
    for model in study.chosen["models"] if study.runs_models else []:
        longest = max(map(len, study.training_sets(model, recipe)), default=0)
        if longest > LONGEST_NAME:
            raise ConfigError(
                f"config: estimators.{name} trains an adapter on checkpoints of {model} whose "
                f"names have {longest} characters together, but a folder is named after them "
                f"all and may have {LONGEST_NAME}; shorten those of models.{model}.checkpoints."
            )


def _check_function(function: str, key: str) -> None:
    own = sorted(path.stem for path in FUNCTIONS.glob("[a-z]*.py"))
    if not function.endswith(".py"):
        _check_names(key, [function], own)
    try:
        needs_of(function)
    except ValueError as error:
        raise ConfigError(f"config: {key} names a file that cannot be used: {error}.") from None


def _check_one_adapter(study: Study, name: str) -> None:
    """Refuse to use adapters where it is not said which of several."""
    estimator = study.config["estimators"][name]
    elsewhere = [key for key in ("weights_of", "posthoc") if estimator.get(key)]
    if not (study.runs_models and elsewhere):
        return
    recipe = study.recipe_of(name)
    for model in study.chosen["models"]:
        if len(study.training_sets(model, str(recipe))) > 1:
            raise ConfigError(
                f"config: estimators.{name} has {elsewhere[0]}, but its recipe trains several "
                "adapters, each for other checkpoints; use a recipe that trains one."
            )


def _check_weights(study: Study, name: str) -> None:
    """Refuse an estimator that runs a model, where there are only answers."""
    about = study.config["estimators"][name]
    if "recipe" in about or about.get("reads_weights") or "verifier" in about:
        kind = "a verifier" if "verifier" in about else "the weights of checkpoints"
        raise ConfigError(
            f"config: estimators.{name} needs {kind}, but study.answers brings answers only; "
            "drop it from study.estimators."
        )


def _check_earlier(study: Study, name: str) -> None:
    """Refuse an estimator of the study's own that a model has no earlier checkpoints for."""
    for model in study.chosen["models"] if study.needs_earlier(name) else []:
        if not study.earlier(model):
            raise ConfigError(
                f"config: estimators.{name} needs earlier checkpoints, but "
                f"models.{model}.earlier is empty; add some or drop it from study.estimators."
            )


# Questions that every dataset of a source keeps for prompts
_KEPT_FOR_PROMPTS = {"triviaqa": 10, "jeopardy": 10, "bioasq": 5}


def _check_few_shot(study: Study, name: str) -> None:
    dataset, asked = study.config["datasets"][name], study.config["prompts"]["few_shot"]
    there = dataset.get("n_few_shot", _KEPT_FOR_PROMPTS.get(dataset["source"]))
    # A file may say itself which of its questions are for prompts.
    if there is not None and there < asked:
        raise ConfigError(
            f"config: prompts.few_shot is {asked}, but datasets.{name} keeps {there} questions "
            f"for prompts; raise its n_few_shot or lower prompts.few_shot."
        )
