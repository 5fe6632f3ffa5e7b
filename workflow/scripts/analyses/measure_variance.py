"""Measure how much hidden states vary between the adapters of several seeds."""

import logging
from collections.abc import Sequence
from pathlib import Path

from persistcal import artifacts
from persistcal.analyses.hidden_states import variances_over_adapters
from persistcal.analyses.variance import variance_table
from persistcal.answers.predictions import take_predictions
from persistcal.confidence.prompts import confidence_prompt
from persistcal.logs import log_to
from persistcal.models import load
from persistcal.models.checkpoint import Checkpoint
from persistcal.training.lora import load_adapter

log = logging.getLogger(__name__)


def measure_variance(
    checkpoint_path: str,
    questions_path: str,
    clusters_path: str,
    adapter_paths: Sequence[str],
    variances_path: str,
    *,
    prompt: str,
    last_layer: str,
    batch_size: int,
    threads: int,
) -> None:
    """Write the variance of each block's output at the end of each confidence prompt.

    The prompts are about the checkpoint's predictions on the test questions. Its weights
    are loaded once, and the adapters at `adapter_paths` (one `adapter_model.safetensors`
    per seed) are all held at once. `last_layer` is as in `last_hidden_states`.
    `variances_path` is a table VARIANCES.
    """
    load.set_threads(threads)
    checkpoint = Checkpoint.read(checkpoint_path)
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    answers = take_predictions(
        questions[~questions["excluded"]], artifacts.read(clusters_path, artifacts.CLUSTERS)
    )
    tokenizer = load.open_tokenizer(checkpoint)
    texts = zip(answers["question"], answers["answer"], strict=True)
    prompts = tokenizer([confidence_prompt(prompt, *text) for text in texts])["input_ids"]
    base = load.open_model(checkpoint)
    folders = [Path(path).parent for path in adapter_paths]
    adapted = load_adapter(base, folders[0], folders[0].name)
    for folder in folders[1:]:
        load_adapter(adapted, folder, folder.name)
    variances = variances_over_adapters(
        adapted,
        prompts,
        batch_size=batch_size,
        last_layer=last_layer,
    )
    frame = variance_table(answers["question_id"].tolist(), variances)
    artifacts.write(frame, variances_path, artifacts.VARIANCES)
    log.info("%d adapters, %d questions, %d layers", len(folders), *variances.shape)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    measure_variance(
        snakemake.input.checkpoint,
        snakemake.input.questions,
        snakemake.input.clusters,
        snakemake.input.adapters,
        snakemake.output.variances,
        prompt=snakemake.params.prompt,
        last_layer=snakemake.params.last_layer,
        batch_size=snakemake.params.batch_size,
        threads=snakemake.threads,
    )
