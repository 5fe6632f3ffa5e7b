"""Start of a run of Snakemake: a plan for a cluster stops on a machine without a GPU."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from snakemake.logging import logger

from study.resources import JobResources
from study.study import Study

GPUS = ("/dev/nvidiactl", "/dev/kfd")  # of NVIDIA and of AMD


def at_end_of_dry_run(report: Callable[[], str]) -> None:
    """Append a report to Snakemake's last message of a dry run, for which it has no hook."""

    def add_report(record: logging.LogRecord) -> bool:
        if str(record.msg).startswith("This was a dry-run") and (text := report()):
            record.msg = f"{record.msg}\n\n{text}"
        return True

    logger.addFilter(add_report)


def has_gpu() -> bool:
    """Return whether a driver of a GPU is loaded here."""
    return any(Path(path).exists() for path in GPUS)


def too_much(config: Mapping[str, Any], jobs: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """Return two lines about what `jobs` need, or nothing if none of them needs a GPU.

    Each job is the name of its rule and its wildcards.
    """
    needed: Counter[str] = Counter()
    resources = JobResources(Study(dict(config)))
    for rule, wildcards in jobs:
        needed["jobs"] += 1
        needed["gpu"] += resources.weights(rule, wildcards) > 0
        needed["requests"] += resources.judge_requests(rule, wildcards)
        if rule == "fetch_checkpoint":
            needed["megabytes"] += round(1000 * resources.gigabytes(rule, wildcards))
    if not needed["gpu"]:
        return ""
    return (
        f"Of {needed['jobs']} jobs {needed['gpu']} need a GPU, and this machine has none; they "
        f"download {needed['megabytes'] / 1000:.0f} GB and send {needed['requests']:,} paid "
        "requests. Nothing has started.\n"
        "`make demo` is the study for a laptop; `--profile slurm` runs this one on a cluster, "
        "and `--resources gpu=1` starts it here."
    )
