"""Order of questions and random labels, as a seed draws them.

Like the initial adapters (`persistcal.training.lora.initialise`), they come from the
project's `own` streams, or from those of the paper's `released` code, to retrace its adapters.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Streams = Literal["own", "released"]
RANDOM_LABELS = 0x5EED5EED  # added to the seed in the released code


def question_order(n: int, seed: int, streams: Streams) -> NDArray[np.intp]:
    """Return in which order an epoch visits `n` questions."""
    if streams == "own":
        return np.random.default_rng(seed).permutation(n)
    return np.random.RandomState(seed).permutation(n)


def random_labels(n: int, checkpoint: str, seed: int, streams: Streams) -> NDArray[np.float64]:
    """Return `n` fair coin flips, in the order of questions and their candidates."""
    if streams == "own":
        flips = np.random.default_rng([seed, *checkpoint.encode()])
        return flips.integers(0, 2, n).astype(float)
    released = np.random.RandomState((seed + RANDOM_LABELS) % 2**32)
    return released.binomial(1, 0.5, size=n).astype(float)
