"""Variance of hidden states over the adapters of several seeds."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from peft import PeftModel
from transformers import PreTrainedModel

from persistcal.confidence.hidden_states import blocks, last_hidden_states
from persistcal.store.pace import Pace


def variances_over_adapters(
    model: PeftModel,
    prompts: Sequence[Sequence[int]],
    *,
    batch_size: int,
    last_layer: str = "after_norm",
) -> np.ndarray:
    """Return the population variance of hidden states over the adapters of a model.

    It is summed over hidden units: (n_prompts, n_layers). Adapters are switched within a batch
    and their samples added one by one (Welford's method), so that the hidden states of one
    batch and adapter are all that is held. The prompts are token ids; for `last_layer` see
    `last_hidden_states`.
    """
    names = list(model.peft_config)
    if len(names) < 2:
        raise ValueError("A variance over adapters needs at least two; give more seeds.")
    base = cast(PreTrainedModel, model.get_base_model())
    order = sorted(range(len(prompts)), key=lambda i: list(prompts[i]))
    variances = np.empty((len(prompts), len(blocks(base))))
    for start in Pace(range(0, len(order), batch_size), "hidden states", unit=" batches"):
        chosen = order[start : start + batch_size]
        batch = [prompts[i] for i in chosen]
        mean = squares = np.zeros(())
        for n, name in enumerate(names, start=1):
            model.set_adapter(name)
            states = last_hidden_states(base, batch, last_layer=last_layer)
            sample = states.cpu().numpy().astype(np.float64)
            deviation = sample - mean
            mean = mean + deviation / n
            squares = squares + (deviation * (sample - mean)).sum(-1)
        variances[chosen] = (squares / len(names)).T
    return variances
