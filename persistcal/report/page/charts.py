"""The data of the page's charts: confidences of each part, and the study's analyses."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.draws import component
from persistcal.evaluation.evaluate import count_once, on_contrast_set
from persistcal.evaluation.metrics import CONTRAST_METRICS, compute
from persistcal.evaluation.predictions import ABSENT
from persistcal.evaluation.reliability import bootstrap_counts, reliability
from persistcal.report.page.contents import Contents, Part, title_of
from persistcal.report.page.tables import as_number
from persistcal.report.threshold_views import mean_curve

N_BINS = 20
N_REPLICATES = 200
N_POINTS = 50  # of a risk–coverage curve
# Minimum support of a curve; with less, it shows the noise of one or two answers.
LEAST_SUPPORT = 3.0
Naming = Callable[[str], str]  # display names of the checkpoints of a model


def calibration(part: Part, *, seed: int) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return by (train_dataset, estimator) a diagram and a histogram per evaluation checkpoint.

    `points` of the curve are rows of (confidence, accuracy, lower, upper); `right` and `wrong`
    count answers in 20 equal bins, mean over seeds. All estimators share the replicates.
    """
    counts = [
        bootstrap_counts(int((row != ABSENT).sum()), n_replicates=N_REPLICATES, seed=seed)
        for row in part.answers.correct
    ]
    diagrams: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for member, runs in part.members.items():
        diagrams[member] = []
        for k, row in enumerate(part.answers.correct):
            answered = row != ABSENT
            correct = row[answered].astype(float)
            stated = [run[k, answered] for run in runs]
            diagrams[member].append(
                {
                    **_diagram(stated, correct, counts[k]),
                    "right": _histogram(stated, correct == 1),
                    "wrong": _histogram(stated, correct == 0),
                }
            )
    return diagrams


def risk_curves(part: Part) -> dict[tuple[str, str], list[list[list[float | None]]]]:
    """Return by (train_dataset, estimator) the curves of the first and the last checkpoint.

    A curve is rows of (coverage, risk), means over seeds.
    """
    ends = (0, -1) if len(part.answers.correct) > 1 else ()
    curves: dict[tuple[str, str], list[list[list[float | None]]]] = {}
    for member, runs in part.members.items():
        curves[member] = []
        for k in ends:
            points = np.column_stack(mean_curve([r[k] for r in runs], part.answers.correct[k]))
            if len(points):
                kept = np.linspace(0, len(points) - 1, min(len(points), N_POINTS)).round()
                points = points[kept.astype(int)]
            curves[member].append([[as_number(x) for x in point] for point in points])
    return curves


def _diagram(
    runs: Sequence[NDArray[np.float64]],
    correct: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> dict[str, Any]:
    drawn = reliability(runs, correct, counts=counts)
    # Not beyond the confidences that were given, nor where hardly any are.
    stated, step = np.concatenate(runs), 0.51 / (len(drawn.confidence) - 1)
    clipped = np.clip(drawn.confidence, stated.min() - step, stated.max() + step)
    supported = (drawn.support >= LEAST_SUPPORT) & (clipped == drawn.confidence)
    columns = (drawn.confidence, drawn.accuracy, drawn.lower, drawn.upper)
    points = np.column_stack(columns)[supported].round(3)
    return {"smece": round(drawn.smece, 4), "points": points.tolist()}


def _histogram(runs: Sequence[NDArray[np.float64]], mask: NDArray[np.bool_]) -> list[float]:
    total = sum(np.histogram(run[mask], bins=N_BINS, range=(0, 1))[0] for run in runs)
    return (np.asarray(total) / len(runs)).round(1).tolist()


def flows(correct: NDArray[np.int8]) -> list[dict[str, int]]:
    """Count questions that neighbouring checkpoints answered: correct at both, at one, at none.

    Examples
    --------
    >>> flows(np.array([[1, 0, 0, 1, 0, -1], [1, 1, 1, 0, 0, 1]], np.int8))
    [{'kept': 1, 'gained': 2, 'lost': 1, 'unknown': 1}]
    """
    gathered = []
    for earlier, later in pairwise(correct):
        answered = (earlier != ABSENT) & (later != ABSENT)
        was_correct, is_correct = earlier[answered] == 1, later[answered] == 1
        counts = {
            "kept": was_correct & is_correct,
            "gained": ~was_correct & is_correct,
            "lost": was_correct & ~is_correct,
        }
        counts["unknown"] = ~was_correct & ~is_correct
        gathered.append({name: int(members.sum()) for name, members in counts.items()})
    return gathered


def pair_metrics(part: Part) -> dict[tuple[str, str], list[dict[str, float | None]]]:
    """Return by (train_dataset, estimator) the metrics of each contrast set, small ones too.

    Δ₀ᵇ, change AUC and contrast AUC are means over seeds, and None where undefined.
    """
    return {
        member: [_on_pair(runs, pair) for pair in part.pairs]
        for member, runs in part.members.items()
    }


def _on_pair(runs: Sequence[NDArray[np.float64]], pair: ContrastSet) -> dict[str, float | None]:
    metrics = {
        name: CONTRAST_METRICS[name] for name in ("delta0_balanced", "change_auc", "auc")
    }
    if len(np.unique(pair.improvement)) < 2:
        return dict.fromkeys(metrics)
    part = component(pair.questions, pair.improvement)
    conditioned = [on_contrast_set(run, pair, part, "odds") for run in runs]
    values = compute(metrics, conditioned, count_once(part))
    return {name: round(float(of_runs.mean()), 4) for name, of_runs in values.items()}


def analyses(study: Contents) -> dict[str, list[dict[str, Any]]]:
    """Return the data of each analysis."""
    labels, recipes = study.labels, study.shown.recipes

    def naming(model: str) -> Naming:
        stages = study.stages.get(model, {})
        # A training set can contain several checkpoints.
        return lambda name: " + ".join(
            stages[c].label if c in stages else c for c in name.split("+")
        )

    transfer, similarity, variance = [], [], []
    keys = ["model", "dataset", "recipe"]
    for key, group in study.made.transfer.groupby(keys, sort=False):
        model, dataset, recipe = map(str, key)
        title = f"{recipes.get(recipe, recipe)} ({title_of(model, dataset, labels)})"
        transfer.append({"title": title, **_matrix(group, naming(model))})
    for name, group in study.made.similarity.groupby("model", sort=False):
        model = str(name)
        title = labels["models"].get(model, model)
        similarity.append({"title": title, **_symmetric(group, naming(model))})
    for key, group in study.made.variance.groupby(keys[:2], sort=False):
        model, dataset = map(str, key)
        rows = [
            {
                "layer": int(row["layer"]),
                "mean_rho": as_number(row["mean_rho"]),
                "median_rho": as_number(row["median_rho"]),
                "n": int(row["n"]),
            }
            for row in group.dropna(subset="mean_rho").to_dict("records")
        ]
        if rows:
            variance.append({"title": title_of(model, dataset, labels), "rows": rows})
    defined = study.made.headroom.dropna(subset=["headroom", "lower_2_5pct"])
    headroom = [
        {
            "label": title_of(row["model"], row["dataset"], labels),
            "value": as_number(row["headroom"]),
            "lower": as_number(row["lower_2_5pct"]),
            "upper": as_number(row["upper_97_5pct"]),
            "error_rate": as_number(row["error_rate"]),
            "n": int(row["n"]),
        }
        for row in defined.to_dict("records")
    ]
    return {
        "transfer": transfer,
        "similarity": similarity,
        "variance": variance,
        "headroom": headroom,
    }


def _matrix(group: pd.DataFrame, named: Naming) -> dict[str, Any]:
    """Return AUCs by training set and checkpoint."""
    rows, columns = (list(group[name].unique()) for name in ("trained_on", "checkpoint"))
    cells = group[["trained_on", "checkpoint", "auc"]].itertuples(index=False, name=None)
    cells_by_position = {(row, column): as_number(auc) for row, column, auc in cells}
    return {
        "rows": [named(name) for name in rows],
        "columns": [named(name) for name in columns],
        "values": [[cells_by_position.get((r, c)) for c in columns] for r in rows],
    }


def _symmetric(group: pd.DataFrame, named: Naming) -> dict[str, Any]:
    """Return cosines of each two checkpoints."""
    names = list(dict.fromkeys([*group["earlier"], *group["later"]]))
    cells = group[["earlier", "later", "cosine"]].itertuples(index=False, name=None)
    cells_by_pair = {(first, second): as_number(cosine) for first, second, cosine in cells}
    return {
        "names": [named(name) for name in names],
        "values": [
            [
                1.0 if a == b else cells_by_pair.get((a, b), cells_by_pair.get((b, a)))
                for b in names
            ]
            for a in names
        ],
    }
