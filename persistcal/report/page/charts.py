"""The data of the page's charts and explorer of questions, ready for JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import ABSENT, natural_key
from persistcal.questions.labels import LABELS
from persistcal.questions.question_list import truths_of
from persistcal.report import curves
from persistcal.report.layout import place_title
from persistcal.report.page.contents import Contents, Part, Texts
from persistcal.report.phrases import as_number

N_POINTS = 50  # points of a risk–coverage curve
# Questions x checkpoints x estimators on the page: 5,000 x 7 x 12. Above it, the
# explorer keeps the questions of contrast sets and a sample of the others.
MOST_CELLS = 420_000
LONGEST_TEXT = 1_000  # characters
MOST_CLUSTERS = 5
WAITING = "queue"  # the source of a label that a person has yet to give

Curve = list[list[float | None]]


def calibration(part: Part) -> list[list[dict[str, Any]]]:
    """Return, by estimator, a diagram and a histogram for each evaluation checkpoint.

    `points` of the curve are rows of (confidence, accuracy, lower, upper). `right` and `wrong`
    count answers in 20 equal bins, mean over seeds.
    """
    answers, diagrams = part.answers, list[list[dict[str, Any]]]()
    for runs in part.members.values():
        diagrams.append([])
        for k in range(len(answers.correct)):
            rated = answers.rate(k, runs)
            smece, points = curves.reliability_curve(rated)
            diagram = {
                "smece": round(smece, 4),
                "points": points.round(3).tolist(),
                "right": curves.histogram(rated.runs, rated.right).round(1).tolist(),
                "wrong": curves.histogram(rated.runs, ~rated.right).round(1).tolist(),
            }
            diagrams[-1].append(diagram)
    return diagrams


def shifts(part: Part) -> list[list[dict[str, list[list[float]]]]]:
    """Return, by estimator and pair, histograms of confidence before and after the change."""
    correct = part.answers.correct
    return [
        [
            {
                kind: [counts.round(1).tolist() for counts in ends]
                for kind, ends in curves.shifts(runs, correct, p.earlier, p.later).items()
            }
            for p in part.pairs
        ]
        for runs in part.members.values()
    ]


def risk_curves(part: Part) -> list[list[Curve]]:
    """Return, by estimator, the curves of the first and of the last checkpoint.

    A curve is rows of (coverage, risk), means over seeds.
    """
    ends = (0, -1) if len(part.answers.correct) > 1 else ()
    drawn: list[list[Curve]] = []
    for runs in part.members.values():
        drawn.append([])
        for k in ends:
            points = curves.mean_curve(part.answers.rate(k, runs))
            if len(points):
                kept = np.linspace(0, len(points) - 1, min(len(points), N_POINTS)).round()
                points = points[kept.astype(int)]
            drawn[-1].append([[as_number(value) for value in point] for point in points])
    return drawn


def threshold_curves(
    part: Part, ends: tuple[int, int], target: float | None
) -> list[dict[str, Any]]:
    """Return, by estimator, precision and coverage of thresholds at two checkpoints.

    `curves` are, by checkpoint, rows of (threshold, precision, coverage), means over seeds;
    precision is missing
    above fewer than ten answers. `certified` are ranges of thresholds, and `labels` rows of
    (number of labels, share of sheets that certify a threshold, coverage), at the later one,
    unless the confidence is the same for all questions.
    """
    answers, shown = part.answers, list[dict[str, Any]]()
    for runs in part.members.values():
        drawn = [curves.threshold_curve(answers.rate(k, runs)) for k in ends]
        rows = [[[as_number(v) for v in row] for row in curve] for curve in drawn]
        shown.append({"curves": rows, "certified": [], "labels": [], "enough": None})
        if target is not None and np.nanstd(runs[0][ends[1]]) > 0:
            settings = replace(part.subject.settings, precision=target)
            curve = curves.label_curve(answers, runs, ends[1], settings)
            columns = curve[["n_labels", "certified", "coverage"]].to_numpy(float)
            shown[-1] |= {
                "certified": curves.certified_ranges(answers, runs, ends[1], settings),
                "labels": [[as_number(v) for v in row] for row in columns],
                "enough": curves.labels_that_certify(curve),
            }
    return shown


def flows(correct: NDArray[np.int8]) -> list[dict[str, int]]:
    """Count questions that neighbouring checkpoints answered: correct at both, at one, at none.

    Examples
    --------
    >>> flows(np.array([[1, 0, 0, 1, 0, -1], [1, 1, 1, 0, 0, 1]], np.int8))
    [{'kept': 1, 'gained': 2, 'lost': 1, 'unknown': 1}]
    """
    return [
        {name: int(mask.sum()) for name, mask in curves.changes(*ends).items()}
        for ends in pairwise(correct)
    ]


def analyses(study: Contents) -> dict[str, list[dict[str, Any]]]:
    """Return the data of each analysis."""
    labels, made = study.labels, study.made
    place = ["model", "dataset"]

    def named(model: str, names: Sequence[str]) -> list[str]:
        stages = study.stages.get(model, {})
        # A training set can contain several checkpoints.
        return [
            " + ".join(stages[c].label if c in stages else c for c in name.split("+"))
            for name in names
        ]

    def matrix(
        values: Mapping[Any, float], rows: Sequence[str], columns: Sequence[str]
    ) -> Curve:
        return [[as_number(values.get((r, c), np.nan)) for c in columns] for r in rows]

    transfer, similarity, variance = [], [], []
    for key, group in made.transfer.groupby([*place, "recipe"], sort=False):
        *names, recipe = map(str, key)
        title = study.shown.recipes.get(recipe, recipe)
        rows, columns = (list(group[name].unique()) for name in ("trained_on", "checkpoint"))
        auc = group.set_index(["trained_on", "checkpoint"])["auc"].to_dict()
        transfer.append(
            {
                "title": f"{title} ({place_title(names, labels, ' · ')})",
                "rows": named(names[0], rows),
                "columns": named(names[0], columns),
                "values": matrix(auc, rows, columns),
            }
        )
    for name, group in made.similarity.groupby("model", sort=False):
        model = str(name)
        states = list(dict.fromkeys([*group["earlier"], *group["later"]]))
        cosines = dict.fromkeys(((a, a) for a in states), 1.0)
        cells = group[["earlier", "later", "cosine"]].itertuples(index=False, name=None)
        for one, other, cosine in cells:
            cosines |= {(one, other): cosine, (other, one): cosine}
        similarity.append(
            {
                "title": labels["models"].get(model, model),
                "names": named(model, states),
                "values": matrix(cosines, states, states),
            }
        )

    def records(rows: pd.DataFrame) -> list[dict[Any, Any]]:
        return [
            {name: as_number(v) if isinstance(v, float) else v for name, v in row.items()}
            for row in rows.to_dict("records")
        ]

    for key, group in made.variance.dropna(subset="mean_rho").groupby(place, sort=False):
        rows_of = records(group[["layer", "mean_rho", "median_rho", "n"]])
        variance.append({"title": place_title(key, labels, " · "), "rows": rows_of})
    defined = made.headroom.dropna(subset=["headroom", "lower_2_5pct"])
    ends = {"headroom": "value", "lower_2_5pct": "lower", "upper_97_5pct": "upper"}
    measured = records(defined.rename(columns=ends)[[*ends.values(), "error_rate", "n"]])
    places = defined[place].itertuples(index=False, name=None)
    headroom = [
        {"label": place_title(at, labels, " · "), **row}
        for at, row in zip(places, measured, strict=True)
    ]
    return {
        "transfer": transfer,
        "similarity": similarity,
        "variance": variance,
        "headroom": headroom,
    }


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
    picked = []
    for part in parts:
        n = len(part.answers.questions)
        rng = np.random.default_rng(seed)
        contrast = np.zeros(n, bool)
        for pair in part.pairs:
            contrast[pair.questions] = True
        first, rest = (rng.permutation(np.flatnonzero(c)) for c in (contrast, ~contrast))
        sample = np.concatenate([first, rest])[: math.floor(share * n)]
        names = [natural_key(part.answers.questions[place]) for place in sample]
        picked.append(sample[sorted(range(len(sample)), key=names.__getitem__)])
    return picked


def _number_of(text: str, words: dict[str, int]) -> int:
    """Return the number of `text` in `words`, where a new one is added; long ones are cut."""
    if len(text) > LONGEST_TEXT:
        left_out = len(text) - LONGEST_TEXT
        text = f"{text[:LONGEST_TEXT]} … [{left_out:,} more characters are not shown]"
    return words.setdefault(text, len(words))


def pack(part: Part, rows: NDArray[np.intp], words: dict[str, int]) -> dict[str, Any]:
    """Return the explorer's columns of one part at the `rows` positions, ready for JSON.

    `correct` is per checkpoint a text of 1, 0 and - (no answer), `confidence` by estimator and
    evaluation checkpoint in thousandths, mean over seeds, -1 where it is missing. Texts are
    numbers of `words`; `truths` are a checkpoint's own references, if it has any.
    """
    answers = part.answers
    ids = [str(question) for question in answers.questions[rows]]
    packed: dict[str, Any] = {
        "ids": ids,
        "correct": [
            "".join("-" if c == ABSENT else str(c) for c in row[rows]) for row in part.correct
        ],
        "confidence": [
            _thousandths(np.mean(runs, axis=0)[:, rows]) for runs in part.members.values()
        ],
    }
    if part.texts is not None:
        packed |= _texts(part.texts, ids, part.checkpoints, words)
    if part.slices:
        packed["category"] = [_number_of(part.slices[i], words) for i in rows]
    return packed


def _thousandths(shares: NDArray[np.float64]) -> list[Any]:
    return np.nan_to_num(np.round(1000 * shares), nan=-1).astype(int).tolist()


def _texts(
    texts: Texts, ids: Sequence[str], checkpoints: Sequence[str], words: dict[str, int]
) -> dict[str, Any]:
    rows = texts.questions.set_index("question_id").loc[list(ids)]
    columns: dict[str, Any] = {
        name: [_number_of(text, words) for text in rows[name]]
        for name in ("question", "category")
    }
    columns["references"] = [
        [_number_of(t, words) for t in references] for references in rows["references"]
    ]
    truths = truths_of(texts.questions)
    columns["truths"] = [
        [[_number_of(text, words) for text in truths.get(q, {}).get(c, [])] for q in ids]
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
    clusters: pd.DataFrame, labels: pd.DataFrame, ids: Sequence[str], words: dict[str, int]
) -> dict[str, list[int]]:
    """Flatten the most probable clusters of each question.

    Each cluster has an `answer` (the number of a text), a `probability` in thousandths and a
    `label`: the position in LABELS, -1 if it is not judged, -2 if it waits for a person. `n`
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
        "answer": [_number_of(text, words) for text in top["answer"]],
        "probability": _thousandths(top["probability"].to_numpy()),
        "label": codes.mask(top["source"] == WAITING, -2).astype(int).tolist(),
    }
