"""Run atlas as several processors would, and compare its results between the runs.

`python -m reproduce.processors FOLDER` runs the study once for each processor that this one can
emulate, with one and with two threads, into sub-folders of FOLDER. It writes Δ₀ᵇ and the
differences of all pairs of estimators to docs/data/processors.csv, and prints which orders and
significant differences are the same in all runs. Complete runs in FOLDER are not repeated.
`python -m reproduce.processors FOLDER seed18 seed19` compares complete studies in sub-folders
with these names, other pre-trainings, and writes docs/data/pretrainings.csv.
"""

import argparse
import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.replicates import from_table
from persistcal.evaluation.significance import compare_estimators
from persistcal.store import artifacts

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data"
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
METRICS = {
    "delta0_balanced": MetricKey("odds", "contrast", "delta0_balanced"),
    "change_auc": MetricKey("odds", "contrast", "change_auc"),
    "contrast_auc": MetricKey("odds", "contrast", "auc"),
    "full_auc": MetricKey("odds", "full", "auc"),
}


def run(folder: Path, processor: str, threads: int) -> None:
    """Run the study into `folder` as `processor` would, with so many threads in each job."""
    environment = os.environ | dict(zip(VARIABLES, PROCESSORS[processor], strict=True))
    files = [str(folder / name) for name in ("metrics.csv", "significance.csv")]
    command = [sys.executable, "tools/fork_jobs.py", "--profile", "profiles/laptop"]
    command += ["--configfile", "config/atlas.yaml", "--config", f"results={folder}"]
    command += ["--quiet", "all", "--set-threads", *(f"{rule}={threads}" for rule in RULES)]
    subprocess.run([*command, "--", *files], cwd=ROOT, env=environment, check=True)


def compare(folder: Path) -> pd.DataFrame:
    """Return the metrics of a run, and the differences of all pairs of estimators.

    Columns are name, such as oracle-non_oracle.delta0_balanced, value, low, high and, of a
    difference, whether its simultaneous 95 % interval excludes 0.
    """
    files = sorted(map(str, (folder / "replicates" / "atlas" / "atlas").glob("*.parquet")))
    drawn = from_table(artifacts.read_files(files, artifacts.REPLICATES))
    rows: list[tuple[str, float, float, float, bool]] = []
    for metric, key in METRICS.items():
        measured = drawn[key]
        names = [name for _, name in measured.samples]
        ends = np.percentile(measured.draws, [2.5, 97.5], axis=1).T
        for name, value, (low, high) in zip(names, measured.values, ends, strict=True):
            rows.append((f"{name}.{metric}", value, low, high, False))
        pairs = compare_estimators(measured, range(len(names)), key.metric)
        for i, j in combinations(range(len(names)), 2):
            first, second = (i, j) if measured.values[i] >= measured.values[j] else (j, i)
            bounds = [
                part[first, second] for part in (pairs.difference, pairs.lower, pairs.upper)
            ]
            name = f"{names[first]}-{names[second]}.{metric}"
            rows.append((name, *bounds, bool(pairs.above[first, second])))
    return pd.DataFrame(rows, columns=["name", "value", "low", "high", "significant"])


def summarise(runs: dict[str, pd.DataFrame]) -> str:
    """Return the orders and the significant differences that are the same in all runs."""
    lines = []
    for metric in METRICS:
        orders, certain = set(), []
        for table in runs.values():
            rows = table[table["name"].str.endswith(f".{metric}")].set_index("name")
            is_pair = rows.index.str.contains("-", regex=False)
            values = rows.loc[~is_pair, "value"].round(9)
            ordered = values.sort_values(ascending=False, kind="stable").index
            orders.add(" > ".join(name.partition(".")[0] for name in ordered))
            certain.append({name.partition(".")[0] for name in rows.index[rows["significant"]]})
        always = set.intersection(*certain)
        sometimes = set.union(*certain) - always
        lines += [f"{metric}", *(f"  order: {order}" for order in sorted(orders))]
        lines += [f"  significant in all runs: {', '.join(sorted(always)) or 'none'}"]
        lines += [f"  in some: {', '.join(sorted(sometimes)) or 'none'}"]
    return "\n".join(lines)


def write(runs: dict[str, pd.DataFrame], file: str) -> None:
    """Write all runs, and the least and the greatest value of each name."""
    by_run = {name: table.set_index("name") for name, table in runs.items()}
    values = pd.concat([table["value"] for table in by_run.values()]).groupby(
        level=0, sort=False
    )
    tables = by_run | {end: values.agg(end).to_frame() for end in ("min", "max")}
    parts = [table.set_axis(f"{run}." + table.index) for run, table in tables.items()]
    whole = pd.concat(parts)
    columns = ["value", "low", "high"]
    whole[columns].to_csv(DATA / file, index_label="name", float_format="%.6g")


def main() -> None:
    """Make the runs that are lacking, write their results and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("studies", nargs="*", help="sub-folders with other pre-trainings")
    args = parser.parse_args()
    names = args.studies or [f"{p}-{n}" for n, p in product(THREADS, PROCESSORS)]
    runs = {}
    for name in names:
        if not args.studies:
            processor, _, threads = name.rpartition("-")
            run(args.folder / name, processor, int(threads))
        runs[name] = compare(args.folder / name)
    write(runs, "pretrainings.csv" if args.studies else "processors.csv")
    print(summarise(runs))


if __name__ == "__main__":
    main()
