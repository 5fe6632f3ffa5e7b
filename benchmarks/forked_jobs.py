"""Speed of a study of small models whose jobs are forked from one Python.

The first two checkpoints of a small atlas study are pre-trained, answer the questions and
have their answers grouped and labelled, on one core: by `snakemake`, and by
`tools/fork_jobs.py`. Run `python -m benchmarks.forked_jobs` in the root of the repository.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.results import Result, show

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = [ROOT / "config" / "atlas.yaml", ROOT / "tests" / "config" / "atlas_small.yaml"]
TARGETS = [f"out/labels/atlas/{checkpoint}/atlas.parquet" for checkpoint in ("p10", "p20")]


def made_by(program: list[str]) -> tuple[float, list[bytes]]:
    """Return how long `program` takes to make the targets in a new folder, and these."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *program, "--snakefile", str(ROOT / "Snakefile"), *TARGETS]
        command += ["--directory", folder, "--profile", str(ROOT / "profiles" / "laptop")]
        command += ["--cores", "1", "--quiet", "all", "--configfile", *map(str, CONFIGS)]
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken = time.perf_counter() - start
        return taken, [Path(folder, target).read_bytes() for target in TARGETS]


def measure(quick: bool) -> Iterator[Result]:
    """Yield the ratio; nothing where it must be quick, for each way takes half a minute."""
    if quick:
        return
    started, theirs = made_by(["-m", "snakemake"])
    forked, ours = made_by([str(ROOT / "tools" / "fork_jobs.py")])
    yield Result(
        "a study of small models",
        "`snakemake`",
        forked,
        started / forked,
        sum(a != b for a, b in zip(ours, theirs, strict=True)),
        0,
        how="Seconds on the clock; the difference is in files.",
    )


if __name__ == "__main__":
    show(measure)
