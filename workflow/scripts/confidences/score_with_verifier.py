"""Ask a verifier model whether the checkpoints' answers are right."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from peft import PeftModel
from transformers import PreTrainedModel

from persistcal.answers.predictions import take_predictions
from persistcal.confidence.verifier import verifier_prompt, word_probability, word_token
from persistcal.models import hub, load
from persistcal.models.checkpoint import Checkpoint
from persistcal.store import artifacts
from persistcal.store.logs import log_to
from persistcal.training.lora import load_adapter

log = logging.getLogger(__name__)


def score_with_verifier(
    checkpoint_path: str,
    adapter_path: str | None,
    questions_path: str,
    clusters_paths: Sequence[str],
    verified_path: str,
    *,
    splits: Mapping[str, str],
    prompt: str,
    settings: Mapping[str, Any],
    threads: int,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write the verifier's confidence in the predictions of checkpoints.

    The records at `checkpoint_path` and `adapter_path` (None: it has none) say what the
    verifier is; it is loaded once, and an answer that several checkpoints give to a
    question is scored once. `splits` says which split's answers of each checkpoint are
    scored; their tables CLUSTERS are at `clusters_paths`, in that order. `prompt` is the
    template of the verifier's prompt, and `settings` its entry in the config's `verifiers`.
    """
    load.set_threads(threads)
    checkpoint = Checkpoint.read(checkpoint_path)
    tokenizer = load.open_tokenizer(checkpoint)
    yes = word_token(tokenizer, settings["word"])
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    answers = pd.concat(
        take_predictions(
            questions, artifacts.read(path, artifacts.CLUSTERS), split=split
        ).assign(checkpoint=name)
        for (name, split), path in zip(splits.items(), clusters_paths, strict=True)
    )
    pairs = answers[["question", "answer"]].drop_duplicates()
    prompts = [
        verifier_prompt(tokenizer, prompt, *pair, chat=settings["chat_template"])
        for pair in pairs.itertuples(index=False)
    ]
    base = load.open_model(checkpoint)
    model: PreTrainedModel | PeftModel = base
    if adapter_path is not None:
        model = load_adapter(base, hub.fetch_checked(Checkpoint.read(adapter_path)))
    confidence = word_probability(model, prompts, yes, batch_size=settings["batch_size"])
    verified = answers.merge(pairs.assign(confidence=confidence), validate="many_to_one")
    artifacts.write(
        verified[artifacts.VERIFIED.schema.names],
        verified_path,
        artifacts.VERIFIED,
        about=about,
    )
    log.info("%d answers, %d of them distinct", len(verified), len(pairs))


if __name__ == "__main__":
    log_to(snakemake.log[0])
    files, params = snakemake.input, dict(snakemake.params.items())
    params.pop("code")
    score_with_verifier(
        files.checkpoint,
        files.get("adapter"),
        files.questions,
        files.clusters,
        snakemake.output.verified,
        **params,
        threads=snakemake.threads,
        about=dict(snakemake.wildcards.items()),
    )
