"""Resources, requests and disk of the jobs that run models or ask a paid judge."""

from collections.abc import Callable, Mapping
from math import ceil
from typing import NamedTuple

from study.study import Config, Study

Wildcards = Mapping[str, str]

ACTIVATIONS_GB = 20  # beside a model's weights: keys and values, gradients
BYTES_PER_WEIGHT = 2  # bfloat16, on disk too
ENTAILMENT_WEIGHTS = 0.2e9
BYTES_PER_QUESTION = 1000  # beams, clusters and labels of one checkpoint
BYTES_PER_SCORE = 20
ADAPTER_BYTES_PER_WEIGHT = 0.00125  # of the model, times the adapter's rank
LONG, USUAL = 720, 240  # minutes: of jobs that train, and of others on GPUs


class Cost(NamedTuple):
    """GPUs, time, requests and disk that a job takes."""

    gpus: int = 0
    minutes: int = 0  # that it asks for
    requests: float = 0.0  # to a paid judge, at most
    gigabytes: float = 0.0  # of outputs
    loaded: float = 0.0  # weights of all models that it holds at once
    ranks: int = 1  # processes that share its GPUs, with a model each


def weights_of(config: Config, model: str) -> float:
    """Return how many weights `model` has; 0 for one that runs on a CPU."""
    return float(config["models"].get(model, {}).get("parameters", 0))


def gpus_per_copy(weights: float, gpu_gb: float) -> int:
    """Return how many GPUs of `gpu_gb` hold a model and what it computes.

    Weights that fit in half of a GPU are not split (`persistcal.models.load.split_model`).
    7.3 billion weights take 14.6 GB, 32.2 billion 64.4 GB:

    >>> gpus_per_copy(7.3e9, 80), gpus_per_copy(32.2e9, 80), gpus_per_copy(0, 80)
    (1, 2, 0)
    >>> gpus_per_copy(3e9, 24), gpus_per_copy(7.3e9, 24), gpus_per_copy(32.2e9, 141)
    (1, 2, 1)
    """
    gigabytes = weights * BYTES_PER_WEIGHT / 1e9
    if gigabytes <= gpu_gb / 2:
        return 1 if weights else 0
    return ceil((gigabytes + ACTIVATIONS_GB) / gpu_gb)


def n_questions(config: Config, dataset: str, *splits: str) -> int:
    """Return how many questions of `splits` a dataset has; those of a file are not known."""
    about = config["datasets"][dataset]
    ranges = [about[split] for split in splits if split in about]
    counts = [about.get(f"n_{split}", 0) for split in splits]
    return sum(end - begin for begin, end in ranges) + sum(counts)


def _n_asked(config: Config, job: Wildcards) -> int:
    """Return how many questions of the job's dataset its model answers."""
    splits = Study(config).splits_asked(job["model"], job["checkpoint"])
    return n_questions(config, job["dataset"], *splits)


def _in_shard(config: Config, job: Wildcards, step: str, items: float) -> float:
    """Return how many of `items` a job of `step` has, which may be one of several shards."""
    return items / config[step]["shards"] if "shard" in job else items


def _on_gpus(
    config: Config,
    weights: float,
    *,
    minutes: int = USUAL,
    ranks: int = 1,
    gigabytes: float = 0.0,
) -> Cost:
    """Return the cost of a job with a model per rank, each on GPUs of its own."""
    if not weights:
        return Cost(gigabytes=gigabytes)
    gpus = gpus_per_copy(weights, config["gpu_gb"]) * ranks
    return Cost(gpus, minutes, gigabytes=gigabytes, loaded=weights * ranks, ranks=ranks)


def answers_each(config: Config) -> int:
    """Return how many beams or samples a question has."""
    settings = config["decoding"]
    return settings["n_samples" if settings["strategy"] == "sample" else "n_beams"]


def _fetch_checkpoint(config: Config, job: Wildcards) -> Cost:
    return Cost(gigabytes=weights_of(config, job["model"]) * BYTES_PER_WEIGHT / 1e9)


def _change_checkpoint(config: Config, job: Wildcards) -> Cost:
    weights = weights_of(config, job["model"])  # in float32
    gigabytes = 2 * weights * BYTES_PER_WEIGHT / 1e9
    return _on_gpus(config, 2 * weights, minutes=LONG, gigabytes=gigabytes)


def _generate_beams(config: Config, job: Wildcards) -> Cost:
    questions = _in_shard(config, job, "decoding", _n_asked(config, job))
    gigabytes = questions * BYTES_PER_QUESTION / 1e9
    return _on_gpus(config, weights_of(config, job["model"]), gigabytes=gigabytes)


def _of_model(config: Config, job: Wildcards) -> Cost:
    return _on_gpus(config, weights_of(config, job["model"]))


def _cluster_answers(config: Config, job: Wildcards) -> Cost:
    if config["equivalence"]["backend"] == "lexical":
        return Cost()
    return _on_gpus(config, ENTAILMENT_WEIGHTS)


def _judge_answers(config: Config, job: Wildcards) -> Cost:
    if config["judge"]["backend"] == "lexical":
        return Cost()
    questions = _n_asked(config, job)
    if config["judge"].get("together"):
        return Cost(requests=questions)
    return Cost(requests=questions * (Study(config).judged_clusters or answers_each(config)))


def _train_adapters(config: Config, job: Wildcards) -> Cost:
    # The ranks of a job hold one checkpoint each and work side by side.
    model, recipe = job["model"], job["recipe"]
    study, weights = Study(config), weights_of(config, model)
    settings = study.recipe(recipe)
    ranks = len(study.trained_on(model, recipe, job["trained_on"]))
    gigabytes = weights * ADAPTER_BYTES_PER_WEIGHT * settings["rank"] / 1e9
    gigabytes *= len(settings["seeds"])
    return _on_gpus(config, weights, minutes=LONG, ranks=ranks, gigabytes=gigabytes)


def _score_answers(config: Config, job: Wildcards) -> Cost:
    key = ("model", "checkpoint", "dataset", "recipe", "answers")
    adapters = Study(config).scorings(*(job[name] for name in key))
    split = "train" if job["answers"] == "train" else "test"
    asked = n_questions(config, job["dataset"], split)
    answers = len(adapters) * _in_shard(config, job, "scoring", asked)
    gigabytes = answers * BYTES_PER_SCORE / 1e9
    return _on_gpus(config, weights_of(config, job["model"]), gigabytes=gigabytes)


def _score_with_verifier(config: Config, job: Wildcards) -> Cost:
    verifier, model, dataset = job["verifier"], job["model"], job["dataset"]
    splits = Study(config).splits_to_verify(verifier, model, dataset)
    answers = sum(n_questions(config, dataset, split) for split in splits.values())
    weights = weights_of(config, config["verifiers"][verifier]["model"])
    return _on_gpus(config, weights, gigabytes=answers * BYTES_PER_SCORE / 1e9)


def _rating(config: Config, job: Wildcards) -> Cost:
    """Return the cost of an estimator's function."""
    about = config["estimators"][job["estimator"]]
    if about.get("compares_answers") and config["equivalence"]["backend"] == "nli":
        return _on_gpus(config, ENTAILMENT_WEIGHTS)
    return _of_model(config, job) if about.get("reads_weights") else Cost()


COSTS: dict[str, Callable[[Config, Wildcards], Cost]] = {
    "fetch_checkpoint": _fetch_checkpoint,
    "change_checkpoint": _change_checkpoint,
    "generate_beams": _generate_beams,
    "ask_checkpoint": _of_model,
    "cluster_answers": _cluster_answers,
    "judge_answers": _judge_answers,
    "train_adapters": _train_adapters,
    "score_answers": _score_answers,
    "score_with_verifier": _score_with_verifier,
    "estimate_confidences": _rating,
    "rate_at_checkpoint": _rating,
    "measure_variance": _of_model,
}


def kind_of(rule: str, job: Wildcards) -> str:
    """Return the row of `COSTS` that a rule belongs to: one serves all recipes."""
    return "train_adapters" if rule == f"train_{job.get('recipe')}" else rule


def expected_cost(config: Config, rule: str, job: Wildcards) -> Cost:
    """Return what the job of `rule` with the wildcards `job` should cost.

    Rules without a row in `COSTS` run no model, and cost nothing that is counted here.
    """
    estimate = COSTS.get(kind_of(rule, job))
    return estimate(config, job) if estimate else Cost()
