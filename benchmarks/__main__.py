"""Run every benchmark and write the results: ``make bench``.

Benchmarks run one after the other, each in a separate Python. If results of two ways differ,
the command fails after all have run. ``python -m benchmarks quick`` is a smoke test on tiny
sizes, in seconds. ``--to FOLDER`` sets another folder for the results.

`benchmarks.judge_label_noise` is about noise, and `benchmarks.gpu` about GPUs: they are not
run here, and neither is `benchmarks.many_checkpoints`, which runs the workflow.
"""

import argparse
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import matplotlib.pyplot as plt

from benchmarks.results import Growth, Measured, Result, from_json

HERE = Path(__file__).parent
BENCHMARKS = ["decoding", "trees", "adapters", "bootstrap"]
PACKAGES = ["torch", "transformers", "peft", "numpy", "scipy", "scikit-learn", "snakemake"]


def processor() -> str:
    """Return the name of the processor, and how many of it there are."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else platform.processor() or platform.machine()


def run(benchmark: str, quick: bool) -> list[Measured]:
    """Return the results of a benchmark.

    Raises
    ------
    RuntimeError
        If the benchmark fails.
    """
    words = [sys.executable, "-m", f"benchmarks.{benchmark}", "json", *["quick"] * quick]
    done = subprocess.run(words, cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"benchmarks.{benchmark} failed:\n{done.stderr[-2000:]}")
    return [from_json(line) for line in done.stdout.splitlines() if line.startswith("[")]


def as_markdown(measured: Sequence[Measured], heading: str) -> str:
    """Return the page."""
    rows = [
        f"| {r.name} | {r.against} | {r.ratio:.1f} | {r.seconds:.3g} | "
        f"{'–' if r.floor is None else f'{r.floor:.1f}'} | {r.difference:.0e} | {r.how} |"
        for r in measured
        if isinstance(r, Result)
    ]
    growth = [
        f"| {g.quantity} | {', '.join(map(str, g.sizes))} | "
        f"{', '.join(f'{s:.3g}' for s in g.seconds)} | {g.exponent:.2f} | {g.how} |"
        for g in measured
        if isinstance(g, Growth)
    ]
    return f"""# Results of the benchmarks

{heading}

Times are processor times. Each ratio was measured in one run, because other programs on the
machine change times more than ratios. The floor is the time of the necessary products at the
rate of one large product. The results of both ways were compared; the table shows their
difference. [docs/cluster.md](../docs/cluster.md) has the cost of the paper's study,
[log.md](log.md) the experiments.

## Against other ways

| what | other way | ratio | seconds here | times the floor | differ by | |
|---|---|--:|--:|--:|--:|---|
{chr(10).join(rows)}

## Growth

The exponent is the slope of log seconds over log number, between the two largest numbers. An
exponent of 1 is proportional growth.

| number of | | seconds | exponent | |
|---|---|---|--:|---|
{chr(10).join(growth)}

![Seconds over numbers, both relative to the smallest](results.png)
"""


def draw(measured: Sequence[Measured], path: Path) -> None:
    """Plot growth, relative to the smallest size."""
    figure, axes = plt.subplots(figsize=(5.5, 4), layout="constrained")
    most = 1.0
    for g in (g for g in measured if isinstance(g, Growth)):
        sizes = [size / g.sizes[0] for size in g.sizes]
        most = max(most, *sizes)
        spent = [seconds / g.seconds[0] for seconds in g.seconds]
        axes.plot(sizes, spent, "o-", label=f"{g.quantity}: {g.exponent:.2f}")
    axes.plot([1, most], [1, most], ":", color="grey", label="in proportion: 1")
    axes.set(xscale="log", yscale="log", xlabel="number, of the smallest")
    axes.set_ylabel("seconds, of those for the smallest")
    axes.legend(title="exponent between the last two")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Run, write, and fail where results differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("quick", nargs="?", choices=["quick"])
    parser.add_argument("--to", type=Path, default=HERE)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS)
    parser.add_argument(
        "--note", default="", help="a sentence about the machine, such as: busy"
    )
    args = parser.parse_args()
    measured: list[Measured] = []
    start = time.perf_counter()
    for benchmark in args.only:
        new = run(benchmark, args.quick == "quick")
        measured += new
        print(*new, sep="\n", flush=True)
    minutes = (time.perf_counter() - start) / 60
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    setup = f"{processor()}; Python {platform.python_version()}, {versions}."
    sizes = "Tiny sizes, a smoke test. " if args.quick else ""
    heading = f"{sizes}{setup} {minutes:.0f} minutes in all. {args.note}".strip()
    (args.to / "results.md").write_text(as_markdown(measured, heading), encoding="utf-8")
    draw(measured, args.to / "results.png")
    wrong = [r for r in measured if isinstance(r, Result) and not r.agrees]
    if wrong:
        raise SystemExit("Results differ:\n" + "\n".join(map(str, wrong)))


if __name__ == "__main__":
    main()
