"""The models of a study and their checkpoints, by the config."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from persistcal.training.methods import METHODS, Method

Config = dict[str, Any]

MODEL_KEYS = ("repo", "chat", "dtype")  # keys of a model that each checkpoint can override
# Keys that make two checkpoints of the same weights files differ
BESIDE_WEIGHTS = "chat dtype examples seed context adapter quantization".split()
# Keys that change weights in memory, so that no file contains the result
IN_MEMORY = ("merge", "adapter", "quantization")
# Keys of a checkpoint behind an API: prices, and settings that decide its answers
PRICES = ("price_input", "price_output")
DECIDES = ("base_url", "model", "request", "logprobs", "samples_per_request", "reasoning")


class StudyCheckpoints:
    """The checkpoints of a config that `check_config` accepted. The config is not changed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.chosen = config.get("study", {})

    @cached_property
    def runs_models(self) -> bool:
        """True if the study runs models and does not read their answers from files."""
        is_read = self.chosen.get("predictions") or self.has_own_answers
        return not is_read and self.chosen.get("source", "models") == "models"

    @cached_property
    def has_own_answers(self) -> bool:
        """True if answers are read from the user's files and confidences are estimated."""
        return bool(self.chosen.get("answers"))

    @cached_property
    def estimates(self) -> bool:
        """True if confidences are estimated, from a model's answers or the user's."""
        return self.runs_models or self.has_own_answers

    @property
    def has_own_options(self) -> bool:
        """True if the user's answers are scored options of multiple choice."""
        return self.has_own_answers and self.config["decoding"]["strategy"] == "options"

    # Models and their checkpoints

    @cached_property
    def models_made(self) -> list[str]:
        """Models that the study makes or fetches: evaluated ones and verifiers."""
        verifiers = [verifier["model"] for verifier in self.config["verifiers"].values()]
        return list(dict.fromkeys([*self.chosen["models"], *verifiers]))

    def group(self, model: str, name: str) -> list[str]:
        """Return the checkpoints of `model` in a group, in order of training."""
        earlier = self.config["models"][model].get("earlier", [])
        evaluation = self.config["models"][model].get("evaluation", [])
        return {
            "earlier": earlier,
            "last_earlier": earlier[-1:],
            "evaluation": evaluation,
            "all": earlier + evaluation,
        }[name]

    def earlier(self, model: str) -> list[str]:
        """Return the training checkpoints: estimators can learn from them."""
        return self.group(model, "earlier")

    def evaluation(self, model: str) -> list[str]:
        """Return the evaluation checkpoints: their answers are evaluated."""
        return self.group(model, "evaluation")

    def catalogue(self, model: str) -> dict[str, Config]:
        """Return the entries of `models.<model>.checkpoints`."""
        return self.config["models"][model].get("checkpoints", {})

    def known_checkpoints(self, model: str) -> list[str]:
        """Return all checkpoints of `model` that the config names."""
        return list(dict.fromkeys([*self.group(model, "all"), *self.catalogue(model)]))

    def checkpoint_names(self) -> list[str]:
        """Return the names of all checkpoints of the study's models."""
        names = [c for model in self.chosen["models"] for c in self.known_checkpoints(model)]
        return list(dict.fromkeys(names))

    def state(self, model: str, checkpoint: str) -> Config:
        """Return the keys of a checkpoint, laid over the model's keys `MODEL_KEYS`."""
        entry = self.config["models"][model]
        shared = {key: entry[key] for key in MODEL_KEYS if key in entry}
        state = shared | self.catalogue(model).get(checkpoint, {})
        chat = state.get("chat", False)
        return state | {"chat": {True: "turns", False: ""}.get(chat, chat)}

    def made_by(self, model: str, checkpoint: str) -> str:
        """Return the key that produces a checkpoint's weights, or `retraining`."""
        entry = self.catalogue(model)[checkpoint]
        change = METHODS.get(entry.get("change", {}).get("method"), Method)
        if change.repeats_pretraining and "merge" not in entry:
            return "retraining"
        keys = self.config["models"][model].keys() | entry.keys()
        return next((key for key in ("merge", "change", "pretraining") if key in keys), "repo")

    def made_from(self, model: str, checkpoint: str) -> list[str]:
        """Return the checkpoints that a checkpoint is made from, by an average or a change."""
        entry = self.catalogue(model).get(checkpoint, {})
        start = entry.get("change", {}).get("of")
        return [*entry.get("merge", {}), *([start] if start else [])]

    def beside_weights(self, model: str, checkpoint: str) -> Config:
        """Return the keys that distinguish checkpoints of the same weights."""
        state = self.state(model, checkpoint)
        return {key: state[key] for key in BESIDE_WEIGHTS if key in state}

    def allows_identical(self, model: str, checkpoints: Sequence[str]) -> dict[str, bool]:
        """Return for each of `checkpoints` whether it can be equal to another one."""
        entry = self.catalogue(model)
        return {c: entry.get(c, {}).get("allow_identical_weights", False) for c in checkpoints}

    def checkpoints_audited(self, model: str) -> list[str]:
        """Return the first and the last evaluation checkpoint: the widest contrast set."""
        names = self.evaluation(model)
        return [names[0], names[-1]]

    # Checkpoints that the study pre-trains

    def pretrained(self, model: str) -> list[str]:
        """Return the checkpoints that the pre-training of `model` passes."""
        return [c for c, entry in self.catalogue(model).items() if "step" in entry]

    def previous_checkpoint(self, model: str, checkpoint: str) -> str | None:
        """Return the checkpoint before `checkpoint` in the pre-training, None for the first."""
        names = self.pretrained(model)
        position = names.index(checkpoint)
        return names[position - 1] if position else None

    def step_before(self, model: str, checkpoint: str) -> int:
        """Return the step before `checkpoint` in the pre-training; 0 for the first."""
        previous = self.previous_checkpoint(model, checkpoint)
        return self.catalogue(model)[previous]["step"] if previous else 0

    def last_step(self, model: str) -> int:
        """Return the last step of the pre-training."""
        return self.catalogue(model)[self.pretrained(model)[-1]]["step"]

    # Checkpoints behind an API

    def api(self, model: str, checkpoint: str) -> Config:
        """Return the key `api` of a checkpoint; empty if no server answers for it."""
        return self.catalogue(model).get(checkpoint, {}).get("api", {})

    @cached_property
    def served(self) -> dict[str, list[str]]:
        """The checkpoints behind an API, by model; models without one are left out."""
        served = {
            model: [c for c in self.group(model, "all") if self.api(model, c)]
            for model in (self.chosen["models"] if self.runs_models else [])
        }
        return {model: names for model, names in served.items() if names}

    def decides_answers(self, model: str, checkpoint: str) -> Config:
        """Return the settings that decide the answers of a checkpoint behind an API."""
        api = self.api(model, checkpoint)
        return {key: api[key] for key in DECIDES if key in api}
