"""Run Snakemake on this project as a user would, in a folder of the test's own."""

import re
from pathlib import Path

import warm_python

ROOT = Path(__file__).parents[2]
ATLAS = [ROOT / "config" / "atlas.yaml", ROOT / "tests" / "config" / "atlas_small.yaml"]


def snakemake(folder, *arguments, configs=(), check=True, timeout=900):
    """Run Snakemake in `folder`; its output and error streams together as text.

    It is a fork of a Python that has imported it, and so are its jobs: half the time of a run
    of a small study is else spent on imports.
    """
    words = ["--snakefile", ROOT / "Snakefile", "--directory", folder]
    words += ["--profile", ROOT / "profiles" / "laptop", *arguments]
    if configs:
        words += ["--configfile", *configs]
    done = warm_python.run("snakemake", words, timeout)
    if check:
        assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def planned(output):
    """Jobs per rule that a dry run lists, without the total and the local targets."""
    counts = dict(re.findall(r"^(\w+) +(\d+)$", output, flags=re.MULTILINE))
    return {name: int(n) for name, n in counts.items() if name not in ("total", "study", "all")}
