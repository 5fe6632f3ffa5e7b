"""Run Snakemake on this project as a user would, in a folder of the test's own."""

import re
from pathlib import Path

import warm_python

ROOT = Path(__file__).parents[2]
ATLAS = [ROOT / "config" / "atlas.yaml", ROOT / "tests" / "config" / "atlas_small.yaml"]
# The same, with checkpoints that are pre-trained for a few steps
PRETRAINING = [
    ATLAS[0],
    ROOT / "config" / "atlas_pretraining.yaml",
    *(ROOT / "tests" / "config" / f"{name}_small.yaml" for name in ("atlas", "pretraining")),
]


def run(folder, *arguments, configs=(), profile=ROOT / "profiles" / "laptop", timeout=900):
    """Run Snakemake for `folder`, like `subprocess.run` with both streams together as text.

    It is a fork of a Python that has imported it, and so are its jobs: half the time of a run
    of a small study is else spent on imports. One process trains the oracle; tests on the
    cluster have ranks.
    """
    words = ["--snakefile", ROOT / "Snakefile", "--directory", folder]
    words += ["--profile", profile, *arguments]
    if "--set-resources" not in arguments:
        words += ["--set-resources", "train_oracle:ranks=1"]
    if configs:
        words += ["--configfile", *configs]
    return warm_python.run("snakemake", words, timeout)


def snakemake(folder, *arguments, check=True, **options):
    """Return the output of a `run`, which by default must succeed."""
    done = run(folder, *arguments, **options)
    if check:
        assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def planned(output):
    """Jobs per rule that a dry run lists, without the total and the targets."""
    counts = dict(re.findall(r"^(\w+) +(\d+)$", output, flags=re.MULTILINE))
    return {name: int(n) for name, n in counts.items() if name not in ("total", "study", "all")}


def jobs_of(dry_run):
    """Rule and wildcards of each job that a dry run lists."""
    jobs = []
    for block in re.split(r"^(?:local)?rule (?=\w+:$)", dry_run, flags=re.MULTILINE)[1:]:
        wildcards = re.search(r"^    wildcards: (.*)$", block, flags=re.MULTILINE)
        pairs = re.findall(r"(\w+)=([^,]*)", wildcards[1]) if wildcards else []
        jobs.append((block.partition(":")[0], dict(pairs)))
    return jobs
