"""Training data of adapters: the answers and the learning rate of each step."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.models.prompts import confidence_prompt
from persistcal.questions.question_list import asked_by


def learning_rate(step: int, n_steps: int, peak: float) -> float:
    """Return the learning rate of step `step` of ``0 ... n_steps - 1``.

    The rate is constant for the first 80 % of steps. Then it follows half a cosine, which
    starts at the peak and would reach 10 % of the peak one step after the last.

    The last two of ten steps belong to the cosine, at its start and half way:

    >>> [round(learning_rate(step, 10, 1.0), 3) for step in (0, 7, 8, 9)]
    [1.0, 1.0, 1.0, 0.55]
    """
    constant = -(-4 * n_steps // 5)
    if step < constant:
        return peak
    decayed = (step - constant) / (n_steps - constant)
    return peak * (0.1 + 0.9 * (1 + math.cos(math.pi * decayed)) / 2)


def question_batches(
    question_ids: Sequence[str],
    answered: Container[str],
    *,
    seed: int,
    epochs: int,
    batch_size: int,
) -> list[list[str]]:
    """Return the questions of every step, epoch after epoch.

    Epoch e shuffles all `question_ids`, in canonical order, with a permutation that depends
    only on ``seed + e``, so recipes and checkpoint sets have the same order of questions.
    Questions that are not `answered` are left out after shuffling, which keeps the order of the
    others. The last batch of an epoch can be smaller.

    >>> ids = ["a", "b", "c", "d", "e"]
    >>> question_batches(ids, ids, seed=17, epochs=1, batch_size=2)
    [['e', 'a'], ['c', 'b'], ['d']]
    >>> question_batches(ids, {"a", "b", "c", "d"}, seed=17, epochs=1, batch_size=2)
    [['a', 'c'], ['b', 'd']]
    """
    batches = []
    for epoch in range(epochs):
        order = np.random.default_rng(seed + epoch).permutation(len(question_ids))
        visited = [question_ids[i] for i in order if question_ids[i] in answered]
        batches += [
            visited[start : start + batch_size] for start in range(0, len(visited), batch_size)
        ]
    return batches


@dataclass(frozen=True)
class Plan:
    """Training data of a recipe's adapters, and the training checkpoints they share."""

    checkpoints: list[str]  # trained on jointly, in order of training
    sources: list[str]  # checkpoints with the learnt answers, in order of training
    data: str  # and labels: see `recipe_data`
    labels: str
    n_answers: int  # see `training_questions`
    prompt: str  # confidence prompt with ``{question}`` and ``{answer}``

    def read(
        self, questions: pd.DataFrame, clusters: pd.DataFrame, labels: pd.DataFrame
    ) -> list["AskedAlike"]:
        """Return the data sources with the questions of the training checkpoints.

        The rows of CLUSTERS and LABELS name their source.
        """

        def asked(name: str | None) -> dict[str, Questions]:
            return {
                source: training_questions(
                    asked_by(questions, name),
                    clusters[clusters["checkpoint"] == source],
                    labels[labels["checkpoint"] == source],
                    template=self.prompt,
                    n_answers=self.n_answers,
                )
                for source in self.sources
            }

        checkpoints = set(questions.get("checkpoint", ()))
        groups: dict[str | None, list[str]] = {}
        for name in self.checkpoints:
            groups.setdefault(name if name in checkpoints else None, []).append(name)
        return [AskedAlike(names, asked(name)) for name, names in groups.items()]


class TrainingQuestion(NamedTuple):
    """The candidate answers of one question, ready to train on."""

    prompts: tuple[str, ...]  # one confidence prompt per candidate
    # Share of each in the question's loss; they sum to one where every source has an answer.
    weights: tuple[float, ...]
    labels: tuple[float, ...]  # 1 for a correct candidate, 0 for another


Questions = dict[str, TrainingQuestion]  # by question_id, in canonical order


class AskedAlike(NamedTuple):
    """Training checkpoints with the same questions, and their data sources."""

    checkpoints: list[str]
    sources: dict[str, Questions]


def training_ids(questions: pd.DataFrame) -> list[str]:
    """Return the ids of the train split in canonical order, without excluded questions."""
    rows = questions[(questions["split"] == "train") & ~questions["excluded"].astype(bool)]
    return rows.sort_values("index")["question_id"].tolist()


def training_questions(
    questions: pd.DataFrame,
    clusters: pd.DataFrame,
    labels: pd.DataFrame,
    *,
    template: str,
    n_answers: int,
) -> Questions:
    """Return the questions of the train split that have an answer, of one data source.

    Learnt from are the most probable clusters of each question, `n_answers` at most, with
    weights proportional to their probabilities.
    """
    text = questions.set_index("question_id")["question"]
    top = clusters[clusters["cluster"] < n_answers].merge(
        labels[["question_id", "cluster", "label"]], on=["question_id", "cluster"], how="left"
    )
    by_question = dict(list(top.sort_values("cluster").groupby("question_id")))
    learnt = {}
    for question_id in training_ids(questions):
        if question_id not in by_question:
            continue
        candidates = by_question[question_id]
        if candidates["label"].isna().any():
            raise ValueError(
                f"Question {question_id!r}: a candidate answer has no label; run judge_answers "
                "again on these clusters."
            )
        probability = candidates["probability"].to_numpy(float)
        if not probability.sum() > 0:
            raise ValueError(
                f"Question {question_id!r}: its candidate answers have probability 0, so they "
                "cannot be weighted; use decoding.weighting 'softmax'."
            )
        learnt[question_id] = TrainingQuestion(
            tuple(
                confidence_prompt(template, text[question_id], a) for a in candidates["answer"]
            ),
            tuple((probability / probability.sum()).tolist()),
            tuple((candidates["label"] == "correct").astype(float).tolist()),
        )
    return learnt


def pool_sources(sources: Sequence[Questions]) -> Questions:
    """Return the mean of several data sources.

    Each counts ``1 / n_sources``, also for a question that some lack. A candidate that
    several share with the same label becomes one, to save a forward pass.
    """
    shares: dict[str, dict[tuple[str, float], float]] = {}
    for source in sources:
        for question_id, (prompts, weights, labels) in source.items():
            merged = shares.setdefault(question_id, {})
            for prompt, weight, label in zip(prompts, weights, labels, strict=True):
                key = (prompt, label)
                merged[key] = merged.get(key, 0.0) + weight / len(sources)
    return {
        question_id: TrainingQuestion(
            tuple(prompt for prompt, _ in merged),
            tuple(merged.values()),
            tuple(label for _, label in merged),
        )
        for question_id, merged in shares.items()
    }


def randomise_labels(source: Questions, *, checkpoint: str, seed: int) -> Questions:
    """Return `source` with independent fair coin flips as labels."""
    n = sum(len(question.labels) for question in source.values())
    rng = np.random.default_rng([seed, *checkpoint.encode()])
    flips = iter(rng.integers(0, 2, n).astype(float).tolist())
    return {
        question_id: question._replace(labels=tuple(next(flips) for _ in question.labels))
        for question_id, question in source.items()
    }


def recipe_data(
    sources: Mapping[str, Questions],
    checkpoints: Sequence[str],
    *,
    data: str,
    labels: str,
    seed: int,
) -> dict[str, Questions]:
    """Return the questions that each of the `checkpoints`, in order of training, sees.

    With the data "own" a checkpoint sees its own answers, with "first" all see the first
    source's, and with "pooled" all sources' answers. The labels "random_later" are coin flips
    for the last checkpoint, instead of "judged".
    """
    if data == "own":
        if missing := [name for name in checkpoints if name not in sources]:
            raise ValueError(
                f"Checkpoint {missing[0]!r} has no answers of its own to train on."
            )
        seen = {name: sources[name] for name in checkpoints}
    elif data == "first":
        seen = dict.fromkeys(checkpoints, next(iter(sources.values())))
    elif data == "pooled":
        seen = dict.fromkeys(checkpoints, pool_sources(list(sources.values())))
    else:
        raise ValueError(f"A recipe's data must be own, first or pooled, not {data!r}.")
    if labels == "random_later":
        later = checkpoints[-1]
        seen[later] = randomise_labels(seen[later], checkpoint=later, seed=seed)
    elif labels != "judged":
        raise ValueError(f"A recipe's labels must be judged or random_later, not {labels!r}.")
    return seen
