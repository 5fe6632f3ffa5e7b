"""States against each other: two checkpoints of a model, two models, and trends."""

import logging
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from persistcal.evaluation.arrange import AnswerArrays, arrange
from persistcal.evaluation.contrast import Pairs, choose_pairs
from persistcal.evaluation.proportions import compare_accuracies, compare_replicates
from persistcal.evaluation.significance import holm
from persistcal.evaluation.states import ACCURACY, State, resample_states, shared

log = logging.getLogger(__name__)

KEY = ["train_dataset", "estimator", "metric", "seed"]
ENDS = ["lower_2_5pct", "upper_97_5pct", "p_value"]
STATES = ["earlier", "later", *KEY, "earlier_value", "later_value", "difference", *ENDS]
TRENDS = [*KEY, "n_checkpoints", "slope", *ENDS]


def compare_checkpoints(
    answers: AnswerArrays, pairs: Sequence[tuple[int, int]], *, n_replicates: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare pairs of checkpoints, and follow each metric along the order of all.

    Parameters
    ----------
    answers : AnswerArrays
    pairs : sequence of (int, int)
        Positions of checkpoints.
    n_replicates, seed : int
        Of the bootstrap.

    Returns
    -------
    states : DataFrame
        Columns `STATES`, on the questions that both checkpoints answered; a difference is
        later − earlier. A pair without a common question has no rows, and a warning.
    trends : DataFrame
        Columns `TRENDS`: the least-squares slope per checkpoint, on the questions that all
        answered. Empty for fewer than three checkpoints, and with a warning where they share
        no question.
    """
    questions = {pair: shared(answers, pair) for pair in pairs}
    for earlier, later in [pair for pair in pairs if not questions[pair]]:
        log.warning(
            "%s and %s answered no question in common, so they are not compared.",
            answers.checkpoints[earlier],
            answers.checkpoints[later],
        )
    compared = [
        (pair, [State(k, questions[pair]) for k in pair]) for pair in pairs if questions[pair]
    ]
    n = len(answers.checkpoints)
    by_all = shared(answers, range(n))
    along = [State(k, by_all) for k in range(n)] if n > 2 and by_all else []
    if n > 2 and not by_all:
        log.warning("No question was answered at every checkpoint, so there is no trend.")
    states = list(dict.fromkeys([state for _, both in compared for state in both] + along))
    resampled = resample_states(answers, states, n_replicates=n_replicates, seed=seed)
    differences, slopes = [], []
    for pair, both in compared:
        first, second = map(states.index, both)
        right = answers.correct[np.ix_(pair, questions[pair])] == 1
        place = [answers.checkpoints[k] for k in pair]
        for kind, (observed, replicated) in resampled.items():
            if kind[2] == ACCURACY:
                found = compare_accuracies(*right)
            else:
                drawn = replicated[second] - replicated[first]
                found = compare_replicates(observed[first], observed[second], drawn)
            differences.append((*place, *kind, *found))
    if along:
        centred = np.arange(n) - (n - 1) / 2
        slope, rows = centred / (centred**2).sum(), [states.index(state) for state in along]
        for kind, (observed, replicated) in resampled.items():
            found = compare_replicates(0.0, slope @ observed[rows], slope @ replicated[rows])
            slopes.append((*kind, n, *found[2:]))
    return pd.DataFrame(differences, columns=STATES), pd.DataFrame(slopes, columns=TRENDS)


def join(one: AnswerArrays, other: AnswerArrays) -> AnswerArrays:
    """Put the last checkpoints of two models side by side, as if they were of one.

    The questions that both know are kept, and the series that both have.
    """
    questions, *places = np.intersect1d(one.questions, other.questions, return_indices=True)
    sides = list(zip((one, other), places, strict=True))
    return AnswerArrays(
        (one.checkpoints[-1], other.checkpoints[-1]),
        questions,
        np.stack([side.correct[-1, place] for side, place in sides]),
        {
            series: np.stack([side.confidence[series][-1, place] for side, place in sides])
            for series in one.confidence
            if series in other.confidence
        },
    )


def compare_states(
    predictions: Mapping[str, pd.DataFrame],
    checkpoints: Mapping[str, Sequence[str]],
    *,
    dataset: str,
    pairs: Pairs,
    n_replicates: int,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare the states of all models on one dataset.

    Parameters
    ----------
    predictions : mapping of str to DataFrame
        By model, see `persistcal.evaluation.arrange.arrange`.
    checkpoints : mapping of str to sequence of str
        By model its evaluation checkpoints, earliest first.
    dataset : str
        Estimators that were trained on another one say so in their name.
    pairs : {"all", "adjacent", "first"} or sequence of (str, str)
        See `persistcal.evaluation.contrast.choose_pairs`. Of two models the last checkpoints
        are compared.
    n_replicates, seed : int
        Of the bootstrap.

    Returns
    -------
    states, trends : DataFrame
        Rows of the tables STATES and TRENDS of `persistcal.store.artifacts`. Holm's method
        adjusts for the pairs of a model, or for the pairs of models.
    """
    how = {"n_replicates": n_replicates, "seed": seed}
    answers = {model: arrange(rows, checkpoints[model]) for model, rows in predictions.items()}
    compared, along = [], []
    for model, own in answers.items():
        chosen = choose_pairs(pairs, own.checkpoints)
        table, slopes = compare_checkpoints(own, chosen, **how)
        compared.append(table.assign(model=model, other_model=""))
        along.append(slopes.assign(model=model))
    for model, other in combinations(answers, 2):
        both = join(answers[model], answers[other])
        table, _ = compare_checkpoints(both, [(0, 1)], **how)
        compared.append(table.assign(model=model, other_model=other))
    states, trends = (
        _named(pd.concat([one for one in some if len(one)] or some[:1]), dataset)
        for some in (compared, along)
    )
    family = ["estimator", "metric", "seed", states["other_model"] == ""]
    within = np.where(states["other_model"] == "", states["model"], "")
    by_family = states.groupby([*family, within], sort=False)["p_value"]
    adjusted = by_family.transform(lambda p: holm(p.to_list())).astype(float)
    return states.assign(p_holm=adjusted), trends


def _named(rows: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Say in the estimators' names what they were trained on, where it is not `dataset`."""
    elsewhere = ~rows["train_dataset"].isin([dataset, ""])
    trained = rows["estimator"] + " (trained on " + rows["train_dataset"] + ")"
    named = rows.assign(dataset=dataset, estimator=rows["estimator"].where(~elsewhere, trained))
    return named.drop(columns="train_dataset").reset_index(drop=True)
