"""Split the samples of each question into two halves, which are two independent asks.

A halving is drawn by a generator that is keyed by the seed, the question, the number of the
halving and the checkpoint's position among the study's checkpoints. Names of models and files
have no effect. Two checkpoints must not share a permutation: if nothing changed, a shared one
gives a change AUC of .71, and one that is keyed by the samples' content .62, instead of .5.

One halving uses half of the information, so statistics are averaged over several. Most of them
repeat the same few halves, and each distinct half is labelled and rated once.
"""

import hashlib
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.questions.labels import normalise
from persistcal.questions.splits import LEAST_SAMPLES
from persistcal.store.artifacts import BEAMS

PLACE = ["model", "checkpoint", "dataset", "question_id"]
SEED = 17
HALVINGS = 20  # if a half costs neither labels nor ratings


def can_be_halved(beams: pd.DataFrame) -> bool:
    """Return whether every question of a table BEAMS of samples has enough of them.

    >>> can_be_halved(pd.DataFrame({name: ["x"] * 3 for name in PLACE}))
    False
    """
    sizes = beams.groupby([name for name in PLACE if name in beams], sort=False).size()
    return bool(len(sizes)) and int(sizes.min()) >= LEAST_SAMPLES


def halve_samples(
    beams: pd.DataFrame,
    positions: Mapping[str, int] | int = 0,
    *,
    n_halvings: int = 1,
    seed: int = SEED,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the distinct halves of the samples of each question, and each halving's halves.

    Parameters
    ----------
    beams : DataFrame
        Samples of any checkpoints, at least four per question, in any order. Of an odd number
        each halving leaves out another one.
    positions : mapping of str to int, or int
        The position of each checkpoint, or of the only one.
    n_halvings : int, default=1
        Number of halvings; the first ones do not depend on it.

    Returns
    -------
    samples : DataFrame
        The samples of each distinct half, with a column `half`, a number per question. The
        first sample is drawn at random among the samples with the most frequent answer, so that
        ties between answers are broken at random.
    halves : DataFrame
        The columns of `PLACE` in `beams`, `halving`, `side` (1 or 2) and `half`.
    """
    place = [name for name in PLACE if name in beams]
    content = [name for name in BEAMS.but("question_id", "beam") if name in beams]
    keys = [repr(row) for row in beams[content].itertuples(index=False, name=None)]
    ordered = beams.assign(_key=keys).sort_values([*place, "_key"])
    contents = pd.factorize(ordered.pop("_key"))[0]
    texts = ordered["text"].map({text: normalise(text) for text in ordered["text"].unique()})
    answers = pd.factorize(texts.mask(texts.eq("")))[0]  # -1 for an empty answer
    taken: list[NDArray[np.intp]] = []
    numbers, rows = [], []
    for name, places in ordered.groupby(place, sort=False).indices.items():
        label = dict(zip(place, name if isinstance(name, tuple) else (name,), strict=True))
        position = positions if isinstance(positions, int) else positions[label["checkpoint"]]
        digest = hashlib.sha256(str(label["question_id"]).encode()).digest()
        rng = np.random.default_rng([seed, position, *digest[:16]])
        size = len(places) // 2
        shuffled = rng.permuted(np.tile(np.sort(places), (n_halvings, 1)), axis=1)
        both = _in_order(shuffled[:, : 2 * size].reshape(-1, size), answers)
        known: dict[tuple[int, ...], int] = {}
        for number, (half, key) in enumerate(zip(both, contents[both].tolist(), strict=True)):
            if (own := tuple(key)) not in known:
                known[own] = len(known)
                taken.append(half)
                numbers.append(np.full(size, known[own]))
            rows.append((*label.values(), number // 2, 1 + number % 2, known[own]))
    samples = ordered.iloc[np.concatenate(taken)].assign(half=np.concatenate(numbers))
    beam = samples.groupby([*place, "half"], sort=False).cumcount()
    halves = pd.DataFrame(rows, columns=[*place, "halving", "side", "half"])
    return samples.assign(beam=beam).reset_index(drop=True), halves


def _in_order(halves: NDArray[np.intp], answers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return each row with a sample of the most frequent answer first, the others sorted."""
    texts = answers[halves]
    counts = (texts[:, :, None] == texts[:, None, :]).sum(axis=2)
    first = np.where(texts >= 0, counts, 0).argmax(axis=1)
    best = halves[np.arange(len(halves)), first]
    rest = halves[np.arange(halves.shape[1]) != first[:, None]].reshape(len(halves), -1)
    return np.column_stack([best, np.sort(rest, axis=1)])
