"""Confidence that a checkpoint states in words, or that a user's file of answers has."""

import json

import pandas as pd

from persistcal.confidence.evidence import KEY, Evidence
from persistcal.confidence.said import guesses, on_scale, probability, rate_replies
from persistcal.confidence.uncertainty import grouped
from persistcal.questions.labels import same_answer


def stated(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean of the confidences that were stated with each prediction.

    The mean is over all samples or beams in the prediction's cluster, without missing values.
    If all are missing, the confidence is missing.
    """
    rows = grouped(answers, evidence)
    stated = rows["stated"].map(json.loads, na_action="ignore")
    values = stated.map(
        lambda mapping: mapping.get(evidence.estimator), na_action="ignore"
    ).astype(float)
    mean = rows.assign(said=values)[rows["cluster"] == 0].groupby(KEY)["said"].mean()
    matched = mean.reindex(pd.MultiIndex.from_frame(answers[KEY]))
    return matched.set_axis(answers.index).astype("Float64")


def said_probability(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean of the probabilities in the replies about each answer.

    Tian et al., "Just Ask for Calibration", EMNLP 2023, arXiv:2305.14975: the numeric
    top-1 of two stages, because the answer is decoded first.
    """
    return rate_replies(answers, evidence, lambda reply, _: probability(reply))


def said_guesses(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the first guess that matches each answer, 0 without a match.

    A guess matches if it equals, after normalisation, the answer or another member of the
    cluster. A reply is unreadable without a guess, or if the matching guess has no probability.

    Tian et al., "Just Ask for Calibration", EMNLP 2023, arXiv:2305.14975: the numeric
    top-k of one stage. In the paper the first guess is the answer; here the decoded answer is.
    """
    first = evidence.clusters[evidence.clusters["cluster"] == 0].set_index(KEY)["members"]

    def read(reply: str, row: pd.Series) -> float | None:
        stated_guesses = guesses(reply)
        members = [row["answer"], *first.get((row["checkpoint"], row["question_id"]), [])]
        matching = [
            value
            for text, value in stated_guesses
            if any(same_answer(text, member) for member in members)
        ]
        return matching[0] if matching else 0.0 if stated_guesses else None

    return rate_replies(answers, evidence, read)


def said_words(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the mean probability, on the estimator's scale, of the replies about each answer.

    With the scale ``{"True": 1, "False": 0}`` the result is the share of "True" among the
    replies with "True" or "False".

    Tian et al., "Just Ask for Calibration", EMNLP 2023, arXiv:2305.14975: linguistic, with
    probabilities from people. Kadavath et al., "Language Models (Mostly) Know What They
    Know", 2022, arXiv:2207.05221: P(True), by samples.
    """
    assert evidence.scale is not None
    scale = evidence.scale
    return rate_replies(answers, evidence, lambda reply, _: on_scale(reply, scale))
