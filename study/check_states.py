"""Check the checkpoints of a model: sources of weights, changes of weights, and APIs."""

from typing import Any

from persistcal.training.methods import METHODS
from study.checkpoints import IN_MEMORY, PRICES
from study.schema import ConfigError, check_names
from study.study import Study

_OF_WEIGHTS = ("transfer", "hidden_state_variance", "gcm_headroom", "weight_similarity")


def check_state(study: Study, model: str, checkpoint: str) -> None:
    """Refuse a checkpoint with keys that do not determine its weights."""
    state, key = study.state(model, checkpoint), f"models.{model}.checkpoints.{checkpoint}"
    made = study.made_by(model, checkpoint)
    needed = {"repo": ("repo", "revision"), "pretraining": ("step",)}.get(made, ())
    if lacking := [name for name in needed if name not in state]:
        shared = " here, or for all checkpoints to the model" if lacking[0] == "repo" else ""
        raise ConfigError(f"config: {key} lacks the key {lacking[0]}; add it{shared}.")
    if "seed" in state and study.config["decoding"]["strategy"] != "sample":
        raise ConfigError(
            f"config: {key}.seed is for samples, but decoding.strategy is "
            f"{study.config['decoding']['strategy']}; remove it or set strategy to sample."
        )
    changed = [name for name in IN_MEMORY if name in state]
    if changed and study.config["decoding"]["backend"] == "vllm":
        raise ConfigError(
            f"config: {key}.{changed[0]} changes weights in memory, but decoding.backend vllm "
            "reads them from files; set it to transformers."
        )
    if made == "merge":
        _check_merge(study, model, checkpoint, state)
    if "change" in state:
        _check_change(study, model, checkpoint)


def _check_merge(study: Study, model: str, checkpoint: str, state: dict[str, Any]) -> None:
    key = f"models.{model}.checkpoints.{checkpoint}.merge"
    merge, catalogue = state["merge"], study.config["models"][model]["checkpoints"]
    check_names(key, merge, [name for name in catalogue if name != checkpoint])
    if nested := [name for name in merge if "merge" in catalogue[name]]:
        raise ConfigError(
            f"config: {key} names {nested[0]}, which is a merge itself; name the checkpoints "
            "that it merges."
        )
    if abs(sum(merge.values()) - 1) > 1e-9:
        raise ConfigError(
            f"config: {key} has shares that add up to {sum(merge.values()):g}; change the sum "
            "to 1."
        )
    [first, *rest] = merge
    same = study.beside_weights(model, first) == study.beside_weights(model, checkpoint)
    if not rest and same and not state.get("allow_identical_weights"):
        raise ConfigError(
            f"config: {key} is only {first}, and no other key differs; add a difference, or "
            "allow_identical_weights: true for a control."
        )


def _check_change(study: Study, model: str, checkpoint: str) -> None:
    """Refuse a change with inconsistent keys or without a start."""
    entry = study.config["models"][model]
    change = entry["checkpoints"][checkpoint]["change"]
    key = f"models.{model}.checkpoints.{checkpoint}.change"
    method_name = change["method"]
    method = METHODS[method_name]
    if unknown := [key for key in change if key not in ("method", *method.keys())]:
        raise ConfigError(
            f"config: {key}.{unknown[0]} is set, but {method_name} has no such key; remove it."
        )
    for name in ("learn", "forget"):
        if clashing := [c for c in change.get(name, []) if c in change.get("keep", [])]:
            raise ConfigError(
                f"config: {key} lists {clashing[0]!r} in both {name} and keep; remove it from "
                "one."
            )
    check_names(f"{key}.datasets", change.get("datasets", []), study.chosen["datasets"])
    if method.repeats_pretraining and "pretraining" not in entry:
        raise ConfigError(
            f"config: {key} is a {method_name}, but models.{model} has no pretraining that "
            "could be done again; use another method."
        )
    if (origin := change.get("of")) is None:
        return
    key, catalogue = f"{key}.of", entry["checkpoints"]
    check_names(key, [origin], catalogue)
    if "merge" in catalogue[origin]:
        raise ConfigError(
            f"config: {key} is {origin}, which is a merge; name a merged checkpoint."
        )
    chain = [checkpoint]
    while start := catalogue.get(chain[-1], {}).get("change", {}).get("of"):
        if start in chain:
            raise ConfigError(
                f"config: {key} leads back to {start} ({' of '.join([*chain, start])}); let it "
                "begin at a checkpoint that is not changed."
            )
        chain.append(start)


def check_pretraining(config: dict[str, Any], name: str) -> None:
    """Refuse a pre-training with inconsistent parts."""
    model, key = config["models"][name], f"models.{name}.pretraining"
    pretraining = model["pretraining"]
    steps = [entry["step"] for entry in model["checkpoints"].values() if "step" in entry]
    if steps != sorted(set(steps)):
        raise ConfigError(
            f"config: models.{name}.checkpoints must be listed by rising step, got {steps}."
        )
    if steps[-1] > pretraining["steps"]:
        raise ConfigError(
            f"config: models.{name}.checkpoints reach step {steps[-1]}, but "
            f"{key}.steps is {pretraining['steps']}; raise it."
        )
    check_names(f"{key}.datasets", pretraining["datasets"], config["datasets"])
    phases = pretraining["drift"]
    ends = [phase["until"] for phase in phases]
    if ends != sorted(set(ends)) or ends[-1] != 1:
        raise ConfigError(
            f"config: {key}.drift has phases until {ends}; let until rise and end at 1.0."
        )
    n_sets = pretraining.get("fact_sets", {}).get("n", 0)
    for number, phase in enumerate(phases):
        rare = phase.get("rare", [])
        if unknown := [number for number in rare if number > n_sets]:
            raise ConfigError(
                f"config: {key}.drift.{number}.rare names set {unknown[0]}, but there are "
                f"{n_sets} sets of facts; raise {key}.fact_sets.n."
            )
        if rare and len(rare) == n_sets:
            raise ConfigError(
                f"config: {key}.drift.{number}.rare names every set of facts, so none would be "
                "met more than another; leave one out."
            )


def check_served(study: Study) -> None:
    """Refuse checkpoints behind an API that cannot be asked, paid or rated as configured."""
    for model, names in study.served.items():
        first: dict[str, str] = {}
        for name in names:
            _check_api(study, model, name)
            uses = [study.decides_answers(model, name), study.beside_weights(model, name)]
            same = first.setdefault(str(uses), name)
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
