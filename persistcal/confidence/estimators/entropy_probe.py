"""A linear probe on hidden states that predicts semantic entropy and needs no labels."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from persistcal.confidence.estimators.semantic_entropy import semantic_entropy
from persistcal.confidence.evidence import Evidence, rate_by_checkpoint
from persistcal.confidence.probes import (
    fit_at_layer,
    probe_confidence,
    rate_with_probe,
    read_states,
    with_answer,
)

NEEDS = ("several_answers",)


def entropy_probe(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability that the semantic entropy of the question is low.

    The probe reads the hidden state at the end of the question with its answer. It is fitted
    to train questions, on the earlier checkpoints or on the checkpoint that it rates.

    Kossen et al., "Semantic Entropy Probes: Robust and Cheap Hallucination Detection in LLMs",
    2024, arXiv:2406.15927.
    """
    if evidence.fit_at == "training":
        low = has_low_entropy(evidence.labelled, evidence)
        return rate_with_probe(answers, evidence, low, with_answer)

    def ask(rows: pd.DataFrame, model: Any, tokenizer: Any) -> ArrayLike:  # noqa: ANN401
        assert evidence.train is not None
        train = evidence.train[evidence.train["checkpoint"] == rows["checkpoint"].iloc[0]]
        settings = evidence.layer, evidence.estimator
        states = read_states(model, tokenizer, with_answer(train), *settings)
        low = has_low_entropy(train, evidence)
        place, probe = fit_at_layer(states, low, train["question_id"], evidence.estimator)
        rated = read_states(model, tokenizer, with_answer(rows), *settings)[place]
        return probe_confidence(probe, rated)

    return rate_by_checkpoint(answers, evidence, ask)


def has_low_entropy(answers: pd.DataFrame, evidence: Evidence) -> NDArray[np.bool_]:
    """Return whether the semantic entropy of each answer's question is at most `best_split`."""
    entropy = -np.log(semantic_entropy(answers, evidence).to_numpy(float))
    return entropy <= best_split(entropy)


def best_split(values: ArrayLike) -> float:
    """Return the greatest value of the lower of two groups with the least squared error.

    The error is that of the groups' means. The threshold of Kossen et al. has the same
    definition, on a grid of 100 values.

    >>> best_split([0.0, 0.1, 0.9, 1.0])
    0.1
    """
    ordered = np.sort(np.asarray(values, float))
    n = np.arange(1, len(ordered) + 1)
    total = np.cumsum(ordered)
    below = total**2 / n
    above = np.append((total[-1] - total[:-1]) ** 2 / (len(ordered) - n[:-1]), 0)
    # The squared error is the sum of squares, which is fixed, minus these.
    explained = np.where(np.append(np.diff(ordered) > 0, True), below + above, -np.inf)
    return float(ordered[np.argmax(explained)])
