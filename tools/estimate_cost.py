"""Print the remaining work: jobs, judge requests and disk.

`python -m tools.estimate_cost [TARGET ...] [--configfile FILE ...]` takes the
arguments of `snakemake`, makes a dry run and sums `study/resources.py` over its jobs. A second
table has the requests to checkpoints behind an API.
"""

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from study.config_files import over_defaults
from study.resources import ASKED_OF_SERVERS, MINUTES, JobResources, ServerUse
from study.study import Study

ROOT = Path(__file__).resolve().parents[1]


class PlannedJob(NamedTuple):
    """A job of a dry run."""

    rule: str
    wildcards: tuple[tuple[str, str], ...]


def jobs_of(dry_run: str) -> list[PlannedJob]:
    """Return the jobs that the text of a dry run lists.

    >>> jobs_of('''
    ... rule train_oracle:
    ...     output: adapters/a
    ...     wildcards: model=a, dataset=b
    ... ''')
    [PlannedJob(rule='train_oracle', wildcards=(('model', 'a'), ...))]
    """
    jobs = []
    for block in re.split(r"^(?=(?:local)?rule \w+:$)", dry_run, flags=re.MULTILINE)[1:]:
        rule = re.match(r"(?:local)?rule (\w+):", block)
        wildcards = re.search(r"^    wildcards: (.*)$", block, flags=re.MULTILINE)
        pairs = re.findall(r"(\w+)=([^,]*)", wildcards[1]) if wildcards else []
        assert rule is not None
        jobs.append(PlannedJob(rule[1], tuple(pairs)))
    return jobs


class Total(NamedTuple):
    """Total cost of some jobs."""

    jobs: float = 0
    requests: float = 0.0
    gigabytes: float = 0.0


def total_costs(config: dict[str, Any], jobs: Iterable[PlannedJob]) -> dict[str, Total]:
    """Return the cost of `jobs` by rule."""
    totals, resources = dict.fromkeys(MINUTES, Total()), JobResources(Study(config))
    for job in jobs:
        wildcards = dict(job.wildcards)
        if (row := resources.row(job.rule, wildcards)) in MINUTES:
            requests = resources.judge_requests(job.rule, wildcards)
            total = Total(1, requests, resources.gigabytes(job.rule, wildcards))
            totals[row] = Total(*map(sum, zip(totals[row], total, strict=True)))
    return totals


def as_table(totals: dict[str, Total]) -> str:
    """Return the rules that have jobs as a Markdown table, with a last line for all of them."""
    lines = ["| rule | jobs | judge requests | disk (GB) |", "|---|--:|--:|--:|"]
    total = Total(*map(sum, zip(*totals.values(), strict=True)))
    lines += [
        f"| {rule} | {row.jobs} | {row.requests:,.0f} | {row.gigabytes:,.1f} |"
        for rule, row in [*totals.items(), ("all", total)]
        if row.jobs or rule == "all"
    ]
    return "\n".join(lines)


def api_table(config: dict[str, Any], jobs: Iterable[PlannedJob]) -> str:
    """Return the requests to checkpoints behind an API, as Markdown, or ""."""
    totals: dict[tuple[str, str], ServerUse] = defaultdict(ServerUse)
    resources = JobResources(Study(config))
    for job in jobs:
        if job.rule in ASKED_OF_SERVERS:
            wildcards = dict(job.wildcards)
            use = resources.server_use(job.rule, wildcards)
            key = f"{wildcards['model']}/{wildcards['checkpoint']}", ASKED_OF_SERVERS[job.rule]
            totals[key] = ServerUse(*map(sum, zip(totals[key], use, strict=True)))
    if not totals:
        return ""
    total = ServerUse(*map(sum, zip(*totals.values(), strict=True)))
    lines = [
        "",
        "| checkpoint | asked for | requests | tokens in | tokens out (most) | cost (most) |",
        "|---|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {place} | {kind} | {row.requests:,} | {row.input_tokens:,} | "
        f"{row.output_tokens:,} | {row.cost:,.2f} |"
        for (place, kind), row in [*totals.items(), (("all", ""), total)]
    ]
    return "\n".join(lines)


def _dry_run(arguments: list[str]) -> list[PlannedJob]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    done = subprocess.run(
        [*command, "--dry-run", "--cores", "1", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout)
    return jobs_of(done.stdout)


def main(arguments: list[str]) -> None:
    """Print the cost of `snakemake` with the same `arguments`."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--configfile", nargs="+", default=[])
    parser.add_argument("--directory", default=".")
    options, _ = parser.parse_known_args(arguments)
    config: dict[str, Any] = {}
    for path in options.configfile:
        update_config(config, load_configfile(path))
    config = over_defaults(config, ROOT)
    jobs = _dry_run(arguments)
    print(as_table(total_costs(config, jobs)))
    if asked := api_table(config, jobs):
        print(asked)


if __name__ == "__main__":
    main(sys.argv[1:])
