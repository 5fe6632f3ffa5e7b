"""Resources that jobs request from a cluster, and requests and disk that a study takes.

Runtime is a constant for each rule, and memory one for each GPU. A further attempt requests as
much again as the first one: the profile's `retries` submit a new job.
"""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, NamedTuple

from persistcal.questions.splits import FURTHER_ASKS, split_of_questions
from study.checkpoints import PRICES, Config
from study.study import Study

Wildcards = Mapping[str, str]

LONG, USUAL, ON_CPU = 720, 240, 60  # minutes: jobs that train, other GPU jobs, CPU jobs
CPU_MB = 8000  # a decoding and training model of 135 million weights took 7.2 GB
MB_PER_GPU_GB = 600  # main memory, through which a model is loaded
ACTIVATIONS_GB = 20  # in addition to a model's weights: keys and values, gradients
BYTES_PER_WEIGHT = 2  # bfloat16, on disk too
ENTAILMENT_WEIGHTS = 0.2e9
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
ASKED_OF_SERVERS = {"sample_from_server": "samples", "ask_server": "confidences"}


class Request(NamedTuple):
    """Resources of a job, under the names that Snakemake's executors use."""

    gpu: int  # on all nodes together
    mem_mb: int  # main memory of each node
    runtime: int  # in minutes
    ranks: int = 1  # processes that train together
    nodes: int = 1  # machines, each with equally many of the ranks and of the GPUs


class ServerUse(NamedTuple):
    """Requests to a server, tokens of prompts and (at most) of answers, and their cost."""

    requests: float = 0
    input_tokens: float = 0
    output_tokens: float = 0
    cost: float = 0.0


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
            asked = self.request(rulename, wildcards, attempt)
            values: Config = {**asked._asdict(), "cpus_per_task": asked.ranks}
            if asked.nodes > 1:
                gres = f"gpu:{asked.gpu // asked.nodes}"
                values |= {"gpu": None, "gres": gres, "cpus_per_task": 1}
                values |= {"tasks": asked.ranks, "tasks_per_gpu": 0, "mpi": "srun"}
            return values.get(name)

        return value

    # Totals of a study

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
            replies, splits = config["decoding"], [job["split"]]
            prompt = QUESTION_TOKENS + EXAMPLE_TOKENS * config["prompts"]["few_shot"]
        else:
            replies = config["estimators"][job["estimator"]]["asks"]
            splits = [job["split"]]
            prompt = REQUEST_TOKENS + QUESTION_TOKENS + CANDIDATE_TOKENS
        api, questions = self.study.api(*names), self.n_questions(job["dataset"], *splits)
        requests = questions * ceil(replies["n_samples"] / api.get("samples_per_request", 1))
        answers = questions * replies["n_samples"] * replies["max_new_tokens"]
        prices: Config = {key: api.get(key, 0) for key in PRICES}
        cost = (requests * prompt * prices[PRICES[0]] + answers * prices[PRICES[1]]) / 1e6
        return ServerUse(requests, requests * prompt, answers, cost)
