"""What a study's config means: which adapters are trained on what and used where.

Plain functions on the config dictionary, so that rules hold no logic and a
test can ask the same questions as the rules.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

Config = dict[str, Any]


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


def runs_models(config: Config) -> bool:
    """Return whether the study runs models, or takes predictions from elsewhere."""
    study = config["study"]
    return not study.get("predictions") and study.get("source", "models") == "models"


def added(config: Config) -> dict[str, list[str]]:
    """Return what only `all` evaluates, by catalogue: of `study.further` what is not named."""
    study = config["study"]
    return {
        catalogue: [name for name in names if name not in study[catalogue]]
        for catalogue, names in study["further"].items()
    }


def chosen_estimators(config: Config, part: str, dataset: str) -> list[str]:
    """Return the estimators of `dataset` that are evaluated in the folder `part`.

    On what only `all` evaluates these are the study's own.
    """
    first = part == config["results"] or dataset not in config["study"]["datasets"]
    return config["study"]["estimators"] if first else added(config)["estimators"]


def group(config: Config, model: str, name: str) -> list[str]:
    """Return the checkpoints of `model` in the group `name`, in order of training."""
    earlier = config["models"][model].get("earlier", [])
    evaluation = config["models"][model]["evaluation"]
    return {
        "earlier": earlier,
        "last_earlier": earlier[-1:],
        "evaluation": evaluation,
        "all": earlier + evaluation,
    }[name]


def models(config: Config) -> list[str]:
    """Return the models that a study makes or fetches: evaluated ones and verifiers."""
    verifiers = [verifier["model"] for verifier in config["verifiers"].values()]
    return list(dict.fromkeys([*config["study"]["models"], *verifiers]))


def recipe_settings(config: Config, recipe: str) -> dict[str, Any]:
    """Return the settings of `recipe`: its own over those of `training`."""
    return {**config["training"], **config["recipes"][recipe]}


def training_sets(config: Config, model: str, recipe: str) -> dict[str, list[str]]:
    """Return the checkpoints that each adapter of `recipe` trains on, by the set's name."""
    train_on = config["recipes"][recipe]["train_on"]
    if isinstance(train_on, list):
        sets = [train_on]
    elif train_on == "adjacent_pairs":
        sets = [list(pair) for pair in pairwise(group(config, model, "all"))]
    elif train_on.startswith("each"):
        of = train_on.removeprefix("each").removeprefix("_") or "all"
        sets = [[checkpoint] for checkpoint in group(config, model, of)]
    else:
        sets = [group(config, model, train_on)]
    return {"+".join(checkpoints): checkpoints for checkpoints in sets if checkpoints}


def data_checkpoints(config: Config, model: str, recipe: str, trained_on: str) -> list[str]:
    """Return the checkpoints whose answers an adapter of `recipe` learns from."""
    sets = training_sets(config, model, recipe)
    data = recipe_settings(config, recipe)["data"]
    if data == "pooled":
        return list(dict.fromkeys(c for checkpoints in sets.values() for c in checkpoints))
    return sets[trained_on][:1] if data == "first" else sets[trained_on]


def adapter_used_at(config: Config, model: str, recipe: str, checkpoint: str) -> str:
    """Return the name of the training set whose adapter `recipe` uses at `checkpoint`."""
    sets = training_sets(config, model, recipe)
    if len(sets) == 1:
        return next(iter(sets))
    return next(name for name, checkpoints in sets.items() if checkpoint in checkpoints)


def train_datasets(config: Config, dataset: str) -> list[str]:
    """Return the datasets whose adapters score `dataset`."""
    return config["datasets"][dataset].get("train_datasets", [dataset])


def estimators(config: Config, chosen: Sequence[str], dataset: str, *, kind: str) -> list[str]:
    """Return those of the `chosen` estimators for `dataset` with a "recipe" or a "script".

    What is fitted on a train split is left out where there is none.
    """
    only_evaluates = "train_datasets" in config["datasets"][dataset]
    return [
        name
        for name in chosen
        if kind in config["estimators"][name]
        and not (only_evaluates and config["estimators"][name].get("fitted"))
    ]


def checkpoint_scored_with(config: Config, model: str, estimator: str, checkpoint: str) -> str:
    """Return the checkpoint whose weights score for `estimator` at `checkpoint`."""
    name = config["estimators"][estimator].get("weights_of")
    return group(config, model, name)[0] if name else checkpoint


def answers_scored(config: Config, model: str, estimator: str, checkpoint: str) -> str:
    """Return the checkpoint whose answers `estimator` scores for `checkpoint`."""
    name = config["estimators"][estimator].get("answers_of")
    return group(config, model, name)[0] if name else checkpoint


def scorings_of(
    config: Config, model: str, dataset: str, estimator: str, checkpoint: str
) -> Iterator[Scoring]:
    """Yield the scorings that make up `estimator` at the evaluation `checkpoint`."""
    recipe = config["estimators"][estimator]["recipe"]
    for train_dataset in train_datasets(config, dataset):
        for seed in recipe_settings(config, recipe)["seeds"]:
            yield Scoring(
                answers_scored(config, model, estimator, checkpoint),
                recipe,
                adapter_used_at(config, model, recipe, checkpoint),
                train_dataset,
                seed,
            )


def scorings_at(
    config: Config, chosen: Sequence[str], model: str, checkpoint: str, dataset: str
) -> list[Scoring]:
    """Return the scorings that the `chosen` estimators need `checkpoint` for, each once."""
    found = {
        scoring
        for estimator in estimators(config, chosen, dataset, kind="recipe")
        for evaluated in group(config, model, "evaluation")
        if checkpoint_scored_with(config, model, estimator, evaluated) == checkpoint
        for scoring in scorings_of(config, model, dataset, estimator, evaluated)
    }
    return sorted(found)


def checkpoints_that_score(
    config: Config, chosen: Sequence[str], model: str, dataset: str
) -> list[str]:
    """Return the checkpoints whose weights score answers for the `chosen` estimators."""
    return [
        checkpoint
        for checkpoint in group(config, model, "all")
        if scorings_at(config, chosen, model, checkpoint, dataset)
    ]


def scored_predictions(
    config: Config, chosen: Sequence[str], model: str, dataset: str
) -> list[dict[str, Any]]:
    """Say where the scores of each adapter estimator at each evaluation checkpoint are.

    Returns
    -------
    list of dict
        Keys estimator and checkpoint (what the scores are for), scored_at (whose
        weights) and the fields of `Scoring`.
    """
    return [
        {
            "estimator": estimator,
            "checkpoint": checkpoint,
            "scored_at": checkpoint_scored_with(config, model, estimator, checkpoint),
            **scoring._asdict(),
        }
        for estimator in estimators(config, chosen, dataset, kind="recipe")
        for checkpoint in group(config, model, "evaluation")
        for scoring in scorings_of(config, model, dataset, estimator, checkpoint)
    ]


def checkpoints_read(config: Config, model: str, estimator: str) -> list[str]:
    """Return the checkpoints whose answers the script of `estimator` reads."""
    read = {
        checkpoint
        for name in config["estimators"][estimator]["reads"]
        for checkpoint in group(config, model, name)
    }
    return [checkpoint for checkpoint in group(config, model, "all") if checkpoint in read]


def splits_to_verify(config: Config, verifier: str, model: str, dataset: str) -> dict[str, str]:
    """Return the split of `dataset` that `verifier` judges the answers to, by checkpoint.

    What an estimator is fitted on is the train split of the earlier checkpoints.
    """
    read = {
        checkpoint
        for name in estimators(config, list(config["estimators"]), dataset, kind="script")
        if config["estimators"][name].get("verifier") == verifier
        for checkpoint in checkpoints_read(config, model, name)
    }
    earlier = group(config, model, "earlier")
    return {
        checkpoint: "train" if checkpoint in earlier else "test"
        for checkpoint in group(config, model, "all")
        if checkpoint in read
    }


def previous_checkpoint(config: Config, model: str, checkpoint: str) -> str | None:
    """Return the checkpoint that pre-training goes on from to reach `checkpoint`."""
    names = list(config["models"][model]["checkpoints"])
    place = names.index(checkpoint)
    return names[place - 1] if place else None


def step_before(config: Config, model: str, checkpoint: str) -> int:
    """Return the step of pre-training that `checkpoint` goes on from."""
    previous = previous_checkpoint(config, model, checkpoint)
    return config["models"][model]["checkpoints"][previous]["step"] if previous else 0


def judged_clusters(config: Config) -> int | None:
    """Return how many clusters of a question are judged: all that a recipe may read.

    None means all, which costs nothing with the lexical judge.
    """
    if config["judge"]["backend"] == "lexical":
        return None
    recipes = config["recipes"]
    return max([1, *(recipe_settings(config, recipe)["answers"] for recipe in recipes)])


def analysed(config: Config, analysis: str) -> list[tuple[str, str]]:
    """Return the models and datasets of the study that the `analysis` is about."""
    chosen = config["analyses"][analysis]
    return [
        (model, dataset)
        for model in config["study"]["models"]
        if model in chosen["models"]
        for dataset in config["study"]["datasets"]
        if dataset in chosen["datasets"]
    ]


def headroom_blocks(config: Config, model: str, dataset: str) -> list[list[tuple[str, str]]]:
    """Return the comparison that the headroom of the verifier is read off, if there is one."""
    if (model, dataset) not in analysed(config, "gcm_headroom"):
        return []
    compared = config["analyses"]["gcm_headroom"]
    return [[(dataset, compared["verifier"]), (dataset, compared["oracle"])]]


def transfer_scorings(
    config: Config, model: str, checkpoint: str, dataset: str
) -> list[Scoring]:
    """Return the scorings that the transfer matrices need `checkpoint` for.

    Every adapter of the recipes in `analyses.transfer` scores its own answers.
    """
    if (model, dataset) not in analysed(config, "transfer"):
        return []
    return [
        Scoring(checkpoint, recipe, trained_on, dataset, seed)
        for recipe in config["analyses"]["transfer"]["recipes"]
        for trained_on in training_sets(config, model, recipe)
        for seed in recipe_settings(config, recipe)["seeds"]
    ]


def scorings_in(
    config: Config, part: str, model: str, checkpoint: str, dataset: str
) -> list[Scoring]:
    """Return the scorings of the job for `checkpoint` in the folder `part`, each once."""
    scored = model, checkpoint, dataset
    found = scorings_at(config, chosen_estimators(config, part, dataset), *scored)
    if part != config["results"]:
        found += transfer_scorings(config, *scored)
    return sorted(set(found))
