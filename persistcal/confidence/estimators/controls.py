"""Controls: confidence from a checkpoint's position or from an earlier checkpoint."""

import numpy as np
import pandas as pd

from persistcal.answers.clusters import Pair, PairTest
from persistcal.confidence.evidence import Evidence
from persistcal.confidence.registry import estimator
from persistcal.questions.labels import normalise


@estimator("End-correct baseline")
def end_correct(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return i / (m - 1) at the i-th of m evaluation checkpoints.

    Paper, section 3.1, "End-correct Baseline".
    """
    places = np.linspace(0, 1, len(evidence.evaluation))
    return answers["checkpoint"].map(dict(zip(evidence.evaluation, places, strict=True)))


@estimator(
    "Self-consistency, surrogate",
    needs=("several_answers",),
    reads=("last_earlier", "evaluation"),
    compares_answers=True,
)
def self_consistency_surrogate(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability that the last earlier checkpoint gives to each prediction.

    Paper, appendix "Self-Consistency Implementation".
    """
    last = evidence.clusters["checkpoint"] == evidence.earlier[-1]
    if evidence.options:  # options have different meanings
        key = ["question_id", "answer"]
        shares = evidence.clusters[last].set_index(key)["probability"]
        asked = pd.MultiIndex.from_frame(answers[key])
        return shares.reindex(asked).fillna(0.0).clip(upper=1).set_axis(answers.index)
    assert evidence.equivalent is not None
    return surrogate_confidences(
        answers[["question_id", "question", "answer"]],
        evidence.clusters[last].drop(columns="checkpoint"),
        evidence.equivalent,
    )


def surrogate_confidences(
    predictions: pd.DataFrame, candidates: pd.DataFrame, equivalent: PairTest
) -> pd.Series:
    """Return the probability that another checkpoint gives to each prediction.

    It is the summed probability of the clusters with a member that equals the prediction or has
    the same meaning, and 0 without such a cluster.

    Parameters
    ----------
    predictions : DataFrame
        Columns question_id, question and answer; the result has the same index.
    candidates : DataFrame
        Table CLUSTERS of the other checkpoint.
    equivalent : callable
        Whether the answers of each pair mean the same.

    Examples
    --------
    >>> from persistcal.answers.clusters import identical
    >>> predictions = pd.DataFrame(
    ...     {"question_id": ["q", "q"], "question": "Capital?", "answer": ["paris", "Rome"]}
    ... )
    >>> candidates = pd.DataFrame(
    ...     {"question_id": ["q"], "probability": [0.7]}
    ... ).assign(members=[["Paris."]])
    >>> surrogate_confidences(predictions, candidates, identical).tolist()
    [0.7, 0.0]
    """
    rows = predictions.reset_index(names="row").merge(
        candidates, on="question_id", suffixes=("", "_candidate")
    )
    matches = pd.Series(
        [
            normalise(answer) in map(normalise, members)
            for answer, members in zip(rows["answer"], rows["members"], strict=True)
        ],
        index=rows.index,
        dtype=bool,
    )
    # Members of a cluster need not all be equivalent to a new answer.
    rest = rows.loc[~matches, ["question", "answer", "members"]].explode("members")
    same = equivalent(list(map(Pair, rest["question"], rest["answer"], rest["members"])))
    matches[rest.index[np.asarray(same, dtype=bool)]] = True
    mass = rows[matches].groupby("row")["probability"].sum()
    # Summed floats can exceed 1 by a rounding error.
    return mass.reindex(predictions.index, fill_value=0.0).clip(upper=1)


@estimator(
    "Self-consistency, copy",
    needs=("several_answers",),
    reads=("last_earlier", "evaluation"),
)
def self_consistency_copy(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the last earlier checkpoint's self-consistency, 0 where it has no answer.

    Paper, section "Ablations": a copy cannot change with the checkpoint.
    """
    clusters = evidence.clusters
    first = clusters[
        (clusters["checkpoint"] == evidence.earlier[-1]) & (clusters["cluster"] == 0)
    ]
    copied = first.set_index("question_id")["probability"].clip(upper=1)
    return answers["question_id"].map(copied).fillna(0.0)
