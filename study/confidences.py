"""The confidences of a study: who rates which answers, by which adapters and scores."""

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from persistcal.confidence.estimators.catalogue import registration_of
from persistcal.questions.splits import FURTHER_ASKS, SPLITS, split_of_questions
from study.answers import StudyAnswers
from study.checkpoints import Config


class AnswerSet(NamedTuple):
    """The answers of one checkpoint to one split."""

    checkpoint: str
    split: str


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


class StudyConfidences(StudyAnswers):
    """The answers of a config and the confidences in them."""

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

    def copies(self, estimator: str) -> bool:
        """Return whether the confidences are another checkpoint's in its own answers."""
        return "answers_of" in self.config["estimators"][estimator]

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

    def splits_rated(self, estimator: str) -> tuple[str, ...]:
        """Return the splits of answers that an estimator rates: test and further asks.

        A verifier, and adapters with another checkpoint's weights or answers, rate one ask.
        """
        single_ask = {"verifier", "weights_of", "answers_of"}
        is_once = single_ask & self.config["estimators"][estimator].keys()
        return ("test",) if is_once else ("test", *self.further_asks)

    def rated_at_each(self, model: str, estimator: str) -> list[AnswerSet]:
        """Return the answers of evaluation checkpoints that an estimator rates."""
        splits = self.splits_rated(estimator)
        return [AnswerSet(c, split) for split in splits for c in self.evaluation(model)]

    # Answers that estimators read

    def in_groups(self, model: str, groups: Iterable[str], *also: str) -> list[str]:
        """Return the checkpoints of some groups, and `also` others, in order of training."""
        read = {*also, *(c for name in groups for c in self.group(model, name))}
        return [c for c in self.group(model, "all") if c in read]

    def checkpoints_read(self, model: str, estimator: str, checkpoint: str = "") -> list[str]:
        """Return the checkpoints that an estimator without adapters reads.

        It reads them to rate the evaluation checkpoints, or only `checkpoint`.
        """
        entry = self.config["estimators"][estimator]
        groups, is_fitted = [*entry["reads"]], self.is_fitted(estimator)
        if checkpoint:
            groups = [name for name in groups if name != "evaluation"]
            is_fitted = bool(entry.get("fitted"))
        groups += ["earlier"] if is_fitted else []
        return self.in_groups(model, groups, *([checkpoint] if checkpoint else []))

    def answers_read(
        self, model: str, estimator: str, checkpoint: str = "", answers: str = "own"
    ) -> list[AnswerSet]:
        """Return the answers that an estimator without adapters reads.

        It reads the answers that it rates or is fitted on, and the test answers of other
        checkpoints in `reads`; or their answers to the split of `answers`, to rate one
        `checkpoint`.
        """
        groups, split = self.config["estimators"][estimator]["reads"], "test"
        if checkpoint:
            groups = [name for name in groups if name != "evaluation"]
            split = split_of_questions(split_scored(answers))
        read = self.in_groups(model, groups, *([checkpoint] if checkpoint else []))
        rows = self.answers_rated(model, estimator, checkpoint, answers)
        rated = [checkpoint] if checkpoint else self.evaluation(model)
        rows = [row for row in rows if row.split == "train" or row.checkpoint in read]
        return self.in_order(
            model, [*rows, *(AnswerSet(c, split) for c in read if c not in rated)]
        )

    def answers_labelled(
        self, model: str, estimator: str, checkpoint: str = ""
    ) -> list[AnswerSet]:
        """Return the answers with labels that an estimator is fitted on."""
        is_fitted = self.is_fitted(estimator)
        if checkpoint:
            is_fitted = bool(self.config["estimators"][estimator].get("fitted"))
        return [AnswerSet(c, "train") for c in (self.earlier(model) if is_fitted else [])]

    def answers_rated(
        self, model: str, estimator: str, checkpoint: str = "", answers: str = "own"
    ) -> list[AnswerSet]:
        """Return the answers that an estimator rates or is fitted on.

        Labelled train answers of the training checkpoints fit it, and train answers of each
        rated checkpoint fit a probe at each.
        """
        rated = self.rated_at_each(model, estimator)
        if checkpoint:
            rated = [AnswerSet(checkpoint, split_scored(answers))]
        learnt = self.answers_labelled(model, estimator, checkpoint)
        if self.config["estimators"][estimator].get("fit_at") == "each":
            learnt += [AnswerSet(row.checkpoint, "train") for row in rated]
        return self.in_order(model, [*learnt, *rated])

    def in_order(self, model: str, rows: Iterable[AnswerSet]) -> list[AnswerSet]:
        """Return the different `rows` in order of training, and of the splits."""
        order = self.group(model, "all")
        return sorted({*rows}, key=lambda r: (order.index(r.checkpoint), SPLITS.index(r.split)))

    def answers_to_verify(self, verifier: str, model: str, dataset: str) -> list[AnswerSet]:
        """Return the answers that `verifier` judges, see `splits_to_verify`."""
        rows = self.splits_to_verify(verifier, model, dataset)
        return [AnswerSet(*row) for row in rows.items()]

    def splits_to_verify(self, verifier: str, model: str, dataset: str) -> dict[str, str]:
        """Return the split of `dataset` that `verifier` judges, by checkpoint.

        Estimators are fitted on the train split of the training checkpoints.
        """
        earlier = self.earlier(model)
        read = {
            checkpoint
            for name, entry in self.config["estimators"].items()
            if entry.get("verifier") == verifier and self.is_evaluated(model, dataset, name)
            for checkpoint in self.checkpoints_read(model, name)
        }
        names = [c for c in self.checkpoints(model) if c in read]
        return {c: "train" if c in earlier else "test" for c in names}

    def clusters_judged(self, split: str) -> int | None:
        """Return `judged_clusters`; for further asks only predictions are judged."""
        return 1 if split in FURTHER_ASKS else self.judged_clusters

    @property
    def judged_clusters(self) -> int | None:
        """Number of a question's most probable clusters that are judged; None means all."""
        if not self.judge.asks_server or self.config["judge"]["clusters"] == "all":
            return None
        if self.has_own_answers:  # which no adapter is trained on
            return 1
        return max([1, *(self.recipe(recipe)["n_answers"] for recipe in self.recipes)])

    # Scores

    def scores_needed(self, model: str, estimator: str) -> list[Scores]:
        """Return all scores that an estimator reads, in the order calibration, evaluation."""
        posthoc = self.config["estimators"][estimator].get("posthoc")
        recipe = self.recipe_of(estimator) or estimator
        train = [Scores(c, recipe, "train") for c in (self.earlier(model) if posthoc else [])]
        sources = self.score_sources(model, estimator)
        used = [Scores(row["scored_at"], recipe, row["answers"]) for row in sources]
        return list(dict.fromkeys([*train, *used]))

    def score_sources(self, model: str, estimator: str) -> list[dict[str, str]]:
        """Return the origin of an estimator's scores for each split and evaluation checkpoint.

        Keys: split and checkpoint (that are rated), scored_at (the checkpoint that scores),
        answers (see `Scores`) and answers_of (the checkpoint that answered).
        """
        entry = self.config["estimators"][estimator]
        weights, group = entry.get("weights_of"), entry.get("answers_of")
        rows = []
        for checkpoint, split in self.rated_at_each(model, estimator):
            scored_at = self.group(model, weights)[0] if weights else checkpoint
            if group == weights:  # both of one checkpoint, or neither is set
                answers, answers_of = "own" if split == "test" else split, scored_at
            elif group:
                answers, answers_of = group, self.group(model, group)[0]
            else:
                answers, answers_of = "evaluation", checkpoint
            row = {"split": split, "checkpoint": checkpoint, "answers": answers}
            rows.append(row | {"scored_at": scored_at, "answers_of": answers_of})
        return rows
