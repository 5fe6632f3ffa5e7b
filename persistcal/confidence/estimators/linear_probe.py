"""A linear probe on hidden states, trained on the earlier checkpoints."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from persistcal.confidence.evidence import Evidence
from persistcal.confidence.hidden_states import last_hidden_states
from persistcal.models.prompts import question_suffix

BATCH = 64
# Weight of the ridge penalty against the answers' summed loss: hidden units are many
# and correlated.
PENALTY = 100.0


def linear_probe(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the confidence of one probe, fitted on the train split of the earlier checkpoints.

    The probe reads the hidden state of the middle block at the end of the question
    with its answer.
    """
    both = pd.concat([evidence.labelled, answers], ignore_index=True)
    groups = [rows for _, rows in both.groupby("checkpoint", sort=False)]
    read = {rows["checkpoint"].iloc[0]: _states(rows, evidence) for rows in groups}
    _check_widths({name: states.shape[1] for name, states in read.items()})
    states = np.concatenate(list(read.values()))
    states = states[np.argsort(np.concatenate([rows.index for rows in groups]))]
    n_labelled = len(evidence.labelled)
    probe = fit_probe(states[:n_labelled], evidence.labelled["correct"].to_numpy())
    return pd.Series(probe_confidence(probe, states[n_labelled:]), answers.index)


def _check_widths(widths: dict[str, int]) -> None:
    (first, n), *others = widths.items()
    for name, width in others:
        if width != n:
            raise ValueError(
                f"linear_probe fits one probe for all checkpoints, but {first} has {n} hidden "
                f"units and {name} has {width}; leave one of them out, or drop linear_probe "
                "from study.estimators."
            )


def _states(rows: pd.DataFrame, evidence: Evidence) -> NDArray[np.float32]:
    """Return the state of one checkpoint's middle block after each answer."""
    assert evidence.load is not None
    model, tokenizer = evidence.load(rows["checkpoint"].iloc[0])
    pairs = zip(rows["question"], rows["answer"], strict=True)
    texts = [f"{question_suffix(question)} {answer}" for question, answer in pairs]
    tokens = tokenizer(texts)["input_ids"]
    batches = [tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH)]
    middle = model.config.num_hidden_layers // 2 - 1
    return np.concatenate([last_hidden_states(model, b)[middle].cpu().numpy() for b in batches])


class Probe(NamedTuple):
    """A logistic regression on hidden states."""

    weights: NDArray[np.float64]  # of shape (n_units,), of the hidden units as they are
    bias: float  # infinite where all answers that the probe was fitted to had one label


def fit_probe(states: ArrayLike, correct: ArrayLike) -> Probe:
    """Fit a logistic regression with a ridge penalty on standardised hidden states.

    The sum of the answers' losses plus `PENALTY` / 2 times the sum of squared
    weights of the standardised units is minimised. `states` has shape
    (n_answers, n_units), `correct` (n_answers,).

    After Azaria and Mitchell, "The Internal State of an LLM Knows When It's
    Lying", Findings of EMNLP 2023, with a linear classifier.

    Examples
    --------
    >>> probe = fit_probe([[0.0, 1.0], [1.0, 1.0], [0.0, 2.0], [1.0, 2.0]], [0, 1, 0, 1])
    >>> probe_confidence(probe, [[0.5, 7.0]]).round(3)
    array([0.5])
    """
    hidden, label = np.asarray(states, float), np.asarray(correct, int)
    if len(np.unique(label)) < 2:
        return Probe(np.zeros(hidden.shape[1]), np.inf if label.any() else -np.inf)
    scaler = StandardScaler().fit(hidden)
    regression = LogisticRegression(C=1 / PENALTY, max_iter=1000)
    regression.fit(scaler.transform(hidden), label)
    weights = regression.coef_[0] / scaler.scale_
    return Probe(weights, float(regression.intercept_[0] - weights @ scaler.mean_))


def probe_confidence(probe: Probe, states: ArrayLike) -> NDArray[np.float64]:
    """Return the probability that each answer is correct: shape (n_answers,)."""
    return expit(np.asarray(states, float) @ probe.weights + probe.bias)
