"""Simulate how often a gate fails wrongly, with 1, 4 and 20 slices of the questions together.

    python -m benchmarks.gate_levels [WORLDS]

writes benchmarks/outputs/gate_levels.csv. In each world nothing differs from the limit: the
accuracy is the same (limit 0), the later confidence is calibrated (limit 0), or answers above
the threshold are right with exactly the target's probability. "any rule" is a gate
of all three rules, on answers of their own.
"""

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from persistcal.evaluation.findings import (
    NO,
    accuracy_finding,
    calibration_mark,
    threshold_in_slice,
)
from persistcal.evaluation.reliability import checkpoint_calibration, measure_gaps

OUTPUT = Path(__file__).parent / "outputs" / "gate_levels.csv"
SIZES, N = (1, 4, 20), 100  # slices, and questions of a slice
TARGET = 0.8


def fails_accuracy(rng: np.random.Generator, n_slices: int) -> bool:
    """Return whether the gate fails in a world: the chance of a right answer stays."""
    ends = (rng.random((2, N)) < rng.random(N)).astype(np.int8)
    return accuracy_finding(ends, np.arange(N), (), 0.0, n_slices).mark == NO


def fails_calibration(rng: np.random.Generator, n_slices: int) -> bool:
    """Return whether the gate fails in a world: a confidence is the chance of being right."""
    stated = rng.beta(3, 1, N)
    answers = [stated], rng.random(N) < stated, np.arange(N)
    gaps = measure_gaps(*answers, n_compared=n_slices)
    if not any(gap.is_beyond(0.0) for gap in gaps):
        return False
    tested = checkpoint_calibration(*answers, seed=17, n_draws=max(100, 40 * n_slices))
    p_value = min(1.0, tested.p_calibrated * n_slices)
    evidence = {"gaps": [list(gap) for gap in gaps], "p_adjusted": p_value}
    return calibration_mark(evidence, 0.0)[0] == NO


def fails_threshold(rng: np.random.Generator, n_slices: int) -> bool:
    """Return whether the gate fails in a world: 80 % above the threshold are right."""
    stated, right = rng.random(N), (rng.random((2, N)) < TARGET).astype(np.int8)
    seed = {"target": TARGET, "threshold": 0.4}
    return threshold_in_slice([seed], [stated], right, np.arange(N), n_slices).mark == NO


KINDS: dict[str, Callable[[np.random.Generator, int], bool]] = {
    "accuracy": fails_accuracy,
    "calibration": fails_calibration,
    "threshold": fails_threshold,
}


def wrong_fails(kind: str, n_slices: int, worlds: int) -> float:
    """Return in how many per cent of the worlds at least one slice fails."""
    rng = np.random.default_rng(n_slices)
    rules = [KINDS[kind]] if kind in KINDS else [*KINDS.values()]
    failed = [
        any([fails(rng, n_slices) for _ in range(n_slices) for fails in rules])
        for _ in range(worlds)
    ]
    return 100 * float(np.mean(failed))


if __name__ == "__main__":
    n_worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rows = [
        {"question": kind, "slices": n, "fails": round(wrong_fails(kind, n, n_worlds), 2)}
        for kind, n in product([*KINDS, "any rule"], SIZES)
    ]
    pd.DataFrame(rows).to_csv(OUTPUT, index=False)
    print(pd.DataFrame(rows).to_string(index=False))
