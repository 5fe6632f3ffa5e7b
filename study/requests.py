"""Resources that a job asks a cluster for, from the size of its model.

Time is that of the rule (`study.costs`). Each further attempt asks for as much again as the
first, of memory too: the profile's `retries` submit a new job.
"""

import functools
import json
from math import prod
from pathlib import Path
from typing import NamedTuple

from study.costs import BYTES_PER_WEIGHT, Config, Cost, Wildcards, expected_cost, weights_of
from study.study import Study

BASE_MB = 8000  # Python, torch and the tables
LOADING = 1.2  # of the weights in main memory before they are on the GPU
LEAST_MIN = 60
LONGEST_HEADER = 10**8  # bytes of a file of weights, as in safetensors itself
SMALL_MODEL_MB = 2000
# Of a model on a CPU: a decoding and training one of 135 million weights took 7.2 GB.
CPU_BYTES_PER_WEIGHT = 40
RESAMPLING_MB = 1500  # Python, a block of replicates (500 MB) and matrices of SmoothECE
# Of a file of predictions: 2 million of them, in 26 MB, took 1.1 GB more than 40,000.
RESAMPLING_PER_MB = 60


class Request(NamedTuple):
    """Resources of a job, under the names that Snakemake's executors know."""

    gpu: int  # on all nodes together
    mem_mb: int  # main memory of each node
    runtime: int  # in minutes
    ranks: int = 1  # processes that train together
    nodes: int = 1  # machines, each with equally many of the ranks and of the GPUs

    @property
    def over_nodes(self) -> dict[str, str | int]:
        """Resources of a job on several nodes, for Snakemake's SLURM executor alone.

        Each rank is a task that the job itself starts with srun (``mpi``), and GPUs are
        those of a node. Without ``tasks_per_gpu`` each GPU would get as many tasks.
        """
        if self.nodes == 1:
            return {}
        gres = f"gpu:{self.gpu // self.nodes}"
        return {"gres": gres, "tasks": self.ranks, "tasks_per_gpu": 0, "mpi": "srun"}


def request(config: Config, rule: str, job: Wildcards, attempt: int = 1) -> Request:
    """Return what the job of `rule` with the wildcards `job` asks for at its `attempt`, from 1.

    A model without `parameters` runs on the CPU, with memory for what local files hold.
    """
    cost = expected_cost(config, rule, job)
    if not cost.gpus:
        verifier = config["verifiers"].get(job.get("verifier"), {})
        weights = _weights_on_disk(config, verifier.get("model", job.get("model", "")))
        copies = job.get("trained_on", "").count("+") + 1  # checkpoints that train together
        copies += _further_parts(config, job)
        memory = round(SMALL_MODEL_MB + CPU_BYTES_PER_WEIGHT * weights * copies / 1e6)
        return Request(0, memory * attempt, LEAST_MIN * attempt)
    nodes = _nodes(config, cost, rule)
    averaged = _further_parts(config, job) * weights_of(config, job.get("model", ""))
    loaded = LOADING * (cost.loaded + averaged) * BYTES_PER_WEIGHT / nodes / 1e6
    memory = round(BASE_MB + loaded) * attempt
    return Request(cost.gpus, memory, cost.minutes * attempt, cost.ranks, nodes)


def _further_parts(config: Config, job: Wildcards) -> int:
    """Return how many models the job's checkpoints are averaged from beside one for each."""
    if job.get("model") not in config["models"]:
        return 0
    named = [job.get("checkpoint", ""), *job.get("trained_on", "").split("+")]
    parts = (Study(config).parts(job["model"], name) for name in named)
    return sum(max(len(of) - 1, 0) for of in parts)


def resampling_mb(predictions_mb: float, attempt: int = 1) -> int:
    """Return the memory in MB that resampling predictions asks for, by the size of their file.

    Replicates are drawn in blocks of a fixed size, so their number does not matter.

    >>> resampling_mb(0.5), resampling_mb(26)
    (1530, 3060)
    """
    return round(RESAMPLING_MB + RESAMPLING_PER_MB * predictions_mb) * attempt


def _nodes(config: Config, cost: Cost, rule: str) -> int:
    """Return the fewest nodes that hold equally many ranks each."""
    per_node, per_rank = config["gpus_per_node"], cost.gpus // cost.ranks
    if per_node is None or cost.gpus <= per_node:
        return 1
    if per_rank > per_node:
        raise ValueError(
            f"config: gpus_per_node is {per_node}, but one copy of the model of {rule} needs "
            f"{per_rank} GPUs of {config['gpu_gb']} GB (gpu_gb); use nodes with more."
        )
    spreads = (n for n in range(2, cost.ranks + 1) if cost.ranks % n == 0)
    return next(n for n in spreads if cost.ranks // n * per_rank <= per_node)


@functools.cache
def _weights_in(folder: Path) -> int:
    """Return the weights in the safetensors files of a folder, from their headers alone."""
    n = 0
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with path.open("rb") as file:
                size = int.from_bytes(file.read(8), "little")
                header = json.loads(file.read(min(size, LONGEST_HEADER)))
            header.pop("__metadata__", None)
            n += sum(prod(tensor["shape"]) for tensor in header.values())
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue  # the job that resolves the checkpoint says what is wrong with it
    return n


def _weights_on_disk(config: Config, model: str) -> int:
    """Return the weights of the largest checkpoint of `model` in a local folder, else 0."""
    study = Study(config)
    names = study.known_checkpoints(model) if model in config["models"] else []
    states = [study.state(model, name) for name in names]
    folders = [
        Path(s["repo"], s["revision"]) for s in states if {"repo", "revision"} <= s.keys()
    ]
    return max(map(_weights_in, folders), default=0)
