"""The answers of a study: which checkpoint answers which split of which dataset."""

from functools import cached_property
from typing import NamedTuple

from persistcal.judge.backends import BACKENDS, Backend
from persistcal.questions.catalogue import SOURCES, QuestionSource
from persistcal.questions.splits import AGAIN, HALVES, LEAST_SAMPLES
from study.checkpoints import IN_MEMORY, Config, StudyCheckpoints


class Answered(NamedTuple):
    """The answers of one checkpoint to one split of a dataset."""

    model: str
    checkpoint: str
    dataset: str
    split: str


class StudyAnswers(StudyCheckpoints):
    """The checkpoints of a config and their answers."""

    # Checkpoints that answer

    def is_fitted(self, estimator: str) -> bool:
        """Return whether an estimator needs labelled answers of the training checkpoints."""
        entry = self.config["estimators"][estimator]
        return bool(entry.get("posthoc") or entry.get("fitted"))

    def splits_needed(self, model: str, checkpoint: str) -> dict[str, str]:
        """Return the splits that a checkpoint must answer, and which config key needs each."""
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

    def checkpoints(self, model: str) -> list[str]:
        """Return the checkpoints that answer, in order of training.

        The user's answers, and answers that a server is paid for, are read if they are needed.
        """
        names = self.group(model, "all")
        if self.has_own_answers:
            return [c for c in names if self.splits_needed(model, c)]
        served = self.served.get(model, [])
        return [c for c in names if c not in served or self.splits_needed(model, c)]

    def checkpoints_in_files(self, model: str) -> list[str]:
        """Return the checkpoints with weights that are stored in files without a change."""
        states = {name: self.state(model, name) for name in self.checkpoints(model)}
        return [name for name, state in states.items() if not state.keys() & set(IN_MEMORY)]

    def described(self, model: str) -> dict[str, Config]:
        """Return the config of each checkpoint of `model` that answers."""
        return {c: self.catalogue(model).get(c, {}) for c in self.checkpoints(model)}

    def checkpoint_labels(self, model: str) -> dict[str, str]:
        """Return the display name of each checkpoint of `model`."""
        return {name: entry.get("label", name) for name, entry in self.described(model).items()}

    # Asks

    @property
    def is_greedy(self) -> bool:
        """True if answers are known or declared to be deterministic: no flip is chance."""
        if not self.estimates:
            return bool(self.chosen["greedy"])
        decoding = self.config["decoding"]
        is_sampled = decoding["strategy"] == "sample" and decoding["temperature"] > 0
        return bool(self.chosen["greedy"]) or not is_sampled

    @property
    def determinism(self) -> str:
        """Whether answers are "known" or "declared" to be deterministic, or "".

        Beams and options are known to be, greedy answers and samples at temperature 0 are not:
        servers batch requests, and rounding differs.
        """
        is_own = self.estimates and not self.has_own_answers
        is_known = is_own and self.config["decoding"]["strategy"] != "sample"
        return "known" if is_known else "declared" if self.is_greedy else ""

    @cached_property
    def halves(self) -> tuple[str, ...]:
        """The halves of the samples of test answers, which are crossed; none for one ask.

        Only jobs know how many samples the user's files have; halves can be empty.
        """
        decoding = self.config["decoding"]
        if not self.estimates or decoding["strategy"] != "sample" or self.is_greedy:
            return ()
        is_enough = self.has_own_answers or decoding["n_samples"] >= LEAST_SAMPLES
        return HALVES[: 2 * self.chosen.get("halvings", 1)] if is_enough else ()

    def position(self, model: str, checkpoint: str) -> int:
        """Return the position of a checkpoint, evaluation checkpoints first."""
        names = [*self.evaluation(model), *self.checkpoints(model)]
        return names.index(checkpoint)

    @property
    def further_asks(self) -> tuple[str, ...]:
        """The splits of further asks of the test questions."""
        return (AGAIN,) if self.chosen.get("again") else self.halves

    # Datasets and their splits

    @cached_property
    def datasets(self) -> list[str]:
        """The study's datasets, and further datasets of complete tables about transfer."""
        if self.has_own_answers or not self.chosen["complete_tables"]:
            return list(self.chosen["datasets"])
        names = [
            dataset
            for table in (self.config["tables"][name] for name in self.chosen["tables"])
            for dataset in table.get("datasets", [])
            if table.get("transfer")
            and set(self.train_elsewhere(dataset)) & set(self.chosen["datasets"])
        ]
        return list(dict.fromkeys([*self.chosen["datasets"], *names]))

    def source(self, dataset: str) -> QuestionSource:
        """Return the facts about the source of a dataset's questions."""
        return SOURCES[self.config["datasets"][dataset]["source"]]

    def train_elsewhere(self, dataset: str) -> list[str]:
        """Return the datasets that replace `dataset` when its estimators train."""
        if self.has_own_answers:
            return []
        return self.config["datasets"][dataset].get("train_datasets", [])

    def train_datasets(self, dataset: str) -> list[str]:
        """Return the training datasets of the adapters that score `dataset`."""
        return self.train_elsewhere(dataset) or [dataset]

    @cached_property
    def sets_of_examples(self) -> int:
        """Number of sets of few-shot examples that checkpoints are asked after at first."""
        sets = [
            self.state(model, checkpoint).get("examples", 0)
            for model in self.chosen["models"]
            for checkpoint in self.checkpoints(model)
        ]
        return 1 + max(sets, default=0)

    @property
    def examples_needed(self) -> int:
        """Number of questions that the prompts of all answering checkpoints are made of."""
        asks = 2 if self.chosen.get("again") else 1
        return asks * self.sets_of_examples * self.config["prompts"]["few_shot"]

    def splits_asked(self, model: str) -> list[str]:
        """Return the splits that a checkpoint can be asked; a verifier's model answers one."""
        return ["train", "test"] if model in self.chosen["models"] else ["test"]

    def splits(self, dataset: str) -> list[str]:
        """Return the splits that can be answered; a dataset can have others for training."""
        return ["test"] if self.train_elsewhere(dataset) else ["train", "test"]

    def splits_shown(self, model: str, checkpoint: str, dataset: str) -> list[str]:
        """Return the splits of a checkpoint's answers in accuracies and on the page.

        Test answers are shown. A training checkpoint behind an API or in a user's files can
        lack them.
        """
        in_files = self.has_own_answers and checkpoint in self.earlier(model)
        if in_files:
            return self.splits(dataset)
        is_paid = self.api(model, checkpoint) and checkpoint in self.earlier(model)
        if is_paid and "test" not in self.splits_needed(model, checkpoint):
            return ["train"]
        return ["test"]

    @cached_property
    def checkpoints_asked(self) -> list[tuple[str, str, str]]:
        """Model, checkpoint and dataset of the answers to the study's own datasets."""
        return [
            (model, checkpoint, dataset)
            for model in self.chosen["models"]
            for checkpoint in self.checkpoints(model)
            for dataset in self.chosen["datasets"]
        ]

    @cached_property
    def answers_in_files(self) -> list[Answered]:
        """All answers of imported files; a split without rows has an empty file."""
        return [
            Answered(model, checkpoint, dataset, split)
            for model, checkpoint, dataset in self.checkpoints_asked
            for split in self.splits(dataset)
        ]

    # Meanings and labels

    @property
    def compares_by_model(self) -> bool:
        """True if a model decides whether two answers mean the same."""
        return self.config["equivalence"]["backend"] == "nli"

    @property
    def judge(self) -> type[Backend]:
        """The back end that labels answers."""
        return BACKENDS[self.config["judge"]["backend"]]
