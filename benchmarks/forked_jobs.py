"""How much faster a study of small models is when its jobs are forked from one Python.

The first two checkpoints of a small atlas study are pre-trained, answer the questions and
have their answers grouped and labelled, on one core: by `snakemake`, and by
`tools/fork_jobs.py`. Run `python -m benchmarks.forked_jobs` in the root of the repository.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = [ROOT / "config" / "atlas.yaml", ROOT / "tests" / "config" / "atlas_small.yaml"]
TARGETS = [f"out/labels/atlas/{checkpoint}/atlas.parquet" for checkpoint in ("p10", "p20")]


def seconds(program: list[str]) -> float:
    """Return how long `program` takes to make the targets in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *program, "--snakefile", str(ROOT / "Snakefile"), *TARGETS]
        command += ["--directory", folder, "--profile", str(ROOT / "profiles" / "laptop")]
        command += ["--cores", "1", "--quiet", "all", "--configfile", *map(str, CONFIGS)]
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - start


def main() -> None:
    """Print seconds and their ratio."""
    started = seconds(["-m", "snakemake"])
    forked = seconds([str(ROOT / "tools" / "fork_jobs.py")])
    print(f"snakemake     {started:6.1f} s")
    print(f"fork_jobs.py  {forked:6.1f} s, {started / forked:.1f} times faster")


if __name__ == "__main__":
    main()
