"""Simulate a second ask that is partly copied, or covers a part of the answers.

    python -m benchmarks.asked_again [--studies 40] [--replicates 200]

writes the table of docs/validation.md. *Two asks*: each version samples an answer twice, from
six possible ones. The confidence is the answer's probability, with or without noise, or rounded
to a digit. A share of the second answers can be copied. *Part*: in each ask a share of the
answers is drawn again, and the later version answers some questions twice.

Columns are shares of studies in per cent: the words *followed* and *moved with the labels*, and
copies that were found.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.knew_moved_knows import (
    STATES,
    Array,
    Sampled,
    StateWorld,
    draw_answers,
    draw_chances,
)
from persistcal.evaluation.aligned import align
from persistcal.evaluation.claims import COPIES, FOLLOWED, MOVED, make_claims
from persistcal.evaluation.replicates import replicate
from persistcal.evaluation.settings import EvaluationSettings

UNCHANGED, CHANGED = Sampled("unchanged", changed=0.0), Sampled("30 % changed", changed=0.3)
SAME = StateWorld("unchanged", changed=0.0)
FOLLOWER = StateWorld("30 % changed", weight=2.0)


def rows_of(
    labels: Array, confidence: Array, ask: int = 0, states: tuple[str, ...] = STATES
) -> pd.DataFrame:
    """Return predictions of some states; labels and confidences have a row for each."""
    parts = [
        pd.DataFrame({"question_id": np.arange(labels.shape[1]).astype(str)}).assign(
            checkpoint=name, correct=labels[k].astype(int), confidence=confidence[k]
        )
        for k, name in enumerate(states)
    ]
    names = {"model": "m", "dataset": "d", "train_dataset": "d", "estimator": "e", "seed": 0}
    return pd.concat(parts, ignore_index=True).assign(**names, ask=ask)


def ask_twice(
    world: Sampled, rng: np.random.Generator, *, n: int, noise: float = 0.5, copied: float = 0.0
) -> pd.DataFrame:
    """Return predictions of two asks, with a share of the second ones copied."""
    asks: list[list[Array]] = [[], []]
    for chances in draw_chances(world, n, rng):
        for ask in asks:
            answer = (rng.random((n, 1)) > chances.cumsum(axis=1)).sum(axis=1)
            stated = chances[np.arange(n), np.minimum(answer, chances.shape[1] - 1)]
            odds = stated / (1.001 - stated) * np.exp(noise * rng.normal(size=n))
            ask.append(np.array([answer == 0, odds / (1 + odds)]))
        is_copied = rng.random(n) < copied
        asks[1][-1][:, is_copied] = asks[0][-1][:, is_copied]
    made = [rows_of(*np.swapaxes(ask, 0, 1), number) for number, ask in enumerate(asks)]
    return pd.concat(made, ignore_index=True)


def ask_a_part(
    world: StateWorld, rng: np.random.Generator, *, n: int, flips: float, n_again: int
) -> pd.DataFrame:
    """Return predictions of both versions, and of a part of the later one's again."""
    labels, stated = draw_answers(world, n, rng)

    def redraw(k: int) -> Array:
        made = np.array([labels[k], stated[k]], float)
        anew = rng.random(n) < flips
        label = rng.integers(0, 2, anew.sum())
        made[:, anew] = [label, 0.25 + 0.5 * label + 0.25 * rng.random(anew.sum())]
        return made

    first, again = np.array([redraw(0), redraw(1)]), redraw(1)[:, :n_again, None]
    part = rows_of(again[0].T, again[1].T, 1, STATES[1:])
    return pd.concat([rows_of(*np.swapaxes(first, 0, 1)), part], ignore_index=True)


def claim(rows: pd.DataFrame, *, replicates: int = 200, determinism: str = "") -> pd.Series:
    """Return the row of *moved* with the word."""
    settings = EvaluationSettings(
        min_contrast=1, n_replicates=replicates, seed=1, paper_marks=False
    )
    data = align(rows, STATES, settings)
    claims, _ = make_claims(data, replicate(data, settings), settings, determinism=determinism)
    return claims[claims["metric"] == "moved"].iloc[-1]


def cells() -> Iterator[tuple[dict[str, object], object]]:
    """Yield descriptions, and functions that draw predictions."""
    for n in (300, 1000):
        for world in (UNCHANGED, CHANGED):
            for noise, digits in ((0.5, 9), (0.0, 9), (0.5, 1)):
                for copied in (0.0, 0.3, 0.6) if noise and digits > 1 else (0.0,):
                    kind = {"asks": "two", "world": world.name, "n": n, "noise": noise}
                    kind |= {"digits": digits, "copied": copied}
                    options = {"n": n, "noise": noise, "copied": copied}
                    yield kind, (ask_twice, world, options)
        for state in (SAME, FOLLOWER):
            for flips in (0.0, 0.02, 0.3):
                for n_again in (50, 200):
                    kind = {"asks": "part", "world": state.name, "n": n, "flips": flips}
                    options = {"n": n, "flips": flips, "n_again": n_again}
                    yield kind | {"n_again": n_again}, (ask_a_part, state, options)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--to", default="benchmarks/outputs/asked_again.csv")
    args = parser.parse_args()
    made = []
    for kind, (draw, world, options) in cells():
        results = []
        for number in range(args.studies):
            rows = draw(world, np.random.default_rng([number, 7]), **options)
            if "digits" in kind:
                rows["confidence"] = rows["confidence"].round(kind["digits"])
            results.append(claim(rows, replicates=args.replicates, determinism="declared"))
        words, bases = ([of[name] for of in results] for name in ("word", "basis"))
        shares = {
            "followed": np.mean([word == FOLLOWED for word in words]),
            "moved": np.mean([word == MOVED for word in words]),
            "copies": np.mean([basis == COPIES for basis in bases]),
        }
        made.append({**kind, **{name: round(100 * of, 1) for name, of in shares.items()}})
        pd.DataFrame(made).to_csv(args.to, index=False)


if __name__ == "__main__":
    main()
