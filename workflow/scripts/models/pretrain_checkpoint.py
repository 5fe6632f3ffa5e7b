"""Pre-train a small model from one checkpoint to the next."""

import dataclasses
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.models.checkpoint import Checkpoint, local_checkpoint
from persistcal.models.corpus import Corpus, Phase
from persistcal.models.load import load_model, load_tokenizer, set_threads
from persistcal.models.pretraining import Schedule, new_model, pretrain_segment
from persistcal.models.tokenization import train_tokenizer
from persistcal.store import artifacts
from persistcal.store.files import write_whole
from persistcal.store.logs import log_to
from persistcal.store.sealed import read_sealed, seal

log = logging.getLogger(__name__)
OPTIMIZER = "optimizer.safetensors"


def _files(checkpoint: Checkpoint) -> str:
    """Say what is in the files of a checkpoint, for the optimizer that goes with them."""
    return json.dumps(checkpoint.files | checkpoint.weights, sort_keys=True)


def pretrain_checkpoint(
    facts_paths: Sequence[str],
    previous_path: str | None,
    weights_path: str,
    checkpoint_path: str,
    *,
    start_step: int,
    end_step: int,
    settings: dict[str, Any],
    confidence_prompt: str,
    threads: int,
) -> None:
    """Train from `start_step` to `end_step` and save model, tokenizer and optimizer.

    The tables FACTS at `facts_paths` make the documents. `previous_path` is the
    `model.safetensors` of the checkpoint before, with its other files beside it, or
    None for the first one; `weights_path` is that of this one. The JSON record at
    `checkpoint_path` says where the checkpoint is. `settings` is the model's
    `pretraining` of the config.
    """
    set_threads(threads)
    seed, steps = settings["seed"], settings["steps"]
    facts = pd.concat([artifacts.read(path, artifacts.FACTS) for path in facts_paths])
    unrated = ["train", "test"]
    if "ratings" in settings:
        # A verifier learns to tell right from wrong about facts that it meets, and what
        # it is evaluated on is what the estimators are: the test questions.
        unrated = ["test"]
    dealt = settings.get("fact_sets", {})
    corpus = Corpus(
        facts.reset_index(drop=True),
        [Phase(**phase) for phase in settings["drift"]],
        confidence_template=confidence_prompt,
        confidence_share=settings["confidence_share"],
        seed=seed,
        ratings=tuple(settings.get("ratings", ("9", "0"))),
        unrated=unrated,
        n_sets=dealt.get("n", 1),
        rare_factor=dealt.get("rare_factor", 1.0),
    )
    if previous_path is None:
        tokenizer: PreTrainedTokenizerBase = train_tokenizer(
            corpus.sample(20_000), vocab_size=settings["vocab_size"]
        )
        model: PreTrainedModel = new_model(tokenizer, **settings["architecture"], seed=seed)
        moments = None
    else:
        previous = Path(previous_path).parent
        tokenizer = load_tokenizer(str(previous))
        model = load_model(str(previous), dtype="float32").requires_grad_(True)
        # Refuses what is not as the segment before has left it.
        moments = read_sealed(previous / OPTIMIZER, _files(local_checkpoint(previous)))
    moments, losses = pretrain_segment(
        model,
        moments,
        corpus,
        tokenizer,
        start_step=start_step,
        end_step=end_step,
        n_steps=steps,
        schedule=Schedule(**settings["schedule"]),
        batch_size=settings["batch_size"],
        block_length=settings["block_length"],
        optimizer=settings["optimizer"],
        weight_decay=settings["weight_decay"],
    )
    folder = Path(weights_path).parent
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    made = local_checkpoint(folder)
    write_whole(folder / OPTIMIZER, seal(moments, {}, _files(made)))
    dataclasses.replace(made, revision=None, dtype="float32").write(checkpoint_path)
    log.info("Steps %d to %d: last loss %.3f", start_step, end_step, losses[-1])


if __name__ == "__main__":
    log_to(snakemake.log[0])
    pretrain_checkpoint(
        snakemake.input.facts,
        snakemake.input.get("previous"),
        snakemake.output.weights,
        snakemake.output.checkpoint,
        start_step=snakemake.params.start_step,
        end_step=snakemake.params.end_step,
        settings=snakemake.params.settings,
        confidence_prompt=snakemake.params.confidence_prompt,
        threads=snakemake.threads,
    )
