"""Expected costs of jobs: the one table behind cluster requests, `make cost` and docs.

Rates are cautious for an A100; `make cost` corrects them by what finished jobs took.
docs/cluster.md shows the arithmetic.
"""

from collections.abc import Callable, Mapping
from math import ceil
from typing import NamedTuple

from study.checkpoints import Config
from study.selection import Study

Wildcards = Mapping[str, str]

ACTIVATIONS_GB = 20  # beside a model's weights: keys and values, gradients
BYTES_PER_WEIGHT = 2  # bfloat16, on disk too
READ = 1e9  # bytes/s at which weights come from the shared file system
FLOPS = 150e12  # per second, for prompts of about 100 tokens
BANDWIDTH = 1e12  # bytes/s at which decoding reads the weights
LAUNCH_S = 8e-6  # of a kernel, by a host that runs ahead of the GPU within a step
STEP_KERNELS, LAYER_KERNELS = 108, 56  # of a decoding step, as counted in tests/pretend
TF32 = 2  # times that products take longer in it than in bfloat16
PIECES_PER_GPU = 2  # of a batch, where a model is split: persistcal.confidence.verbalised
STEPS = 30  # until the last beam of a batch has ended, if none began later
QUEUE_PASSES = (
    0.75  # of that, where questions begin as others are done (tests/study/test_costs.py)
)
LIVE_STEPS = 10  # until a beam has ended, on average; SmolLM2 on cities: 2
MOST, TYPICAL = 128, 30  # as in persistcal.answers.decode, where the batch size is "auto"
KEY_VALUE_BYTES = 2 * 32 * 4096 * BYTES_PER_WEIGHT  # of a token, in 32 layers of 4,096 units
LOGITS_BYTES = 5 * 4 * 100_000  # of a beam's next token
INSTRUCTION_TOKENS = 30  # before the question, with which all confidence prompts begin
QUESTION_TOKENS = 45
CANDIDATE_TOKENS = 15  # a candidate answer and what follows it
VERIFIER_INSTRUCTION_TOKENS = 26  # its prompt: before the question,
VERIFIER_ANSWER_TOKENS = 39  # and after it
QUESTIONS_PER_TREE = 16  # that share an instruction, see persistcal.confidence.packing
ENTAILMENT_WEIGHTS = 0.2e9
PAIRS = 15  # of a question's beams, compared in at least one direction
PAIRS_PER_S = 500  # of the entailment model
NEW_ANSWERS = 0.4  # share of candidates that no other checkpoint gave before
BYTES_PER_QUESTION = 1000  # beams, clusters and labels of one checkpoint
BYTES_PER_SCORE = 20
ADAPTER_BYTES_PER_WEIGHT = 0.00125  # of the model, times the adapter's rank


class Cost(NamedTuple):
    """GPUs, time, requests and disk that a job takes."""

    gpus: int = 0
    hours: float = 0.0  # that it holds them
    requests: float = 0.0  # to a paid judge
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
    config: Config, weights: float, seconds: float, *, ranks: int = 1, gigabytes: float = 0.0
) -> Cost:
    """Return the cost of `seconds` with a model per rank, each on GPUs of its own."""
    if not weights:
        return Cost(gigabytes=gigabytes)
    hours = (weights * BYTES_PER_WEIGHT / READ + seconds) / 3600
    gpus = gpus_per_copy(weights, config["gpu_gb"]) * ranks
    return Cost(gpus, hours, gigabytes=gigabytes, loaded=weights * ranks, ranks=ranks)


def question_tokens(candidates: int, prompts_at_once: int) -> float:
    """Return the tokens of a question's confidence prompts, packed with those of others.

    One of 16 questions that share 30 tokens has 45 and 15 of its own; one of four with eight
    candidates each, 45 and 8 x 15:

    >>> question_tokens(1, 64), question_tokens(8, 32)
    (61.875, 172.5)
    """
    share = max(1, min(QUESTIONS_PER_TREE, prompts_at_once // candidates))
    return QUESTION_TOKENS + CANDIDATE_TOKENS * candidates + INSTRUCTION_TOKENS / share


def reading_seconds(
    config: Config,
    weights: float,
    questions: float,
    *,
    candidates: int = 1,
    prompts_at_once: int,
    precision: str = "stored",
) -> float:
    """Return how long a forward pass of confidence prompts takes.

    On several GPUs k pieces of a batch pass all n in (k + n - 1) / (k n) of the time that the
    GPUs take one after the other, and share less of their prompts.
    """
    gpus = gpus_per_copy(weights, config["gpu_gb"])
    if not gpus:
        return 0.0
    pieces = PIECES_PER_GPU * gpus if gpus > 1 else 1
    tokens = questions * question_tokens(candidates, prompts_at_once // pieces)
    one_by_one = 2 * weights * tokens / FLOPS * (TF32 if precision == "float32" else 1)
    return one_by_one * (pieces + gpus - 1) / (pieces * gpus)


def decoding_step_seconds(weights: float) -> float:
    """Return how long a step takes: reading the weights or starting kernels, whatever is more.

    The layers of a usual model of about 128 units a layer follow from its weights.
    33.4 layers take 1,976 kernels; 54.7 layers 3,172, but 64.4 GB take longer to read:

    >>> round(decoding_step_seconds(7.3e9), 4), round(decoding_step_seconds(32.2e9), 4)
    (0.0158, 0.0644)
    """
    layers = (weights / (12 * 128**2)) ** (1 / 3)
    launches = (STEP_KERNELS + LAYER_KERNELS * layers) * LAUNCH_S
    return max(launches, weights * BYTES_PER_WEIGHT / BANDWIDTH)


def answers_each(config: Config) -> int:
    """Return how many beams or samples a question has."""
    settings = config["decoding"]
    return settings["n_samples" if settings["strategy"] == "sample" else "n_beams"]


def questions_at_once(config: Config) -> int:
    """Return how many questions are decoded together, `persistcal.answers.decode`."""
    settings = config["decoding"]
    if settings["batch_size"] != "auto":
        return settings["batch_size"]
    tokens = QUESTION_TOKENS + answers_each(config) * min(TYPICAL, settings["max_new_tokens"])
    per_question = tokens * KEY_VALUE_BYTES + answers_each(config) * LOGITS_BYTES
    return max(1, min(MOST, int(settings["memory_gb"] * 1e9 / per_question)))


def _fetch_checkpoint(config: Config, job: Wildcards) -> Cost:
    return Cost(gigabytes=weights_of(config, job["model"]) * BYTES_PER_WEIGHT / 1e9)


def _change_checkpoint(config: Config, job: Wildcards) -> Cost:
    # In float32; of the questions of some categories, which are not known here, at most all.
    study, weights = Study(config), weights_of(config, job["model"])
    change = study.state(job["model"], job["checkpoint"])["change"]
    datasets = change.get("datasets", study.chosen["datasets"])
    questions = sum(n_questions(config, dataset, "train", "test") for dataset in datasets)
    tokens = questions * change.get("epochs", 1) * (QUESTION_TOKENS + CANDIDATE_TOKENS)
    seconds = 6 * weights * tokens / FLOPS * TF32
    gigabytes = 2 * weights * BYTES_PER_WEIGHT / 1e9
    return _on_gpus(config, 2 * weights, seconds, gigabytes=gigabytes)


def _generate_beams(config: Config, job: Wildcards) -> Cost:
    questions = _in_shard(config, job, "decoding", _n_asked(config, job))
    most = config["decoding"]["max_new_tokens"]
    steps, live = (min(n, most) for n in (STEPS, LIVE_STEPS))
    return _decoding(config, job, questions, answers_each(config), steps, live)


def _ask_checkpoint(config: Config, job: Wildcards) -> Cost:
    study = Study(config)
    split = study.split_rated(job["model"], job["checkpoint"])
    asks = config["estimators"][job["estimator"]]["asks"]
    questions, most = n_questions(config, job["dataset"], split), asks["max_new_tokens"]
    return _decoding(config, job, questions, asks["n_samples"], most, most)


def _decoding(
    config: Config, job: Wildcards, questions: float, answers: int, steps: float, live: float
) -> Cost:
    """Return the cost of so many answers to each question, of `live` tokens on average."""
    weights = weights_of(config, job["model"])
    gigabytes = questions * BYTES_PER_QUESTION / 1e9
    if not weights:
        return Cost(gigabytes=gigabytes)
    passes = ceil(questions / questions_at_once(config)) * steps * QUEUE_PASSES
    # a token is computed, and the keys and values of its question's tree are read
    flops = 2 * weights * questions * (QUESTION_TOKENS + answers * live)
    read = questions * live * (QUESTION_TOKENS + answers * live) * KEY_VALUE_BYTES
    seconds = passes * decoding_step_seconds(weights) + flops / FLOPS + read / BANDWIDTH
    return _on_gpus(config, weights, seconds, gigabytes=gigabytes)


def _cluster_answers(config: Config, job: Wildcards) -> Cost:
    if config["equivalence"]["backend"] == "lexical":
        return Cost()
    questions = _n_asked(config, job)
    return _on_gpus(config, ENTAILMENT_WEIGHTS, questions * PAIRS / PAIRS_PER_S)


def _judge_answers(config: Config, job: Wildcards) -> Cost:
    if config["judge"]["backend"] == "lexical":
        return Cost()
    questions = _n_asked(config, job)
    if config["judge"].get("together"):
        return Cost(requests=questions)
    candidates = Study(config).judged_clusters or answers_each(config)
    return Cost(requests=questions * candidates * NEW_ANSWERS)


def _train_adapters(config: Config, job: Wildcards) -> Cost:
    # The ranks of a job hold one checkpoint each and work side by side. Twice the
    # forward pass is spent on the gradient of activations; the base has none.
    model, recipe = job["model"], job["recipe"]
    study, weights = Study(config), weights_of(config, model)
    settings = study.recipe(recipe)
    checkpoints = study.trained_on(model, recipe, job["trained_on"])
    candidates = settings["answers"]
    if settings["data"] == "pooled":
        candidates *= len(study.data_checkpoints(model, recipe, job["trained_on"]))
    questions = n_questions(config, job["dataset"], "train") * settings["epochs"]
    seeds = len(settings["seeds"])
    forward = reading_seconds(
        config,
        weights,
        questions * seeds,
        candidates=candidates,
        prompts_at_once=settings["micro_batch"],
        precision=settings["precision"],
    )
    gigabytes = weights * ADAPTER_BYTES_PER_WEIGHT * settings["rank"] * seeds / 1e9
    return _on_gpus(config, weights, 2 * forward, ranks=len(checkpoints), gigabytes=gigabytes)


def _states_seconds(config: Config, weights: float, answers: float) -> float:
    """Return how long answers are read for their hidden states, a GPU after the other."""
    tokens = question_tokens(1, config["scoring"]["batch_size"])
    return 2 * weights * answers * tokens / FLOPS


def _score_answers(config: Config, job: Wildcards) -> Cost:
    key = ("model", "checkpoint", "dataset", "recipe", "answers")
    adapters = Study(config).scorings(*(job[name] for name in key))
    split = "train" if job["answers"] == "train" else "test"
    asked = n_questions(config, job["dataset"], split)
    answers = len(adapters) * _in_shard(config, job, "scoring", asked)
    weights = weights_of(config, job["model"])
    seconds = reading_seconds(
        config,
        weights,
        answers,
        prompts_at_once=config["scoring"]["batch_size"],
        precision=config["training"]["precision"],
    )
    return _on_gpus(config, weights, seconds, gigabytes=answers * BYTES_PER_SCORE / 1e9)


def _measure_variance(config: Config, job: Wildcards) -> Cost:
    recipe = config["analyses"]["hidden_state_variance"]["recipe"]
    seeds = len(Study(config).seeds(recipe))
    weights = weights_of(config, job["model"])
    answers = seeds * n_questions(config, job["dataset"], "test")
    seconds = _states_seconds(config, weights, answers)
    slower = TF32 if config["training"]["precision"] == "float32" else 1
    return _on_gpus(config, weights, slower * seconds)


def _score_with_verifier(config: Config, job: Wildcards) -> Cost:
    verifier, model, dataset = job["verifier"], job["model"], job["dataset"]
    splits = Study(config).splits_to_verify(verifier, model, dataset)
    answers = sum(n_questions(config, dataset, split) for split in splits.values())
    weights = weights_of(config, config["verifiers"][verifier]["model"])
    shared = VERIFIER_INSTRUCTION_TOKENS / QUESTIONS_PER_TREE
    tokens = shared + QUESTION_TOKENS + VERIFIER_ANSWER_TOKENS
    seconds = 2 * weights * answers * tokens / FLOPS
    return _on_gpus(config, weights, seconds, gigabytes=answers * BYTES_PER_SCORE / 1e9)


def _estimate_confidences(config: Config, job: Wildcards) -> Cost:
    read = Study(config).checkpoints_read(job["model"], job["estimator"])
    return _rating(config, job, len(read))


def _rate_at_checkpoint(config: Config, job: Wildcards) -> Cost:
    read = Study(config).read_at(job["model"], job["estimator"], job["checkpoint"])
    return _rating(config, job, len(read))


def _rating(config: Config, job: Wildcards, n_checkpoints: int) -> Cost:
    """Return the cost of an estimator's function that reads so many checkpoints."""
    about = config["estimators"][job["estimator"]]
    answers = n_checkpoints * n_questions(config, job["dataset"], "train", "test")
    if about.get("compares_answers") and config["equivalence"]["backend"] == "nli":
        return _on_gpus(config, ENTAILMENT_WEIGHTS, answers * PAIRS / PAIRS_PER_S)
    if not about.get("reads_weights"):
        return Cost()
    weights = weights_of(config, job["model"])
    further_loads = (n_checkpoints - 1) * weights * BYTES_PER_WEIGHT / READ
    return _on_gpus(config, weights, further_loads + _states_seconds(config, weights, answers))


COSTS: dict[str, Callable[[Config, Wildcards], Cost]] = {
    "fetch_checkpoint": _fetch_checkpoint,
    "change_checkpoint": _change_checkpoint,
    "generate_beams": _generate_beams,
    "ask_checkpoint": _ask_checkpoint,
    "cluster_answers": _cluster_answers,
    "judge_answers": _judge_answers,
    "train_adapters": _train_adapters,
    "score_answers": _score_answers,
    "score_with_verifier": _score_with_verifier,
    "estimate_confidences": _estimate_confidences,
    "rate_at_checkpoint": _rate_at_checkpoint,
    "measure_variance": _measure_variance,
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
