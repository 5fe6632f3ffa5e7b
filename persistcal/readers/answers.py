"""Check imported answers, row by row and across rows, and convert them to tables."""

import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import check_needs
from persistcal.questions.groups import check_groups
from persistcal.questions.labels import CORRECT, INCORRECT, LABELS, normalise
from persistcal.readers.scales import PROBABILITIES, is_missing
from persistcal.store.artifacts import BEAMS, GIVEN_LABELS, QUESTIONS
from persistcal.store.user_files import (
    TRUTHS,
    UserTableError,
    check_columns,
    check_copy,
    check_rows,
    first_rows,
    lists_of_texts,
    refuse,
    texts,
)

log = logging.getLogger(__name__)

NAMES = ("model", "checkpoint", "dataset", "question_id")
NEEDED = (*NAMES, "question", "references", "answer")
OPTIONAL = ("sample", "logprob", "token_logprobs", "label", "split", "group")
KNOWN = (*NEEDED, *OPTIONAL)
LISTS = ("references", "token_logprobs")  # JSON lists in a CSV file
CHOICES = {"label": (LABELS, ""), "split": (("train", "test"), "test")}  # and the default
CHECKPOINT = ["model", "checkpoint"]
ANSWER_SET = [*CHECKPOINT, "dataset"]

_SAMPLE = re.compile(r"\d{1,18}", re.ASCII)  # fits into a column of int64
# Without the underscores, and the digits of other scripts, that Python's float takes
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

ROUNDING = 1e-5  # tolerance for a sum of log-probabilities above 0
UNEQUAL = 1e-3  # relative tolerance between logprob and the sum of token_logprobs
MOST_MASS = 1.01  # sum of a question's beam probabilities, with room for rounding

Needed = Mapping[str, Mapping[str, Mapping[str, str]]]  # user, by model, checkpoint and split


def tidy_answers(rows: pd.DataFrame, *, file: str = "") -> pd.DataFrame:
    """Return answers in a uniform format after checking each row.

    Missing samples are None, missing numbers NaN, and missing labels empty. `location` is
    the row and its `file`, for errors.
    """
    stated = {str(name): name_stated(str(name)) for name in rows if name_stated(str(name))}
    allowed = f"{', '.join(KNOWN)}, confidence, confidence_<name>"
    unknown = f"answers may have {allowed}; remove or rename it"
    check_columns(list(rows.columns), NEEDED, (*OPTIONAL, *stated), unknown=unknown)
    tidy = named_rows(rows, file, "answer")
    tidy["answer"] = texts(rows, "answer", one_line=False)
    tidy["references"] = lists_of_texts(rows, "references", one_line=False)
    remedy = "give at least one accepted answer"
    check_rows(tidy, tidy["references"].map(len) == 0, "references is empty", None, remedy)
    remedy = "give an empty text if the model did not answer"
    check_rows(tidy, rows["answer"].isna().to_numpy(), "answer is missing", None, remedy)
    columns = {name: rows[name].tolist() for name in OPTIONAL if name in rows}
    tidy["sample"] = _samples(tidy, columns.get("sample", [None] * len(rows)))
    _add_logprobs(tidy, columns)
    tidy["stated"] = _stated(tidy, {new: rows[name].tolist() for name, new in stated.items()})
    for name in CHOICES:
        add_choice(tidy, rows, name)
    return tidy.assign(group=texts(rows, "group"))


def named_rows(rows: pd.DataFrame, file: str, unit: str) -> pd.DataFrame:
    """Return the columns `NAMES` and `question`, and the `location` of each row for errors."""
    if rows.empty:
        raise UserTableError(f"has no row; give one for each {unit}")
    suffix = f" of {file}" if file else ""
    tidy = pd.DataFrame({"location": [f"row {n}{suffix}" for n in range(1, len(rows) + 1)]})
    for name in (*NAMES, "question"):
        tidy[name] = texts(rows, name, one_line=name in NAMES)
        check_rows(tidy, tidy[name] == "", f"{name} is empty", None, "fill it in")
    return tidy


def add_choice(tidy: pd.DataFrame, rows: pd.DataFrame, name: str) -> None:
    """Add the column `name`, with one of its `CHOICES` in each row."""
    allowed, default = CHOICES[name]
    words = [word.lower() or default for word in texts(rows, name)]
    tidy[name] = [as_label(word) or word for word in words] if name == "label" else words
    wrong = ~tidy[name].isin([*allowed, default])
    check_rows(tidy, wrong, f"{name} is not valid", name, f"it can be {', '.join(allowed)}")


def as_label(value: object) -> str:
    """Return the label of a truth value as people write it, or "" for anything else.

    >>> [as_label(value) for value in ("1", "No", "WAHR", "perhaps")]
    ['correct', 'incorrect', 'correct', '']
    """
    truth = TRUTHS.get(str(value).strip().lower())
    return "" if truth is None else CORRECT if truth else INCORRECT


def name_stated(column: str) -> str:
    """Return the estimator of a column of confidences, or "" for another column.

    >>> [name_stated(c) for c in ("confidence", "confidence_words", "label")]
    ['stated', 'words', '']
    """
    prefix, _, name = column.partition("_")
    return "" if prefix != "confidence" else name or "stated"


def _stated(tidy: pd.DataFrame, columns: dict[str, list[Any]]) -> list[str | None]:
    """Return each row's confidences by estimator as JSON, or None if it has none."""
    confidences: list[dict[str, float]] = [{} for _ in range(len(tidy))]
    for name, values in columns.items():
        numbers = np.array([PROBABILITIES.number(value) for value in values])
        empty = np.array([is_missing(value) for value in values], dtype=bool)
        wrong = ~empty & ~PROBABILITIES.holds(numbers)
        shown = tidy.assign(said=pd.Series(values, dtype=object))
        remedy = "give a number from 0 to 1, or nothing if none was stated"
        check_rows(shown, wrong, f"the confidence {name!r} is not valid", "said", remedy)
        for row in np.flatnonzero(~empty):
            confidences[row][name] = float(numbers[row])
    return [json.dumps(row) if row else None for row in confidences]


def is_empty(value: object) -> bool:
    """Return whether a value of a file is missing."""
    return value is None or value != value or value == ""


def _samples(tidy: pd.DataFrame, values: Sequence[Any]) -> list[int | None]:
    empty = [is_empty(value) for value in values]
    if all(empty):
        return [None] * len(values)
    remedy = "number all or none"
    check_rows(tidy, empty, "sample is empty, but not in every row", None, remedy)
    wrong = [not _SAMPLE.fullmatch(str(value).strip()) for value in values]
    problem = "sample is not a whole number of up to 18 digits"
    check_rows(tidy.assign(sample=values), wrong, problem, "sample", "give 0, 1, 2, …")
    return [int(value) for value in values]


def number_of(value: object) -> float:
    """Return a number that is given as a number or as text; NaN for anything else.

    >>> [number_of(value) for value in ("-1.5", "2e-1", 7, "1_0", "\uff11", True)]
    [-1.5, 0.2, 7.0, nan, nan, nan]
    """
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value.strip()) else np.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        return np.nan
    return float(value)


def _is_logprob(value: float) -> bool:
    return bool(np.isfinite(value)) and value <= ROUNDING


def _add_logprobs(tidy: pd.DataFrame, columns: dict[str, list[Any]]) -> None:
    """Add the sum, number and minimum of log-probabilities, in all rows or none."""
    given = {}
    for name in ("logprob", "token_logprobs"):
        # NaN is a failed sum, not a missing value.
        empty = [value is None or value == "" for value in columns.get(name, [])]
        if not all(empty):
            problem = f"{name} is missing, but not in every row"
            check_rows(tidy, empty, problem, None, "give all or none")
            given[name] = columns[name]

    def check(name: str, valid: Sequence[bool], remedy: str) -> None:
        shown = tidy.assign(**{name: pd.Series(given[name], dtype=object)})
        check_rows(shown, ~np.asarray(valid), f"{name} is not valid", name, f"give {remedy}")

    tidy["logprob"], tidy["n_tokens"], tidy["min_logprob"] = np.nan, np.nan, np.nan
    if tokens := given.get("token_logprobs"):
        lists = [[number_of(x) for x in v] if isinstance(v, list) else [np.nan] for v in tokens]
        valid = [all(map(_is_logprob, values)) for values in lists]
        check("token_logprobs", valid, "a list of numbers up to 0")
        tidy["n_tokens"] = [float(len(values)) for values in lists]
        tidy["logprob"] = [sum(values) for values in lists]
        tidy["min_logprob"] = [min(values, default=np.nan) for values in lists]
    if sums := given.get("logprob"):
        numbers = np.array([number_of(value) for value in sums])
        valid = [_is_logprob(number) for number in numbers]
        check("logprob", valid, "the sum over the answer's tokens, up to 0")
        total = tidy["logprob"].to_numpy()  # NaN without token_logprobs
        far = np.abs(numbers - total) > UNEQUAL * np.maximum(1, np.abs(total))
        problem = "logprob is not the sum of token_logprobs"
        remedy = "logprob is their sum, not their mean; correct one of the columns"
        check_rows(tidy.assign(logprob=numbers), far, problem, "logprob", remedy)
        tidy["logprob"] = numbers


def question_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table QUESTIONS of all datasets in tidy answers, in order of appearance."""
    first = rows.drop_duplicates(["dataset", "question_id"])
    references = first["references"].map(list)
    questions = first.assign(
        index=first.groupby("dataset").cumcount(),
        references=references,
        any_of=references.map(len) > 1,
        category=first["category"] if "category" in first else "",
        group=first["group"],
        excluded=False,
        options=None,
        gold=None,
        truths=None,
    )
    return questions[[*QUESTIONS.file_columns, *QUESTIONS.schema.names]]


def beam_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table BEAMS of all models, checkpoints and datasets in tidy answers."""
    questions = rows.groupby([*BEAMS.file_columns, "question_id"], sort=False)
    beam = rows["sample"].where(rows["sample"].notna(), questions.cumcount()).astype(int)
    # Ties go to a question's first answer by number, whatever the order of the file.
    order = np.lexsort((beam, questions.ngroup()))
    beams = rows.assign(beam=beam, text=rows["answer"]).iloc[order]
    return beams.reindex(columns=[*BEAMS.file_columns, *BEAMS.schema.names])


def stated_names(rows: pd.DataFrame) -> list[str]:
    """Return the estimators with confidences in the column `stated`."""
    return sorted({name for text in rows["stated"].dropna() for name in json.loads(text)})


def check_stated(
    rows: pd.DataFrame, computed: Collection[str], needed: Collection[str] = ()
) -> None:
    """Refuse stated confidences named like a computed estimator, and missing `needed` ones."""
    named = set(stated_names(rows))
    if clash := sorted(named & set(computed)):
        raise UserTableError(
            f"column 'confidence_{clash[0]}' is named like estimators.{clash[0]}, which is "
            "computed from answers; give it another name"
        )
    if lost := sorted(set(needed) - named):
        column = "confidence" if lost[0] == "stated" else f"confidence_{lost[0]}"
        raise UserTableError(
            f"study.estimators names {lost[0]!r}, which the config does not compute, and no "
            f"answer has a value in a column {column!r}; add the column, or correct the name"
        )
    if named:
        log.info("Confidences are stated for %s", ", ".join(sorted(named)))


def label_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the labels in tidy answers as the table GIVEN_LABELS of all datasets.

    Answers that differ only in case and full stops share one label; 3.5 and 35 differ.
    """
    given = rows[rows["label"] != ""]
    given = given.assign(answer=given["answer"].map(normalise))
    empty = given["answer"] == ""
    check_rows(
        given,
        empty & (given["label"] == "correct"),
        "an empty answer is labelled correct",
        None,
        "empty answers are not evaluated; correct the answer or its label",
    )
    if empty.any():
        log.warning(
            "%d labels of empty answers are not used: empty answers are evaluated neither as "
            "right nor as wrong",
            empty.sum(),
        )
    given = given[~empty]
    key = ["dataset", "question_id", "answer"]
    kinds = given.groupby(key)["label"].transform("nunique")
    if (kinds > 1).any():
        example = given[kinds > 1].iloc[0]
        same = given[(given[key] == example[key]).all(axis=1)].drop_duplicates("label")
        raise refuse(
            f"labels of the answer {example['answer']!r} to question "
            f"{example['question_id']!r} disagree",
            same,
            "label",
            "give one label to each answer",
        )
    return given.drop_duplicates(key)[[*GIVEN_LABELS.file_columns, *GIVEN_LABELS.schema.names]]


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wanted:
    """The datasets, checkpoints and splits that a study reads from imported answers."""

    datasets: Sequence[str]
    answered: Sequence[Mapping[str, str]]  # each with model, checkpoint and dataset
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
    sizes = rows.groupby(ANSWER_SET, sort=False).size()
    wanted_sets = [tuple(row[name] for name in ANSWER_SET) for row in wanted.answered]
    refuse_missing([names for names in wanted_sets if names not in sizes.index])
    for left_out, n in sizes.drop(wanted_sets).items():
        place_names = ", ".join(left_out)  # type: ignore[arg-type]  # a tuple of names
        log.warning("Skipped %d rows of %s, which the study does not read", n, place_names)
    return rows[pd.MultiIndex.from_frame(rows[ANSWER_SET]).isin(wanted_sets)]


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


def refuse_missing(answer_sets: Sequence[Sequence[str]]) -> None:
    """Refuse wanted combinations of `ANSWER_SET` that have no rows."""
    for names in answer_sets:
        described = ", ".join(f"{n} {v!r}" for n, v in zip(ANSWER_SET, names, strict=True))
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
    """Refuse rows of a dataset that contradict each other or are incomplete."""
    for dataset, group in rows.groupby("dataset", sort=False):
        _check_questions(group, str(dataset))
        _check_asked(group, str(dataset))
        _check_numbers(group, str(dataset))
        _check_distinct(group, str(dataset), checkpoints)
        for (model, checkpoint), splits in group.groupby(CHECKPOINT, sort=False)["split"]:
            subject = f"answers of model {model}, checkpoint {checkpoint} to"
            if (group.loc[splits.index, "answer"] == "").all():
                raise UserTableError(
                    f"all {len(splits)} answers of model {model}, checkpoint {checkpoint} to "
                    f"{dataset} are empty, so nothing is evaluated; correct the column answer"
                )
            needed_splits = needed[str(model)][str(checkpoint)]
            check_splits(set(splits), needed_splits, subject, str(dataset))


def _check_questions(rows: pd.DataFrame, dataset: str) -> None:
    check_groups(rows["group"], rows["question_id"])
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
    for split, group in rows.groupby("split", sort=False):
        expected_ids = set(group["question_id"])
        for (model, checkpoint), answered_ids in group.groupby(CHECKPOINT, sort=False)[
            "question_id"
        ]:
            if lacking := sorted(expected_ids.difference(answered_ids)):
                raise refuse(
                    f"model {model}, checkpoint {checkpoint} has no answer to {len(lacking)} "
                    f"questions of the {split} split of {dataset} that others answered",
                    group[group["question_id"].isin(lacking[:3])].drop_duplicates(
                        "question_id"
                    ),
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
    for model, group in rows.groupby("model", sort=False):
        sizes = group.groupby(question, sort=False)["answer"].transform("size")
        usual = int(sizes.mode().max())
        if (is_unusual := sizes != usual).any():
            odd = group[is_unusual].assign(n=sizes[is_unusual]).drop_duplicates(question)
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
    for (model, checkpoint), group in rows.groupby(CHECKPOINT, sort=False):
        contents = zip(
            group["question_id"], group["answer"], group["logprob"].map(str), strict=True
        )
        names = str(model), str(checkpoint)
        first_checkpoint = by_content.setdefault((model, *sorted(contents)), names[1])
        seen = f", as of a file that was given twice ({first_rows(group, 'answer')})"
        check_copy(
            f"answers to {dataset}", *names, first_checkpoint, checkpoints[names[0]], seen=seen
        )


def can_be_beams(rows: pd.DataFrame) -> bool:
    """Return whether the answers of some checkpoint to a dataset could be beams."""
    for _, group in rows.groupby(ANSWER_SET, sort=False):
        try:
            check_weights(group, "beams")
        except UserTableError:
            continue
        return True
    return False


def check_weights(rows: pd.DataFrame, strategy: str) -> None:
    """Refuse answers that cannot be beams, if `strategy` is beams."""
    if strategy != "beams":
        return
    remedy = (
        "set decoding.strategy to sample (in the command, --samples) if the answers were drawn "
        "at random"
    )
    reason = "decoding.strategy is beams, which weigh by their log-probability, but logprob is "
    check_rows(rows, rows["logprob"].isna(), f"{reason}missing", None, f"add it, or {remedy}")
    question = [*ANSWER_SET, "question_id"]
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
        question_rows = rows[(rows[question] == mass.idxmax()).all(axis=1)]
        raise refuse(
            "decoding.strategy is beams, but the beams of question "
            f"{question_rows['question_id'].iloc[0]!r} have probabilities that sum to "
            f"{mass.max():.3g}",
            question_rows,
            "logprob",
            f"{remedy}, or give logprob as the sum over an answer's tokens, not their mean",
        )
