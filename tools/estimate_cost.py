"""Print the remaining work: jobs, judge requests, disk, downloads and GPU memory.

`python -m tools.estimate_cost [TARGET ...] [--configfile FILE ...]` takes the
arguments of `snakemake`, makes a dry run and sums `study/resources.py` over its jobs. A second
table has the requests to checkpoints behind an API. Without arguments
`python -m tools.estimate_cost --page` writes the jobs of the paper's targets into
docs/reproduce.md.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from persistcal.models.sizes import DecoderShape
from study.config_files import limited, over_defaults
from study.resources import (
    ASKED_OF_SERVERS,
    MINUTES,
    Cost,
    JobResources,
    ServerUse,
    describe_copies,
)
from study.study import Study

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduce.md"
TARGETS = {
    "table": ["results/tables/oracle_vs_methods.tex"],
    "study": ["study"],
    "all": ["all", "--configfile", str(ROOT / "config" / "whole_paper.yaml")],
}
BEGIN, END = "<!-- jobs: written by tools/estimate_cost.py -->\n", "<!-- end of jobs -->"


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


def total_costs(config: dict[str, Any], jobs: Iterable[PlannedJob]) -> dict[str, Cost]:
    """Return the cost of `jobs` by rule."""
    resources = JobResources(Study(config))
    by_row: dict[str, list[tuple[str, dict[str, str]]]] = {rule: [] for rule in MINUTES}
    for rule, wildcards in jobs:
        by_row.get(resources.row(rule, dict(wildcards)), []).append((rule, dict(wildcards)))
    return {row: resources.cost(jobs) for row, jobs in by_row.items()}


def as_table(totals: dict[str, Cost]) -> str:
    """Return the rules that have jobs as a Markdown table, with a last line for all of them."""
    lines = [
        "| rule | jobs | judge requests | disk (GB) | GPU (GB), least | with full batches |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    total = sum(totals.values(), start=Cost())
    lines += [
        f"| {rule} | {row.jobs} | {row.requests:,.0f} | {row.gigabytes:,.1f} | "
        + " | ".join(f"{gigabytes:,.1f}" if gigabytes else "" for gigabytes in row.memory)
        + " |"
        for rule, row in [*totals.items(), ("all", total)]
        if row.jobs or rule == "all"
    ]
    return "\n".join(lines)


def notes(config: dict[str, Any], jobs: Iterable[PlannedJob]) -> list[str]:
    """Return sentences on downloads, and on joint trainings on a single GPU."""
    resources = JobResources(Study(config))
    planned = [(rule, dict(wildcards)) for rule, wildcards in jobs]
    copies: dict[str, tuple[int, DecoderShape]] = {}  # the most of each model
    for rule, wildcards in planned:
        if together := resources.copies_on_one_gpu(rule, wildcards):
            label = config["models"][wildcards["model"]].get("label", wildcards["model"])
            copies[label] = max(together, copies.get(label, together))
    lines = ["GPU memory is per process, with one copy of a model, for models with a `shape`."]
    if gigabytes := resources.cost(planned).downloads:
        lines.insert(0, f"Downloads of checkpoints: {gigabytes:,.1f} GB.")
    return lines + [
        describe_copies(*together, config["gpu_gb"], label)
        for label, together in copies.items()
    ]


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


def jobs_table(plans: Mapping[str, list[PlannedJob]]) -> str:
    """Return the jobs that need a GPU, a download or the judge, of `TARGETS`."""
    counts = {
        target: Counter(re.sub(r"^train_\w+", "train_adapters", job.rule) for job in jobs)
        for target, jobs in plans.items()
    }
    lines = [
        "| rule | `oracle_vs_methods.tex` | default target | whole paper |",
        "|---|--:|--:|--:|",
    ]
    for rule in MINUTES:
        if counts["all"][rule]:
            numbers = " | ".join(f"{counts[target][rule]:,}" for target in TARGETS)
            lines.append(f"| `{rule}` | {numbers} |")
    return "\n".join(lines) + "\n"


def write_page() -> None:
    """Plan the paper's targets, and write their jobs into the page."""
    table = jobs_table({target: _dry_run(words) for target, words in TARGETS.items()})
    text = PAGE.read_text(encoding="utf-8")
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    PAGE.write_text(head + table + tail, encoding="utf-8")


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
    config, _ = limited(over_defaults(config, ROOT))
    jobs = _dry_run(arguments)
    print(as_table(total_costs(config, jobs)))
    print("", *notes(config, jobs), sep="\n")
    if table := api_table(config, jobs):
        print(table)


if __name__ == "__main__":
    write_page() if sys.argv[1:] == ["--page"] else main(sys.argv[1:])
