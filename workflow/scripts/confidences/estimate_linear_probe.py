"""A linear probe on hidden states, trained on the earlier checkpoints."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from persistcal import artifacts
from persistcal.analyses.hidden_states import last_hidden_states
from persistcal.answers.predictions import top_answers
from persistcal.confidence.probe import fit_probe, probe_confidence
from persistcal.confidence.prompts import question_suffix
from persistcal.logs import log_to
from persistcal.models import load

log = logging.getLogger(__name__)
BATCH = 64


def states_of(checkpoint_path: str, texts: Sequence[str]) -> np.ndarray:
    """Return the state of a checkpoint's middle block after each text: (n_texts, n_units)."""
    record = json.loads(Path(checkpoint_path).read_text())
    tokenizer = load.load_tokenizer(record["repo"], record["commit"])
    model = load.load_model(record["repo"], record["commit"], dtype=record["dtype"])
    tokens = tokenizer(list(texts))["input_ids"]
    batches = [tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH)]
    middle = model.config.num_hidden_layers // 2 - 1
    return np.concatenate([last_hidden_states(model, b)[middle].cpu().numpy() for b in batches])


def estimate_linear_probe(
    checkpoint_paths: Sequence[str],
    questions_path: str,
    clusters_paths: Sequence[str],
    labels_paths: Sequence[str],
    confidences_path: str,
    *,
    checkpoints: Sequence[str],
    earlier: Sequence[str],
    threads: int,
) -> None:
    """Write the confidence of one probe, fitted on the train split of `earlier`.

    The probe reads the hidden state at the end of the question with its answer.
    `checkpoint_paths` are the records of `checkpoints`; tables QUESTIONS, CLUSTERS and
    LABELS come in, and CONFIDENCES of the checkpoints that are not `earlier` go out.
    """
    load.set_threads(threads)
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    asked = questions[["question_id", "question"]]
    answered, states = {}, {}
    paths = zip(checkpoints, checkpoint_paths, clusters_paths, labels_paths, strict=True)
    for name, checkpoint_path, clusters_path, labels_path in paths:
        answers = top_answers(
            questions,
            artifacts.read(clusters_path, artifacts.CLUSTERS),
            artifacts.read(labels_path, artifacts.LABELS),
            split="train" if name in earlier else "test",
        ).merge(asked)
        pairs = zip(answers["question"], answers["answer"], strict=True)
        texts = [f"{question_suffix(question)} {answer}" for question, answer in pairs]
        answered[name], states[name] = answers, states_of(checkpoint_path, texts)
    probe = fit_probe(
        np.concatenate([states[name] for name in earlier]),
        np.concatenate([answered[name]["correct"] for name in earlier]),
    )
    dataset = Path(confidences_path).parent.name
    parts = [
        answered[name].assign(
            checkpoint=name,
            train_dataset=dataset,
            seed=0,
            confidence=probe_confidence(probe, states[name]),
        )
        for name in checkpoints
        if name not in earlier
    ]
    artifacts.write(
        pd.concat(parts)[artifacts.CONFIDENCES.schema.names],
        confidences_path,
        artifacts.CONFIDENCES,
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    files, confidences_path = snakemake.input, snakemake.output.confidences
    estimate_linear_probe(
        *(files.checkpoints, files.questions, files.clusters, files.labels, confidences_path),
        checkpoints=snakemake.params.checkpoints,
        earlier=snakemake.params.earlier,
        threads=snakemake.threads,
    )
