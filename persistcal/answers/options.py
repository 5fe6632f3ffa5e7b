"""Multiple choice: options as candidate answers, each in a separate cluster.

Options need no comparison and no judge, because the question contains the right option.
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from persistcal.answers.clusters import label_predictions, take_answers
from persistcal.questions.labels import CORRECT, INCORRECT
from persistcal.store import artifacts

NEEDS = {"per_token": "n_tokens", "unconditional": "unconditional"}


def has_options(questions: pd.DataFrame) -> bool:
    """Return whether questions are multiple choice; all of a dataset are, or none."""
    return bool(questions["options"].notna().any())


def normalised(
    logprobs: ArrayLike,
    n_tokens: ArrayLike,
    n_characters: ArrayLike,
    unconditional: ArrayLike,
    normalisation: str,
) -> NDArray[np.float64]:
    """Return the scores that rank the options, by their log-probabilities after the question.

    That is "none", the log-probability itself; "per_token" or "per_character", without the
    space before the option, or "unconditional", less the log-probability without the question.
    """
    scores = np.asarray(logprobs, dtype=float)
    if normalisation == "per_token":
        return scores / np.asarray(n_tokens, dtype=float)
    if normalisation == "per_character":
        return scores / np.asarray(n_characters, dtype=float)
    if normalisation == "unconditional":
        return scores - np.asarray(unconditional, dtype=float)
    if normalisation == "none":
        return scores
    raise ValueError(
        f"Unknown normalisation {normalisation!r}: choose 'none', 'per_token', 'per_character' "
        "or 'unconditional'."
    )


def option_clusters(beams: pd.DataFrame, normalisation: str) -> pd.DataFrame:
    """Return the table CLUSTERS of options, each with its share of the softmax over all.

    An option of the table BEAMS that lacks a number for the normalisation is refused.
    """
    for column in filter(None, ("logprob", NEEDS.get(normalisation))):
        if (lacking := beams[column].isna()).any():
            raise ValueError(
                f"decoding.normalisation {normalisation} needs the {column} of each option, "
                f"and {lacking.sum()} have none, the first of question "
                f"{beams.loc[lacking, 'question_id'].iloc[0]!r}; give it, or choose another "
                "normalisation"
            )
    lengths = beams["n_tokens"], beams["text"].str.len()
    return scored_clusters(
        beams, normalised(beams["logprob"], *lengths, beams["unconditional"], normalisation)
    )


def scored_clusters(beams: pd.DataFrame, score: NDArray[np.float64]) -> pd.DataFrame:
    """Return the table CLUSTERS of options by the score of each, see `normalised`.

    Options with equal scores keep their order, like `numpy.argmax`.
    """
    options = beams.assign(score=score, place=beams.groupby("question_id", sort=False).ngroup())
    options = options.sort_values(["place", "score", "beam"], ascending=[True, False, True])
    of_question = options.groupby("place")["score"]
    options["mass"] = np.exp(options["score"] - of_question.transform("max"))
    return options.assign(
        cluster=of_question.cumcount(),
        answer=options["text"],
        probability=options["mass"] / options.groupby("place")["mass"].transform("sum"),
        members=pd.Series(
            [[text] for text in options["text"].tolist()], options.index, dtype=object
        ),
    )[artifacts.CLUSTERS.schema.names]


def option_labels(questions: pd.DataFrame, clusters: pd.DataFrame) -> list[tuple[str, str]]:
    """Return label and source of each cluster of options, by the options that are right."""
    entries = zip(
        questions["question_id"], questions["options"], questions["gold"], strict=True
    )
    right = {question_id: options[int(gold)] for question_id, options, gold in entries}
    answers = zip(clusters["question_id"].tolist(), clusters["answer"].tolist(), strict=True)
    return [(CORRECT if right[q] == answer else INCORRECT, "gold") for q, answer in answers]


def option_answers(
    questions: pd.DataFrame, clusters: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables LABELS and ANSWERS of options that are clustered."""
    labels = clusters[["question_id", "cluster"]].copy()
    labels["label"], labels["source"] = zip(*option_labels(questions, clusters), strict=True)
    answers = label_predictions(take_answers(questions, clusters), labels)
    return labels, answers[artifacts.ANSWERS.schema.names]
