"""Print what is left to do would cost: GPU-hours, judge requests and disk.

`python -m tools.estimate_cost [TARGET ...] [--configfile FILE ...]` takes the
arguments of `snakemake`, asks it for a dry run and adds up `costs.py` over the jobs
that it lists. Where jobs of the same rule and model have finished, their benchmark
files correct the hours. A second table has what checkpoints behind an API are asked.
"""

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from study.api_costs import KINDS, OfServer, asked_of_api
from study.config_files import over_defaults
from study.costs import COSTS, expected_cost, kind_of

ROOT = Path(__file__).resolve().parents[1]


class PlannedJob(NamedTuple):
    """A job of a dry run, and where it writes how long it took, if it does."""

    rule: str
    wildcards: tuple[tuple[str, str], ...]
    benchmark: str | None


def jobs_of(dry_run: str) -> list[PlannedJob]:
    """Return the jobs that the text of a dry run lists.

    >>> jobs_of('''
    ... rule train_oracle:
    ...     output: adapters/a
    ...     benchmark: logs/a.tsv
    ...     wildcards: model=a, dataset=b
    ... ''')
    [PlannedJob(rule='train_oracle', wildcards=(('model', 'a'), ...), benchmark='logs/a.tsv')]
    """
    jobs = []
    for block in re.split(r"^(?=(?:local)?rule \w+:$)", dry_run, flags=re.MULTILINE)[1:]:
        rule = re.match(r"(?:local)?rule (\w+):", block)
        wildcards = re.search(r"^    wildcards: (.*)$", block, flags=re.MULTILINE)
        benchmark = re.search(r"^    benchmark: (.*)$", block, flags=re.MULTILINE)
        pairs = re.findall(r"(\w+)=([^,]*)", wildcards[1]) if wildcards else []
        assert rule is not None
        jobs.append(PlannedJob(rule[1], tuple(pairs), benchmark[1] if benchmark else None))
    return jobs


def key_of(job: PlannedJob) -> tuple[str, str]:
    """Return rule and model, for which rates are alike."""
    wildcards = dict(job.wildcards)
    return kind_of(job.rule, wildcards), wildcards.get("model", "")


def corrections(
    config: dict[str, Any], jobs: Iterable[PlannedJob], folder: Path
) -> dict[tuple[str, str], float]:
    """Return, for each rule and model with finished jobs, measured over expected hours.

    `jobs` are all jobs of the study; their benchmark files, whose first column is seconds,
    are relative to `folder`.
    """
    measured: dict[tuple[str, str], float] = defaultdict(float)
    expected: dict[tuple[str, str], float] = defaultdict(float)
    for job in jobs:
        hours = expected_cost(config, job.rule, dict(job.wildcards)).hours
        if hours and job.benchmark and (folder / job.benchmark).exists():
            lines = (folder / job.benchmark).read_text().splitlines()[1:]
            measured[key_of(job)] += fmean(float(line.split()[0]) for line in lines) / 3600
            expected[key_of(job)] += hours
    return {key: measured[key] / expected[key] for key in measured}


class Total(NamedTuple):
    """Total cost of some jobs."""

    jobs: float = 0
    gpu_hours: float = 0.0
    requests: float = 0.0
    gigabytes: float = 0.0


def total_costs(
    config: dict[str, Any], jobs: Iterable[PlannedJob], factors: dict[tuple[str, str], float]
) -> dict[str, Total]:
    """Return what `jobs` cost by rule, with the hours corrected by `factors`."""
    totals = dict.fromkeys(COSTS, Total())
    for job in jobs:
        rule, model = key_of(job)
        if rule in COSTS:
            cost = expected_cost(config, job.rule, dict(job.wildcards))
            hours = cost.gpus * cost.hours * factors.get((rule, model), 1.0)
            of_job = Total(1, hours, cost.requests, cost.gigabytes)
            totals[rule] = Total(*map(sum, zip(totals[rule], of_job, strict=True)))
    return totals


def as_table(totals: dict[str, Total]) -> str:
    """Return `total_costs` as a Markdown table with a last line for all rules."""
    lines = [
        "| rule | jobs | GPU-hours | judge requests | disk (GB) |",
        "|---|--:|--:|--:|--:|",
    ]
    everything = Total(*map(sum, zip(*totals.values(), strict=True)))
    for rule, row in [*totals.items(), ("all", everything)]:
        lines.append(
            f"| {rule} | {row.jobs} | {row.gpu_hours:,.1f} | {row.requests:,.0f} "
            f"| {row.gigabytes:,.1f} |"
        )
    return "\n".join(lines)


def api_table(config: dict[str, Any], jobs: Iterable[PlannedJob]) -> str:
    """Return what checkpoints behind an API are asked, as Markdown; nothing where none is."""
    totals: dict[tuple[str, str], OfServer] = defaultdict(OfServer)
    for job in jobs:
        if job.rule in KINDS:
            about = dict(job.wildcards)
            asked = asked_of_api(config, job.rule, about)
            key = f"{about['model']}/{about['checkpoint']}", KINDS[job.rule]
            totals[key] = OfServer(*map(sum, zip(totals[key], asked, strict=True)))
    if not totals:
        return ""
    everything = OfServer(*map(sum, zip(*totals.values(), strict=True)))
    lines = [
        "",
        "| checkpoint | asked for | requests | tokens in | tokens out (most) | cost (most) |",
        "|---|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {place} | {kind} | {row.requests:,} | {row.input_tokens:,} | "
        f"{row.output_tokens:,} | {row.cost:,.2f} |"
        for (place, kind), row in [*totals.items(), (("all", ""), everything)]
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
    """Print the cost of what `snakemake` with the same `arguments` would do."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--configfile", nargs="+", default=[])
    parser.add_argument("--directory", default=".")
    known, _ = parser.parse_known_args(arguments)
    config: dict[str, Any] = {}
    for path in known.configfile:
        update_config(config, load_configfile(path))
    config = over_defaults(config, ROOT)
    everything = _dry_run([*arguments, "--forceall"])
    factors = corrections(config, everything, Path(known.directory))
    jobs = _dry_run(arguments)
    print(as_table(total_costs(config, jobs, factors)))
    if asked := api_table(config, jobs):
        print(asked)
    for (kind, model), factor in sorted(factors.items()):
        print(f"\n{kind}, {model}: finished jobs took {factor:.2f} times as long as expected.")


if __name__ == "__main__":
    main(sys.argv[1:])
