"""Check that the needs of a study's estimators are satisfied."""

from collections.abc import Iterable
from typing import Any

from persistcal.confidence.column_needs import DISTRIBUTIONS, SEVERAL
from study.needs import FUNCTIONS, needs_of
from study.schema import ConfigError, check_names
from study.study import Study

LONGEST_NAME = 240  # characters before .log; file systems allow 255
_ASKS_FOR_WORDS = ("p_true", "p_true_few_shot")
_ASKS_IN_WORDS = ("said_probability", "said_guesses", "said_words")
_ASKING = {
    "asks": "how many replies it asks a checkpoint for, and of what length and temperature",
    "prompt": "the file of what it asks a checkpoint about an answer",
    "scale": "the probability of each expression that a reply may be",
}
_OWN_KEYS = {
    "layer": ("linear_probe", "question_probe", "entropy_probe"),
    "fit_at": ("entropy_probe",),
    "rater": ("base_probability",),
}
_NEEDED = {
    "rater": "the checkpoint whose probabilities of the answers it reads",
    "fit_at": "training, or each to fit the probe anew at each checkpoint",
}
_NOT_BY_ASKING = ("reads_weights", "by_checkpoint", "compares_answers", "verifier", "words")


def check_estimator(study: Study, name: str) -> None:
    """Refuse an estimator with an incomplete or ambiguous description."""
    estimator = study.config["estimators"][name]
    if ("recipe" in estimator) == ("function" in estimator):
        raise ConfigError(
            f"config: estimators.{name} needs either a recipe or a function with reads."
        )
    if "recipe" in estimator:
        recipe = str(study.recipe_of(name))
        check_names(f"estimators.{name}.recipe", [recipe], study.recipes)
        _check_one_adapter(study, name)
        _check_folders(study, name, recipe)
    else:
        _check_function(estimator["function"], f"estimators.{name}.function")
        if "reads" not in estimator:
            raise ConfigError(
                f"config: estimators.{name} lacks the key reads: the groups of checkpoints "
                "whose answers its function reads."
            )
        _check_asking(estimator, f"estimators.{name}")
        if estimator["function"] in _ASKS_FOR_WORDS and "words" not in estimator:
            raise ConfigError(
                f"config: estimators.{name} lacks the key words: what follows its prompt after "
                "a right answer and after a wrong one."
            )
    _check_own_keys(study.config["estimators"][name], f"estimators.{name}")
    if estimator.get("by_checkpoint") and name in study.recipes:
        raise ConfigError(
            f"config: estimators.{name} works by_checkpoint and is named like a recipe, beside "
            "whose scores its own would lie; give it another name, or leave by_checkpoint out."
        )
    if "verifier" in estimator:
        key = f"estimators.{name}.verifier"
        check_names(key, [estimator["verifier"]], study.config["verifiers"])


def _check_own_keys(estimator: dict[str, Any], key: str) -> None:
    """Refuse a key that the function does not read, and a missing key that it needs."""
    function = estimator.get("function", "")
    for name, functions in _OWN_KEYS.items():
        if name in estimator and not function.endswith(".py") and function not in functions:
            raise ConfigError(
                f"config: {key} has {name}, which only the functions {' and '.join(functions)} "
                "read; leave it out."
            )
    for name in ("rater", "fit_at"):
        if function in _OWN_KEYS[name] and name not in estimator:
            raise ConfigError(f"config: {key} lacks the key {name}: {_NEEDED[name]}.")
    if function == "entropy_probe" and estimator.get("fitted", False) != (
        estimator["fit_at"] == "training"
    ):
        raise ConfigError(
            f"config: {key}.fit_at is {estimator['fit_at']}, so that fitted must be "
            f"{'true' if estimator['fit_at'] == 'training' else 'false'}: only on training "
            "checkpoints the function learns from the earlier ones."
        )


def _check_asking(estimator: dict[str, Any], key: str) -> None:
    """Refuse an estimator with incomplete or additional settings for asking a checkpoint."""
    function = estimator["function"]
    needed = ["asks", "prompt"] if function in _ASKS_IN_WORDS or "asks" in estimator else []
    needed += ["scale"] if function == "said_words" else []
    if lacking := [name for name in needed if name not in estimator]:
        raise ConfigError(f"config: {key} lacks the key {lacking[0]}: {_ASKING[lacking[0]]}.")
    if "asks" in estimator and (more := [k for k in _NOT_BY_ASKING if estimator.get(k)]):
        raise ConfigError(
            f"config: {key} has asks and {more[0]}, but what asks reads the replies alone, "
            f"which are kept by checkpoint; leave {more[0]} out."
        )


def _check_folders(study: Study, name: str, recipe: str) -> None:
    """Refuse adapters with too many training checkpoints for the name of a folder."""
    for model in study.chosen["models"] if study.runs_models else []:
        longest = max(map(len, study.training_sets(model, recipe)), default=0)
        if longest > LONGEST_NAME:
            raise ConfigError(
                f"config: estimators.{name} trains an adapter on checkpoints of {model} whose "
                f"names have {longest} characters together, but a folder is named after them "
                f"all and may have {LONGEST_NAME}; shorten those of models.{model}.checkpoints."
            )


def _check_function(function: str, key: str) -> None:
    selected = sorted(path.stem for path in FUNCTIONS.glob("[a-z]*.py"))
    if not function.endswith(".py") and function not in selected:
        check_names(key, [function], selected)
    try:
        needs_of(function)
    except ValueError as error:
        raise ConfigError(f"config: {key} names a file that cannot be used: {error}.") from None


def _check_one_adapter(study: Study, name: str) -> None:
    """Refuse an ambiguous choice among several adapters."""
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
    if study.has_own_options and study.config["decoding"]["weighting"] != "softmax":
        raise ConfigError(
            "config: decoding.weighting is probability, but decoding.strategy is options, "
            "which weigh by the softmax over a question's; set weighting to softmax."
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


def check_decoding(study: Study, estimators: Iterable[str]) -> None:
    """Refuse answers that cannot be made or do not satisfy the needs of `estimators`."""
    decoding = study.config["decoding"]
    if decoding["strategy"] == "options":
        raise ConfigError(
            "config: decoding.strategy is options, which is how study.answers may have been "
            "made; set it to beams or sample, by which models answer."
        )
    if decoding["strategy"] == "sample" and decoding["backend"] == "vllm":
        raise ConfigError(
            "config: decoding.strategy is sample, but decoding.backend vllm only searches for "
            "beams; set backend to transformers."
        )
    number = "n_samples" if decoding["strategy"] == "sample" else "n_beams"
    for name in estimators:
        entry = study.config["estimators"][name]
        needs = needs_of(entry["function"]) if "function" in entry else ()
        lacking = [need for need in DISTRIBUTIONS if need in needs]
        if lacking and decoding["backend"] == "vllm":
            raise ConfigError(
                f"config: estimators.{name} needs the {lacking[0]} of each answer's tokens, "
                "which decoding.backend vllm does not give; set backend to transformers, or "
                "leave the estimator out."
            )
        if SEVERAL in needs and decoding[number] == 1:
            raise ConfigError(
                f"config: estimators.{name} needs several answers to each question, but "
                f"decoding.{number} is 1; raise it, or leave the estimator out."
            )
