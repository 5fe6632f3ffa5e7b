"""Score answers with every adapter that is used at a checkpoint: confidences."""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal.answers.predictions import take_predictions
from persistcal.confidence import scoring
from persistcal.confidence.prompts import confidence_prompt
from persistcal.confidence.verbalised import Head, check_digit_logits, digit_tokens
from persistcal.models import load
from persistcal.models.batches import Work, in_order
from persistcal.models.checkpoint import Checkpoint
from persistcal.store import artifacts
from persistcal.store.logs import log_to
from persistcal.store.progress import Progress
from persistcal.training.lora import load_adapter

log = logging.getLogger(__name__)


def score_answers(
    checkpoint_path: str,
    questions_path: str,
    clusters_paths: list[str],
    adapter_paths: list[str],
    scores_path: str,
    *,
    answers_of: list[str],
    adapters: list[dict],
    split: str,
    prompt: str,
    batch_size: int,
    head: Head,
    precision: str,
    threads: int,
    shard: int = 0,
    n_shards: int = 1,
    about: Mapping[str, str] | None = None,
    code: str = "",
) -> None:
    """Write the confidence of each adapter in the predictions on a split.

    The record at `checkpoint_path` says whose weights score; they are loaded once. Scored
    are the most probable answers of the checkpoints `answers_of`, whose tables CLUSTERS
    are at `clusters_paths`. Each `adapter_model.safetensors` of `adapter_paths` belongs to
    one of `adapters`, which holds the key of its rows in the table SCORES; the rest is as
    in `generate_beams`.
    """
    settings: dict[str, Any] = dict(locals(), threads=None)
    inputs = [checkpoint_path, questions_path, *clusters_paths, *adapter_paths]
    load.set_threads(threads)
    checkpoint = Checkpoint.read(checkpoint_path)
    tokenizer = load.open_tokenizer(checkpoint)
    digits = digit_tokens(tokenizer)
    questions = artifacts.read(questions_path, artifacts.QUESTIONS).sort_values("index")
    ids, tokens, scores = {}, {}, []
    for name, path in zip(answers_of, clusters_paths, strict=True):
        clusters = artifacts.read(path, artifacts.CLUSTERS)
        answers = take_predictions(questions, clusters, split=split)
        if answers.empty:
            raise ValueError(
                f"{path}: no {split} question has an answer; check the split and the beams."
            )
        texts = zip(answers["question"], answers["answer"], strict=True)
        prompts = [confidence_prompt(prompt, *text) for text in texts]
        tokens[name], ids[name] = tokenizer(prompts)["input_ids"], answers["question_id"]
    model = load.open_model(checkpoint, precision=precision)
    check_digit_logits(model, tokens[answers_of[0]][:2], digits)
    with Progress(scores_path, inputs, settings) as progress:
        how: dict[str, Any] = {"digits": digits, "batch_size": batch_size, "head": head}
        for n, (key, path) in enumerate(zip(adapters, adapter_paths, strict=True)):
            name = key["answers_of"]
            adapted = load_adapter(model, Path(path).parent)  # in place
            work = Work(shard, n_shards, partial(progress.remember, f"adapter{n}"))
            confidences = scoring.score_answers(model, tokens[name], work=work, **how)
            adapted.unload()
            rows = pd.DataFrame(
                {**key, "question_id": ids[name], "confidence": confidences}
            ).dropna()
            scores.append(rows)
            log.info("%s: mean confidence %.3f", key, rows["confidence"].mean())
        frame = in_order(pd.concat(scores), artifacts.SCORES, list(questions["question_id"]))
        artifacts.write(frame, scores_path, artifacts.SCORES, about=about)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    files, settings = snakemake.input, dict(snakemake.params.items())
    settings["about"] = dict(snakemake.wildcards.items())
    paths = files.checkpoint, files.questions, files.clusters, files.adapters
    score_answers(*paths, snakemake.output.scores, threads=snakemake.threads, **settings)
