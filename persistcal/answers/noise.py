"""Random numbers with an address, in torch's integers: the same bits on any device.

Philox4x32-10 is a counter-based generator: a hash of an address (the counter) under a key,
with no state to be carried from one number to the next [1]_.

References
----------
.. [1] Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

WORD = 2**32 - 1
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10


def philox(counter: Sequence[Tensor], key: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return four words of 32 random bits for each counter.

    Parameters
    ----------
    counter : four tensors of int64
        Words of 32 bits each; they and the key broadcast.
    key : two tensors of int64
    """
    a, b, c, d = counter
    number = torch.arange(ROUNDS, device=a.device)
    keys = (
        (word[..., None] + number * step & WORD).unbind(-1)
        for word, step in zip(key, KEY_STEPS, strict=True)
    )
    for first, second in zip(*keys, strict=True):
        # int64 keeps the lower 64 bits of a product; its sign is masked off.
        left, right = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, c = (right >> 32 & WORD) ^ b ^ first, (left >> 32 & WORD) ^ d ^ second
        b, d = right & WORD, left & WORD
    return a, b, c, d


def gumbel(keys: Tensor, samples: Tensor, steps: Tensor, size: int) -> Tensor:
    """Return standard Gumbel noise, `size` numbers for each sample's next token.

    Parameters
    ----------
    keys : Tensor of int64, shape (n, 2)
        Of each sample's question.
    samples, steps : Tensor of int64, shape (n,)
        Numbers of the samples and of their next tokens.
    size : int
        More numbers go on where fewer end.

    Notes
    -----
    The numbers are made of 23 bits each, which float32 holds exactly. So they lie between
    -2.8 and 16.6; a Gumbel number is beyond 16.6 once in 17 million times.
    """
    first, second = keys[:, :1], keys[:, 1:]
    place = torch.arange(-(-size // 4), device=keys.device)
    zero = torch.zeros_like(place)
    bits = philox((place, steps[:, None], samples[:, None], zero), (first, second))
    uniform = ((torch.stack(bits, dim=2).flatten(1)[:, :size] >> 9) + 0.5) * 2.0**-23
    return uniform.log().neg().log().neg()
