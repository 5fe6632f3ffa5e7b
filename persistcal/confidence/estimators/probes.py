"""Linear probes: logistic regressions on hidden states, and the layer that they read."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from persistcal.confidence.estimators.meaning import semantic_entropy
from persistcal.confidence.evidence import Evidence, rate_by_checkpoint
from persistcal.models.packing import blocks, last_hidden_states
from persistcal.models.prompts import question_suffix

log = logging.getLogger(__name__)

BATCH = 64
# Weight of the ridge penalty against the answers' summed loss: hidden units are many
# and correlated.
PENALTY = 100.0
HELD_OUT = 5  # a fifth of the questions chooses the layer

Floats = NDArray[np.float64]
States = NDArray[np.float32]  # shape (n_layers, n_answers, n_units)
Layer = int | Literal["best"] | None
Texts = Callable[[pd.DataFrame], list[str]]  # the text per answer that the probe reads


class Probe(NamedTuple):
    """A logistic regression on hidden states."""

    weights: Floats  # shape (n_units,), for hidden units that are not standardised
    bias: float  # infinite where all answers that the probe was fitted to had one label


def fit_probe(states: ArrayLike, correct: ArrayLike) -> Probe:
    """Fit a logistic regression with a ridge penalty on standardised hidden states.

    The fit minimises the sum of the answers' losses plus `PENALTY` / 2 times the sum of squared
    weights of the standardised units. `states` has shape
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


def probe_confidence(probe: Probe, states: ArrayLike) -> Floats:
    """Return the probability that each answer has the probe's label: shape (n_answers,)."""
    return expit(np.asarray(states, float) @ probe.weights + probe.bias)


def question_alone(rows: pd.DataFrame) -> list[str]:
    """Return the question of each answer, as a prompt that waits for the answer."""
    return [question_suffix(question) for question in rows["question"]]


def with_answer(rows: pd.DataFrame) -> list[str]:
    """Return the question of each answer, followed by the answer."""
    answered = zip(question_alone(rows), rows["answer"], strict=True)
    return [f"{question} {answer}" for question, answer in answered]


def choose_layer(states: States, label: ArrayLike, questions: ArrayLike) -> int:
    """Return the position of the layer with the best probe on held-out questions.

    Every fifth question is held out, with its answers at all checkpoints. The first layer with
    the lowest Brier score is chosen. `label` and `questions` are the label that the probe
    predicts and the question id of each answer.
    """
    ids, target = np.asarray(questions), np.asarray(label, float)
    held = np.isin(ids, pd.unique(ids)[HELD_OUT - 1 :: HELD_OUT])
    scores = []
    for layer in states:
        probe = fit_probe(layer[~held], target[~held])
        error = probe_confidence(probe, layer[held]) - target[held]
        scores.append(np.mean(error**2) if held.any() else 0.0)
    return int(np.argmin(scores))


def fit_at_layer(
    states: States, label: ArrayLike, questions: ArrayLike, estimator: str
) -> tuple[int, Probe]:
    """Return the position of the best layer in `states`, and the probe that is fitted to it.

    The error message names the `estimator`.
    """
    target = np.asarray(label, bool)
    if len(np.unique(target)) < 2:
        raise ValueError(
            f"estimators.{estimator} has nothing to learn: all {len(target)} answers to train "
            "questions have the same label; use other training checkpoints or more train "
            "questions, or drop it from study.estimators."
        )
    place = choose_layer(states, target, questions) if len(states) > 1 else 0
    return place, fit_probe(states[place], target)


def rate_with_probe(
    answers: pd.DataFrame, evidence: Evidence, label: ArrayLike, texts: Texts
) -> pd.Series:
    """Return the probability of a label for each answer, by one probe for all checkpoints.

    The probe is fitted on `evidence.labelled`; `label` has a value per row.
    """
    labelled, layer = evidence.labelled, evidence.layer
    train = _read_each(labelled, evidence, texts, layer)
    states = _in_order(labelled, train, evidence.estimator)
    place, probe = fit_at_layer(states, label, labelled["question_id"], evidence.estimator)
    if layer == "best":
        layer = place + 1
        log.info("%s reads layer %d of %d", evidence.estimator, layer, len(states))
    read = _read_each(answers, evidence, texts, layer)
    first = next(iter(train))
    _check_widths({first: train[first], **read}, evidence.estimator)
    rated = probe_confidence(probe, _in_order(answers, read, evidence.estimator)[0])
    return pd.Series(rated, answers.index)


def _read_each(
    rows: pd.DataFrame, evidence: Evidence, texts: Texts, layer: Layer
) -> dict[str, States]:
    """Return the hidden states of the answers of each checkpoint."""
    assert evidence.load is not None
    return {
        str(name): read_states(
            *evidence.load(str(name)), texts(group), layer, evidence.estimator
        )
        for name, group in rows.groupby("checkpoint", sort=False)
    }


def _in_order(rows: pd.DataFrame, read: dict[str, States], estimator: str) -> States:
    """Return the states of all checkpoints in the order of `rows`."""
    _check_widths(read, estimator)
    places = rows.groupby("checkpoint", sort=False).indices
    order = np.concatenate([places[name] for name in read])
    return np.concatenate(list(read.values()), axis=1)[:, np.argsort(order)]


def _check_widths(read: dict[str, States], estimator: str) -> None:
    (first, states), *rest = read.items()
    for name, others in rest:
        same_width = others.shape[2] == states.shape[2]
        axis, unit = (0, "layers") if same_width else (2, "hidden units")
        if others.shape[axis] not in (1, states.shape[axis]):
            raise ValueError(
                f"estimators.{estimator} fits one probe for all checkpoints, but {first} has "
                f"{states.shape[axis]} {unit} and {name} has {others.shape[axis]}; leave "
                f"one of them out, or drop {estimator} from study.estimators."
            )


def read_states(
    model: Any,  # noqa: ANN401
    tokenizer: Any,  # noqa: ANN401
    texts: Sequence[str],
    layer: Layer,
    estimator: str,
) -> States:
    """Return the hidden states at the end of each text, of one layer or of all layers.

    A layer is the number of a block, from 1; "best" reads all blocks, and None the middle one.
    The last block is read after the model's final norm.
    """
    n_layers = len(blocks(model))
    if isinstance(layer, int) and not 1 <= layer <= n_layers:
        raise ValueError(
            f"estimators.{estimator}.layer is {layer}, but {type(model).__name__} has layers 1 "
            f"to {n_layers}; give one of them, or best."
        )
    middle = max(1, n_layers // 2)
    kept = slice(None) if layer == "best" else [(layer or middle) - 1]
    tokens = tokenizer(list(texts))["input_ids"]
    batches = [tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH)]
    read = [last_hidden_states(model, batch)[kept].cpu().numpy() for batch in batches]
    return np.concatenate(read, axis=1)


def linear_probe(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the confidence of one probe, fitted on the train split of the earlier checkpoints.

    The probe reads the hidden state at the end of the question with its answer, at the
    estimator's layer or in the middle block.
    """
    return rate_with_probe(answers, evidence, evidence.labelled["correct"], with_answer)


def question_probe(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability that the checkpoint answers the question correctly.

    The probe reads the hidden state at the end of the question, before any answer, so it can
    only predict how difficult the question is for the checkpoint.

    Kadavath et al., "Language Models (Mostly) Know What They Know", 2022, arXiv:2207.05221:
    P(IK), with a linear classifier instead of a fine-tuned model.
    """
    return rate_with_probe(answers, evidence, evidence.labelled["correct"], question_alone)


def entropy_probe(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability that the semantic entropy of the question is low.

    The probe reads the hidden state at the end of the question with its answer. It is fitted
    to train questions, on the earlier checkpoints or on the checkpoint that it rates.

    Kossen et al., "Semantic Entropy Probes: Robust and Cheap Hallucination Detection in LLMs",
    2024, arXiv:2406.15927.
    """
    if evidence.fit_at == "training":
        low = _has_low_entropy(evidence.labelled, evidence)
        return rate_with_probe(answers, evidence, low, with_answer)

    def ask(rows: pd.DataFrame, model: Any, tokenizer: Any) -> ArrayLike:  # noqa: ANN401
        assert evidence.train is not None
        train = evidence.train[evidence.train["checkpoint"] == rows["checkpoint"].iloc[0]]
        settings = evidence.layer, evidence.estimator
        states = read_states(model, tokenizer, with_answer(train), *settings)
        low = _has_low_entropy(train, evidence)
        place, probe = fit_at_layer(states, low, train["question_id"], evidence.estimator)
        rated = read_states(model, tokenizer, with_answer(rows), *settings)[place]
        return probe_confidence(probe, rated)

    return rate_by_checkpoint(answers, evidence, ask)


def _has_low_entropy(answers: pd.DataFrame, evidence: Evidence) -> NDArray[np.bool_]:
    """Return whether the semantic entropy of each answer's question is at most `best_split`."""
    entropy = -np.log(semantic_entropy(answers, evidence).to_numpy(float))
    return entropy <= best_split(entropy)


def best_split(values: ArrayLike) -> float:
    """Return the greatest value of the lower of two groups with the least squared error.

    The error is the variance around the groups' means. The threshold of Kossen et al. has the
    same definition, on a grid of 100 values.

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
