"""Check the config of checkpoints behind an API before any request costs money."""

from persistcal.confidence.estimators.catalogue import registration_of
from persistcal.confidence.registry import OF_TOKENS
from study.checkpoints import PRICES
from study.schema import ConfigError
from study.study import Study

_OURS = ("model", "prompt", "messages", "n", "stream", "best_of", "echo")
_ELSEWHERE = "repo revision step dtype change adapter merge quantization context".split()
_OF_WEIGHTS = ("transfer", "hidden_state_variance", "gcm_headroom", "weight_similarity")


def check_served(study: Study) -> None:
    """Refuse checkpoints behind an API that cannot be asked, paid or rated as configured."""
    for model, names in study.served.items():
        first: dict[str, str] = {}
        for name in names:
            _check_api(study, model, name)
            asked = [study.decides_answers(model, name), study.beside_weights(model, name)]
            same = first.setdefault(str(asked), name)
            if same != name and not any(study.allows_identical(model, [same, name]).values()):
                raise ConfigError(
                    f"config: models.{model}.checkpoints.{same} and {name} ask one model at "
                    "one address; correct one, or set its allow_identical_weights to true."
                )
        for analysis in _OF_WEIGHTS:
            if model in study.config["analyses"][analysis]["models"]:
                raise ConfigError(
                    f"config: analyses.{analysis}.models names '{model}', but its weights are "
                    "behind an API; leave it out."
                )
    for verifier in study.config["verifiers"].values() if study.served else []:
        key = f"models.{verifier['model']}.checkpoints.{verifier['checkpoint']}"
        if study.api(verifier["model"], verifier["checkpoint"]):
            raise ConfigError(f"config: {key} is a verifier, and cannot be behind an API.")
    strategy = study.config["decoding"]["strategy"]
    if study.served and strategy != "sample":
        model, names = next(iter(study.served.items()))
        raise ConfigError(
            f"config: decoding.strategy is {strategy}, but models.{model}.checkpoints."
            f"{names[0]} is behind an API, which gives samples; set it to sample."
        )


def _check_api(study: Study, model: str, name: str) -> None:
    key = f"models.{model}.checkpoints.{name}"
    entry = study.config["models"][model]["checkpoints"][name]
    api = entry["api"]
    elsewhere = [k for k in _ELSEWHERE if k in entry]
    if elsewhere or "pretraining" in study.config["models"][model]:
        raise ConfigError(
            f"config: {key} has api and also {(*elsewhere, 'a model with pretraining')[0]}; "
            "a checkpoint has one source of answers, so keep one."
        )
    if reserved := [field for field in api.get("request", {}) if field in _OURS]:
        raise ConfigError(
            f"config: {key}.api.request sets {reserved[0]}, which follows from other keys; "
            "leave it out."
        )
    if api.get("logprobs") and api.get("reasoning", "none") != "none":
        raise ConfigError(
            f"config: {key}.api.logprobs is true, but of a model that thinks first "
            "(reasoning) the answer's own log-probabilities are not known; set it to false."
        )
    ceiling, prices = study.config["api"].get("max_cost"), [k in api for k in PRICES]
    if ceiling is not None and not all(prices):
        raise ConfigError(
            f"config: api.max_cost is {ceiling}, but {key}.api lacks "
            f"{PRICES[prices.index(False)]}; add it, 0 where nothing is paid."
        )
    if ceiling is None and any(prices):
        raise ConfigError(
            f"config: {key}.api has prices, but api.max_cost is null; set it to the most that "
            "the study can spend."
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
            given = study.api(model, name).get("logprobs", False)
            lacking = [n for n in ("logprob", "n_tokens", *OF_TOKENS) if n in needs]
            lacking = [n for n in lacking if n in OF_TOKENS or not given]
            if lacking:
                api = f"models.{model}.checkpoints.{name}.api"
                remedy = f"set {api}.logprobs to true if the server has them, or "
                remedy = "" if lacking[-1] in OF_TOKENS else remedy
                raise ConfigError(
                    f"config: estimators.{estimator} needs the {lacking[-1]} of each answer, "
                    f"which {api} does not give; "
                    f"{remedy}drop it from study.estimators."
                )
