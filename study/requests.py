"""What a job asks a cluster for, from the size of its model.

Time is four times what the job should take, and each further attempt asks for as much
again as the first, of memory too: the profile's `retries` submit a new job.
"""

from typing import NamedTuple

from study.costs import BYTES_PER_WEIGHT, Config, Wildcards, expected_cost

BASE_MB = 8000  # Python, torch and the tables
LOADING = 1.2  # of the weights in main memory before they are on the GPU
LEAST_MIN = 60
MARGIN = 4
SMALL_MODEL_MB = 2000


class Request(NamedTuple):
    """Resources of a job, under the names that Snakemake's executors know.

    Attributes
    ----------
    gpu : int
    mem_mb : int
        Main memory in megabytes.
    runtime : int
        In minutes.
    ranks : int
        Processes that train together.
    """

    gpu: int
    mem_mb: int
    runtime: int
    ranks: int = 1


def request(config: Config, rule: str, job: Wildcards, attempt: int = 1) -> Request:
    """Return what the job of `rule` with the wildcards `job` asks for.

    Parameters
    ----------
    config : dict
        The study's config; `models.{model}.parameters` says how large a model is,
        and without it the job runs on the CPU.
    rule : str
    job : mapping of str to str
        The job's wildcards.
    attempt : int
        1 for the first time it is submitted.
    """
    cost = expected_cost(config, rule, job)
    if not cost.gpus:
        return Request(0, SMALL_MODEL_MB * attempt, LEAST_MIN * attempt)
    loaded = LOADING * cost.loaded * BYTES_PER_WEIGHT / 1e6
    minutes = max(LEAST_MIN, round(MARGIN * 60 * cost.hours))
    return Request(cost.gpus, round(BASE_MB + loaded) * attempt, minutes * attempt, cost.ranks)
