"""Metrics of named kinds of change, and their differences from a control."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.contrast import (
    ContrastSet,
    choose_pairs,
    contrast_sets,
    control_model,
)
from persistcal.evaluation.predictions import AnswerArrays, arrange
from persistcal.evaluation.proportions import compare_replicates
from persistcal.evaluation.replicates import Replicates, replicate_metrics
from persistcal.evaluation.significance import intervals, recipe_interval
from persistcal.store.artifacts import CHANGES, empty

log = logging.getLogger(__name__)

SEP = "\x1f"  # between a model and its checkpoint, in no name
MEMBER = ["train_dataset", "estimator"]
ABOVE = [
    "above_control",
    "above_lower_2_5pct",
    "above_upper_97_5pct",
    "above_seeds_lower_2_5pct",
    "above_seeds_upper_97_5pct",
]
OF_CHANGES = ("delta0_balanced", "change_auc", "auc")  # the metrics of a kind of change


class Kind(NamedTuple):
    """A named kind of change of one model."""

    model: str
    change: str


def metrics_of_changes(
    predictions: pd.DataFrame,
    checkpoints: Mapping[str, Sequence[str]],
    changes: Mapping[str, Sequence[Sequence[str]]],
    *,
    controls: Mapping[str, str],
    min_direction: int,
    n_replicates: int,
    seed: int,
) -> pd.DataFrame:
    """Return Δ₀ᵇ, change AUC and contrast AUC (by odds) of each kind of change, with intervals.

    Parameters
    ----------
    predictions : DataFrame
        Of one dataset, with the column `model`.
    checkpoints : mapping of str to sequence of str
        Evaluation checkpoints of each model, in order.
    changes : mapping of str to sequence of (str, str)
        Pairs of checkpoints, the earlier one first, by the kind of change between them.
        Kinds without a pair among a model's checkpoints are skipped.
    controls : mapping of str to str
        The control of each kind, in the same model or else in the only other model that has it.

    Returns
    -------
    DataFrame
        Columns of the table CHANGES but for the dataset. Contrast sets count whatever their
        size; if all of a kind are empty, its metrics are NaN. `lost_before` and `lost_after`
        are mean confidences in the answers to lost questions: the earlier checkpoint's answers,
        which are right, and the later checkpoint's. `above_control` is the value minus the
        value of the control; its interval uses the same replicates of questions and the same
        seeds. `above_control` is NaN if a pair of the change or of its control has fewer than
        `min_direction` gained or lost questions.
    """
    named = predictions.assign(
        checkpoint=predictions["model"] + SEP + predictions["checkpoint"]
    )
    order = [f"{model}{SEP}{name}" for model, names in checkpoints.items() for name in names]
    kinds = {
        Kind(model, change): pairs
        for model in predictions["model"].unique()
        for change, listed in changes.items()
        if (pairs := _pairs_in(model, checkpoints[model], listed))
    }
    settings = _How(named, order, min_direction, n_replicates, seed)
    tables = []
    for kind, pairs in kinds.items():
        control = _control(kind, controls.get(kind.change, ""), kinds)
        control_pairs = kinds[control] if control else []
        drawn, sets, answers = settings.draw(pairs, also_answered=control_pairs)
        rows = _of_changes(intervals(drawn))
        size = sum(len(contrast.questions) for contrast in sets)
        gained = int(sum(contrast.improvement.sum() for contrast in sets))
        counts = {"questions": size, "improvement": gained, "regression": size - gained}
        rows = rows.merge(_in_lost_answers(answers, sets), how="left")
        above = pd.DataFrame(columns=[*MEMBER, "metric", *ABOVE])
        if control:
            control_drawn, control_sets, _ = settings.draw(control_pairs, also_answered=pairs)
            if all(min(_flips(pair)) >= min_direction for pair in (*sets, *control_sets)):
                above = _above(drawn, control_drawn)
        rows = rows.merge(above.astype(dict.fromkeys(ABOVE, float)), how="left")
        labels = {**kind._asdict(), "control": control.change if control else ""}
        labels["control_model"] = control.model if control else ""
        tables.append(rows.assign(**labels, n_pairs=len(sets), **counts))
    kept = CHANGES.but("dataset")
    return pd.concat(tables)[kept] if tables else empty(CHANGES)[kept]


class _How(NamedTuple):
    """Predictions and settings that the replicates of all kinds of change share."""

    predictions: pd.DataFrame
    order: Sequence[str]
    min_direction: int
    n_replicates: int
    seed: int

    def draw(
        self, pairs: Sequence[Sequence[str]], *, also_answered: Sequence[Sequence[str]]
    ) -> tuple[Replicates, list[ContrastSet], AnswerArrays]:
        """Return replicates of `pairs`, over the questions that `also_answered` answered, too.

        Replicates are paired if their questions are the same.
        """
        needed = {end for pair in (*pairs, *also_answered) for end in pair}
        ends = [name for name in self.order if name in needed]
        rows = self.predictions[self.predictions["checkpoint"].isin(ends)]
        drawn = replicate_metrics(
            rows,
            ends,
            min_contrast=1,
            min_direction=self.min_direction,
            n_replicates=self.n_replicates,
            seed=self.seed,
            conditionings=["odds"],
            pairs=pairs,
        )
        answers = arrange(rows, ends)
        chosen = choose_pairs(pairs, ends)
        return drawn, contrast_sets(answers.correct, min_contrast=1, pairs=chosen), answers


def _pairs_in(
    model: str, checkpoints: Sequence[str], pairs: Sequence[Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the pairs that a model has, with the model in the checkpoints' names."""
    names = [f"{model}{SEP}{name}" for name in checkpoints]
    return [
        (names[earlier], names[later]) for earlier, later in choose_pairs(pairs, checkpoints)
    ]


def _control(kind: Kind, name: str, kinds: Collection[Kind]) -> Kind | None:
    candidates = {candidate.model: candidate for candidate in kinds if candidate.change == name}
    model = control_model(kind.model, candidates)
    if name and model is None:
        models = ", ".join(candidates) or "no model"
        log.warning(
            "%s of %s is not compared with its control %s, which is in %s; add its pair of "
            "checkpoints to the model.",
            kind.change,
            kind.model,
            name,
            models,
        )
    return candidates[model] if model is not None else None


def _of_changes(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["scope"] == "contrast") & rows["metric"].isin(OF_CHANGES)]


def _flips(pair: ContrastSet) -> tuple[int, int]:
    """Return the numbers of gained and lost questions."""
    return int(pair.improvement.sum()), int((~pair.improvement).sum())


def _above(drawn: Replicates, control: Replicates) -> pd.DataFrame:
    """Return the change's metrics minus the control's metrics, with intervals."""
    rows = []
    for metric in OF_CHANGES:
        key = "odds", "contrast", metric
        values = drawn.observed[key] - control.observed[key]
        replicated = drawn.for_claims(key) - control.for_claims(key)
        for i, member in enumerate(drawn.estimators):
            sides = [drawn.by_seed[key][i], control.by_seed[key][i]]
            noise = max(drawn.noise[key][i], control.noise[key][i])
            ends = compare_replicates(0.0, values[i], replicated[i])
            recipe = recipe_interval(values[i], replicated[i], sides, noise)
            of_seeds = recipe.lower, recipe.upper
            rows.append((*member, metric, values[i], ends.lower, ends.upper, *of_seeds))
    return pd.DataFrame(rows, columns=[*MEMBER, "metric", *ABOVE])


def _in_lost_answers(answers: AnswerArrays, sets: Sequence[ContrastSet]) -> pd.DataFrame:
    """Return each estimator's mean confidence on lost questions, before and after."""
    lost = [(pair, pair.questions[~pair.improvement]) for pair in sets]
    rows = []
    for member, by_seed in answers.estimators.items():
        earlier = [
            seed[pair.earlier, positions] for seed in by_seed for pair, positions in lost
        ]
        later = [seed[pair.later, positions] for seed in by_seed for pair, positions in lost]
        rows.append((*member, *(_mean(np.concatenate(end)) for end in (earlier, later))))
    return pd.DataFrame(rows, columns=[*MEMBER, "lost_before", "lost_after"])


def _mean(values: NDArray) -> float:
    return float(values.mean()) if values.size else np.nan
