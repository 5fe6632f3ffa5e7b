"""The meaning of a config: what a study evaluates, trains and answers. It names no file.

Files and settings of jobs are in `study.inputs`.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from persistcal.confidence.estimators.catalogue import registration_of
from persistcal.evaluation.blocks import EVERY
from persistcal.judge.backends import BACKENDS, Backend
from persistcal.questions.catalogue import SOURCES, QuestionSource
from persistcal.questions.splits import (
    AGAIN,
    FURTHER_ASKS,
    HALVES,
    LEAST_SAMPLES,
    SPLITS,
    split_of_questions,
)
from persistcal.report.layout import comparison_blocks, expand_tables, sections
from persistcal.training.methods import METHODS, Method

Config = dict[str, Any]

IMPORTED = "imported"  # instead of an estimator if one file has all confidences
OF_MODEL = ("repo", "chat", "dtype")  # keys of a model that each checkpoint can override
# Keys that make two checkpoints of the same weights files differ
BESIDE_WEIGHTS = "chat dtype examples seed context adapter quantization".split()
# Keys that change weights in memory, so that no file contains the result
IN_MEMORY = ("merge", "adapter", "quantization")
# Keys of a checkpoint behind an API: prices, and settings that decide its answers
PRICES = ("price_input", "price_output")
DECIDES = ("base_url", "model", "request", "logprobs", "samples_per_request", "reasoning")


class ModelDataset(NamedTuple):
    """The answers of one model to one dataset."""

    model: str
    dataset: str


class Answered(NamedTuple):
    """The answers of one checkpoint to one split of a dataset."""

    model: str
    checkpoint: str
    dataset: str
    split: str


class AnswerSet(NamedTuple):
    """The answers of one checkpoint to one split."""

    checkpoint: str
    split: str


class Evaluated(NamedTuple):
    """An estimator on the answers of a model to a dataset."""

    model: str
    dataset: str
    estimator: str


class Scores(NamedTuple):
    """A file of scores, made by the adapters of one recipe at one checkpoint.

    Answers are "own" (the checkpoint's, on the test split), a further ask, "train" (on the
    train split), "transfer" (own, scored by every adapter of the recipe), or a group of
    checkpoints.
    """

    checkpoint: str  # that scores
    recipe: str  # or the name of an estimator without a recipe that works `by_checkpoint`
    answers: str


def split_scored(answers: str) -> str:
    """Return the split of the answers in a file of scores, see `Scores`."""
    return answers if answers in ("train", *FURTHER_ASKS) else "test"


def estimators_in_rows(table: Config) -> list[str]:
    """Return the estimators of a table's rows; EVERY for a block without rows."""
    rows = [row for block in table["blocks"] for row in block.get("rows", [{}])]
    return [row.get("estimator", EVERY) for row in rows]


class Study:
    """The meaning of a config that `check_config` accepted. The config is not changed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.chosen = config.get("study", {})

    # Kinds of studies

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

    @property
    def is_greedy(self) -> bool:
        """True if answers are known or declared to be deterministic: no flip is chance."""
        if not self.estimates:
            return bool(self.chosen["greedy"])
        decoding = self.config["decoding"]
        is_sampled = decoding["strategy"] == "sample" and decoding["temperature"] > 0
        return bool(self.chosen["greedy"]) or not is_sampled

    @cached_property
    def halves(self) -> tuple[str, ...]:
        """The halves of the samples of test answers, which are crossed; none for one ask.

        Only jobs know how many samples the user's files have; halves can be empty.
        """
        decoding = self.config["decoding"]
        if not self.estimates or decoding["strategy"] != "sample" or self.is_greedy:
            return ()
        is_enough = self.has_own_answers or decoding["n_samples"] >= LEAST_SAMPLES
        return HALVES if is_enough else ()

    @property
    def further_asks(self) -> tuple[str, ...]:
        """The splits of further asks of the test questions."""
        return (AGAIN,) if self.chosen.get("again") else self.halves

    def splits_rated(self, estimator: str) -> tuple[str, ...]:
        """Return the splits of answers that an estimator rates: test and further asks.

        A verifier, and adapters with another checkpoint's weights or answers, rate one ask.
        """
        once = {"verifier", "weights_of", "answers_of"}
        is_once = once & self.config["estimators"][estimator].keys()
        return ("test",) if is_once else ("test", *self.further_asks)

    def rated_at_each(self, model: str, estimator: str) -> list[AnswerSet]:
        """Return the answers of evaluation checkpoints that an estimator rates."""
        splits = self.splits_rated(estimator)
        return [AnswerSet(c, split) for split in splits for c in self.evaluation(model)]

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

    def checkpoints(self, model: str) -> list[str]:
        """Return the checkpoints that answer, in order of training.

        The user's answers, and answers that a server is paid for, are read if they are needed.
        """
        names = self.group(model, "all")
        if self.has_own_answers:
            return [c for c in names if self.splits_needed(model, c)]
        served = self.served.get(model, [])
        return [c for c in names if c not in served or self.splits_needed(model, c)]

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

    def checkpoints_in_files(self, model: str) -> list[str]:
        """Return the checkpoints with weights that are stored in files without a change."""
        states = {name: self.state(model, name) for name in self.checkpoints(model)}
        return [name for name, state in states.items() if not state.keys() & set(IN_MEMORY)]

    def state(self, model: str, checkpoint: str) -> Config:
        """Return the keys of a checkpoint, laid over the model's keys `OF_MODEL`."""
        entry = self.config["models"][model]
        shared = {key: entry[key] for key in OF_MODEL if key in entry}
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

    def parts(self, model: str, checkpoint: str) -> list[str]:
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

    def described(self, model: str) -> dict[str, Config]:
        """Return the config of each checkpoint of `model` that answers."""
        return {c: self.catalogue(model).get(c, {}) for c in self.checkpoints(model)}

    def labels_of(self, model: str) -> dict[str, str]:
        """Return the display name of each checkpoint of `model`."""
        return {name: entry.get("label", name) for name, entry in self.described(model).items()}

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

    def checkpoints_audited(self, model: str) -> list[str]:
        """Return the first and the last evaluation checkpoint: the widest contrast set."""
        names = self.evaluation(model)
        return [names[0], names[-1]]

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

    # Datasets and their splits

    @cached_property
    def datasets(self) -> list[str]:
        """The study's datasets, and further datasets of complete tables about transfer."""
        if self.has_own_answers or not self.chosen["complete_tables"]:
            return list(self.chosen["datasets"])
        named = [
            dataset
            for table in (self.config["tables"][name] for name in self.chosen["tables"])
            for dataset in table.get("datasets", [])
            if table.get("transfer")
            and set(self.train_elsewhere(dataset)) & set(self.chosen["datasets"])
        ]
        return list(dict.fromkeys([*self.chosen["datasets"], *named]))

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

    def least_questions(self, dataset: str) -> dict[str, int]:
        """Return the smallest number of questions of each split that the study needs."""
        trains = any(
            (self.recipe_of(row.estimator) or self.learns(row.estimator))
            and dataset in self.train_datasets(row.dataset)
            for row in self.evaluated
        )
        return {"few_shot": self.examples_needed, "train": int(trains)}

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

    def split_rated(self, model: str, checkpoint: str) -> str:
        """Return the split of a checkpoint's rated answers: estimators are fitted on train."""
        return "train" if checkpoint in self.earlier(model) else "test"

    # Recipes of adapters

    @cached_property
    def recipes(self) -> dict[str, Config]:
        """Every recipe of the catalogue and of the estimators."""
        selected = {
            name: entry["recipe"]
            for name, entry in self.config["estimators"].items()
            if isinstance(entry.get("recipe"), dict)
        }
        return {**self.config["recipes"], **selected}

    def recipe(self, name: str) -> Config:
        """Return the settings of a recipe, laid over the section `training`."""
        return {**self.config["training"], **self.recipes[name]}

    def recipe_of(self, estimator: str) -> str | None:
        """Return the recipe that trains an estimator's adapters, if it has one."""
        recipe = self.config["estimators"][estimator].get("recipe")
        return estimator if isinstance(recipe, dict) else recipe

    def training_sets(self, model: str, recipe: str) -> dict[str, list[str]]:
        """Return the checkpoints that each adapter of `recipe` trains on, by the set's name."""
        train_on = self.recipes[recipe]["train_on"]
        if isinstance(train_on, list):
            sets = [train_on]
        elif train_on == "adjacent_pairs":
            sets = [list(pair) for pair in pairwise(self.checkpoints(model))]
        elif train_on.startswith("each"):
            group = train_on.removeprefix("each").removeprefix("_") or "all"
            sets = [[checkpoint] for checkpoint in self.group(model, group)]
        else:
            sets = [self.group(model, train_on)]
        return {"+".join(names): names for names in sets if names}

    def trained_on(self, model: str, recipe: str, trained_on: str) -> list[str]:
        """Return the checkpoints of the training set that is named `trained_on`."""
        return self.training_sets(model, recipe)[trained_on]

    def data_checkpoints(self, model: str, recipe: str, trained_on: str) -> list[str]:
        """Return the checkpoints that provide the training answers of an adapter."""
        sets, data = self.training_sets(model, recipe), self.recipe(recipe)["data"]
        if data == "pooled":
            return list(dict.fromkeys(c for names in sets.values() for c in names))
        return sets[trained_on][:1] if data == "first" else sets[trained_on]

    def adapter_used_at(self, model: str, recipe: str, checkpoint: str) -> str:
        """Return the name of the training set that `recipe` uses at `checkpoint`."""
        sets = self.training_sets(model, recipe)
        if len(sets) == 1:
            return next(iter(sets))
        return next(name for name, names in sets.items() if checkpoint in names)

    def scorings(
        self, model: str, checkpoint: str, dataset: str, recipe: str, answers: str
    ) -> list[Config]:
        """Return each adapter and checkpoint that a file of scores combines.

        Keys answers_of (a checkpoint), recipe, trained_on, train_dataset and seed.
        """
        is_own = answers in ("own", "train", "transfer", *FURTHER_ASKS)
        scored = [checkpoint] if is_own else self.group(model, answers)
        if answers == "transfer":
            sets = list(self.training_sets(model, recipe))
        else:
            sets = [self.adapter_used_at(model, recipe, checkpoint)]
        return [
            {
                "answers_of": name,
                "recipe": recipe,
                "trained_on": trained_on,
                "train_dataset": train_dataset,
                "seed": seed,
            }
            for name in scored
            for trained_on in sets
            for train_dataset in self.train_datasets(dataset)
            for seed in self.recipe(recipe)["seeds"]
        ]

    # Estimators

    def is_fitted(self, estimator: str) -> bool:
        """Return whether an estimator needs labelled answers of the training checkpoints."""
        entry = self.config["estimators"][estimator]
        return bool(entry.get("posthoc") or entry.get("fitted"))

    def learns(self, estimator: str) -> bool:
        """Return whether an estimator learns from answers to the train split."""
        return self.is_fitted(estimator) or "fit_at" in self.config["estimators"][estimator]

    def rater(self, model: str, estimator: str) -> str:
        """Return the checkpoint that an estimator lets rate answers; empty for none."""
        rater = self.config["estimators"][estimator].get("rater", "")
        return self.group(model, rater)[0] if rater == "last_earlier" else rater

    def is_verbal(self, estimator: str) -> bool:
        """Return whether an estimator reads a confidence in words, which can be missing."""
        entry = self.config["estimators"][estimator]
        function = entry.get("function")
        return "asks" in entry or (bool(function) and registration_of(function).may_lack)

    def needs_earlier(self, estimator: str) -> bool:
        """Return whether an estimator reads, learns from or uses training checkpoints."""
        entry, recipe = self.config["estimators"][estimator], self.recipe_of(estimator)
        used = [*entry.get("reads", [])]
        used += [entry.get(key) for key in ("weights_of", "answers_of", "rater")]
        if recipe and isinstance(self.recipes[recipe]["train_on"], str):
            used.append(self.recipes[recipe]["train_on"].removeprefix("each_"))
        return self.is_fitted(estimator) or bool({"earlier", "last_earlier"} & set(used))

    def is_evaluated(self, model: str, dataset: str, estimator: str) -> bool:
        """Return whether an estimator has the train split and checkpoints that it needs.

        Checkpoints behind an API are rated by the study's own estimators only.
        """
        if model in self.served and estimator not in self.chosen["estimators"]:
            return False
        if self.learns(estimator) and self.train_elsewhere(dataset):
            return False
        return bool(self.earlier(model)) or not self.needs_earlier(estimator)

    def in_groups(self, model: str, groups: Iterable[str], *also: str) -> list[str]:
        """Return the checkpoints of some groups, and `also` others, in order of training."""
        read = {*also, *(c for name in groups for c in self.group(model, name))}
        return [c for c in self.group(model, "all") if c in read]

    def checkpoints_read(self, model: str, estimator: str) -> list[str]:
        """Return the checkpoints that an estimator without adapters reads."""
        fitted = ["earlier"] if self.is_fitted(estimator) else []
        reads = self.config["estimators"][estimator]["reads"]
        return self.in_groups(model, [*reads, *fitted])

    def answers_read(
        self, model: str, estimator: str, rated: AnswerSet | None = None
    ) -> list[AnswerSet]:
        """Return the answers that an estimator without adapters reads.

        It reads the test answers of its groups of checkpoints, to rate those of `evaluation`
        by each ask; or the split of the answers that are `rated`, if its jobs rate one
        checkpoint. Labelled train answers of the training checkpoints fit it, and train answers
        of each rated checkpoint fit a probe at each.
        """
        entry = self.config["estimators"][estimator]
        groups, splits = list(entry["reads"]), self.splits_rated(estimator)
        asked, fitted_at = self.evaluation(model), entry.get("fit_at") == "each"
        if rated:
            groups = [name for name in groups if name != "evaluation"]
            asked, splits = [rated.checkpoint], (rated.split,)
        of_others = [split_of_questions(splits[0])]
        read = self.in_groups(model, groups, *([rated.checkpoint] if rated else []))
        calibrates = self.is_fitted(estimator) and not rated
        fitted = calibrates or bool(entry.get("fitted"))
        learnt = [*(self.earlier(model) if fitted else []), *(asked if fitted_at else [])]
        return [
            AnswerSet(checkpoint, each)
            for checkpoint in self.in_groups(model, [], *read, *learnt)
            for each in SPLITS
            if (checkpoint in read and each in (splits if checkpoint in asked else of_others))
            or (each == "train" and checkpoint in learnt)
        ]

    def answers_labelled(
        self, model: str, estimator: str, rated: AnswerSet | None = None
    ) -> list[AnswerSet]:
        """Return the answers with labels that an estimator is fitted on."""
        is_fitted = self.is_fitted(estimator)
        if rated:
            is_fitted = bool(self.config["estimators"][estimator].get("fitted"))
        return [AnswerSet(c, "train") for c in (self.earlier(model) if is_fitted else [])]

    def answers_rated(
        self, model: str, estimator: str, rated: AnswerSet | None = None
    ) -> list[AnswerSet]:
        """Return the answers that an estimator rates or is fitted on, in order of training."""
        entry = self.config["estimators"][estimator]
        asked = [rated] if rated else self.rated_at_each(model, estimator)
        learnt = self.answers_labelled(model, estimator, rated)
        if entry.get("fit_at") == "each":
            learnt += [AnswerSet(row.checkpoint, "train") for row in asked]
        order = self.group(model, "all")
        rows = dict.fromkeys([*learnt, *asked])
        return sorted(
            rows, key=lambda row: (order.index(row.checkpoint), SPLITS.index(row.split))
        )

    def answers_to_verify(self, verifier: str, model: str, dataset: str) -> list[AnswerSet]:
        """Return the answers that `verifier` judges, see `splits_to_verify`."""
        rows = self.splits_to_verify(verifier, model, dataset)
        return [AnswerSet(*row) for row in rows.items()]

    def splits_to_verify(self, verifier: str, model: str, dataset: str) -> dict[str, str]:
        """Return the split of `dataset` that `verifier` judges, by checkpoint.

        Estimators are fitted on the train split of the training checkpoints.
        """
        read = {
            checkpoint
            for name, entry in self.config["estimators"].items()
            if entry.get("verifier") == verifier and self.is_evaluated(model, dataset, name)
            for checkpoint in self.checkpoints_read(model, name)
        }
        return {c: self.split_rated(model, c) for c in self.checkpoints(model) if c in read}

    def scores_used(
        self, model: str, estimator: str, checkpoint: str, split: str = "test"
    ) -> tuple[Scores, str]:
        """Return the file of the scores for `checkpoint`, and the checkpoint that answered."""
        entry = self.config["estimators"][estimator]
        recipe = self.recipe_of(estimator) or estimator
        weights, answers = entry.get("weights_of"), entry.get("answers_of")
        scored_at = self.group(model, weights)[0] if weights else checkpoint
        if answers == weights:  # both of one checkpoint, or neither is set
            return Scores(scored_at, recipe, "own" if split == "test" else split), scored_at
        if answers:
            return Scores(scored_at, recipe, answers), self.group(model, answers)[0]
        return Scores(scored_at, recipe, "evaluation"), checkpoint

    def scores_needed(self, model: str, estimator: str) -> list[Scores]:
        """Return all scores that an estimator reads, in the order calibration, evaluation."""
        posthoc = self.config["estimators"][estimator].get("posthoc")
        recipe = self.recipe_of(estimator) or estimator
        train = [Scores(c, recipe, "train") for c in (self.earlier(model) if posthoc else [])]
        used = [
            self.scores_used(model, estimator, c, split)[0]
            for split in self.splits_rated(estimator)
            for c in self.evaluation(model)
        ]
        return list(dict.fromkeys([*train, *used]))

    def uses(self, model: str, estimator: str) -> list[dict[str, str]]:
        """Return the origin of an estimator's scores for each split and evaluation checkpoint.

        Keys: split and checkpoint (that are rated), scored_at (the checkpoint that scores),
        answers (see `Scores`) and answers_of (the checkpoint that answered).
        """
        rows = []
        for split in self.splits_rated(estimator):
            for checkpoint in self.evaluation(model):
                used = self.scores_used(model, estimator, checkpoint, split)
                scores, answers_of = used
                row = {"split": split, "checkpoint": checkpoint, "answers": scores.answers}
                rows.append(row | {"scored_at": scores.checkpoint, "answers_of": answers_of})
        return rows

    def copies(self, estimator: str) -> bool:
        """Return whether the confidences are another checkpoint's in its own answers."""
        return "answers_of" in self.config["estimators"][estimator]

    def answers_read_at(
        self, model: str, estimator: str, checkpoint: str, answers: str
    ) -> list[AnswerSet]:
        """Return the answers that an estimator reads to rate `answers` of one checkpoint."""
        rated = AnswerSet(checkpoint, split_scored(answers))
        return self.answers_read(model, estimator, rated)

    def answers_rated_at(
        self, model: str, estimator: str, checkpoint: str, answers: str
    ) -> list[AnswerSet]:
        """Return the `answers` of one checkpoint, and those that the estimator is fitted on."""
        rated = AnswerSet(checkpoint, split_scored(answers))
        return self.answers_rated(model, estimator, rated)

    def answers_labelled_at(
        self, model: str, estimator: str, checkpoint: str, answers: str
    ) -> list[AnswerSet]:
        """Return the answers with labels that an estimator is fitted on at one checkpoint."""
        rated = AnswerSet(checkpoint, split_scored(answers))
        return self.answers_labelled(model, estimator, rated)

    def read_at(self, model: str, estimator: str, checkpoint: str) -> list[str]:
        """Return the checkpoints that an estimator reads to rate one of them."""
        entry = self.config["estimators"][estimator]
        groups = [name for name in entry["reads"] if name != "evaluation"]
        groups += ["earlier"] if entry.get("fitted") else []
        return self.in_groups(model, groups, checkpoint)

    @property
    def judge(self) -> type[Backend]:
        """The back end that labels answers."""
        return BACKENDS[self.config["judge"]["backend"]]

    @property
    def compares_by_model(self) -> bool:
        """True if a model decides whether two answers mean the same."""
        return self.config["equivalence"]["backend"] == "nli"

    def clusters_judged(self, split: str) -> int | None:
        """Return `judged_clusters`; of further asks the predictions are enough."""
        return 1 if split in FURTHER_ASKS else self.judged_clusters

    @property
    def judged_clusters(self) -> int | None:
        """Number of a question's most probable clusters that are judged; None means all."""
        if not self.judge.asks_server or self.config["judge"]["clusters"] == "all":
            return None
        if self.has_own_answers:  # which no adapter is trained on
            return 1
        return max([1, *(self.recipe(recipe)["n_answers"] for recipe in self.recipes)])

    # Tables, evaluations and analyses

    @cached_property
    def labels(self) -> dict[str, dict[str, str]]:
        """Display names of models, datasets and estimators."""
        config = self.config
        return {
            "models": {m: config["models"][m].get("label", m) for m in self.chosen["models"]},
            "datasets": {d: config["datasets"][d].get("label", d) for d in self.datasets},
            "estimators": {e: a.get("label", e) for e, a in config["estimators"].items()},
        }

    @cached_property
    def controls(self) -> dict[str, str]:
        """The control of each named kind of change that has one."""
        control = self.chosen["control"] or {}
        if isinstance(control, str):  # one control for all other kinds
            return {kind: control for kind in self.chosen["pairs"] if kind != control}
        return dict(control)

    def settings(self, dataset: str) -> Config:
        """Return the fields of `EvaluationSettings` for the evaluations on a dataset."""
        return self.settings_drawn(dataset) | self.config["evaluation"]["threshold"]

    def settings_drawn(self, dataset: str) -> Config:
        """Return `settings` without the target of thresholds, which resamples nothing."""
        keys = self.config["evaluation"]
        return {
            "min_contrast": self.config["datasets"][dataset]["min_contrast"],
            "pairs": self.chosen["pairs"],
            "conditionings": keys["conditioning"],
            "min_direction": keys["min_direction"],
            "n_replicates": keys["replicates"],
            "seed": keys["seed"],
            "paper_marks": self.has_paper_marks,
        }

    @cached_property
    def has_paper_marks(self) -> bool:
        """Whether a table has the marks of the paper."""
        return any(table.get("marks", "paper") == "paper" for table in self.tables.values())

    def datasets_shown(self, table: Config) -> dict[str, list[str]]:
        """Return the datasets that `table` can show, with their training datasets."""
        named = table.get("datasets", self.chosen["datasets"])
        return {d: self.train_elsewhere(d) for d in self.datasets if d in named}

    def model_datasets_shown(self, table: Config) -> set[tuple[str, str]]:
        """Return model and dataset of each section of `table`."""
        table_sections = sections(table, self.chosen["models"], self.datasets_shown(table))
        return {(section.model, section.dataset) for section in table_sections}

    @cached_property
    def tables(self) -> dict[str, Config]:
        """Descriptions of the study's tables that have something to show, by name.

        Studies that read files have a table of every estimator, too.
        """
        every = [] if self.runs_models else ["all_estimators"]
        names = [*every, *self.chosen["tables"]]
        listed = {name: self.config["tables"][name] for name in names}
        training = {dataset: self.train_elsewhere(dataset) for dataset in self.datasets}
        tables = expand_tables(listed, training)
        return {n: table for n, table in tables.items() if self.model_datasets_shown(table)}

    @cached_property
    def tables_left_out(self) -> list[str]:
        """A sentence with the remedy for each table that has nothing to show in the study."""
        tables = {name: self.config["tables"][name] for name in self.chosen["tables"]}
        return [
            f"Table {name} is left out, because it shows only {shown}; add one to "
            f"study.{section}, or take the table out of study.tables."
            for name, table in tables.items()
            if not self.model_datasets_shown(table)
            for section, shown in [self._shown_only(table)]
        ]

    def _shown_only(self, table: Config) -> tuple[str, str]:
        """Return what a table shows that the study lacks, after the section of the config."""
        for section, known in (("models", self.chosen["models"]), ("datasets", self.datasets)):
            named = table.get(section, known)
            if not set(named) & set(known):
                return section, f"the {section} {', '.join(named)}"
        kind = "with" if table.get("transfer") else "without"
        return "datasets", f"datasets {kind} train_datasets"

    def shown(self, table: str) -> list[Evaluated]:
        """Return the evaluations that a table shows."""
        if not self.estimates:
            return self.evaluated
        description = self.tables[table]
        named = estimators_in_rows(description)
        if self.has_own_answers or not self.chosen["complete_tables"]:
            named = [name for name in named if name in (EVERY, *self.chosen["estimators"])]
        if EVERY in named:
            named = self.chosen["estimators"]
        pairs = self.model_datasets_shown(description)
        return [
            Evaluated(model, dataset, estimator)
            for model in self.chosen["models"]
            for dataset in self.datasets
            if (model, dataset) in pairs
            for estimator in dict.fromkeys(named)
            if self.is_evaluated(model, dataset, estimator)
        ]

    @cached_property
    def evaluated(self) -> list[Evaluated]:
        """The evaluations of the study and of its complete tables."""
        pairs = [(m, d) for m in self.chosen["models"] for d in self.chosen["datasets"]]
        if not self.estimates:
            return [Evaluated(*pair, IMPORTED) for pair in pairs]
        chosen = [
            Evaluated(*pair, estimator)
            for pair in pairs
            for estimator in self.chosen["estimators"]
            if self.is_evaluated(*pair, estimator)
        ]
        added = [row for name in self.tables for row in self.shown(name)]
        return list(dict.fromkeys([*chosen, *added]))

    @cached_property
    def model_datasets(self) -> list[ModelDataset]:
        """The study's models and datasets, and those that its complete tables add."""
        added = {(row.model, row.dataset) for row in self.evaluated}
        return [
            ModelDataset(model, dataset)
            for model in self.chosen["models"]
            for dataset in self.datasets
            if dataset in self.chosen["datasets"] or (model, dataset) in added
        ]

    def blocks(self, table: str, model: str, dataset: str) -> list[list[tuple[str, str]]]:
        """Return the estimators that `table` compares with each other, block by block."""
        description = self.tables[table]
        if dataset not in self.datasets_shown(description):
            return []
        training = self.train_elsewhere(dataset)
        return comparison_blocks({table: description}, model, dataset, training)

    def comparisons(self, table: str) -> list[Any]:
        """Return the comparisons of a table, block by block."""
        rows = self.shown(table)
        pairs = dict.fromkeys((row.model, row.dataset) for row in rows)
        return [[m, d, self.blocks(table, m, d)] for m, d in pairs]

    def datasets_of_table(self, table: str) -> dict[str, list[str]]:
        """Return the datasets of a table, with the datasets that their estimators train on."""
        return self.datasets_shown(self.tables[table])

    def labels_shown(self, table: str) -> dict[str, dict[str, str]]:
        """Return display names; another estimator's name must not make the table again."""
        rows = {row.estimator for row in self.shown(table)}
        names = sorted(rows) if self.estimates else sorted(self.config["estimators"])
        labels = self.labels
        return {**labels, "estimators": {name: labels["estimators"][name] for name in names}}

    def wants_categories(self, dataset: str) -> bool:
        """Return whether metrics are also by the category of questions."""
        return dataset in self.config["evaluation"]["by_category"]

    @cached_property
    def answered(self) -> list[Answered]:
        """The answers in accuracies and on the page.

        Training checkpoints answer the study's own datasets only.
        """
        return [
            Answered(model, checkpoint, dataset, split)
            for model in self.chosen["models"]
            for checkpoint in self.checkpoints(model)
            for dataset in self.datasets
            if dataset in self.chosen["datasets"] or checkpoint in self.evaluation(model)
            if (model, dataset) in self.model_datasets
            for split in self.splits_shown(model, checkpoint, dataset)
        ]

    @cached_property
    def answers_in_files(self) -> list[Answered]:
        """All answers of imported files; a split without rows has an empty file."""
        return [
            Answered(model, checkpoint, dataset, split)
            for model, checkpoint, dataset in self.checkpoints_asked
            for split in self.splits(dataset)
        ]

    @cached_property
    def checkpoints_asked(self) -> list[tuple[str, str, str]]:
        """Model, checkpoint and dataset of the answers to the study's own datasets."""
        return [
            (model, checkpoint, dataset)
            for model in self.chosen["models"]
            for checkpoint in self.checkpoints(model)
            for dataset in self.chosen["datasets"]
        ]

    def analysed(self, analysis: str) -> list[ModelDataset]:
        """Return the models and datasets of the study that the `analysis` is about."""
        entry = self.config["analyses"][analysis]
        return [
            ModelDataset(model, dataset)
            for model in self.chosen["models"]
            if model in entry["models"]
            for dataset in self.chosen["datasets"]
            if dataset in entry["datasets"]
        ]

    def models_analysed(self, analysis: str) -> list[str]:
        """Return the study's models that an analysis is about."""
        named = self.config["analyses"][analysis]["models"]
        return [model for model in self.chosen["models"] if model in named]

    def transfer_sets(self, model: str) -> dict[str, dict[str, list[str]]]:
        """Return the training sets of each recipe of the transfer matrices."""
        recipes = self.config["analyses"]["transfer"]["recipes"]
        return {recipe: self.training_sets(model, recipe) for recipe in recipes}

    def transfer_set_names(self, model: str) -> dict[str, list[str]]:
        """Return the names of `transfer_sets`."""
        return {recipe: list(sets) for recipe, sets in self.transfer_sets(model).items()}

    def variances(self) -> list[Answered]:
        """Return the answers for the variance of hidden states."""
        recipe = self.config["analyses"]["hidden_state_variance"]["recipe"]
        return [
            Answered(model, checkpoint, dataset, "test")
            for model, dataset in self.analysed("hidden_state_variance")
            for checkpoint in self.training_sets(model, recipe)
        ]
