"""Measure the variance of hidden states between the adapters of several seeds."""

from pathlib import Path

from persistcal.answers.clusters import take_predictions
from persistcal.confidence.hidden_states import variances_over_adapters
from persistcal.models import load
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.load import load_adapter
from persistcal.models.packing import BatchSize
from persistcal.models.prompts import confidence_prompt
from persistcal.store.artifacts import Clusters, Questions, Variances
from persistcal.store.jobs import log, run
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
    texts = zip(answers["question"], answers["answer"], strict=True)
    prompts = tokenizer([confidence_prompt(prompt, *text) for text in texts])["input_ids"]
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


if __name__ == "__main__":
    run(measure_variance, snakemake)
