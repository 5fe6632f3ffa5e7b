"""The price list of jobs: requests to a cluster and to servers, disk, and GPU memory.

Runtime is a constant for each rule, and main memory one for each GPU. A further attempt
requests as much again as the first one: the profile's `retries` submit a new job. GPU memory is
computed from the shapes of models. Prompts are taken to be long there: twice the tokens of a
usual question and candidate. Batches that do not fit are halved when they run, so that a job
needs only its least.
"""

from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Any, NamedTuple

from persistcal.models.sizes import (
    BYTES_PER_WEIGHT,
    DecoderShape,
    answers_at_once,
    decoding_bytes,
    fit_together,
    scoring_bytes,
    training_bytes,
)
from persistcal.questions.splits import FURTHER_ASKS, split_of_questions
from study.checkpoints import PRICES, Config
from study.study import Study

Wildcards = Mapping[str, str]

LONG, USUAL, ON_CPU = 720, 240, 60  # minutes: jobs that train, other GPU jobs, CPU jobs
CPU_MB = 8000  # a decoding and training model of 135 million weights took 7.2 GB
MB_PER_GPU_GB = 600  # main memory, through which a model is loaded
ACTIVATIONS_GB = 20  # in addition to a model's weights: keys and values, gradients
ENTAILMENT_WEIGHTS = 0.2e9
# DeBERTa base in float32, which compares pairs of a question and two answers
ENTAILMENT_SHAPE = DecoderShape(768, 3072, 12, 12, 128_100, gated=False, tied=True)
BYTES_PER_QUESTION = 1000  # beams, clusters and labels of one checkpoint
BYTES_PER_SCORE = 20
ADAPTER_BYTES_PER_WEIGHT = 0.00125  # per weight of the model and rank of the adapter
RESAMPLING_MB = 1500  # Python, a block of replicates (500 MB) and matrices of SmoothECE
# For each MB of predictions: 2 million of them, in 26 MB, took 1.1 GB more than 40,000.
RESAMPLING_PER_MB = 60
# Tokens in prompts to checkpoints behind an API
QUESTION_TOKENS = 45
CANDIDATE_TOKENS = 15  # a candidate answer and the text after it
EXAMPLE_TOKENS = 30  # a question and its answer in a few-shot prompt
REQUEST_TOKENS = 120  # for a confidence, in words, around question and answer
LONG_QUESTION, LONG_PROMPT = 2 * QUESTION_TOKENS, 2 * (QUESTION_TOKENS + CANDIDATE_TOKENS)

# Minutes of each rule that runs a model, downloads one or asks a judge
MINUTES = {
    "fetch_checkpoint": USUAL,
    "change_checkpoint": LONG,
    "generate_beams": USUAL,
    "ask_checkpoint": USUAL,
    "cluster_answers": USUAL,
    "judge_answers": USUAL,
    "train_adapters": LONG,
    "score_answers": USUAL,
    "score_with_verifier": USUAL,
    "estimate_confidences": USUAL,
    "rate_at_checkpoint": USUAL,
    "measure_variance": USUAL,
}
NO_MODEL = ("fetch_checkpoint", "judge_answers")
ASKED_OF_SERVERS = ("sample_from_server", "ask_server")
PRICED = (*MINUTES, *ASKED_OF_SERVERS)  # rules in the table of costs, in this order


class Request(NamedTuple):
    """Resources of a job, under the names that Snakemake's executors use."""

    gpu: int  # on all nodes together
    mem_mb: int  # main memory of each node
    runtime: int  # in minutes
    ranks: int = 1  # processes that train together
    nodes: int = 1  # machines, each with equally many of the ranks and of the GPUs


class GpuMemory(NamedTuple):
    """Gigabytes that a job takes on the GPU of a process."""

    least: float = 0.0  # with batches of one question
    full: float = 0.0  # whole batches


class Cost(NamedTuple):
    """What some jobs take together."""

    jobs: int = 0
    on_gpu: int = 0  # jobs that need a GPU
    requests: int = 0  # to a paid judge or to checkpoints behind an API, at most
    gigabytes: float = 0.0  # of disk
    downloads: float = 0.0  # gigabytes of checkpoints
    memory: GpuMemory = GpuMemory()  # the largest

    def __add__(self, other: "Cost") -> "Cost":  # type: ignore[override]
        """Return the cost of the jobs of both."""
        sums: Config = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("jobs", "on_gpu", "requests", "gigabytes", "downloads")
        }
        memory = GpuMemory(*map(max, zip(self.memory, other.memory, strict=True)))
        return Cost(**sums, memory=memory)


class ServerUse(NamedTuple):
    """Requests to a server, and their cost at most."""

    requests: int
    cost: float


def shape_of(entry: Mapping[str, Any]) -> DecoderShape | None:
    """Return the shape of a model in the config's catalogue, if it has one."""
    if not (sizes := entry.get("shape")):
        return None
    return DecoderShape(**sizes)


def gpus_per_copy(weights: float, gpu_gb: float) -> int:
    """Return the number of GPUs of `gpu_gb` for a model and its activations.

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


def resampling_mb(predictions_mb: float, attempt: int = 1) -> int:
    """Return the memory in MB for resampling predictions, by the size of their file.

    Replicates are drawn in blocks of a fixed size, so their number does not matter.

    >>> resampling_mb(0.5), resampling_mb(26)
    (1530, 3060)
    """
    return round(RESAMPLING_MB + RESAMPLING_PER_MB * predictions_mb) * attempt


def memory_to_resample(wildcards: Any, input: Any, attempt: int) -> int:  # noqa: ANN401
    """Return `resampling_mb` of a job's inputs."""
    return resampling_mb(input.size_mb, attempt)


class JobResources:
    """Requests of the jobs of one study.

    `names` maps the names of rules to their own names, if a module has given them others.
    """

    def __init__(self, study: Study, names: Mapping[str, str] | None = None) -> None:
        self.study, self.config, self.names = study, study.config, names or {}

    def row(self, rule: str, job: Wildcards) -> str:
        """Return the key of a rule in `MINUTES`: all rules that train adapters share one."""
        name = self.names.get(rule, rule)
        return "train_adapters" if name == f"train_{job.get('recipe')}" else name

    def size(self, model: str) -> float:
        """Return the number of weights of `model`; 0 for models that run on a CPU."""
        return float(self.config["models"].get(model, {}).get("parameters", 0))

    def weights(self, rule: str, job: Wildcards) -> float:
        """Return the number of weights on the GPUs of each process of a job."""
        row = self.row(rule, job)
        if row not in MINUTES or row in NO_MODEL:
            return 0
        uses_nli = self.study.compares_by_model
        if row == "cluster_answers":
            return ENTAILMENT_WEIGHTS if uses_nli else 0
        if row == "score_with_verifier":
            return self.size(self.config["verifiers"][job["verifier"]]["model"])
        if row in ("estimate_confidences", "rate_at_checkpoint"):
            entry = self.config["estimators"][job["estimator"]]
            if entry.get("compares_answers") and uses_nli:
                return ENTAILMENT_WEIGHTS
            return self.size(job["model"]) if entry.get("reads_weights") else 0
        in_float32 = row == "change_checkpoint"
        return self.size(job["model"]) * (2 if in_float32 else 1)

    def request(self, rule: str, job: Wildcards, attempt: int = 1) -> Request:
        """Return the request of a job at its first `attempt`, 1, or at a later one.

        A model without the key `parameters` runs on the CPU.
        """
        gpu_gb, per_node = self.config["gpu_gb"], self.config["gpus_per_node"]
        per_rank = gpus_per_copy(self.weights(rule, job), gpu_gb)
        if not per_rank:
            return Request(0, CPU_MB * attempt, ON_CPU * attempt)
        row, ranks, nodes = self.row(rule, job), 1, 1
        if row == "train_adapters":  # a process for each checkpoint
            key = (job["model"], job["recipe"], job["trained_on"])
            ranks = len(self.study.trained_on(*key))
        if per_node is not None and per_rank > per_node:
            raise ValueError(
                f"config: gpus_per_node is {per_node}, but one copy of the model of {rule} "
                f"needs {per_rank} GPUs of {gpu_gb} GB (gpu_gb); use nodes with more."
            )
        if per_node is not None:  # the fewest nodes with equally many ranks each
            divisors = (n for n in range(1, ranks + 1) if ranks % n == 0)
            nodes = next(n for n in divisors if ranks // n * per_rank <= per_node)
        gpus = per_rank * ranks
        memory = round(MB_PER_GPU_GB * gpu_gb * gpus / nodes)
        return Request(gpus, memory * attempt, MINUTES[row] * attempt, ranks, nodes)

    def request_of(self, name: str) -> Callable[[Wildcards, str, int], int | str | None]:
        """Return a function for the resource `name` of a rule, as SLURM's executor wants it.

        On several nodes each rank is a task that the job itself starts with srun (``mpi``), and
        each node has its own GPUs. Without ``tasks_per_gpu`` each GPU would get as many tasks.
        One node has one task for all ranks.
        """

        def value(wildcards: Wildcards, rulename: str, attempt: int) -> int | str | None:
            request = self.request(rulename, wildcards, attempt)
            values: Config = {**request._asdict(), "cpus_per_task": request.ranks}
            if request.nodes > 1:
                gres = f"gpu:{request.gpu // request.nodes}"
                values |= {"gpu": None, "gres": gres, "cpus_per_task": 1}
                values |= {"tasks": request.ranks, "tasks_per_gpu": 0, "mpi": "srun"}
            return values.get(name)

        return value

    # Totals of a study

    def cost(self, jobs: Iterable[tuple[str, Wildcards]]) -> Cost:
        """Return what jobs take, each given as its rule and wildcards."""
        total = Cost()
        for rule, job in jobs:
            gigabytes, memory = self.gigabytes(rule, job), self.memory(rule, job) or GpuMemory()
            fetched = gigabytes if self.row(rule, job) == "fetch_checkpoint" else 0.0
            on_gpu, requests = self.weights(rule, job) > 0, self.judge_requests(rule, job)
            if rule in ASKED_OF_SERVERS:
                requests = self.server_use(rule, job).requests
            total += Cost(1, on_gpu, requests, gigabytes, fetched, memory)
        return total

    def table(self, jobs: Iterable[tuple[str, Wildcards]]) -> str:
        """Return what jobs take, by rule; "" if none needs a GPU, a download or a server."""
        by_row: dict[str, list[tuple[str, Wildcards]]] = {}
        joint: dict[str, tuple[int, DecoderShape]] = {}  # the most copies of each model
        for rule, job in jobs:
            by_row.setdefault(self.row(rule, job), []).append((rule, job))
            if copies := self.copies_on_one_gpu(rule, job):
                label = self.config["models"][job["model"]].get("label", job["model"])
                joint[label] = max(copies, joint.get(label, copies))
        costs = {row: self.cost(by_row[row]) for row in PRICED if row in by_row}
        total = sum(costs.values(), start=Cost())
        if not (total.on_gpu or total.requests or total.downloads):
            return ""
        lines = [
            "| rule | jobs | requests | disk (GB) | GPU (GB), least | with full batches |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        for row, cost in [*costs.items(), ("all", total)]:
            memory = " | ".join(
                f"{gigabytes:,.1f}" if gigabytes else "" for gigabytes in cost.memory
            )
            numbers = f"{cost.jobs} | {cost.requests:,.0f} | {cost.gigabytes:,.1f} | {memory}"
            lines.append(f"| {row} | {numbers} |")
        lines += ["", "GPU memory is per process, with one copy of a model that has a `shape`."]
        gpu_gb = self.config["gpu_gb"]
        return "\n".join([*lines, *(describe_copies(*c, gpu_gb, m) for m, c in joint.items())])

    def n_questions(self, dataset: str, *splits: str) -> int:
        """Return the number of questions of `splits`; files of questions count as none."""
        entry, splits = self.config["datasets"][dataset], tuple(map(split_of_questions, splits))
        ranges = [entry[split] for split in splits if split in entry]
        counts = [entry.get(f"n_{split}", 0) for split in splits]
        counts += [end - begin for begin, end in ranges]
        most = (self.study.chosen.get("limit") or {}).get("questions")
        return sum(min(count, most) if most else count for count in counts)

    def judge_requests(self, rule: str, job: Wildcards) -> int:
        """Return the largest number of requests of a job to a paid judge."""
        if self.row(rule, job) != "judge_answers":
            return 0
        judge = self.config["judge"]
        if not self.study.judge.asks_server:
            return 0
        questions = self.n_questions(job["dataset"], job["split"])
        if job["split"] in FURTHER_ASKS or judge.get("together"):
            return questions
        return questions * self.judged_candidates()

    def judged_candidates(self) -> int:
        """Return the largest number of a question's answers that are judged."""
        decoding = self.config["decoding"]
        samples = decoding["strategy"] == "sample"
        answers = decoding["n_samples" if samples else "n_beams"]
        return min(self.study.judged_clusters or answers, answers)

    def gigabytes(self, rule: str, job: Wildcards) -> float:
        """Return the size of the outputs of a job."""
        row, config, study = self.row(rule, job), self.config, self.study
        shards = 1
        if "shard" in job:
            shards = config["decoding" if row == "generate_beams" else "scoring"]["shards"]
        n_bytes = 0.0
        if row in ("fetch_checkpoint", "change_checkpoint"):
            n_bytes = self.size(job["model"]) * BYTES_PER_WEIGHT
            n_bytes *= 2 if row == "change_checkpoint" else 1  # in float32
        elif row == "generate_beams":
            questions = self.n_questions(job["dataset"], job["split"])
            n_bytes = questions * BYTES_PER_QUESTION / shards
        elif row == "train_adapters":
            recipe = study.recipe(job["recipe"])
            weights = self.size(job["model"]) * ADAPTER_BYTES_PER_WEIGHT
            n_bytes = weights * recipe["rank"] * len(recipe["seeds"])
        elif row == "score_answers":
            key = ("model", "checkpoint", "dataset", "recipe", "answers")
            adapters = len(study.scorings(*(job[name] for name in key)))
            split = "train" if job["answers"] == "train" else "test"
            questions = self.n_questions(job["dataset"], split)
            n_bytes = adapters * questions * BYTES_PER_SCORE / shards
        elif row == "score_with_verifier":
            names = (job["verifier"], job["model"], job["dataset"])
            splits_judged = study.splits_to_verify(*names)
            answers = sum(self.n_questions(job["dataset"], s) for s in splits_judged.values())
            n_bytes = answers * BYTES_PER_SCORE
        return n_bytes / 1e9

    def server_use(self, rule: str, job: Wildcards) -> ServerUse:
        """Return the requests and tokens of a job of a rule in `ASKED_OF_SERVERS`."""
        config, names = self.config, (job["model"], job["checkpoint"])
        if rule == "sample_from_server":
            replies = config["decoding"]
            prompt = QUESTION_TOKENS + EXAMPLE_TOKENS * config["prompts"]["few_shot"]
        else:
            replies = config["estimators"][job["estimator"]]["asks"]
            prompt = REQUEST_TOKENS + QUESTION_TOKENS + CANDIDATE_TOKENS
        api, questions = self.study.api(*names), self.n_questions(job["dataset"], job["split"])
        requests = questions * ceil(replies["n_samples"] / api.get("samples_per_request", 1))
        answers = questions * replies["n_samples"] * replies["max_new_tokens"]
        prices: Config = {key: api.get(key, 0) for key in PRICES}
        cost = (requests * prompt * prices[PRICES[0]] + answers * prices[PRICES[1]]) / 1e6
        return ServerUse(requests, cost)

    def memory(self, rule: str, job: Wildcards) -> GpuMemory | None:
        """Return the GPU memory of a job with one copy of the model, or None if it is unknown.

        A model has to have a `shape`; jobs without a model on a GPU have none.
        """
        row, config = self.row(rule, job), self.config
        if not (weights := self.weights(rule, job)):
            return None
        if weights == ENTAILMENT_WEIGHTS:
            pairs = config["equivalence"]["batch_size"]
            sizes = (scoring_bytes(ENTAILMENT_SHAPE, n * LONG_PROMPT) for n in (1, pairs))
            return GpuMemory(*(2 * size / 1e9 for size in sizes))
        verifier = config["verifiers"].get(job.get("verifier", ""), {})
        model = verifier.get("model", job.get("model", ""))
        shape = shape_of(config["models"].get(model, {}))
        if shape is None:
            return None
        if row == "generate_beams":
            decoding = config["decoding"]
            lengths = {key: decoding[key] for key in ("n_beams", "max_new_tokens")}
            memory = (0.0, decoding["memory_gb"])  # at least one question
            sizes = (
                decoding_bytes(shape, n_question=LONG_QUESTION, **lengths, memory_gb=gigabytes)
                for gigabytes in memory
            )
        elif row == "train_adapters":
            recipe = self.study.recipe(job["recipe"])
            n_answers = recipe["n_answers"]
            tokens = LONG_QUESTION + n_answers * (LONG_PROMPT - LONG_QUESTION)  # per question
            at_once = recipe["micro_batch"]  # auto: all questions of a step, if they fit
            whole = recipe["batch_size"] if at_once == "auto" else at_once // n_answers
            questions = (1, max(1, whole))
            rank = recipe["rank"]
            sizes = (training_bytes(shape, n * tokens, lora_rank=rank) for n in questions)
        elif row in ("score_answers", "score_with_verifier"):
            batch = verifier.get("batch_size", config["scoring"]["batch_size"])
            batch = answers_at_once(shape, LONG_PROMPT) if batch == "auto" else batch
            sizes = (scoring_bytes(shape, n * LONG_PROMPT) for n in (1, batch))
        else:
            return None
        return GpuMemory(*(size / 1e9 for size in sizes))

    def copies_on_one_gpu(self, rule: str, job: Wildcards) -> tuple[int, DecoderShape] | None:
        """Return the copies of a joint training, and their shape, or None without a shape."""
        if self.row(rule, job) != "train_adapters":
            return None
        shape = shape_of(self.config["models"][job["model"]])
        copies = len(self.study.trained_on(job["model"], job["recipe"], job["trained_on"]))
        return (copies, shape) if shape and copies > 1 else None


def describe_copies(copies: int, shape: DecoderShape, gpu_gb: float, label: str) -> str:
    """Return a sentence on how a joint training uses a single GPU of `gpu_gb`.

    >>> shape = DecoderShape(2048, 11008, 36, 16, 128256, kv_heads=4, tied=True)
    >>> describe_copies(4, shape, 24, "SmolLM3 3B")
    'On one GPU of 24 GB, 4 copies of SmolLM3 3B (6.1 GB each) are in main memory, and one ...
    """
    weights_gb = shape.weight_bytes / 1e9
    start = (
        f"On one GPU of {gpu_gb:g} GB, {copies} copies of {label} ({weights_gb:.1f} GB each)"
    )
    if not fit_together(copies, weights_gb, gpu_gb):
        return f"{start} are in main memory, and one at a time is on the GPU."
    more = (copies - 1) * weights_gb
    return f"{start} are on the GPU together, which adds {more:.1f} GB to the figures above."
