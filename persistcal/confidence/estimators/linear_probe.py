"""A linear probe on hidden states, trained on the earlier checkpoints."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.hidden_states import last_hidden_states
from persistcal.confidence.probe import fit_probe, probe_confidence
from persistcal.confidence.prompts import question_suffix

BATCH = 64


def linear_probe(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the confidence of one probe, fitted on the train split of the earlier checkpoints.

    The probe reads the hidden state of the middle block at the end of the question
    with its answer.
    """
    both = pd.concat([evidence.labelled, answers], ignore_index=True)
    groups = [rows for _, rows in both.groupby("checkpoint", sort=False)]
    states = np.concatenate([_states(rows, evidence) for rows in groups])
    states = states[np.argsort(np.concatenate([rows.index for rows in groups]))]
    n_labelled = len(evidence.labelled)
    probe = fit_probe(states[:n_labelled], evidence.labelled["correct"].to_numpy())
    return pd.Series(probe_confidence(probe, states[n_labelled:]), answers.index)


def _states(rows: pd.DataFrame, evidence: Evidence) -> NDArray[np.float32]:
    """Return the state of one checkpoint's middle block after each answer."""
    assert evidence.load is not None
    model, tokenizer = evidence.load(rows["checkpoint"].iloc[0])
    pairs = zip(rows["question"], rows["answer"], strict=True)
    texts = [f"{question_suffix(question)} {answer}" for question, answer in pairs]
    return _middle_states(model, tokenizer, texts)


def _middle_states(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> NDArray[np.float32]:
    tokens = tokenizer(list(texts))["input_ids"]
    batches = [tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH)]
    middle = model.config.num_hidden_layers // 2 - 1
    return np.concatenate([last_hidden_states(model, b)[middle].cpu().numpy() for b in batches])
