"""Recipes: which adapters are trained on which checkpoints, and which answers they score."""

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from study.checkpoints import Checkpoints


class Scoring(NamedTuple):
    """One adapter that scores one checkpoint's answers to a dataset."""

    answers_of: str  # the checkpoint; all else is of the adapter
    recipe: str
    trained_on: str
    train_dataset: str
    seed: int


class Scores(NamedTuple):
    """Where scores lie: a checkpoint's, with the adapters of a recipe, of some answers.

    Answers are "own" (the checkpoint's, on the test split), "train" (on the train split),
    "transfer" (own, by every adapter of the recipe and not only by the one that is used at
    the checkpoint), or those of a group of checkpoints.
    """

    checkpoint: str  # whose weights score
    recipe: str  # or the name of an estimator that has none and works `by_checkpoint`
    answers: str


class Adapters(Checkpoints):
    """The adapters of a study."""

    @cached_property
    def recipes(self) -> dict[str, dict[str, Any]]:
        """Every recipe: the catalogue's, and those that an estimator brings along."""
        own = {
            name: about["recipe"]
            for name, about in self.config["estimators"].items()
            if isinstance(about.get("recipe"), dict)
        }
        return {**self.config["recipes"], **own}

    def recipe(self, name: str) -> dict[str, Any]:
        """Return the settings of a recipe: its own over those of `training`."""
        return {**self.config["training"], **self.recipes[name]}

    def seeds(self, recipe: str) -> list[int]:
        """Return the seeds that a recipe trains adapters with."""
        return self.recipe(recipe)["seeds"]

    def recipe_of(self, estimator: str) -> str | None:
        """Return the recipe whose adapters an estimator uses, None if it uses none."""
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
            of = train_on.removeprefix("each").removeprefix("_") or "all"
            sets = [[checkpoint] for checkpoint in self.group(model, of)]
        else:
            sets = [self.group(model, train_on)]
        return {"+".join(names): names for names in sets if names}

    def trained_on(self, model: str, recipe: str, trained_on: str) -> list[str]:
        """Return the checkpoints of the training set that is named `trained_on`."""
        return self.training_sets(model, recipe)[trained_on]

    def data_checkpoints(self, model: str, recipe: str, trained_on: str) -> list[str]:
        """Return the checkpoints whose answers an adapter of `recipe` learns from."""
        sets = self.training_sets(model, recipe)
        data = self.recipe(recipe)["data"]
        if data == "pooled":
            return list(dict.fromkeys(c for names in sets.values() for c in names))
        return sets[trained_on][:1] if data == "first" else sets[trained_on]

    def adapter_used_at(self, model: str, recipe: str, checkpoint: str) -> str:
        """Return the name of the training set whose adapter `recipe` uses at `checkpoint`."""
        sets = self.training_sets(model, recipe)
        if len(sets) == 1:
            return next(iter(sets))
        return next(name for name, names in sets.items() if checkpoint in names)

    def scorings(
        self, model: str, checkpoint: str, dataset: str, recipe: str, answers: str
    ) -> list[Scoring]:
        """Return what the job for the `Scores` of a checkpoint, recipe and answers scores."""
        own = answers in ("own", "train", "transfer")
        scored = [checkpoint] if own else self.group(model, answers)
        if answers == "transfer":
            sets = list(self.training_sets(model, recipe))
        else:
            sets = [self.adapter_used_at(model, recipe, checkpoint)]
        return [
            Scoring(name, recipe, trained_on, train_dataset, seed)
            for name in scored
            for trained_on in sets
            for train_dataset in self.train_datasets(dataset)
            for seed in self.seeds(recipe)
        ]

    @cached_property
    def transfer_recipes(self) -> list[str]:
        """Recipes whose adapters the transfer matrices are about."""
        return list(self.config["analyses"]["transfer"]["recipes"])

    def transfer_sets(self, model: str) -> dict[str, dict[str, list[str]]]:
        """Return the training sets of each recipe of the transfer matrices."""
        return {recipe: self.training_sets(model, recipe) for recipe in self.transfer_recipes}
