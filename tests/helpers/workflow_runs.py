"""Run Snakemake on this project as a user would, in a folder of the test's own."""

import os
import re
import tempfile
from pathlib import Path

from warm_snakemake import WarmSnakemake

ROOT = Path(__file__).parents[2]
ATLAS = [ROOT / "config" / "atlas.yaml", ROOT / "tests" / "config" / "atlas_small.yaml"]


_warm: list[WarmSnakemake] = []


def snakemake(folder, *arguments, configs=(), check=True, timeout=900):
    """Run Snakemake in `folder`; its output and error streams together as text.

    It is a fork of a Python that has imported it, and so are its jobs: half the time of a run
    of a small study is else spent on imports.
    """
    words = ["--snakefile", ROOT / "Snakefile", "--directory", folder]
    words += ["--profile", ROOT / "profiles" / "laptop", *arguments]
    if configs:
        words += ["--configfile", *configs]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_CURRENT_TEST", None)
    if not _warm or _warm[0].environment != environment:
        while _warm:
            _warm.pop().close()
        _warm.append(WarmSnakemake(environment))
    with tempfile.NamedTemporaryFile() as output:
        status = _warm[0].run(words, output.name, timeout)
        said = Path(output.name).read_text()
    if check:
        assert status == 0, said[-6000:]
    return said


def planned(output):
    """Jobs per rule that a dry run lists, without the total and the local targets."""
    counts = dict(re.findall(r"^(\w+) +(\d+)$", output, flags=re.MULTILINE))
    return {name: int(n) for name, n in counts.items() if name not in ("total", "study", "all")}
