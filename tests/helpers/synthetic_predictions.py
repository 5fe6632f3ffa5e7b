"""Predictions that several tests share: latent knowledge that grows and is also lost."""

import numpy as np
import pandas as pd

CHECKPOINTS = ["a", "b", "c"]


def table(rows, **columns):
    """Predictions from (checkpoint, question, confidence, correct)."""
    frame = pd.DataFrame(rows, columns=["checkpoint", "question_id", "confidence", "correct"])
    defaults = {"train_dataset": "quiz", "estimator": "e", "seed": 0}
    return frame.assign(**(defaults | columns))


def table_of_arrays(confidence, correct, **columns):
    """Predictions about q000, q001 …, from an array of each kind per checkpoint."""
    return table(
        [
            (checkpoint, f"q{number:03}", *answer)
            for checkpoint, stated in confidence.items()
            for number, answer in enumerate(zip(stated, correct[checkpoint], strict=True))
        ],
        **columns,
    )


def make_predictions(n=300, seed=0, absent=()):
    """Four estimators at three checkpoints; `learnt` has three seeds, `coarse` many ties.

    Question positions in `absent` have no answer at checkpoint b.
    """
    rng = np.random.default_rng(seed)
    knowledge = rng.normal(size=n) * 1.5
    noise = {"learnt": 0.5, "own": 1.0}
    frames = []
    for k, checkpoint in enumerate(CHECKPOINTS):
        logit = knowledge + 0.5 * k + rng.normal(size=n)
        correct = rng.random(n) < 1 / (1 + np.exp(-2 * logit))
        answered = np.ones(n, bool)
        if checkpoint == "b":
            answered[list(absent)] = False
        confidences = {("learnt", 17 + s): None for s in range(3)} | {("own", 0): None}
        for estimator, s in confidences:
            felt = logit + noise[estimator] * rng.normal(size=n)
            confidences[estimator, s] = 1 / (1 + np.exp(-felt))
        confidences["coarse", 0] = np.round(confidences["own", 0], 1)
        confidences["end_correct", 0] = np.full(n, k / 2)
        for (estimator, s), confidence in confidences.items():
            ids = [f"q{i:04d}" for i in range(n)]
            columns = {"question_id": ids, "confidence": confidence, "correct": correct}
            subject = {
                "checkpoint": checkpoint,
                "train_dataset": "quiz",
                "estimator": estimator,
            }
            frames.append(pd.DataFrame(columns).assign(**subject, seed=s)[answered])
    return pd.concat(frames, ignore_index=True)
