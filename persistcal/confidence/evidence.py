"""The inputs of an estimator for each answer, and a check that they are present."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from persistcal.answers.equivalence import PairTest
from persistcal.confidence.registry import SEVERAL
from persistcal.models.prompts import FewShot
from persistcal.store.user_files import round_narrow

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


KEY = ["checkpoint", "question_id"]  # identifies an answer


def check_needs(estimator: str, needs: Collection[str], beams: pd.DataFrame) -> None:
    """Refuse `beams`, of one or several checkpoints, without the columns `estimator` needs."""
    place = [name for name in KEY if name in beams]
    remedy = "or drop the estimator from study.estimators (in the command, --estimator)"
    for need in needs:
        if need == SEVERAL:
            if len(beams) and not beams.duplicated(place).any():
                raise ValueError(
                    f"the estimator {estimator} needs several answers to each question, but "
                    f"there is one; generate more, {remedy}"
                )
        elif (lacking := beams[need].isna()).any():
            first = beams.loc[lacking, place].iloc[0]
            location = ", ".join(f"{name} {first[name]!r}" for name in place)
            raise ValueError(
                f"the estimator {estimator} needs the {need} of each answer, and "
                f"{lacking.sum()} have none, the first at {location}; give it, {remedy}"
            )


@dataclass(frozen=True, kw_only=True)
class EntrySettings:
    """Settings that an estimator's function receives from the config."""

    sampled: bool = False  # whether answers are samples, which weigh equally, or beams
    prompt: str = ""  # about an answer: the estimator's, or else the study's
    # Words that follow the prompt for a right and for a wrong answer
    words: Sequence[str] | None = None
    scale: Mapping[str, float] | None = None  # the probability of each expression
    layer: int | Literal["best"] | None = None  # that a probe reads, from 1; the middle one
    # Checkpoints that fit a probe without labels: "training" or "each"
    fit_at: str = ""
    rater: str = ""  # the checkpoint that rates answers, and its few-shot prompts of questions
    few_shot: FewShot | None = None


@dataclass(frozen=True)
class Evidence(EntrySettings):
    """Inputs of an estimator besides the rated answers; tables have a column checkpoint.

    The entry of the estimator in the config requests optional inputs, which are None by
    default.
    """

    earlier: tuple[str, ...]  # training checkpoints of the model, in order
    evaluation: tuple[str, ...]  # evaluated checkpoints, in order
    # Predictions of the earlier ones on the train split, with columns as in those to rate, and
    # correct; empty unless the estimator is `fitted`.
    labelled: pd.DataFrame
    clusters: pd.DataFrame  # CLUSTERS and BEAMS of the groups that the estimator `reads`
    beams: pd.DataFrame
    verified: pd.DataFrame | None = None  # VERIFIED by the `verifier`
    # Whether the answers of each pair mean the same; not of options.
    equivalent: PairTest | None = None
    load: "Callable[[str], tuple[PreTrainedModel, PreTrainedTokenizerBase]] | None" = None
    options: bool = False  # multiple choice, with the weights of the clusters
    estimator: str = ""  # name in the config
    replies: pd.DataFrame | None = None  # REPLIES to the estimator's prompt
    train: pd.DataFrame | None = None  # answers to train questions, if it is fitted at each
    questions: pd.DataFrame | None = None


Estimator = Callable[[pd.DataFrame, Evidence], Any]

Ask = Callable[[pd.DataFrame, Any, Any], ArrayLike]  # answers, model, tokenizer


def rate_by_checkpoint(answers: pd.DataFrame, evidence: Evidence, ask: Ask) -> pd.Series:
    """Return the ratings by `ask` of each checkpoint's answers, with the checkpoint loaded."""
    assert evidence.load is not None
    rated = pd.Series(np.nan, answers.index)
    for checkpoint, rows in answers.groupby("checkpoint", sort=False):
        rated[rows.index] = np.asarray(ask(rows, *evidence.load(str(checkpoint))))
    return rated


def rate(
    estimate: Estimator,
    answers: pd.DataFrame,
    evidence: Evidence,
    name: str,
    *,
    may_lack: bool = False,
) -> NDArray[np.float64]:
    """Return an estimator's confidences in `answers`, one per answer and in [0, 1].

    With `may_lack` an estimator can return missing values in a Series of pandas' Float64, for
    answers without a readable stated confidence; they become NaN. The estimator receives
    copies. The index of these differs from row numbers, so that the index of a returned Series
    identifies the answers.
    """
    n = len(answers)
    index = pd.RangeIndex(n, 2 * n)
    copy = answers.set_axis(index).copy()
    rated = estimate(copy, replace(evidence, labelled=evidence.labelled.copy()))
    unsaid = np.zeros(n, bool)
    if may_lack and isinstance(rated, pd.Series) and rated.dtype == "Float64":
        unsaid = _in_order(rated.isna(), copy.index, index, name) > 0
        rated = rated.fillna(0.0)
    confidence = np.where(unsaid, np.nan, _in_order(rated, copy.index, index, name))
    if not (valid := unsaid | (confidence >= 0) & (confidence <= 1)).all():
        first = int(np.argmin(valid))
        checkpoint, question_id = answers[KEY].iloc[first]
        raise ValueError(
            f"Estimator {name!r} rates {int((~valid).sum())} answers with no number in [0, 1], "
            f"the first for question {question_id!r} at checkpoint {checkpoint!r}: "
            f"{confidence[first]}."
        )
    return confidence


def _in_order(
    rated: Any,  # noqa: ANN401
    left: pd.Index,
    index: pd.RangeIndex,
    name: str,
) -> NDArray[np.float64]:
    """Return an estimator's result in the order of the answers, by their `index`.

    `left` is the index of the answers after the call.
    """
    if np.ma.isMaskedArray(rated):
        raise ValueError(
            f"Estimator {name!r} returned a masked array, and its hidden values are "
            "unknown; rate every answer."
        )
    if np.shape(rated) != (len(index),):
        raise ValueError(
            f"Estimator {name!r} returned values of shape {np.shape(rated)} for "
            f"{len(index)} answers; return one confidence for each row, in their order."
        )
    if isinstance(rated, pd.Series):
        if not rated.index.sort_values().equals(index):
            raise ValueError(
                f"Estimator {name!r} returned a Series without the index of the answers, so "
                "that its values cannot be matched with them; give it answers.index, or return "
                "an array in the order of the rows."
            )
        rated = rated.loc[index]
    elif not left.equals(index):
        raise ValueError(
            f"Estimator {name!r} moved the rows of the answers in place and returned no "
            "Series; sort a copy, or return a Series with the index of the answers."
        )
    try:
        return np.asarray(round_narrow(np.asarray(rated), name), float)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"Estimator {name!r} returned a value that is not an array of numbers ({error})."
        ) from error
