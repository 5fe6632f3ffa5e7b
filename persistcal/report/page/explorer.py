"""The data behind the page's explorer: every question, answer and confidence, packed."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import ABSENT
from persistcal.questions.labels import LABELS
from persistcal.questions.question_list import truths_of
from persistcal.report.page.contents import Part, Texts

# Questions x checkpoints x estimators on the page: 5,000 x 7 x 12. Above it, the
# explorer keeps the questions of contrast sets and a sample of the others.
MOST_CELLS = 420_000
LONGEST_TEXT = 1_000  # characters
MOST_CLUSTERS = 5
WAITING = "queue"  # the source of a label that a person has yet to give


def choose_questions(
    parts: Sequence[Part], *, seed: int, most_cells: int = MOST_CELLS
) -> list[NDArray[np.intp]]:
    """Return, per part, the positions of the questions in the explorer, sorted by id.

    If the study has more than `most_cells` questions × checkpoints × estimators, every part
    keeps the same share of its questions. Questions of contrast sets are kept first, and the
    remaining room is filled with a random sample.
    """
    cells = [
        len(part.answers.questions) * len(part.checkpoints) * len(part.members)
        for part in parts
    ]
    share = min(1.0, most_cells / max(1, sum(cells)))
    chosen = []
    for part in parts:
        n = len(part.answers.questions)
        rng = np.random.default_rng(seed)
        contrast = np.zeros(n, bool)
        for pair in part.pairs:
            contrast[pair.questions] = True
        first, rest = (rng.permutation(np.flatnonzero(c)) for c in (contrast, ~contrast))
        sample = np.concatenate([first, rest])[: math.floor(share * n)]
        names = [_natural(part.answers.questions[place]) for place in sample]
        chosen.append(sample[sorted(range(len(sample)), key=names.__getitem__)])
    return chosen


def _natural(name: str) -> tuple[list[Any], str]:
    """Return a key that sorts names by the numbers in them: q9 before q10."""
    parts: list[Any] = re.split(r"(\d+)", str(name))
    # Without leading zeros, the number with more digits is larger.
    parts[1::2] = [(len(digits), digits) for digits in (p.lstrip("0") for p in parts[1::2])]
    return parts, str(name)


class Words:
    """The distinct texts of the page, each with a number."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        """The texts, in the order of their numbers."""
        return list(self._places)

    def place(self, text: str) -> int:
        """Return the number of `text`, shortened if it is long."""
        if len(text) > LONGEST_TEXT:
            left_out = len(text) - LONGEST_TEXT
            text = f"{text[:LONGEST_TEXT]} … [{left_out:,} more characters are not shown]"
        return self._places.setdefault(text, len(self._places))


def pack(part: Part, chosen: NDArray[np.intp], words: Words) -> dict[str, Any]:
    """Return the explorer's columns of one part at the `chosen` positions, ready for JSON.

    `correct` is per checkpoint a text of 1, 0 and - (no answer), `confidence` by estimator and
    evaluation checkpoint in thousandths, mean over seeds, -1 where it is missing. Texts are
    numbers of `words`; `truths` are a checkpoint's own references, if it has any.
    """
    answers = part.answers
    ids = [str(question) for question in answers.questions[chosen]]
    packed: dict[str, Any] = {
        "ids": ids,
        "correct": [
            "".join("-" if c == ABSENT else str(c) for c in row[chosen]) for row in part.correct
        ],
        "confidence": [
            [_thousandths(row) for row in np.mean(runs, axis=0)[:, chosen]]
            for runs in part.members.values()
        ],
    }
    if part.texts is not None:
        packed |= _texts(part.texts, ids, part.checkpoints, words)
    return packed


def _thousandths(confidence: NDArray[np.float64]) -> list[int]:
    return np.where(np.isnan(confidence), -1, np.round(1000 * confidence)).astype(int).tolist()


def _texts(
    texts: Texts, ids: Sequence[str], checkpoints: Sequence[str], words: Words
) -> dict[str, Any]:
    asked = texts.questions.set_index("question_id").loc[list(ids)]
    columns: dict[str, Any] = {
        name: [words.place(text) for text in asked[name]] for name in ("question", "category")
    }
    columns["references"] = [
        [words.place(t) for t in references] for references in asked["references"]
    ]
    truths = truths_of(texts.questions)
    columns["truths"] = [
        [[words.place(text) for text in truths.get(q, {}).get(c, [])] for q in ids]
        if any(c in truths.get(q, {}) for q in ids)
        else None
        for c in checkpoints
    ]
    columns["clusters"] = [
        _clusters(texts.clusters[c], texts.labels[c], ids, words)
        if c in texts.clusters and c in texts.labels
        else None
        for c in checkpoints
    ]
    return columns


def _clusters(
    clusters: pd.DataFrame, labels: pd.DataFrame, ids: Sequence[str], words: Words
) -> dict[str, list[int]]:
    """Flatten the most probable clusters of each question.

    Each cluster has an `answer` (the number of a text), a `probability` in thousandths and a
    `label`: its position in LABELS, -1 if it is not judged, -2 if it waits for a person. `n`
    counts the clusters of each question, and `more` the clusters that are left out.
    """
    rows = clusters.merge(labels, on=["question_id", "cluster"], how="left")
    rows = rows.assign(place=pd.Index(ids).get_indexer(pd.Index(rows["question_id"])))
    rows = rows[rows["place"] >= 0].sort_values(["place", "cluster"])
    n = np.bincount(rows["place"], minlength=len(ids))
    top = rows[rows.groupby("place").cumcount() < MOST_CLUSTERS]
    codes = top["label"].map({label: place for place, label in enumerate(LABELS)}).fillna(-1)
    return {
        "n": np.minimum(n, MOST_CLUSTERS).tolist(),
        "more": np.maximum(0, n - MOST_CLUSTERS).tolist(),
        "answer": [words.place(text) for text in top["answer"]],
        "probability": _thousandths(top["probability"].to_numpy()),
        "label": codes.mask(top["source"] == WAITING, -2).astype(int).tolist(),
    }
