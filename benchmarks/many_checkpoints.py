"""Time and memory of a study of a hundred checkpoints that scored multiple choice.

Made-up scores of four options, a parquet file for each checkpoint, are read and evaluated by
the workflow itself on two cores: `option_probability` on adjacent pairs of checkpoints, with
2,000 replicates under odds. Memory is the sum over all processes, measured twice a second.
Run `python -m benchmarks.many_checkpoints [n_checkpoints [n_questions]]` in the root of the
repository.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import yaml

ROOT = Path(__file__).parents[1]
TARGETS = ["out/metrics.csv", "out/significance.csv", "out/contrast_sets.csv"]


def write_scores(folder: Path, names: list[str], n_questions: int) -> None:
    """Write the scores of each checkpoint; each answers a little better than the one before."""
    rng = np.random.default_rng(0)
    knowledge, gold = rng.normal(size=n_questions), rng.integers(4, size=n_questions)
    columns = {
        "model": "m",
        "dataset": "quiz",
        "question_id": [f"q{i}" for i in range(n_questions)],
        "question": [
            f"Which of the four is number {i} of the list?" for i in range(n_questions)
        ],
        "options": [[f"number {i}, option {k}" for k in range(4)] for i in range(n_questions)],
        "gold": gold,
    }
    for k, name in enumerate(names):
        scores = rng.normal(-30, 1, (n_questions, 4))
        scores[np.arange(n_questions), gold] += knowledge + 2 * k / len(names)
        rows = pd.DataFrame({**columns, "checkpoint": name, "option_logprobs": scores.tolist()})
        rows.to_parquet(folder / f"{name}.parquet", index=False)


def study(names: list[str], estimators: list[str]) -> dict[str, object]:
    """Return the config of the study."""
    return {
        "results": "out",
        "models": {"m": {"label": "M", "evaluation": names}},
        "datasets": {"quiz": {"label": "Quiz", "min_contrast": 100}},
        "decoding": {"strategy": "options"},
        "evaluation": {"replicates": 2000, "conditioning": ["odds"]},
        "study": {
            "answers": [{"file": f"{name}.parquet"} for name in names],
            "models": ["m"],
            "datasets": ["quiz"],
            "pairs": "adjacent",
            "estimators": estimators,
        },
    }


def taken(process: psutil.Process) -> float:
    """Return the memory that a process and all that it has started take now, in GB."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 2**30


def main() -> None:
    """Print time and memory."""
    n_checkpoints, n_questions = (
        int(sys.argv[i]) if len(sys.argv) > i else usual for i, usual in ((1, 100), (2, 10_000))
    )
    names = [f"step{k:03d}" for k in range(n_checkpoints)]
    with tempfile.TemporaryDirectory() as folder:
        write_scores(Path(folder), names, n_questions)
        config = Path(folder, "study.yaml")
        config.write_text(yaml.safe_dump(study(names, ["option_probability"])))
        words = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
        words += ["--cores", "2", "--configfile", str(config), "--quiet", "all", "--", *TARGETS]
        start, peak = time.monotonic(), 0.0
        running = psutil.Popen(words, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
        while running.poll() is None:
            peak = max(peak, taken(running))
            time.sleep(0.5)
        seconds = time.monotonic() - start
        if running.returncode:
            raise SystemExit(running.returncode)
        contrast = pd.read_csv(Path(folder, "out", "contrast_sets.csv"))
    spent = os.times()
    print(
        f"{n_checkpoints} checkpoints, {n_questions} questions, {len(contrast)} pairs: "
        f"{seconds:.0f} s, {spent.children_user + spent.children_system:.0f} s of the "
        f"processor, peak {peak:.2f} GB"
    )


if __name__ == "__main__":
    main()
