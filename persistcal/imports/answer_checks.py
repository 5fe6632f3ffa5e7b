"""What the rows of answers that were generated elsewhere must agree on."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from persistcal.imports.own_answers import OwnAnswersError, refuse

MOST_MASS = 1.01  # of the beams of a question; more is no rounding
CHECKPOINT = ["model", "checkpoint"]


def check_questions(rows: pd.DataFrame, dataset: str) -> None:
    """Refuse rows of one dataset that say different things of a question.

    Raises
    ------
    OwnAnswersError
        When a question has two texts, references, splits or ids, or a checkpoint lacks a
        question that another one answered in the same split.
    """
    for name in ("question", "references", "split"):
        first = rows.groupby("question_id")[name].transform("first")
        if (differs := rows[name] != first).any():
            question = rows.loc[differs, "question_id"].iloc[0]
            pair = rows[rows["question_id"] == question].drop_duplicates(name)
            raise refuse(
                f"{name} of question {question!r} of {dataset} differs between rows",
                pair,
                name,
                "a question has one; give another question another question_id",
            )
    named = rows.drop_duplicates("question_id")
    if (again := named.duplicated("question")).any():
        text = named.loc[again, "question"].iloc[0]
        raise refuse(
            f"{again.sum()} questions of {dataset} stand under several ids, so that they would "
            f"count several times, the first is {text!r}",
            named[named["question"] == text],
            "question_id",
            "keep one of them, or write into the questions what tells them apart",
        )
    for split, part in rows.groupby("split", sort=False):
        asked: dict[str, set[str]] = {}
        for model, checkpoint, question in part[[*CHECKPOINT, "question_id"]].itertuples(
            index=False
        ):
            asked.setdefault(f"model {model}, checkpoint {checkpoint}", set()).add(question)
        everything = set().union(*asked.values())
        for who, there in asked.items():
            if lacking := sorted(everything - there):
                raise refuse(
                    f"{who} has no answer to {len(lacking)} questions of the {split} split of "
                    f"{dataset} that others answered",
                    part[part["question_id"].isin(lacking[:3])].drop_duplicates("question_id"),
                    "question_id",
                    "all checkpoints answer the same questions; add their rows",
                )


def check_numbers(rows: pd.DataFrame, dataset: str) -> None:
    """Refuse rows of one dataset of which a sample is there twice, or one is missing.

    Raises
    ------
    OwnAnswersError
        When a (question, sample) is repeated, or questions have different numbers of
        answers: their confidences would not be comparable.
    """
    question = [*CHECKPOINT, "question_id"]
    if not rows["sample"].isna().all():
        key = [*question, "sample"]
        if rows.duplicated(key).any():
            again = rows[rows.duplicated(key)].iloc[0]
            same = rows[(rows[key] == again[key]).all(axis=1)]
            raise refuse(
                f"sample {again['sample']} of question {again['question_id']!r} of {dataset} "
                f"is there twice at model {again['model']}, checkpoint {again['checkpoint']}",
                same,
                None,
                "number the samples of a question",
            )
    for model, part in rows.groupby("model", sort=False):
        sizes = part.groupby(question, sort=False)["answer"].transform("size")
        usual = int(sizes.mode().max())
        if (other := sizes != usual).any():
            odd = part[other].assign(n=sizes[other]).drop_duplicates(question)
            one = odd.iloc[0]
            raise refuse(
                f"question {one['question_id']!r} of {dataset} has {one['n']} answers at "
                f"checkpoint {one['checkpoint']} of {model}, others have {usual}",
                odd,
                "question_id",
                "give each question equally many (an answer may be empty)",
            )


def check_distinct(
    rows: pd.DataFrame, dataset: str, known: Mapping[str, Mapping[str, bool]]
) -> None:
    """Refuse answers of one dataset that are the same at two checkpoints of a model.

    Parameters
    ----------
    rows : DataFrame
    dataset : str
    known : mapping
        By model and checkpoint, whether it may be the same as another one.
    """
    by_content: dict[tuple, str] = {}
    for (model, checkpoint), part in rows.groupby(CHECKPOINT, sort=False):
        said = zip(part["question_id"], part["answer"], part["logprob"].map(str), strict=True)
        other = by_content.setdefault((model, *sorted(said)), str(checkpoint))
        allowed = known[str(model)]
        if other != checkpoint and not (allowed[str(checkpoint)] or allowed[other]):
            raise refuse(
                f"all answers to {dataset} of checkpoint {checkpoint} of {model} are those of "
                f"{other}, as of a file that was given twice",
                part,
                "answer",
                "give each checkpoint its own, or if they are meant to be equal set "
                f"models.{model}.checkpoints.{checkpoint}.allow_identical_weights",
            )


def check_splits(
    rows: pd.DataFrame, dataset: str, needed: Mapping[tuple[str, str], Mapping[str, str]]
) -> None:
    """Refuse rows of one dataset without the splits that the study needs.

    Parameters
    ----------
    rows : DataFrame
    dataset : str
    needed : mapping
        By model and checkpoint, for each split that is needed what needs it.
    """
    there = {
        (str(model), str(checkpoint)): set(part["split"])
        for (model, checkpoint), part in rows.groupby(CHECKPOINT, sort=False)
    }
    for (model, checkpoint), splits in needed.items():
        for split, who in splits.items():
            if split not in there[model, checkpoint]:
                raise OwnAnswersError(
                    f"{who} needs answers of model {model}, checkpoint {checkpoint} to the "
                    f"{split} split of {dataset}, and no row has that split; add them, or "
                    "drop what needs them"
                )


def check_weights(rows: pd.DataFrame, strategy: str) -> None:
    """Refuse what cannot be beams, where the study's strategy is that they are.

    Raises
    ------
    OwnAnswersError
        When log-probabilities are missing, a question has the same beam twice, or its
        beams are more probable together than 1: samples, which weigh equally.
    """
    if strategy != "beams":
        return
    remedy = "set decoding.strategy to sample if the answers were drawn at random"
    if (lacking := rows["logprob"].isna()).any():
        raise refuse(
            "decoding.strategy is beams, which weigh by their log-probability, but logprob is "
            "missing",
            rows[lacking],
            None,
            f"add it, or {remedy}",
        )
    question = [*CHECKPOINT, "dataset", "question_id"]
    same = [*question, "answer", "logprob"]
    if (again := rows.duplicated(same)).any():
        first = rows[(rows[same] == rows.loc[again, same].iloc[0]).all(axis=1)]
        raise refuse(
            "decoding.strategy is beams, which are all different, but an answer to question "
            f"{first['question_id'].iloc[0]!r} is there {len(first)} times with the logprob "
            f"{first['logprob'].iloc[0]:g}",
            first,
            "answer",
            f"{remedy}, or give each beam once and its logprob with all digits",
        )
    mass = rows.assign(mass=np.exp(rows["logprob"])).groupby(question)["mass"].sum()
    if (mass > MOST_MASS).any():
        of_question = rows[(rows[question] == mass.idxmax()).all(axis=1)]
        raise refuse(
            "decoding.strategy is beams, but those of question "
            f"{of_question['question_id'].iloc[0]!r} have probabilities that sum to "
            f"{mass.max():.3g}",
            of_question,
            "logprob",
            f"{remedy}, or give logprob as the sum over an answer's tokens, not their mean",
        )
