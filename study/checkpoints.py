"""The models of a study and their checkpoints, by the groups that the config puts them in."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

Config = dict[str, Any]

# What a model says for all of its checkpoints, unless a checkpoint says it itself
OF_MODEL = ("repo", "chat", "dtype")
# What makes two states of the same files of weights
BESIDE_WEIGHTS = "chat dtype examples seed context adapter quantization".split()

# What changes weights whenever they are loaded, so that no file has them
IN_MEMORY = ("merge", "adapter", "quantization")


class Checkpoints:
    """Models, datasets and checkpoints of a study, from a config that `check_config` passed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.chosen = config.get("study", {})

    @cached_property
    def runs_models(self) -> bool:
        """True where the study runs models, rather than take predictions or answers."""
        elsewhere = self.chosen.get("predictions") or self.has_own_answers
        return not elsewhere and self.chosen.get("source", "models") == "models"

    @cached_property
    def has_own_answers(self) -> bool:
        """True where the user's answers take the models' place; confidences are estimated."""
        return bool(self.chosen.get("answers"))

    @cached_property
    def estimates(self) -> bool:
        """True where confidences are estimated here, from a model's answers or the user's."""
        return self.runs_models or self.has_own_answers

    @property
    def has_own_options(self) -> bool:
        """Whether these are scored options of multiple choice."""
        return self.has_own_answers and self.config["decoding"]["strategy"] == "options"

    @cached_property
    def answer_files(self) -> list[dict[str, str]]:
        """Files of the user's answers, with what their rows do not say."""
        answers = self.chosen["answers"]
        return [{"file": answers}] if isinstance(answers, str) else answers

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
        """Return the training checkpoints: those that estimators may learn from."""
        return self.group(model, "earlier")

    def evaluation(self, model: str) -> list[str]:
        """Return the evaluation checkpoints: those whose answers are evaluated."""
        return self.group(model, "evaluation")

    def checkpoints(self, model: str) -> list[str]:
        """Return the checkpoints whose answers the study reads, in order of training."""
        if not self.has_own_answers:
            return self.group(model, "all")
        return [c for c in self.group(model, "all") if self.splits_needed(model, c)]

    def checkpoints_in_files(self, model: str) -> list[str]:
        """Return those of the checkpoints whose weights files have as they are."""
        states = {name: self.state(model, name) for name in self.checkpoints(model)}
        return [name for name, state in states.items() if not state.keys() & set(IN_MEMORY)]

    def splits_needed(self, model: str, checkpoint: str) -> dict[str, str]:
        """Return the splits that the study needs the user's answers to, and what needs each."""
        if checkpoint in self.evaluation(model):
            return {"test": f"models.{model}.evaluation"}
        needed: dict[str, str] = {}
        for name in self.chosen["estimators"] if checkpoint in self.earlier(model) else []:
            groups = self.config["estimators"][name].get("reads", [])
            if self.is_fitted(name):
                needed.setdefault("train", f"estimators.{name}")
            if any(checkpoint in self.group(model, group) for group in groups):
                needed.setdefault("test", f"estimators.{name}")
        return needed

    def is_fitted(self, estimator: str) -> bool:
        """Return whether an estimator needs labelled answers of the training checkpoints."""
        about = self.config["estimators"][estimator]
        return bool(about.get("posthoc") or about.get("fitted"))

    def _catalogue(self, model: str) -> dict[str, dict[str, Any]]:
        return self.config["models"][model].get("checkpoints", {})

    def state(self, model: str, checkpoint: str) -> dict[str, Any]:
        """Return where a checkpoint is and how it is asked: its own keys over its model's."""
        about = self.config["models"][model]
        shared = {key: about[key] for key in OF_MODEL if key in about}
        state = shared | self._catalogue(model).get(checkpoint, {})
        chat = state.get("chat", False)
        return state | {"chat": {True: "turns", False: ""}.get(chat, chat)}

    @cached_property
    def examples_needed(self) -> int:
        """Return how many questions prompts are made of, for all checkpoints that answer."""
        sets = [
            self.state(model, checkpoint).get("examples", 0)
            for model in self.chosen["models"]
            for checkpoint in self.checkpoints(model)
        ]
        return (1 + max(sets, default=0)) * self.config["prompts"]["few_shot"]

    def made_by(self, model: str, checkpoint: str) -> str:
        """Return the key that says where a checkpoint's weights are from, or `retraining`."""
        about = self._catalogue(model)[checkpoint]
        if about.get("change", {}).get("method") == "retraining" and "merge" not in about:
            return "retraining"
        keys = self.config["models"][model].keys() | about.keys()
        return next((key for key in ("merge", "change", "pretraining") if key in keys), "repo")

    def parts(self, model: str, checkpoint: str) -> list[str]:
        """Return the checkpoints that another one of `model` is an average or a change of."""
        about = self._catalogue(model).get(checkpoint, {})
        of = about.get("change", {}).get("of")
        return [*about.get("merge", {}), *([of] if of else [])]

    def beside_weights(self, model: str, checkpoint: str) -> dict[str, Any]:
        """Return by what a checkpoint may differ from another one of the same weights."""
        state = self.state(model, checkpoint)
        return {key: state[key] for key in BESIDE_WEIGHTS if key in state}

    def known_checkpoints(self, model: str) -> list[str]:
        """Return all checkpoints of `model` that the config names."""
        return list(dict.fromkeys([*self.group(model, "all"), *self._catalogue(model)]))

    def may_be_equal(self, model: str, checkpoints: Sequence[str]) -> dict[str, bool]:
        """Return for each of `checkpoints` whether it may be the same as another one."""
        about = self._catalogue(model)
        return {c: about.get(c, {}).get("allow_identical_weights", False) for c in checkpoints}

    def described(self, model: str) -> dict[str, dict[str, Any]]:
        """Return what the config says of each checkpoint of `model` that answers."""
        return {c: self._catalogue(model).get(c, {}) for c in self.checkpoints(model)}

    def states_named(self) -> list[str]:
        """Return all checkpoints that the study's models have."""
        names = [c for model in self.chosen["models"] for c in self.known_checkpoints(model)]
        return list(dict.fromkeys(names))

    def labels_of(self, model: str) -> dict[str, str]:
        """Return the display name of each checkpoint of `model`."""
        return {name: about.get("label", name) for name, about in self.described(model).items()}

    def pretraining(self, model: str) -> dict[str, Any]:
        """Return how the checkpoints of `model` are made."""
        return self.config["models"][model]["pretraining"]

    def pretrained(self, model: str) -> list[str]:
        """Return the checkpoints that the pre-training of `model` passes."""
        return [c for c, about in self._catalogue(model).items() if "step" in about]

    def last_step(self, model: str) -> int:
        """Return the step of the last of them."""
        return self._catalogue(model)[self.pretrained(model)[-1]]["step"]

    def previous_checkpoint(self, model: str, checkpoint: str) -> str | None:
        """Return the checkpoint that pre-training goes on from to reach `checkpoint`."""
        names = self.pretrained(model)
        place = names.index(checkpoint)
        return names[place - 1] if place else None

    def step_before(self, model: str, checkpoint: str) -> int:
        """Return the step of pre-training that `checkpoint` goes on from."""
        previous = self.previous_checkpoint(model, checkpoint)
        return self._catalogue(model)[previous]["step"] if previous else 0

    def splits_asked(self, model: str) -> list[str]:
        """Return the splits whose questions `model` answers: of a verifier's backbone one."""
        return ["train", "test"] if model in self.chosen["models"] else ["test"]

    @cached_property
    def datasets(self) -> list[str]:
        """The study's datasets, and those that only further tables about transfer show."""
        if self.has_own_answers:
            return list(self.chosen["datasets"])
        further = [self.config["tables"][name] for name in self.chosen["further"]]
        named = [
            dataset
            for table in further
            for dataset in table.get("datasets", [])
            if table.get("transfer")
            and set(self.elsewhere(dataset)) & set(self.chosen["datasets"])
        ]
        return list(dict.fromkeys([*self.chosen["datasets"], *named]))

    def elsewhere(self, dataset: str) -> list[str]:
        """Return the datasets that estimators for `dataset` train on, if not on itself."""
        if self.has_own_answers:
            return []
        return self.config["datasets"][dataset].get("train_datasets", [])

    def train_datasets(self, dataset: str) -> list[str]:
        """Return the datasets whose adapters score `dataset`."""
        return self.elsewhere(dataset) or [dataset]
