"""Run Snakemake on this project as a user would, in a folder of the test's own."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ATLAS = [ROOT / "config" / "atlas.yaml", ROOT / "tests" / "config" / "atlas_small.yaml"]


def snakemake(folder, *arguments, configs=(), check=True, timeout=900):
    """Run Snakemake in `folder`; its output and error streams together as text.

    Its jobs are forks of one Python, which takes half the time.
    """
    command = [sys.executable, str(ROOT / "tools" / "fork_jobs.py")]
    command += ["--snakefile", str(ROOT / "Snakefile")]
    command += ["--directory", str(folder), "--profile", str(ROOT / "profiles" / "laptop")]
    command += [str(argument) for argument in arguments]
    if configs:
        command += ["--configfile", *map(str, configs)]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=timeout,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def planned(output):
    """Jobs per rule that a dry run lists, without the total and the local targets."""
    counts = dict(re.findall(r"^(\w+) +(\d+)$", output, flags=re.MULTILINE))
    return {name: int(n) for name, n in counts.items() if name not in ("total", "study", "all")}
