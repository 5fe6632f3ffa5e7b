"""Simulate the guarantees of thresholds and of sheets in worlds with known truth.

    python -m benchmarks.threshold_worlds [WORLDS] [TABLE…]

writes the tables of docs/validation.md to benchmarks/outputs. In each world an answer has a
confidence c and is correct with a known probability r(c), so the precision at each threshold is
known.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom

from persistcal.evaluation.relabelling import certify_threshold, draw_order, take_look
from persistcal.evaluation.thresholds import (
    BROKEN,
    KEPT,
    UNDECIDED,
    check_threshold,
    decide,
    select_threshold,
)

OUTPUTS = Path(__file__).parent / "outputs"
DELTA = 0.1
REFERENCE = 200_000  # draws that stand for the population

Curve = Callable[[np.ndarray], np.ndarray]
CURVES: dict[str, Curve] = {
    "calibrated": lambda c: c,
    "over-confident": lambda c: 0.5 + 0.5 * (c - 0.5),
    "under-confident": lambda c: np.minimum(1.0, 0.3 + 0.8 * c),
    "constant .898": lambda c: np.full_like(c, 0.898),
    "dip at .7": lambda c: np.where((c > 0.6) & (c < 0.8), 0.5, 0.92),
    "waves": lambda c: 0.8 + 0.15 * np.sin(40 * c),
    "worst at the top": lambda c: np.where(c > 0.95, 0.6, 0.93),
}
VALUES = {"continuous": None, "11": 1}  # distinct confidences, decimals
# Strictly increasing, so that no verdict may change
TRANSFORMS: dict[str, Curve] = {
    "as they are": lambda c: c,
    "crowded near 1": lambda c: 1 - (1 - c) ** 4 / 100,
    "crowded near 0": lambda c: c**8 / 1000,
    "crowded near .5": lambda c: 0.5 + (c - 0.5) / 1000,
}


def draw_confidence(rng: np.random.Generator, n: int, decimals: int | None) -> np.ndarray:
    """Draw confidences: mostly high, and rounded if `decimals` are given."""
    stated = rng.beta(3, 1, n)
    return stated if decimals is None else np.round(stated, decimals)


def broken_promises(
    curve: Curve, *, n: int, target: float, decimals: int | None, worlds: int
) -> dict[str, float]:
    """Return shares of worlds with a selection, and with one that misses the target.

    It misses the target of its own answers by their mean chance of being correct, and that of
    the population by the precision among all possible questions.
    """
    rng = np.random.default_rng(0)
    reference = np.sort(draw_confidence(rng, REFERENCE, decimals))
    above = np.cumsum(curve(reference)[::-1])[::-1] / np.arange(REFERENCE, 0, -1)
    counts = np.zeros(3)
    for _ in range(worlds):
        stated = draw_confidence(rng, n, decimals)
        chance = curve(stated)
        selected = select_threshold(stated, rng.random(n) < chance, precision=target)
        if selected is not None:
            place = np.searchsorted(reference, selected.threshold)
            precision = chance[stated >= selected.threshold].mean()
            # 1e-3 is twice the error of the reference
            counts += (
                1,
                precision < target - 1e-9,
                above[min(place, REFERENCE - 1)] < target - 1e-3,
            )
    return dict(zip(("selected", "misses_own", "misses"), 100 * counts / worlds, strict=True))


def same_verdicts(transform: Curve, *, n: int, target: float, worlds: int) -> dict[str, float]:
    """Return shares of worlds with a threshold, and with other verdicts than without it."""
    rng = np.random.default_rng(3)
    counts = np.zeros(2)
    for _ in range(worlds):
        first, second = (draw_confidence(rng, n, None) for _ in range(2))
        labels = [rng.random(n) < stated for stated in (first, second)]
        results = []
        for change in (lambda c: c, transform):
            selected = select_threshold(change(first), labels[0], precision=target)
            verdict = selected and check_threshold(
                selected.threshold, change(second), labels[1], precision=target
            )
            results.append((selected and selected[1:], verdict and verdict.verdict))
        counts += (results[1][0] is not None, results[0] != results[1])
    return dict(zip(("selected", "other_verdict"), 100 * counts / worlds, strict=True))


def verdicts_of_pairs(
    *, kept_label: float, drift: float, n: int, worlds: int
) -> dict[str, float]:
    """Return the shares of wrong "kept" and of wrong "broken" verdicts on the same questions.

    A label stays with probability `kept_label` and is drawn again otherwise; `drift` lowers
    the later accuracy at each confidence. The target is .9 and the confidence is calibrated.
    """
    rng = np.random.default_rng(1)
    reference = np.sort(draw_confidence(rng, REFERENCE, None))
    counts = np.zeros(2)
    for _ in range(worlds):
        stated = draw_confidence(rng, n, None)
        first = rng.random(n) < stated
        redrawn = rng.random(n) < np.maximum(0, stated - drift)
        second = np.where(rng.random(n) < kept_label, first, redrawn)
        selected = select_threshold(stated, first, precision=0.9)
        if selected is None:
            continue
        above = reference[np.searchsorted(reference, selected.threshold) :]
        later = np.maximum(0, above - drift)
        truth = (kept_label * above + (1 - kept_label) * later).mean()
        verdict = check_threshold(selected.threshold, stated, second, precision=0.9).verdict
        counts += (verdict == KEPT and truth < 0.9, verdict == BROKEN and truth >= 0.9)
    return dict(zip(("wrong_kept", "wrong_broken"), 100 * counts / worlds, strict=True))


def release_trains(
    *, kept_label: float, drift: float, n: int, worlds: int, versions: int = 10
) -> dict[str, float]:
    """Return the shares of wrong "kept" among checks, and of trains with one or more.

    The first version locks a threshold for .9, and each later one is checked by it. `drift` is
    the fall of accuracy from a version to the next at each confidence; see `verdicts_of_pairs`.
    """
    rng = np.random.default_rng(5)
    reference = np.sort(draw_confidence(rng, REFERENCE, None))
    wrong, locked, trains = np.zeros(versions - 1), 0, 0
    for _ in range(worlds):
        stated = draw_confidence(rng, n, None)
        labels = rng.random(n) < stated
        selected = select_threshold(stated, labels, precision=0.9)
        if selected is None:
            continue
        locked += 1
        above = reference[np.searchsorted(reference, selected.threshold) :]
        truth, found, is_above = above, [], stated >= selected.threshold
        for version in range(1, versions):
            later = np.maximum(0, stated - version * drift)
            redrawn = rng.random(n) < later
            stays = rng.random(n) < kept_label
            labels = np.where(stays, labels, redrawn)
            truth = kept_label * truth + (1 - kept_label) * np.maximum(
                0, above - version * drift
            )
            verdict = decide(int(labels[is_above].sum()), int(is_above.sum()), 0.9)
            found.append(verdict == KEPT and truth.mean() < 0.9)
        wrong += found
        trains += any(found)
    rates = 100 * np.array([wrong.sum() / (versions - 1), wrong.max(), trains]) / max(locked, 1)
    return dict(zip(("wrong_kept", "of_one_version", "of_a_train"), rates, strict=True))


def certified(
    curve: Curve,
    *,
    looks: list[int],
    planned: bool,
    target: float,
    worlds: int,
    decimals: int | None = None,
    estimators: int = 1,
    shared: bool = True,
) -> dict[str, float]:
    """Return shares of worlds with a certified threshold at any look, and with a wrong one.

    There are 800 answers. `allowed` is the error probability of all looks together, which
    `estimators` share, or have each. All but the first one are random numbers.
    """
    rng = np.random.default_rng(2)
    levels = []
    for place, n_labels in enumerate(looks):
        plan = looks if planned else [0]
        levels.append(take_look(n_labels, plan, looks[:place], DELTA).level)
    counts = np.zeros(2)
    for world in range(worlds):
        stated = draw_confidence(rng, 800, decimals)
        correct = rng.random(800) < curve(stated)
        order = draw_order(800, world)
        noise = [draw_confidence(rng, 800, decimals) for _ in range(estimators - 1)]
        results = []
        for (n_labels, level), answers in product(
            zip(looks, levels, strict=True), [stated, *noise]
        ):
            labelled = order[:n_labels]
            delta = level / estimators if shared else level
            threshold = certify_threshold(
                answers, labelled, correct[labelled], precision=target, delta=delta
            )
            results += [] if threshold is None else [correct[answers >= threshold].mean()]
        counts += (bool(results), any(precision < target for precision in results))
    made, wrong = 100 * counts / worlds
    return {"certified": made, "wrong": wrong, "allowed": 100 * sum(levels)}


def decided(rate: float, n: int, target: float, worlds: int) -> dict[str, float]:
    """Return the share of checks of `labels_to_decide` answers that decide the verdict."""
    check = check_threshold(
        0.5, np.full(n, 0.7), np.arange(n) < round(rate * n), precision=target
    )
    size = int(check.n_to_decide)
    counts = binom.rvs(size, round(rate * n) / n, size=worlds, random_state=4)
    verdicts = [
        check_threshold(0.5, np.full(size, 0.7), np.arange(size) < k, precision=target).verdict
        for k in counts
    ]
    return {"labels": size, "decided": 100 * np.mean([v != UNDECIDED for v in verdicts])}


def _thresholds(worlds: int) -> Iterator[dict[str, object]]:
    for name, values, target, n in product(
        CURVES, VALUES, (0.6, 0.8, 0.9, 0.95), (60, 200, 600, 2000)
    ):
        key = {"confidence": name, "values": values, "target": target, "n_questions": n}
        yield key | broken_promises(
            CURVES[name], n=n, target=target, decimals=VALUES[values], worlds=worlds
        )


def _transforms(worlds: int) -> Iterator[dict[str, object]]:
    for (name, transform), n in product(TRANSFORMS.items(), (200, 1000)):
        key = {"confidences": name, "n_questions": n}
        yield key | same_verdicts(transform, n=n, target=0.8, worlds=worlds)


def _verdicts(worlds: int) -> Iterator[dict[str, object]]:
    for stays, drift in product((0.0, 0.5, 0.9, 1.0), (0.0, 0.03, 0.06)):
        key = {"labels_that_stay": round(100 * stays), "drift": drift}
        yield key | verdicts_of_pairs(kept_label=stays, drift=drift, n=1_000, worlds=worlds)


def _release_trains(worlds: int) -> Iterator[dict[str, object]]:
    for stays, drift in product((0.0, 0.9, 1.0), (0.0, 0.005)):
        key = {"labels_that_stay": round(100 * stays), "drift_percent": 100 * drift}
        yield key | release_trains(kept_label=stays, drift=drift, n=1_000, worlds=worlds)


def _few_labels(worlds: int) -> Iterator[dict[str, object]]:
    plans = [([n], True) for n in (60, 120, 250, 500)]
    plans += [([60, 120], True), ([60, 120, 250, 500], True), ([60, 90, 120, 250, 500], False)]
    names = ("calibrated", "constant .898", "dip at .7", "worst at the top")
    for (looks, planned), name, target in product(plans, names, (0.8, 0.9)):
        key = {"confidence": name, "looks": " ".join(map(str, looks))}
        key |= {"planned": "yes" if planned else "no", "target": target}
        yield key | certified(
            CURVES[name], looks=looks, planned=planned, target=target, worlds=worlds
        )


def _several_certificates(worlds: int) -> Iterator[dict[str, object]]:
    cases = product(((0.898, 0.9), (0.495, 0.5)), (120, 250, 500), (True, False))
    for (chance, target), n, shared in cases:
        key = {"chance": str(chance), "target": target, "labels": n, "estimators": 10}
        yield (
            key
            | {"shared": "yes" if shared else "no"}
            | certified(
                lambda c, chance=chance: np.full_like(c, chance),
                looks=[n],
                planned=True,
                target=target,
                worlds=worlds,
                estimators=10,
                shared=shared,
            )
        )


def _labels_to_decide(worlds: int) -> Iterator[dict[str, object]]:
    cases = ((0.9, 0.93, 100), (0.9, 0.86, 100), (0.8, 0.75, 40), (0.7, 0.72, 200))
    for target, rate, n in cases:
        yield {"target": target, "observed": rate, **decided(rate, n, target, worlds)}


TABLES = {
    "thresholds": _thresholds,
    "transforms": _transforms,
    "verdicts": _verdicts,
    "release_trains": _release_trains,
    "few_labels": _few_labels,
    "several_certificates": _several_certificates,
    "labels_to_decide": _labels_to_decide,
}


if __name__ == "__main__":
    n_worlds, *names = sys.argv[1:] or ["1000"]
    for name in names or TABLES:
        table = pd.DataFrame(TABLES[name](int(n_worlds))).round(2)
        table.to_csv(OUTPUTS / f"{name}.csv", index=False)
        print(f"{name}\n{table.to_string(index=False)}\n", flush=True)
