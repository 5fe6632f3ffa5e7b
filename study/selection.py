"""What a study's config means: which adapters are trained on what, and what is made of it."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from persistcal.report.layout import EVERY, comparison_blocks, expand_tables, sections

Config = dict[str, Any]

IMPORTED = "imported"  # takes an estimator's place where all come from one file


class Scoring(NamedTuple):
    """One adapter that scores one checkpoint's answers to a dataset.

    Attributes
    ----------
    answers_of : str
        The checkpoint whose predictions are scored.
    recipe, trained_on, train_dataset, seed : str, str, str, int
        The adapter.
    """

    answers_of: str
    recipe: str
    trained_on: str
    train_dataset: str
    seed: int


class Scores(NamedTuple):
    """Where scores lie: a checkpoint's, with the adapters of a recipe, of some answers.

    Attributes
    ----------
    checkpoint, recipe : str
        Whose weights score, and with which adapters; an estimator that has none and works
        `by_checkpoint` has its name in the recipe's place.
    answers : str
        "own" (the checkpoint's, on the test split), "train" (on the train split),
        "transfer" (own, by every adapter of the recipe and not only by the one that is
        used at the checkpoint), or the group of checkpoints whose answers they are.
    """

    checkpoint: str
    recipe: str
    answers: str


class Place(NamedTuple):
    """The answers of one model to one dataset."""

    model: str
    dataset: str


class Answered(NamedTuple):
    """The answers of one checkpoint to one dataset."""

    model: str
    checkpoint: str
    dataset: str


class Evaluated(NamedTuple):
    """One estimator on the answers of one model to one dataset."""

    model: str
    dataset: str
    estimator: str


def _rows_of(table: dict[str, Any]) -> list[str]:
    """Return the estimators of the rows of a table; EVERY where it has a row of each."""
    rows = [row for block in table["blocks"] for row in block.get("rows", [{}])]
    return [row.get("estimator", EVERY) for row in rows]


class Study:
    """Answers questions about the config of a study; it changes nothing.

    Parameters
    ----------
    config : dict
        As `check_config` has passed it.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.chosen = config.get("study", {})

    # Models and their checkpoints

    @cached_property
    def runs_models(self) -> bool:
        """Whether the study runs models, or takes predictions from elsewhere."""
        elsewhere = self.chosen.get("predictions") or self.chosen.get("answers")
        return not elsewhere and self.chosen.get("source", "models") == "models"

    @cached_property
    def has_own_answers(self) -> bool:
        """Whether the answers were generated elsewhere; confidences are estimated here."""
        return bool(self.chosen.get("answers"))

    @cached_property
    def estimates(self) -> bool:
        """Whether confidences are estimated here, from a model's answers or the user's."""
        return self.runs_models or self.has_own_answers

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

    @cached_property
    def worlds(self) -> dict[str, list[str]]:
        """The study's models that differ in the seed of their pre-training, by common name."""
        of: dict[str, list[str]] = {}
        for model in self.chosen["models"]:
            if name := self.config["models"][model].get("world_of"):
                of.setdefault(name, []).append(model)
        return of

    @cached_property
    def names_of_worlds(self) -> dict[str, str]:
        """What is printed for the common name of worlds."""
        models = self.config["models"]
        return {name: models[worlds[0]]["world_label"] for name, worlds in self.worlds.items()}

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
        """Return the checkpoints that estimators may learn from."""
        return self.group(model, "earlier")

    def evaluation(self, model: str) -> list[str]:
        """Return the checkpoints whose answers are evaluated."""
        return self.group(model, "evaluation")

    def checkpoints(self, model: str) -> list[str]:
        """Return all checkpoints of `model` that answer questions.

        Of the user's answers, the earlier ones that an estimator reads.
        """
        if not self.has_own_answers:
            return self.group(model, "all")
        return [c for c in self.group(model, "all") if self.splits_needed(model, c)]

    def splits_needed(self, model: str, checkpoint: str) -> dict[str, str]:
        """Return the splits that the study needs the user's answers to, and what needs each."""
        needed = {}
        if checkpoint in self.evaluation(model):
            needed["test"] = f"models.{model}.evaluation"
        elif checkpoint in self.earlier(model):
            for name in self.chosen["estimators"]:
                about = self.config["estimators"][name]
                read = [c for group in about["reads"] for c in self.group(model, group)]
                if self.is_fitted(name):
                    needed.setdefault("train", f"estimators.{name}")
                if checkpoint in read:
                    needed.setdefault("test", f"estimators.{name}")
        return needed

    def known_checkpoints(self, model: str) -> list[str]:
        """Return all checkpoints of `model` that the config names."""
        catalogue = self.config["models"][model].get("checkpoints", {})
        return list(dict.fromkeys([*self.group(model, "all"), *catalogue]))

    def may_be_equal(self, model: str, checkpoints: Sequence[str]) -> dict[str, bool]:
        """Return of each of `checkpoints` whether it may be the same as another one."""
        about = self.config["models"][model].get("checkpoints", {})
        return {c: about.get(c, {}).get("allow_identical_weights", False) for c in checkpoints}

    def described(self, model: str) -> dict[str, dict[str, Any]]:
        """Return what the config says of each checkpoint of `model` that answers."""
        about = self.config["models"][model].get("checkpoints", {})
        return {name: about.get(name, {}) for name in self.checkpoints(model)}

    def labels_of(self, model: str) -> dict[str, str]:
        """Return what is printed for each checkpoint of `model`."""
        return {name: about.get("label", name) for name, about in self.described(model).items()}

    @cached_property
    def labels(self) -> dict[str, dict[str, str]]:
        """What is printed for models, datasets and estimators."""
        config = self.config
        return {
            "models": {m: config["models"][m].get("label", m) for m in self.chosen["models"]},
            "datasets": {d: config["datasets"][d].get("label", d) for d in self.datasets},
            "estimators": {e: a.get("label", e) for e, a in config["estimators"].items()},
        }

    def pretraining(self, model: str) -> dict[str, Any]:
        """Return how the checkpoints of `model` are made."""
        return self.config["models"][model]["pretraining"]

    def previous_checkpoint(self, model: str, checkpoint: str) -> str | None:
        """Return the checkpoint that pre-training goes on from to reach `checkpoint`."""
        names = list(self.config["models"][model]["checkpoints"])
        place = names.index(checkpoint)
        return names[place - 1] if place else None

    def step_before(self, model: str, checkpoint: str) -> int:
        """Return the step of pre-training that `checkpoint` goes on from."""
        previous = self.previous_checkpoint(model, checkpoint)
        return self.config["models"][model]["checkpoints"][previous]["step"] if previous else 0

    # Recipes and the adapters that they train

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

    # Datasets and estimators

    def train_datasets(self, dataset: str) -> list[str]:
        """Return the datasets whose adapters score `dataset`."""
        return self.elsewhere(dataset) or [dataset]

    def elsewhere(self, dataset: str) -> list[str]:
        """Return the datasets that estimators for `dataset` train on, if not on itself."""
        if self.has_own_answers:
            return []
        return self.config["datasets"][dataset].get("train_datasets", [])

    @cached_property
    def datasets(self) -> list[str]:
        """Datasets that something is made of: the study's, and those of its further tables.

        A table about transfer may name a dataset that the study does not evaluate
        otherwise; its estimators train on the study's.
        """
        if self.has_own_answers:
            return list(self.chosen["datasets"])
        named = [
            dataset
            for name in self.chosen["further"]
            for dataset in self.config["tables"][name].get("datasets", [])
            if self.config["tables"][name].get("transfer")
            and set(self.elsewhere(dataset)) & set(self.chosen["datasets"])
        ]
        return list(dict.fromkeys([*self.chosen["datasets"], *named]))

    def recipe_of(self, estimator: str) -> str | None:
        """Return the recipe whose adapters an estimator uses, None if it uses none."""
        recipe = self.config["estimators"][estimator].get("recipe")
        return estimator if isinstance(recipe, dict) else recipe

    def is_fitted(self, estimator: str) -> bool:
        """Return whether an estimator needs labelled answers of the earlier checkpoints."""
        about = self.config["estimators"][estimator]
        return bool(about.get("posthoc") or about.get("fitted"))

    def needs_earlier(self, estimator: str) -> bool:
        """Return whether an estimator reads, learns from or uses earlier checkpoints."""
        about, recipe = self.config["estimators"][estimator], self.recipe_of(estimator)
        used = [*about.get("reads", []), about.get("weights_of"), about.get("answers_of")]
        if recipe and isinstance(self.recipes[recipe]["train_on"], str):
            used.append(self.recipes[recipe]["train_on"].removeprefix("each_"))
        return self.is_fitted(estimator) or bool({"earlier", "last_earlier"} & set(used))

    def is_evaluated(self, model: str, dataset: str, estimator: str) -> bool:
        """Return whether there is what an estimator needs.

        What is fitted needs a train split, and some estimators need earlier checkpoints.
        """
        if self.is_fitted(estimator) and self.elsewhere(dataset):
            return False
        return bool(self.earlier(model)) or not self.needs_earlier(estimator)

    def checkpoints_read(self, model: str, estimator: str) -> list[str]:
        """Return the checkpoints whose answers an estimator without adapters reads."""
        about = self.config["estimators"][estimator]
        groups = [*about["reads"], *(["earlier"] if self.is_fitted(estimator) else [])]
        read = {checkpoint for name in groups for checkpoint in self.group(model, name)}
        return [c for c in self.group(model, "all") if c in read]

    def read_at(self, model: str, estimator: str, checkpoint: str) -> list[str]:
        """Return the checkpoints whose answers an estimator reads to rate those of one."""
        about = self.config["estimators"][estimator]
        groups = [name for name in about["reads"] if name != "evaluation"]
        groups += ["earlier"] if about.get("fitted") else []
        read = {checkpoint, *(c for name in groups for c in self.group(model, name))}
        return [c for c in self.group(model, "all") if c in read]

    def judged_at(self, model: str, estimator: str, checkpoint: str) -> list[str]:
        """Return those of `read_at` of which it is also read what is right."""
        fitted = self.config["estimators"][estimator].get("fitted")
        return self.read_at(model, estimator, checkpoint) if fitted else [checkpoint]

    def earlier_at(self, model: str, estimator: str, checkpoint: str) -> list[str]:
        """Return the earlier ones of `read_at`."""
        earlier = self.earlier(model)
        return [c for c in self.read_at(model, estimator, checkpoint) if c in earlier]

    def splits_to_verify(self, verifier: str, model: str, dataset: str) -> dict[str, str]:
        """Return the split of `dataset` that `verifier` judges the answers to, by checkpoint.

        What an estimator is fitted on is the train split of the earlier checkpoints.
        """
        read = {
            checkpoint
            for name, about in self.config["estimators"].items()
            if about.get("verifier") == verifier and self.is_evaluated(model, dataset, name)
            for checkpoint in self.checkpoints_read(model, name)
        }
        return {
            checkpoint: "train" if checkpoint in self.earlier(model) else "test"
            for checkpoint in self.checkpoints(model)
            if checkpoint in read
        }

    def least_questions(self, dataset: str) -> dict[str, int]:
        """Return how many questions of a split the study needs at least."""
        trains = any(
            (self.recipe_of(row.estimator) or self.is_fitted(row.estimator))
            and dataset in self.train_datasets(row.dataset)
            for row in self.evaluated
        )
        return {"few_shot": self.config["prompts"]["few_shot"], "train": int(trains)}

    # Which adapter scores which answers

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

    def scored_by(self, estimator: str) -> str:
        """Return the recipe of an estimator, or where it has none the estimator itself."""
        return self.recipe_of(estimator) or estimator

    def scores_used(self, model: str, estimator: str, checkpoint: str) -> tuple[Scores, str]:
        """Return where an estimator's scores at `checkpoint` are, and of whose answers."""
        about, recipe = self.config["estimators"][estimator], self.scored_by(estimator)
        weights, answers = about.get("weights_of"), about.get("answers_of")
        at = self.group(model, weights)[0] if weights else checkpoint
        if answers == weights:  # both of one checkpoint, or both of each its own
            return Scores(at, recipe, "own"), at
        if answers:
            return Scores(at, recipe, answers), self.group(model, answers)[0]
        return Scores(at, recipe, "evaluation"), checkpoint

    def scores_read(self, model: str, estimator: str) -> list[Scores]:
        """Return all scores that an estimator reads, those it is calibrated on first."""
        recipe = self.scored_by(estimator)
        train = [Scores(c, recipe, "train") for c in self.earlier(model)]
        used = [self.scores_used(model, estimator, c)[0] for c in self.evaluation(model)]
        calibrated = self.config["estimators"][estimator].get("posthoc")
        return list(dict.fromkeys([*(train if calibrated else []), *used]))

    def uses(self, model: str, estimator: str) -> list[dict[str, str]]:
        """Say for each checkpoint where an estimator's scores are, as plain values.

        Keys checkpoint (which they are for), scored_at (whose weights), answers (see
        `Scores`) and answers_of (whose).
        """
        rows = []
        for checkpoint in self.evaluation(model):
            scores, answers_of = self.scores_used(model, estimator, checkpoint)
            row = {"checkpoint": checkpoint, "scored_at": scores.checkpoint}
            rows.append({**row, "answers": scores.answers, "answers_of": answers_of})
        return rows

    # Tables, and what is evaluated for them

    def _expanded(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        catalogue = {name: self.config["tables"][name] for name in names}
        return expand_tables(catalogue, self.datasets_by_training)

    @cached_property
    def datasets_by_training(self) -> dict[str, list[str]]:
        """For each dataset what its estimators train on, if not on itself."""
        return {dataset: self.elsewhere(dataset) for dataset in self.datasets}

    def datasets_shown(self, table: dict[str, Any]) -> dict[str, list[str]]:
        """Return the datasets that `table` may show, with what their estimators train on."""
        named = table.get("datasets", self.chosen["datasets"])
        return {d: of for d, of in self.datasets_by_training.items() if d in named}

    @cached_property
    def tables(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the tables that the study makes, by name.

        Of the user's answers, one of every estimator, and those of which there is each row.
        """
        if not self.has_own_answers:
            return self._with_rows(self._expanded(self.chosen["tables"]))
        asked = self._expanded(list(dict.fromkeys(["all_estimators", *self.chosen["tables"]])))
        known = {EVERY, *self.chosen["estimators"]}
        return self._with_rows({n: t for n, t in asked.items() if set(_rows_of(t)) <= known})

    @cached_property
    def further_tables(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the tables that only `all` makes: those with something to show."""
        if self.has_own_answers:
            return {}
        names = [name for name in self.chosen["further"] if name not in self.chosen["tables"]]
        return self._with_rows(self._expanded(names))

    @cached_property
    def tables_made(self) -> list[str]:
        """Tables that the default target makes."""
        if self.chosen.get("predictions"):
            # Only the user knows which other tables their estimators fill.
            return ["all_estimators"]
        return list(self.tables if self.estimates else self.every_table)

    @cached_property
    def every_table(self) -> dict[str, dict[str, Any]]:
        """All tables by name."""
        if self.estimates:
            return {**self.tables, **self.further_tables}
        # Only the file knows its estimators: what it has none of can be asked for, in vain.
        everything = ["all_estimators", *self.chosen["tables"], *self.chosen["further"]]
        return self._with_rows(self._expanded(list(dict.fromkeys(everything))))

    def _with_rows(self, tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return {n: t for n, t in tables.items() if self._sections(t)}

    def _sections(self, table: dict[str, Any]) -> list[Any]:
        return sections(table, self.chosen["models"], self.datasets_shown(table))

    def shown(self, table: str) -> list[Evaluated]:
        """Return whose metrics a table shows."""
        if not self.estimates:
            return self.evaluated
        description = self.every_table[table]
        named = _rows_of(description)
        # The study's own tables show what it evaluates; `all` evaluates what its tables show.
        if table in self.tables:
            named = [name for name in named if name in (EVERY, *self.chosen["estimators"])]
        if EVERY in named:
            named = self.chosen["estimators"]
        places = {(section.model, section.dataset) for section in self._sections(description)}
        return [
            Evaluated(model, dataset, estimator)
            for model in self.chosen["models"]
            for dataset in self.datasets
            if (model, dataset) in places
            for estimator in dict.fromkeys(named)
            if self.is_evaluated(model, dataset, estimator)
        ]

    @cached_property
    def evaluated(self) -> list[Evaluated]:
        """What the study itself evaluates."""
        places = [(m, d) for m in self.chosen["models"] for d in self.chosen["datasets"]]
        if not self.estimates:
            return [Evaluated(*place, IMPORTED) for place in places]
        return [
            Evaluated(*place, estimator)
            for place in places
            for estimator in self.chosen["estimators"]
            if self.is_evaluated(*place, estimator)
        ]

    @cached_property
    def ever_evaluated(self) -> list[Evaluated]:
        """What the target `all` evaluates."""
        further = [row for name in self.further_tables for row in self.shown(name)]
        return list(dict.fromkeys([*self.evaluated, *further]))

    def blocks(self, table: str, model: str, dataset: str) -> list[list[tuple[str, str]]]:
        """Return the estimators that `table` compares with each other, block by block."""
        description = self.every_table[table]
        if dataset not in self.datasets_shown(description):
            return []
        return comparison_blocks({table: description}, model, dataset, self.elsewhere(dataset))

    # Answers, judging and analyses

    def splits_asked(self, model: str) -> list[str]:
        """Return the splits whose questions `model` answers: of a verifier's backbone one."""
        return ["train", "test"] if model in self.chosen["models"] else ["test"]

    @property
    def weighting(self) -> str:
        """How much each answer of a checkpoint to a question weighs among the others."""
        decoding = self.config["decoding"]
        return "equal" if decoding["strategy"] == "sample" else decoding["weighting"]

    @cached_property
    def judged_clusters(self) -> int | None:
        """How many clusters of a question are judged, the likeliest; None means all."""
        judge = self.config["judge"]
        if judge["backend"] == "lexical" or judge["clusters"] == "all":
            return None
        if self.has_own_answers:  # on which nothing is trained
            return 1
        return max([1, *(self.recipe(recipe)["answers"] for recipe in self.recipes)])

    @cached_property
    def answered(self) -> list[Answered]:
        """The answers to the study's own datasets, in the order of the tables."""
        return [
            Answered(model, checkpoint, dataset)
            for model in self.chosen["models"]
            for checkpoint in self.checkpoints(model)
            for dataset in self.chosen["datasets"]
        ]

    def analysed(self, analysis: str) -> list[Place]:
        """Return the models and datasets of the study that the `analysis` is about."""
        about = self.config["analyses"][analysis]
        return [
            Place(model, dataset)
            for model in self.chosen["models"]
            if model in about["models"]
            for dataset in self.chosen["datasets"]
            if dataset in about["datasets"]
        ]

    @cached_property
    def transfer_recipes(self) -> list[str]:
        """Recipes whose adapters the transfer matrices are about."""
        return list(self.config["analyses"]["transfer"]["recipes"])

    def transfer_sets(self, model: str) -> dict[str, dict[str, list[str]]]:
        """Return the training sets of each recipe of the transfer matrices."""
        return {recipe: self.training_sets(model, recipe) for recipe in self.transfer_recipes}

    def variances(self) -> Iterator[Answered]:
        """Yield whose hidden-state variance is measured."""
        recipe = self.config["analyses"]["hidden_state_variance"]["recipe"]
        for model, dataset in self.analysed("hidden_state_variance"):
            for checkpoint in self.training_sets(model, recipe):
                yield Answered(model, checkpoint, dataset)
