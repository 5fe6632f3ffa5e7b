"""Simulate the guarantees of thresholds in worlds with known truth.

    python -m benchmarks.threshold_worlds [WORLDS]

prints the table of docs/validation.md. In each world an answer has a confidence c and is
correct with a known probability r(c), so that the precision at each threshold is known.
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np

from persistcal.evaluation.relabelling import LaterAnswers, certify_threshold, draw_sheet
from persistcal.evaluation.thresholds import BROKEN, KEPT, check_threshold, select_threshold

TARGETS = (0.6, 0.8, 0.9, 0.95, 0.99)
REFERENCE = 200_000  # draws that stand for the population

Curve = Callable[[np.ndarray], np.ndarray]
CURVES: dict[str, Curve] = {
    "calibrated": lambda c: c,
    "over-confident": lambda c: 0.5 + 0.5 * (c - 0.5),
    "under-confident": lambda c: np.minimum(1.0, 0.3 + 0.8 * c),
    "constant .9": lambda c: np.full_like(c, 0.9),
}


def draw_confidence(rng: np.random.Generator, n: int, distinct: bool) -> np.ndarray:
    """Draw confidences: mostly high, and rounded to tenths if `distinct`."""
    stated = rng.beta(3, 1, n)
    return np.round(stated, 1) if distinct else stated


def broken_promises(
    curve: Curve, *, n: int, target: float, distinct: bool, worlds: int
) -> tuple[float, float]:
    """Return the share of worlds with a selection, and with one that misses the target."""
    rng = np.random.default_rng(0)
    reference = np.sort(draw_confidence(rng, REFERENCE, distinct))
    rate = curve(reference)
    above = np.cumsum(rate[::-1])[::-1] / np.arange(REFERENCE, 0, -1)
    selected = missed = 0
    for _ in range(worlds):
        stated = draw_confidence(rng, n, distinct)
        selected_threshold = select_threshold(
            stated, rng.random(n) < curve(stated), precision=target
        )
        if selected_threshold is not None:
            selected += 1
            place = np.searchsorted(reference, selected_threshold.threshold)
            missed += bool(above[place] < target - 1e-3)
    return selected / worlds, missed / worlds


def verdicts_of_pairs(*, kept_label: float, drift: float, n: int, worlds: int) -> list[float]:
    """Return the shares of wrong "kept" and of wrong "broken" verdicts on the same questions.

    A label stays with probability `kept_label` and is drawn again otherwise; `drift` lowers
    the later accuracy at each confidence. The target is .9 and the confidence is calibrated.
    """
    rng = np.random.default_rng(1)
    reference = np.sort(draw_confidence(rng, REFERENCE, False))
    wrong_kept = wrong_broken = 0
    for _ in range(worlds):
        stated = draw_confidence(rng, n, False)
        first = rng.random(n) < stated
        redrawn = rng.random(n) < np.maximum(0, stated - drift)
        stays = rng.random(n) < kept_label
        second = np.where(stays, first, redrawn)
        selected_threshold = select_threshold(stated, first, precision=0.9)
        if selected_threshold is None:
            continue
        above = reference[np.searchsorted(reference, selected_threshold.threshold) :]
        later = np.maximum(0, above - drift)
        truth = (kept_label * above + (1 - kept_label) * later).mean()
        verdict = check_threshold(
            selected_threshold.threshold, stated, second, precision=0.9
        ).verdict
        wrong_kept += verdict == KEPT and truth < 0.9
        wrong_broken += verdict == BROKEN and truth >= 0.9
    return [wrong_kept / worlds, wrong_broken / worlds]


def certified(
    *, n_labels: int, noise: float, carried: bool, target: float, worlds: int
) -> tuple[float, float]:
    """Return the shares of worlds with a certified threshold, and with a wrong one.

    Of 2,000 answers a fifth changed. Carried labels are flipped with probability `noise`.
    """
    rng = np.random.default_rng(2)
    made = wrong = 0
    for world in range(worlds):
        stated = draw_confidence(rng, 2_000, False)
        correct = rng.random(2_000) < stated
        flipped = correct ^ (rng.random(2_000) < noise)
        changed = rng.random(2_000) < 0.2
        labels = np.where(changed | (not carried), np.nan, flipped)
        answers = LaterAnswers(stated, labels)
        sheet = draw_sheet(answers, n_labels, seed=world)
        sheet["correct"] = correct[sheet["position"]]
        selected_threshold = certify_threshold(answers, sheet, precision=target)
        if selected_threshold is not None:
            made += 1
            wrong += bool(correct[stated >= selected_threshold].mean() < target)
    return made / worlds, wrong / worlds


def rows(worlds: int) -> Iterator[str]:
    """Yield the lines of the tables."""
    yield "| confidence | values | target | N | selected | misses the target (≤ 10 %) |"
    yield "|---|---|--:|--:|--:|--:|"
    for name, curve in CURVES.items():
        for distinct in (False, True):
            for target in TARGETS:
                for n in (200, 1_000):
                    made, missed = broken_promises(
                        curve, n=n, target=target, distinct=distinct, worlds=worlds
                    )
                    values = "11" if distinct else "continuous"
                    line = f"| {name} | {values} | {target} | {n:,} "
                    yield line + f"| {made:.0%} | {missed:.1%} |"
    yield ""
    yield "| labels that stay | drift | wrong “kept” | wrong “broken” |"
    yield "|--:|--:|--:|--:|"
    for stays in (0.0, 0.5, 0.9, 1.0):
        for drift in (0.0, 0.03, 0.06):
            selected_threshold = verdicts_of_pairs(
                kept_label=stays, drift=drift, n=1_000, worlds=worlds
            )
            yield (
                f"| {stays:.0%} | {drift} | "
                + " | ".join(f"{v:.1%}" for v in selected_threshold)
                + " |"
            )
    yield ""
    yield "| labels | carried | wrong carried labels | target | certified | wrong (≤ 10 %) |"
    yield "|--:|---|--:|--:|--:|--:|"
    for target in (0.8, 0.9):
        for n_labels in (60, 120, 250, 500):
            for carried, noise in ((False, 0.0), (True, 0.0), (True, 0.1), (True, 0.5)):
                made, wrong = certified(
                    n_labels=n_labels,
                    noise=noise,
                    carried=carried,
                    target=target,
                    worlds=worlds,
                )
                kind = "yes" if carried else "no"
                share = f"{noise:.0%}" if carried else "–"
                line = f"| {n_labels} | {kind} | {share} | {target} "
                yield line + f"| {made:.0%} | {wrong:.1%} |"


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000):
        print(row, flush=True)
