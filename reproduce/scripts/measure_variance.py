"""Measure the variance of hidden states between the adapters of several seeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from peft import PeftModel
from transformers import PreTrainedModel

from persistcal.answers.clusters import take_predictions
from persistcal.models import load
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.load import load_adapter
from persistcal.models.packing import BatchSize, blocks, last_hidden_states, size_of_batch
from persistcal.models.prompts import confidence_prompts
from persistcal.store.artifacts import Clusters, Questions, Variances
from persistcal.store.jobs import log, run
from persistcal.store.progress import Pace
from reproduce.transfer import variance_table


def measure_variance(
    checkpoint: Checkpoint,
    questions: Questions,
    clusters: Clusters,
    adapters: list[Path],
    *,
    prompt: str,
    last_layer: str,
    batch_size: BatchSize,
    dtype: str,
) -> Variances:
    """Return the variance of each block's output at the end of each confidence prompt.

    The prompts are about the checkpoint's predictions on the test questions. Its weights and
    all adapters (one `adapter_model.safetensors` per seed) are loaded together. `last_layer` is
    described in `last_hidden_states`.
    """
    answers = take_predictions(questions[~questions["excluded"]], clusters)
    tokenizer = load.open_tokenizer(checkpoint)
    prompts = tokenizer(confidence_prompts(prompt, answers))["input_ids"]
    first, *rest = [path.parent for path in adapters]
    base = load.open_model(checkpoint, dtype=dtype)
    adapted = load_adapter(base, first, first.name)
    for folder in rest:
        load_adapter(adapted, folder, folder.name)
    variances = variances_over_adapters(
        adapted, prompts, batch_size=batch_size, last_layer=last_layer
    )
    log.info("%d adapters, %d questions, %d layers", len(adapters), *variances.shape)
    return variance_table(answers["question_id"].tolist(), variances)


def variances_over_adapters(
    model: PeftModel,
    prompts: Sequence[Sequence[int]],
    *,
    batch_size: BatchSize,
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
    size = size_of_batch(batch_size, base, prompts)
    for start in Pace(range(0, len(order), size), "hidden states", unit=" batches"):
        rows = order[start : start + size]
        batch = [prompts[i] for i in rows]
        mean = squares = np.zeros(())
        for n, name in enumerate(names, start=1):
            model.set_adapter(name)
            states = last_hidden_states(base, batch, last_layer=last_layer)
            sample = states.cpu().numpy().astype(np.float64)
            deviation = sample - mean
            mean = mean + deviation / n
            squares = squares + (deviation * (sample - mean)).sum(-1)
        variances[rows] = (squares / len(names)).T
    return variances


if __name__ == "__main__":
    run(measure_variance, snakemake)
