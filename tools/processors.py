"""Run a study as several processors would, and compare Δ₀ᵇ of its estimators between the runs.

`python -m tools.processors FOLDER config/atlas.yaml …` runs the study once for each processor
that this one can emulate, with one and with two threads, into sub-folders of FOLDER, which runs
of before are kept in. It writes the table of docs/atlas.md to FOLDER/processors.md.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

from persistcal.store import artifacts

ROOT = Path(__file__).parents[1]
# What torch, oneDNN, MKL and OpenBLAS take for the processor's instructions
PROCESSORS = {
    "SSE": ("default", "SSE41", "COMPATIBLE", "Nehalem"),
    "AVX2": ("avx2", "AVX2", "AVX2", "Haswell"),
    "AVX-512": ("avx512", "AVX512_CORE", "AVX512", "SkylakeX"),
}
VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR", "OPENBLAS_CORETYPE")
THREADS = (1, 2)
# Rules whose jobs compute with torch
RULES = ("generate_beams", "train_non_oracle", "train_oracle", "score_answers")
BEGIN, END = "<!-- processors -->\n", "<!-- end of processors -->\n"


def run(folder: Path, processor: str, threads: int, configs: list[str]) -> None:
    """Run the study into `folder` as `processor` would, with so many threads in each job."""
    environment = os.environ | dict(zip(VARIABLES, PROCESSORS[processor], strict=True))
    files = [str(folder / name) for name in ("metrics.csv", "significance.csv")]
    command = [sys.executable, "tools/fork_jobs.py", "--profile", "profiles/laptop"]
    command += ["--configfile", *configs, "--config", f"results={folder}", "--quiet", "all"]
    command += ["--set-threads", *(f"{rule}={threads}" for rule in RULES), "--", *files]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def order(values: pd.Series) -> str:
    """Return the estimators from the highest value to the lowest, as the table names them."""
    return " > ".join(values.sort_values(ascending=False).index)


def findings(folder: Path) -> tuple[pd.DataFrame, set[tuple[str, ...]]]:
    """Return Δ₀ᵇ of each estimator with its interval, and the significant differences."""
    intervals = artifacts.read_csv(folder / "intervals.csv", artifacts.INTERVALS)
    chosen = (intervals["metric"] == "delta0_balanced") & (intervals["conditioning"] == "odds")
    found = intervals[chosen & (intervals["scope"] == "contrast")].set_index("estimator")
    tests = artifacts.read_csv(folder / "significance.csv", artifacts.SIGNIFICANCE)
    key = ["block", "scope", "conditioning", "metric", "best", "other"]
    return found, set(tests.loc[tests["significant"], key].itertuples(index=False, name=None))


def table(folder: Path) -> str:
    """Return Markdown: a row per run, the range of each estimator, and what differs."""
    runs = [(p, n) for p in PROCESSORS for n in THREADS]
    found = [findings(folder / f"{p}-{n}") for p, n in runs]
    names = list(found[0][0].index)
    lines = ["| processor | threads | " + " | ".join(names) + " |\n"]
    lines += ["|---|--:|" + "--:|" * len(names) + "\n"]
    for (processor, threads), (measured, _) in zip(runs, found, strict=True):
        cells = [
            f"{row['value']:.3f} [{row['lower_2_5pct']:.2f}, {row['upper_97_5pct']:.2f}]"
            for row in measured.loc[names].to_dict("records")
        ]
        lines.append(f"| {processor} | {threads} | " + " | ".join(cells) + " |\n")
    values = pd.DataFrame([measured["value"] for measured, _ in found])
    spans = [f"{values[name].max() - values[name].min():.3f}" for name in names]
    lines.append("| range | | " + " | ".join(spans) + " |\n\n")
    orders = {order(measured["value"].round(9)) for measured, _ in found}
    tests = [significant for _, significant in found]
    differ = set.union(*tests) - set.intersection(*tests)
    lines.append(f"Orders of the estimators in these runs: {'; '.join(sorted(orders))}.\n")
    lines.append(f"Significant in some runs and not in others ({len(differ)}):\n")
    lines += [f"- {' / '.join(map(str, difference))}\n" for difference in sorted(differ)]
    return "".join(lines)


def main() -> None:
    """Make the runs that are lacking, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("configs", nargs="+")
    arguments = parser.parse_args()
    for processor in PROCESSORS:
        for threads in THREADS:
            folder = arguments.folder / f"{processor}-{threads}"
            run(folder, processor, threads, arguments.configs)
    (arguments.folder / "processors.md").write_text(table(arguments.folder), encoding="utf-8")


if __name__ == "__main__":
    main()
