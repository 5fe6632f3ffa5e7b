"""Check imported answers, row by row and across rows, and convert them to tables."""

import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from persistcal.confidence.evidence import check_needs
from persistcal.questions.labels import normalise
from persistcal.readers.columns import ANSWERS, FileColumn
from persistcal.readers.rules import (
    check_asked,
    check_copies,
    check_equal,
    check_ids,
    check_one_row,
    content_of,
    read_rows,
)
from persistcal.readers.scales import PROBABILITIES, Scale, settle
from persistcal.store.artifacts import BEAMS, GIVEN_LABELS, QUESTIONS
from persistcal.store.user_files import (
    UserTableError,
    check_groups,
    check_rows,
    first_rows,
    refuse,
)

log = logging.getLogger(__name__)

CHECKPOINT = ["model", "checkpoint"]
ANSWER_SET = [*CHECKPOINT, "dataset"]

GIVEN = "(labels are given)"  # in place of references
UNEQUAL = 1e-3  # relative tolerance between logprob and the sum of token_logprobs
MOST_MASS = 1.01  # sum of a question's beam probabilities, with room for rounding

MOST_SAY = 0.5  # share of replies with a confidence, from which --stated is suggested
_SAYS = re.compile(r"^\W*confidence\W+(\d+(?:\.\d+)?)\s*%", re.IGNORECASE | re.MULTILINE)
_ANSWERS = re.compile(r"^\W*answer\W*:[* ]*(.+?)[* ]*$", re.IGNORECASE | re.MULTILINE)

Needed = Mapping[str, Mapping[str, Mapping[str, str]]]  # user, by model, checkpoint and split


def tidy_answers(
    rows: pd.DataFrame, *, file: str = "", scale: Scale | None = None
) -> pd.DataFrame:
    """Return answers in a uniform format after checking each row.

    Samples can be None, numbers NaN and labels empty, if they are missing. `row` and
    `file` are for errors. `stated` has a row's confidences on the `scale`.
    """
    if {"label", "correct"} <= {*rows}:
        raise UserTableError("has the columns 'label' and 'correct'; keep one")
    stated = {str(name): name_stated(str(name)) for name in rows if name_stated(str(name))}
    shares = [FileColumn(name, "share or nothing", needed=False) for name in stated]
    table = ANSWERS._replace(columns=[*ANSWERS.columns, *shares])
    tidy = read_rows(rows, table, file=file, scale=scale)
    tidy["stated"] = _present(
        pd.DataFrame({stated[name]: tidy.pop(name) for name in stated}, index=tidy.index)
    )
    tidy["label"] += tidy.pop("correct")
    has_labels_only = tidy["references"].map((GIVEN,).__eq__) | ("correct" in rows)
    tidy["no_label"] = has_labels_only & (tidy["label"] == "")
    tidy["n_tokens"], tidy["min_logprob"] = np.nan, np.nan
    if (tokens := tidy.pop("token_logprobs")).notna().any():
        total = np.array([sum(numbers) for numbers in tokens])
        is_unequal = np.abs(tidy["logprob"] - total) > UNEQUAL * np.maximum(1, np.abs(total))
        problem = "logprob is not the sum of token_logprobs"
        remedy = "logprob is their sum, not their mean; correct one of the columns"
        check_rows(tidy, is_unequal, problem, "logprob", remedy)
        tidy["n_tokens"] = tokens.map(len).astype(float)
        tidy["min_logprob"] = [min(numbers, default=np.nan) for numbers in tokens]
        tidy["logprob"] = tidy["logprob"].where(tidy["logprob"].notna(), total)
    return tidy


def settle_stated(rows: pd.DataFrame, scale: Scale = PROBABILITIES) -> pd.DataFrame:
    """Return the rows of all files with the confidences of `settle`."""
    numbers = pd.DataFrame(rows["stated"].tolist(), dtype=float)
    for name in numbers:
        owners = rows[CHECKPOINT].assign(estimator=str(name))
        numbers[name] = settle(numbers[name].to_numpy(), owners, scale)
    return rows.assign(stated=_present(numbers).set_axis(rows.index))


def _present(numbers: pd.DataFrame) -> pd.Series:
    rows = numbers.to_dict("records")
    return pd.Series([{n: x for n, x in row.items() if x == x} for row in rows], dtype=object)


def one_per_sample(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each answer of a list; other lists of this length belong to them."""
    is_list = [isinstance(value, list) for value in rows["answer"]]
    if not any(is_list):
        return rows
    shared = {"references", "question", "question_id"}
    made, numbers = [], []
    for number, row in zip(rows.index, rows.to_dict("records"), strict=True):
        texts = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
        for sample, _ in enumerate(texts):
            parts = {
                name: value[sample]
                for name, value in row.items()
                if isinstance(value, list) and len(value) == len(texts) and name not in shared
            }
            made.append({"sample": sample, **row, **parts})
            numbers.append(number)
    return pd.DataFrame(made, index=pd.Index(numbers), dtype=object)


def read_replies(rows: pd.DataFrame, *, are_stated: bool) -> pd.DataFrame:
    """Return answers with the confidence that a reply states, if `are_stated`.

    Humanity's Last Exam asks for lines “Answer: …” and “Confidence: 85%”. The attribute `says`
    is whether most replies have the second, and none is read.
    """
    replies = rows["reply" if "reply" in rows else "answer"].map(str)
    numbers = pd.to_numeric(replies.map(lambda text: (_SAYS.findall(text) or [None])[-1])) / 100
    has_own = "confidence" in rows
    answers = rows.drop(columns="reply", errors="ignore")
    if are_stated:
        if has_own or numbers.isna().all():
            problem = (
                "there is a column confidence" if has_own else "no reply says Confidence: 85%"
            )
            raise UserTableError(f"{problem}, so --stated has no meaning; leave it out")
        lines = replies.map(lambda text: (_ANSWERS.findall(text) or [text])[-1])
        is_reply = answers["answer"].map(str) == replies
        answers = answers.assign(
            answer=answers["answer"].where(~is_reply, lines), confidence=numbers.astype(object)
        )
    says = not are_stated and not has_own and bool(numbers.notna().mean() > MOST_SAY)
    answers.attrs |= rows.attrs | {"says": says}
    return answers


def name_stated(column: str) -> str:
    """Return the estimator of a column of confidences, or "" for another column.

    >>> [name_stated(c) for c in ("confidence", "confidence_words", "label")]
    ['stated', 'words', '']
    """
    prefix, _, name = column.partition("_")
    return "" if prefix != "confidence" else name or "stated"


def question_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table QUESTIONS of all datasets in tidy answers, in order of appearance."""
    first = rows.drop_duplicates(["dataset", "question_id"])
    if "options" in first:
        right = [(o[g],) for o, g in zip(first["options"], first["gold"], strict=True)]
        first = first.assign(
            references=pd.Series(right, first.index, dtype=object),
            options=first["options"].map(list),
        )
    questions = first.assign(
        index=first.groupby("dataset").cumcount(),
        references=first["references"].map(list),
        any_of=first["references"].map(len) > 1,
        category=first["category"] if "category" in first else "",
        excluded=False,
        **{name: None for name in ("options", "gold", "truths") if name not in first},
    )
    return QUESTIONS.fill(questions)[[*QUESTIONS.file_columns, *QUESTIONS.schema.names]]


def beam_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the table BEAMS of all models, checkpoints and datasets in tidy answers."""
    questions = rows.groupby([*BEAMS.file_columns, "question_id"], sort=False)
    beam = rows["sample"].where(rows["sample"].notna(), questions.cumcount()).astype(int)
    # Ties go to a question's first answer by number, whatever the order of the file.
    order = np.lexsort((beam, questions.ngroup()))
    stated = rows["stated"].map(lambda row: json.dumps(row) if row else None)
    beams = rows.assign(beam=beam, text=rows["answer"], stated=stated).iloc[order]
    return beams.reindex(columns=[*BEAMS.file_columns, *BEAMS.schema.names])


def stated_names(rows: pd.DataFrame) -> list[str]:
    """Return the estimators with confidences in the column `stated`."""
    return sorted({name for row in rows["stated"] for name in row})


def check_stated(
    rows: pd.DataFrame, computed: Collection[str], needed: Collection[str] = ()
) -> None:
    """Refuse stated confidences named like a computed estimator, and missing `needed` ones."""
    names = set(stated_names(rows))
    if clash := sorted(names & set(computed)):
        raise UserTableError(
            f"column 'confidence_{clash[0]}' is named like estimators.{clash[0]}, which is "
            "computed from answers; give it another name"
        )
    if lost := sorted(set(needed) - names):
        column = "confidence" if lost[0] == "stated" else f"confidence_{lost[0]}"
        raise UserTableError(
            f"study.estimators names {lost[0]!r}, which the config does not compute, and no "
            f"answer has a value in a column {column!r}; add the column, or correct the name"
        )
    if names:
        log.info("Confidences are stated for %s", ", ".join(sorted(names)))


def label_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the labels in tidy answers as the table GIVEN_LABELS of all datasets.

    Answers that differ only in case and full stops share one label; 3.5 and 35 differ.
    """
    labelled = rows[rows["label"] != ""]
    labelled = labelled.assign(answer=labelled["answer"].map(normalise))
    empty = labelled["answer"] == ""
    check_rows(
        labelled,
        empty & (labelled["label"] == "correct"),
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
    labelled = labelled[~empty]
    key = ["dataset", "question_id", "answer"]
    kinds = labelled.groupby(key)["label"].transform("nunique")
    if (kinds > 1).any():
        example = labelled[kinds > 1].iloc[0]
        same = labelled[(labelled[key] == example[key]).all(axis=1)].drop_duplicates("label")
        raise refuse(
            f"labels of the answer {example['answer']!r} to question "
            f"{example['question_id']!r} disagree",
            same,
            "label",
            "give one label to each answer",
        )
    return labelled.drop_duplicates(key)[
        [*GIVEN_LABELS.file_columns, *GIVEN_LABELS.schema.names]
    ]


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


def rows_of_study(
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


def check_answers(
    rows: pd.DataFrame,
    checkpoints: Mapping[str, Mapping[str, bool]] | None = None,
    needed: Needed | None = None,
) -> None:
    """Refuse rows of a dataset that contradict each other or are incomplete."""
    check_equal(rows, ANSWERS)
    numbered = rows[rows["sample"].notna()]
    check_one_row(numbered, [*ANSWER_SET, "question_id", "sample"], "number the samples")
    for dataset, group in rows.groupby("dataset", sort=False):
        check_groups(group["group"], group["question_id"])
        for (model, checkpoint), part in group.groupby(CHECKPOINT, sort=False):
            if (part["answer"] == "").all():
                raise UserTableError(
                    f"all {len(part)} answers of model {model}, checkpoint {checkpoint} to "
                    f"{dataset} are empty, so nothing is evaluated; correct the column answer"
                )
        _check_numbers(group, str(dataset))
    content = rows[["question_id", "answer", "logprob"]]
    check_sets(rows, "answers", "to", ["question"], content, checkpoints, needed)


def check_sets(
    rows: pd.DataFrame,
    noun: str,
    preposition: str,
    same: Sequence[str],
    content: pd.DataFrame,
    checkpoints: Mapping[str, Mapping[str, bool]] | None = None,
    needed: Needed | None = None,
) -> None:
    """Refuse questions with several ids, and checkpoints that lack questions or are copies.

    Questions are equal if their columns `same` are. Two checkpoints are copies if they have the
    same `content`.
    """
    for dataset, group in rows.groupby("dataset", sort=False):
        questions = group.drop_duplicates("question_id")
        check_ids(questions, same)
        contents = []
        for names, part in group.groupby(CHECKPOINT, sort=False):
            model, checkpoint = map(str, names)
            splits = set(part["split"])
            is_lacking = ~questions["question_id"].isin(part["question_id"])
            lacking = questions[is_lacking & questions["split"].isin(splits)]
            check_asked(lacking, model, checkpoint, str(dataset))
            for split, user in (needed[model][checkpoint] if needed else {}).items():
                if split not in splits:
                    raise UserTableError(
                        f"{user} needs {noun} of model {model}, checkpoint {checkpoint} "
                        f"{preposition} the {split} split of {dataset}, and no row has that "
                        f"split; add such rows, or remove {user}"
                    )
            seen = f", as of a file that was given twice ({first_rows(part, 'question_id')})"
            contents.append((model, checkpoint, content_of(content.loc[part.index]), seen))
        check_copies(f"{noun} {preposition} {dataset}", contents, checkpoints or {})


def _check_numbers(rows: pd.DataFrame, dataset: str) -> None:
    """Refuse questions with other numbers of answers than the model's other questions."""
    question = [*CHECKPOINT, "question_id"]
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
