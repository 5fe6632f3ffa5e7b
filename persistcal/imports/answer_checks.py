"""Check that rows of imported answers are consistent with each other."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import check_needs
from persistcal.store.user_files import (
    UserTableError,
    check_copy,
    check_rows,
    first_rows,
    refuse,
)

log = logging.getLogger(__name__)

MOST_MASS = 1.01  # sum of a question's beam probabilities, with room for rounding
CHECKPOINT = ["model", "checkpoint"]
PLACE = [*CHECKPOINT, "dataset"]

Needed = Mapping[str, Mapping[str, Mapping[str, str]]]  # user, by model, checkpoint and split


@dataclass(frozen=True)
class Wanted:
    """The datasets, checkpoints and splits that a study reads from imported answers."""

    datasets: Sequence[str]
    places: Sequence[Mapping[str, str]]  # each with model, checkpoint and dataset
    needed: Needed
    needs: Mapping[str, Sequence[str]]  # by estimator, see `persistcal.confidence.evidence`

    def check_needs(self, answers: pd.DataFrame) -> None:
        """Refuse one checkpoint's answers to a dataset if they lack an estimator's input."""
        for estimator, needs in self.needs.items():
            check_needs(estimator, needs, answers)


def select_rows(
    rows: pd.DataFrame, *, checkpoints: Mapping[str, Collection[str]], wanted: Wanted
) -> pd.DataFrame:
    """Return the rows that a study reads; log how many rows are skipped."""
    check_known(rows, by_model=checkpoints, datasets=wanted.datasets)
    sizes = rows.groupby(PLACE, sort=False).size()
    places = [tuple(place[name] for name in PLACE) for place in wanted.places]
    refuse_missing([place for place in places if place not in sizes.index])
    for left_out, n in sizes.drop(places).items():
        place_names = ", ".join(left_out)  # type: ignore[arg-type]  # a tuple of names
        log.warning("Skipped %d rows of %s, which the study does not read", n, place_names)
    return rows[pd.MultiIndex.from_frame(rows[PLACE]).isin(places)]


def check_known(
    rows: pd.DataFrame, *, by_model: Mapping[str, Collection[str]], datasets: Collection[str]
) -> None:
    """Refuse rows of a dataset, model or checkpoint that the config does not have."""
    for name, allowed in (("model", by_model), ("dataset", datasets)):
        remedy = f"known are {', '.join(allowed)}; correct it or add it to {name}s"
        strange = ~rows[name].isin(list(allowed))
        check_rows(rows, strange, f"{name} is not in the config", name, remedy)
    for model, checkpoints in by_model.items():
        strange = (rows["model"] == model) & ~rows["checkpoint"].isin(list(checkpoints))
        remedy = f"known are {', '.join(checkpoints)}; correct it or add it to earlier or "
        problem = f"checkpoint is not in models.{model}"
        check_rows(rows, strange, problem, "checkpoint", f"{remedy}evaluation")


def refuse_missing(places: Sequence[Sequence[str]]) -> None:
    """Refuse wanted combinations of `PLACE` that have no rows."""
    for place in places:
        described = ", ".join(f"{n} {v!r}" for n, v in zip(PLACE, place, strict=True))
        raise UserTableError(
            f"no row is of {described}; add its answers, or take it out of the study"
        )


def check_ids(asked: pd.DataFrame, dataset: str, noun: str, same: list[str]) -> None:
    """Refuse questions with equal columns `same` but different ids."""
    if (is_repeated := asked.duplicated(same)).any():
        first = asked[(asked[same] == asked.loc[is_repeated, same].iloc[0]).all(axis=1)]
        raise refuse(
            f"{is_repeated.sum()} {noun} of {dataset} have several ids, so that they would "
            f"count several times, the first is {first['question'].iloc[0]!r}",
            first,
            "question_id",
            "keep one id, or word the questions differently",
        )


def check_splits(
    splits: Collection[str], needed: Mapping[str, str], subject: str, dataset: str
) -> None:
    """Refuse the lack of a split in `needed`, which maps splits to their users."""
    for split, user in needed.items():
        if split not in splits:
            raise UserTableError(
                f"{user} needs {subject} the {split} split of {dataset}, and no row has that "
                f"split; add such rows, or remove {user}"
            )


def check_answers(
    rows: pd.DataFrame, *, checkpoints: Mapping[str, Mapping[str, bool]], needed: Needed
) -> None:
    """Refuse rows of a dataset that contradict each other or are incomplete.

    Each question has one text, id and split. All checkpoints answer it, equally often. The
    answers of two checkpoints differ unless `checkpoints` allows equal ones. All `needed`
    splits are present.
    """
    for dataset, part in rows.groupby("dataset", sort=False):
        _check_questions(part, str(dataset))
        _check_asked(part, str(dataset))
        _check_numbers(part, str(dataset))
        _check_distinct(part, str(dataset), checkpoints)
        for (model, checkpoint), splits in part.groupby(CHECKPOINT, sort=False)["split"]:
            subject = f"answers of model {model}, checkpoint {checkpoint} to"
            if (part.loc[splits.index, "answer"] == "").all():
                raise UserTableError(
                    f"all {len(splits)} answers of model {model}, checkpoint {checkpoint} to "
                    f"{dataset} are empty, so nothing is evaluated; correct the column answer"
                )
            of_checkpoint = needed[str(model)][str(checkpoint)]
            check_splits(set(splits), of_checkpoint, subject, str(dataset))


def _check_questions(rows: pd.DataFrame, dataset: str) -> None:
    for name in ("question", "references", "split"):
        first = rows.groupby("question_id")[name].transform("first")
        if (differs := rows[name] != first).any():
            question = rows.loc[differs, "question_id"].iloc[0]
            raise refuse(
                f"{name} of question {question!r} of {dataset} differs between rows",
                rows[rows["question_id"] == question].drop_duplicates(name),
                name,
                "a question has one; give another question another question_id",
            )
    check_ids(rows.drop_duplicates("question_id"), dataset, "questions", ["question"])


def _check_asked(rows: pd.DataFrame, dataset: str) -> None:
    for split, part in rows.groupby("split", sort=False):
        expected_ids = set(part["question_id"])
        for (model, checkpoint), answered_ids in part.groupby(CHECKPOINT, sort=False)[
            "question_id"
        ]:
            if lacking := sorted(expected_ids.difference(answered_ids)):
                raise refuse(
                    f"model {model}, checkpoint {checkpoint} has no answer to {len(lacking)} "
                    f"questions of the {split} split of {dataset} that others answered",
                    part[part["question_id"].isin(lacking[:3])].drop_duplicates("question_id"),
                    "question_id",
                    "all checkpoints answer the same questions; add their rows",
                )


def _check_numbers(rows: pd.DataFrame, dataset: str) -> None:
    question = [*CHECKPOINT, "question_id"]
    key = [*question, "sample"]
    if (twice := rows.duplicated(key) & rows["sample"].notna()).any():
        repeated = rows[twice].iloc[0]
        raise refuse(
            f"sample {repeated['sample']} of question {repeated['question_id']!r} of {dataset} "
            f"is there twice at model {repeated['model']}, checkpoint {repeated['checkpoint']}",
            rows[(rows[key] == repeated[key]).all(axis=1)],
            None,
            "number the samples of a question",
        )
    for model, part in rows.groupby("model", sort=False):
        sizes = part.groupby(question, sort=False)["answer"].transform("size")
        usual = int(sizes.mode().max())
        if (is_unusual := sizes != usual).any():
            odd = part[is_unusual].assign(n=sizes[is_unusual]).drop_duplicates(question)
            example = odd.iloc[0]
            raise refuse(
                f"question {example['question_id']!r} of {dataset} has {example['n']} answers "
                f"at checkpoint {example['checkpoint']} of {model}, others have {usual}",
                odd,
                "question_id",
                "give each question equally many (an answer can be empty)",
            )


def _check_distinct(
    rows: pd.DataFrame, dataset: str, checkpoints: Mapping[str, Mapping[str, bool]]
) -> None:
    by_content: dict[tuple, str] = {}
    for (model, checkpoint), part in rows.groupby(CHECKPOINT, sort=False):
        contents = zip(
            part["question_id"], part["answer"], part["logprob"].map(str), strict=True
        )
        names = str(model), str(checkpoint)
        first_checkpoint = by_content.setdefault((model, *sorted(contents)), names[1])
        seen = f", as of a file that was given twice ({first_rows(part, 'answer')})"
        check_copy(
            f"answers to {dataset}", *names, first_checkpoint, checkpoints[names[0]], seen=seen
        )


def can_be_beams(rows: pd.DataFrame) -> bool:
    """Return whether the answers of some checkpoint to a dataset could be beams."""
    for _, part in rows.groupby(PLACE, sort=False):
        try:
            check_weights(part, "beams")
        except UserTableError:
            continue
        return True
    return False


def check_weights(rows: pd.DataFrame, strategy: str) -> None:
    """Refuse answers that cannot be beams, if `strategy` is beams.

    Beams have log-probabilities and are all different, and their probabilities sum to at most
    1. The probabilities of samples often sum to more.
    """
    if strategy != "beams":
        return
    remedy = (
        "set decoding.strategy to sample (in the command, --samples) if the answers were drawn "
        "at random"
    )
    reason = "decoding.strategy is beams, which weigh by their log-probability, but logprob is "
    check_rows(rows, rows["logprob"].isna(), f"{reason}missing", None, f"add it, or {remedy}")
    question = [*PLACE, "question_id"]
    same = [*question, "answer", "logprob"]
    if (is_repeated := rows.duplicated(same)).any():
        first = rows[(rows[same] == rows.loc[is_repeated, same].iloc[0]).all(axis=1)]
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
            "decoding.strategy is beams, but the beams of question "
            f"{of_question['question_id'].iloc[0]!r} have probabilities that sum to "
            f"{mass.max():.3g}",
            of_question,
            "logprob",
            f"{remedy}, or give logprob as the sum over an answer's tokens, not their mean",
        )
