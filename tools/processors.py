"""Run atlas as several processors would, and compare Δ₀ᵇ of its estimators between the runs.

`python -m tools.processors FOLDER` runs the study once for each processor that this one can
emulate, with one and with two threads, into sub-folders of FOLDER. It writes the table of
docs/atlas.md. Complete runs in FOLDER are not repeated.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.store import artifacts

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "atlas.md"
# Instructions that torch, oneDNN, MKL and OpenBLAS use
PROCESSORS = {
    "SSE": ("default", "SSE41", "COMPATIBLE", "Nehalem"),
    "AVX2": ("avx2", "AVX2", "AVX2", "Haswell"),
    "AVX-512": ("avx512", "AVX512_CORE", "AVX512", "SkylakeX"),
}
VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR", "OPENBLAS_CORETYPE")
THREADS = (1, 2)
# Rules with jobs that compute with torch
RULES = ("generate_beams", "train_non_oracle", "train_oracle", "score_answers")
BOUNDS = ["lower_2_5pct", "upper_97_5pct"]
BEGIN, END = "<!-- processors -->\n", "<!-- end of processors -->\n"


def run(folder: Path, processor: str, threads: int) -> None:
    """Run the study into `folder` as `processor` would, with so many threads in each job."""
    environment = os.environ | dict(zip(VARIABLES, PROCESSORS[processor], strict=True))
    files = [str(folder / name) for name in ("metrics.csv", "significance.csv")]
    command = [sys.executable, "tools/fork_jobs.py", "--profile", "profiles/laptop"]
    command += ["--configfile", "config/atlas.yaml", "--config", f"results={folder}"]
    command += ["--quiet", "all", "--set-threads", *(f"{rule}={threads}" for rule in RULES)]
    subprocess.run([*command, "--", *files], cwd=ROOT, env=environment, check=True)


class Findings(NamedTuple):
    """Results of a run: Δ₀ᵇ and its interval by column of the table, and significant tests."""

    measured: pd.DataFrame
    significant: set[tuple[str, ...]]


def findings(folder: Path) -> Findings:
    """Read the results of a run."""
    intervals = artifacts.read_csv(folder / "intervals.csv", artifacts.INTERVALS)
    measured = _chosen(intervals)[["value", *BOUNDS]]
    measured.loc["oracle − non_oracle"] = difference(folder, "oracle", "non_oracle")
    tests = artifacts.read_csv(folder / "significance.csv", artifacts.SIGNIFICANCE)
    key = ["scope", "conditioning", "metric", "best", "other"]
    significant = tests.loc[tests["significant"], key]
    return Findings(measured, set(significant.itertuples(index=False, name=None)))


def _chosen(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of Δ₀ᵇ by estimator; conditioning does not change it."""
    rows = (table["metric"] == "delta0_balanced") & (table["conditioning"] == "odds")
    return table[rows & (table["scope"] == "contrast")].set_index("estimator")


def difference(folder: Path, one: str, other: str) -> list[float]:
    """Return how far Δ₀ᵇ of `one` is above that of `other`, and the paired 95 % interval."""
    files = [folder / f"replicates/atlas/atlas/{name}.parquet" for name in (one, other)]
    rows = _chosen(pd.concat([artifacts.read(file, artifacts.REPLICATES) for file in files]))
    if rows["drawn"].nunique() > 1:
        raise SystemExit(f"{files[0]} and {files[1]} have other draws; run the study again.")
    values = dict(zip(rows.index, rows["value"], strict=True))
    replicates = dict(zip(rows.index, rows["replicates"], strict=True))
    paired = np.asarray(replicates[one]) - np.asarray(replicates[other])
    low, high = np.nanpercentile(paired, [2.5, 97.5]).tolist()
    return [values[one] - values[other], low, high]


def table(runs: dict[str, Findings]) -> str:
    """Return Markdown: a row for each run, the range of each column, and the tests."""
    names = list(next(iter(runs.values())).measured.index)
    lines = ["| instructions, threads | " + " | ".join(names) + " |\n"]
    lines += ["|---|" + "--:|" * len(names) + "\n"]
    for name, (measured, _) in runs.items():
        cells = [
            f"{value:.3f} [{low:.2f}, {high:.2f}]"
            for value, low, high in measured.loc[names].itertuples(index=False)
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |\n")
    values = pd.DataFrame([run.measured["value"] for run in runs.values()])
    spans = [f"{values[name].max() - values[name].min():.3f}" for name in names]
    lines.append("| greatest difference | " + " | ".join(spans) + " |\n\n")
    tests = [run.significant for run in runs.values()]
    once = {test for significant in tests for test in significant}
    always = {test for test in once if all(test in significant for significant in tests)}
    orders = sorted({order(run.measured["value"].iloc[:-1]) for run in runs.values()})
    some = "; ".join(" ".join(test) for test in sorted(once - always)) or "none"
    lines.append(f"Order by Δ₀ᵇ in all runs: {'; or '.join(orders)}.\n")
    lines.append(f"Tests that are significant in all runs: {len(always)}; in some: {some}.\n")
    return "".join(lines)


def order(values: pd.Series) -> str:
    """Return the names from the highest value to the lowest; equal ones keep their order."""
    return " > ".join(values.round(9).sort_values(ascending=False, kind="stable").index)


def main() -> None:
    """Make the runs that are lacking, and write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for processor in PROCESSORS:
        for threads in THREADS:
            run(folder / f"{processor}-{threads}", processor, threads)
    write(folder)


def write(folder: Path) -> None:
    """Write the table of the runs in `folder` into the page."""
    names = {f"{p}, {n}": folder / f"{p}-{n}" for p in PROCESSORS for n in THREADS}
    made = {name: path for name, path in names.items() if (path / "significance.csv").exists()}
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    shown = table({name: findings(path) for name, path in made.items()})
    PAGE.write_text(before + BEGIN + shown + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
