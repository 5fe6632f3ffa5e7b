"""Split the samples of each question into two halves, which are two independent asks."""

import hashlib

import numpy as np
import pandas as pd

from persistcal.questions.splits import LEAST_SAMPLES
from persistcal.store.artifacts import BEAMS

PLACE = ["model", "checkpoint", "dataset", "question_id"]
SEED = 17


def can_be_halved(beams: pd.DataFrame) -> bool:
    """Return whether every question of a table BEAMS of samples has enough of them.

    >>> can_be_halved(pd.DataFrame({name: ["x"] * 3 for name in PLACE}))
    False
    """
    sizes = beams.groupby([name for name in PLACE if name in beams], sort=False).size()
    return bool(len(sizes)) and int(sizes.min()) >= LEAST_SAMPLES


def halve_samples(
    beams: pd.DataFrame, *, seed: int = SEED
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both halves of the samples of each question, renumbered at random.

    Samples are sorted by their content and permuted by a generator that depends on the seed,
    the checkpoint and the question, so that neither the order of a file nor other questions
    have an effect: a file that is sorted by frequency would have unequal halves. Of an odd
    number the last sample is dropped. Ties between answers go to the first sample of the half,
    at random.
    """
    place = [name for name in PLACE if name in beams]
    content = [name for name in BEAMS.but("question_id", "beam") if name in beams]
    keys = [repr(row) for row in beams[content].itertuples(index=False, name=None)]
    ordered = beams.assign(_key=keys).sort_values([*place, "_key"]).drop(columns="_key")
    halves: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for name, rows in ordered.groupby(place, sort=False).indices.items():
        words = name if isinstance(name, tuple) else (name,)
        key = hashlib.sha256("\x1f".join(map(str, words)).encode()).digest()
        rng = np.random.default_rng([seed, *key[:16]])
        shuffled, size = rng.permutation(np.sort(rows)), len(rows) // 2
        halves[0].append(shuffled[:size])
        halves[1].append(shuffled[size : 2 * size])
    first, second = (ordered.iloc[np.concatenate(rows)] for rows in halves)
    return tuple(  # type: ignore[return-value]
        half.assign(beam=half.groupby(place, sort=False).cumcount()).reset_index(drop=True)
        for half in (first, second)
    )
