"""Check that the needs of a study's estimators are satisfied."""

from collections.abc import Iterable
from typing import Any

from persistcal.confidence import registry
from persistcal.confidence.estimators.catalogue import ESTIMATORS, registration_of
from study.schema import ConfigError, check_names
from study.study import Study

LONGEST_NAME = 240  # characters before .log; file systems allow 255


def check_estimator(study: Study, name: str) -> None:
    """Refuse an estimator with an incomplete or ambiguous description."""
    estimator = study.config["estimators"][name]
    if ("recipe" in estimator) == ("function" in estimator):
        raise ConfigError(f"config: estimators.{name} needs either a recipe or a function.")
    if "recipe" in estimator:
        recipe = str(study.recipe_of(name))
        check_names(f"estimators.{name}.recipe", [recipe], study.recipes)
        _check_training_sets(study, name, recipe)
    else:
        key, function = f"estimators.{name}.function", estimator["function"]
        if not function.endswith(".py"):
            check_names(key, [function], ESTIMATORS)
        try:
            registration_of(function)
        except ValueError as error:
            raise ConfigError(
                f"config: {key} names a file that cannot be used: {error}."
            ) from None
    _check_keys(estimator, f"estimators.{name}")
    if estimator.get("by_checkpoint") and name in study.recipes:
        raise ConfigError(
            f"config: estimators.{name} works by_checkpoint and has the name of a recipe, so "
            "that both would write the same scores; give it another name, or leave "
            "by_checkpoint out."
        )
    if "verifier" in estimator:
        key = f"estimators.{name}.verifier"
        check_names(key, [estimator["verifier"]], study.config["verifiers"])


def _check_keys(entry: dict[str, Any], key: str) -> None:
    """Refuse keys that the function does not read, and missing keys that it needs."""
    function = entry.get("function", "")
    registration = registration_of(function) if function else registry.Registration()
    needed = [*registration.required, *(("asks", "prompt") if "asks" in entry else ())]
    if lacking := [name for name in needed if name not in entry]:
        raise ConfigError(
            f"config: {key} lacks the key {lacking[0]}: {registry.KEYS[lacking[0]]}."
        )
    read = {*needed, *registration.optional}
    unread = [name for name in registry.KEYS if name in entry and name not in read]
    if unread and not function.endswith(".py"):
        raise ConfigError(
            f"config: {key} has {unread[0]}, which {function or 'a recipe'} does not read; "
            "leave it out."
        )
    if registration.may_lack and entry.get("by_checkpoint"):
        raise ConfigError(
            f"config: {key} has by_checkpoint, but confidences of {function} may be missing "
            "(may_lack), which is counted over all checkpoints; leave by_checkpoint out."
        )


def _check_training_sets(study: Study, name: str, recipe: str) -> None:
    """Refuse an ambiguous choice among several adapters, and names too long for a folder."""
    estimator = study.config["estimators"][name]
    elsewhere = [key for key in ("weights_of", "posthoc") if estimator.get(key)]
    for model in study.chosen["models"] if study.runs_models else []:
        sets = study.training_sets(model, recipe)
        if elsewhere and len(sets) > 1:
            raise ConfigError(
                f"config: estimators.{name} has {elsewhere[0]}, but its recipe trains several "
                "adapters, each for other checkpoints; use a recipe that trains one."
            )
        if (longest := max(map(len, sets), default=0)) > LONGEST_NAME:
            raise ConfigError(
                f"config: estimators.{name} trains an adapter on checkpoints of {model}, and "
                f"their names have {longest} characters together; a folder with all names can "
                f"have {LONGEST_NAME}; shorten the names in models.{model}.checkpoints."
            )


def check_chosen(study: Study, name: str) -> None:
    """Refuse a user's estimator with needs that the study does not satisfy."""
    entry = study.config["estimators"][name]
    runs_a_model = any(entry.get(k) for k in ("recipe", "reads_weights", "verifier", "asks"))
    if study.has_own_answers and runs_a_model:
        kind = "a verifier" if "verifier" in entry else "the weights of checkpoints"
        raise ConfigError(
            f"config: estimators.{name} needs {kind}, but study.answers brings answers only; "
            "drop it from study.estimators."
        )
    if "rater" in entry:
        for model in study.chosen["models"]:
            names = ["last_earlier", *study.known_checkpoints(model)]
            check_names(f"estimators.{name}.rater", [entry["rater"]], names)
    for model in study.chosen["models"] if study.needs_earlier(name) else []:
        if not study.earlier(model):
            raise ConfigError(
                f"config: estimators.{name} needs earlier checkpoints, but "
                f"models.{model}.earlier is empty; add some or drop it from study.estimators."
            )


def check_estimator_of_served(study: Study, estimator: str) -> None:
    """Refuse an estimator with needs that a server does not satisfy."""
    entry = study.config["estimators"][estimator]
    needs = registration_of(entry["function"]).needs if "function" in entry else ()
    for model, names in study.served.items():
        if "recipe" in entry or entry.get("reads_weights"):
            raise ConfigError(
                f"config: estimators.{estimator} needs the weights of checkpoints, but "
                f"models.{model}.checkpoints.{names[0]} is behind an API; drop it from "
                "study.estimators."
            )
        for name in names:
            has_logprobs = study.api(model, name).get("logprobs", False)
            lacking = [n for n in ("logprob", "n_tokens", *registry.OF_TOKENS) if n in needs]
            lacking = [n for n in lacking if n in registry.OF_TOKENS or not has_logprobs]
            if lacking:
                api = f"models.{model}.checkpoints.{name}.api"
                remedy = f"set {api}.logprobs to true if the server has them, or "
                remedy = "" if lacking[-1] in registry.OF_TOKENS else remedy
                raise ConfigError(
                    f"config: estimators.{estimator} needs the {lacking[-1]} of each answer, "
                    f"which {api} does not give; "
                    f"{remedy}drop it from study.estimators."
                )


def check_decoding(study: Study, estimators: Iterable[str]) -> None:
    """Refuse answers that cannot be made or do not satisfy the needs of `estimators`."""
    decoding = study.config["decoding"]
    if decoding["strategy"] == "options":
        raise ConfigError(
            "config: decoding.strategy is options, which describes given answers "
            "(study.answers); set it to beams or sample for models that answer."
        )
    number = "n_samples" if decoding["strategy"] == "sample" else "n_beams"
    for name in estimators:
        entry = study.config["estimators"][name]
        needs = registration_of(entry["function"]).needs if "function" in entry else ()
        lacking = [need for need in registry.DISTRIBUTIONS if need in needs]
        if lacking and decoding["backend"] == "vllm":
            raise ConfigError(
                f"config: estimators.{name} needs the {lacking[0]} of each answer's tokens, "
                "and decoding.backend vllm does not give it; set backend to transformers, or "
                "leave the estimator out."
            )
        if registry.SEVERAL in needs and decoding[number] == 1:
            raise ConfigError(
                f"config: estimators.{name} needs several answers to each question, but "
                f"decoding.{number} is 1; raise it, or leave the estimator out."
            )
