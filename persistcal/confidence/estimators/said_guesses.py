"""Confidence of an answer: the probability that the checkpoint states among several guesses."""

import pandas as pd

from persistcal.confidence.evidence import KEY, Evidence
from persistcal.confidence.said import guesses, rate_replies
from persistcal.questions.labels import normalise_answer


def said_guesses(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return the probability of the first guess that matches each answer, 0 without a match.

    A guess matches if it equals, after normalisation, the answer or another member of its
    cluster. A reply is unreadable without a guess, or if the matching guess has no probability.

    Tian et al., "Just Ask for Calibration", EMNLP 2023, arXiv:2305.14975: the numeric
    top-k of one stage. In the paper the first guess is the answer; here the decoded answer is.
    """
    first = evidence.clusters[evidence.clusters["cluster"] == 0].set_index(KEY)["members"]

    def read(reply: str, row: pd.Series) -> float | None:
        stated_guesses = guesses(reply)
        members = [row["answer"], *first.get((row["checkpoint"], row["question_id"]), [])]
        same = {normalise_answer(member) for member in members}
        matching = [value for text, value in stated_guesses if normalise_answer(text) in same]
        return matching[0] if matching else 0.0 if stated_guesses else None

    return rate_replies(answers, evidence, read)
