"""A dataset's canonical question list: unique questions, indices, splits and counts."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import NamedTuple

import numpy as np
import pandas as pd

from persistcal.questions.labels import normalise_answer
from persistcal.questions.templates import check_fields, fill
from persistcal.store.artifacts import QUESTIONS
from persistcal.store.user_files import UserTableError, check_columns, texts

log = logging.getLogger(__name__)

SHUFFLE_SEED = 17  # seed of the paper's lists
N_FEW_SHOT = 10  # questions reserved for few-shot prompts; the first 5 are used


class Question(NamedTuple):
    """A question before it has an index."""

    question: str
    references: list[str]  # the first one is shown where the question is an example
    any_of: bool = False  # references are different answers, instead of names of one
    category: str = ""  # few-shot examples can depend on it
    excluded: bool = False  # keeps its index, but is neither trained nor evaluated on
    options: list[str] | None = None  # for multiple choice
    gold: int | None = None  # which of the options is right, counted from 0
    truths: str | None = None  # references by checkpoint, as JSON


def unique(questions: Iterable[Question]) -> Iterator[Question]:
    """Yield the first of questions with the same text.

    >>> [q.references for q in unique([Question("a", ["1"]), Question("a", ["2"])])]
    [['1']]
    """
    seen = set()
    for question in questions:
        if question.question not in seen:
            seen.add(question.question)
            yield question


def number_questions(
    name: str,
    canonical: Sequence[Question],
    few_shot: Sequence[Question],
    *,
    train: Sequence[int],
    test: Sequence[int],
) -> pd.DataFrame:
    """Return the table QUESTIONS: the dataset's questions with index, id and split.

    A split is a range of canonical indices, [first, end). The `few_shot` examples have separate
    ids and indices, so that canonical ones do not change.
    """
    for split, (_, end) in (("train", train), ("test", test)):
        if end > len(canonical):
            raise ValueError(
                f"split {split} ends at index {end}, but there are only {len(canonical)} "
                f"questions; lower datasets.{name}.{split}"
            )
    if not few_shot:
        raise ValueError("no question is left for few-shot prompts; give more data")

    def split_of(index: int) -> str:
        if train[0] <= index < train[1]:
            return "train"
        return "test" if test[0] <= index < test[1] else "unused"

    rows = [(f"{name}-{i}", i, split_of(i), *content) for i, content in enumerate(canonical)]
    rows += [
        (f"{name}-few-shot-{i}", i, "few_shot", *content) for i, content in enumerate(few_shot)
    ]
    columns = ["question_id", "index", "split", *Question._fields]
    return QUESTIONS.fill(pd.DataFrame(rows, columns=columns))[QUESTIONS.schema.names]


def draw_splits(n: int, *, n_few_shot: int, n_train: int, n_test: int, seed: int) -> np.ndarray:
    """Draw which of `n` questions are few-shot examples, train and test; the rest is unused."""
    if (needed := n_few_shot + n_train + n_test) > n:
        raise ValueError(
            f"n_few_shot + n_train + n_test is {needed}, but there are only {n} questions; "
            "lower n_train or n_test"
        )
    split = np.full(n, "unused", dtype=object)
    order = np.random.default_rng(seed).permutation(n)
    split[order[:n_few_shot]] = "few_shot"
    split[order[n_few_shot : n_few_shot + n_train]] = "train"
    split[order[n_few_shot + n_train : needed]] = "test"
    return split


def count_questions(questions: pd.DataFrame) -> dict[str, int]:
    """Count the canonical list; without blacklisted questions train, test, its categories."""
    kept = questions[~questions["excluded"]]
    test = kept[kept["split"] == "test"]
    return {
        "questions": int((questions["split"] != "few_shot").sum()),
        "train": int((kept["split"] == "train").sum()),
        "test": len(test),
        **Counter(filter(None, test["category"])),
    }


def check_counts(questions: pd.DataFrame, expected: Mapping[str, int]) -> None:
    """Refuse `questions` with other counts than the published data, and log their numbers."""
    counts = count_questions(questions)
    log.info("%s", {name: counts[name] for name in ("questions", "train", "test")})
    wrong = [
        f"{name}: {counts.get(name, 0)} instead of {count}"
        for name, count in expected.items()
        if counts.get(name, 0) != count
    ]
    if wrong:
        raise ValueError(
            f"these are not the questions that the study expects ({', '.join(wrong)}); use the "
            "pinned revision of the data, or remove the key expect of a dataset of your own"
        )


def truths_of(questions: pd.DataFrame) -> dict[str, dict[str, list[str]]]:
    """Return the references of single states, by question and checkpoint."""
    has_truths = questions["truths"].notna()
    rows = questions.loc[has_truths, ["question_id", "truths"]]
    return {question: json.loads(truths) for question, truths in rows.itertuples(index=False)}


def true_at(questions: pd.DataFrame, checkpoint: str) -> pd.DataFrame:
    """Return `questions` with the references of a checkpoint."""
    truths = truths_of(questions)
    pairs = zip(questions["question_id"], questions["references"], strict=True)
    references = [truths.get(question, {}).get(checkpoint, usual) for question, usual in pairs]
    return questions.assign(references=pd.Series(references, questions.index, dtype=object))


def asked_by(questions: pd.DataFrame, checkpoint: str | None) -> pd.DataFrame:
    """Return the questions with the contexts of a checkpoint, or without contexts for None."""
    if "checkpoint" not in questions:
        return questions
    is_asked = questions["checkpoint"] == checkpoint
    return questions[is_asked if is_asked.any() else questions["checkpoint"].isna()]


NEEDED = ("question_id", "passage")
KNOWN = sorted({*NEEDED, "dataset"})


def with_passages(
    questions: pd.DataFrame, rows: pd.DataFrame, *, prompt: str, splits: Sequence[str]
) -> pd.DataFrame:
    """Return `questions` with the passage of each put before it.

    A user's `rows` have columns question_id and passage, and dataset where they are about
    several. Questions of these `splits` need a passage; others have one where there is a row.
    """
    check_columns(list(rows.columns), NEEDED, ["dataset"], unknown=f"known are {KNOWN}")
    check_fields(prompt, "the context's prompt", ["passage", "question"])
    given = pd.DataFrame({name: texts(rows, name, one_line=False) for name in KNOWN})
    if "dataset" in rows:
        given = given[given["dataset"].isin(questions["dataset"])]
    text_of = dict(zip(questions["question_id"], questions["question"], strict=True))
    passages = dict(zip(given["question_id"], given["passage"], strict=True))
    mask = questions["split"].isin(splits) & ~questions["excluded"].astype(bool)
    ids, needed = given["question_id"], questions.loc[mask, "question_id"]
    lacking = [question for question in needed if not passages.get(question)]
    problems: dict[str, Sequence[str]] = {
        "is there twice; keep one passage of it": list(ids[ids.duplicated()]),
        "is none of the dataset's; remove it, or add a column dataset where the file is about "
        "several": list(ids[~ids.isin(list(text_of))]),
        "has no passage; add one": lacking,
    }
    for problem, wrong in problems.items():
        if wrong:
            raise UserTableError(f"question {wrong[0]!r} {problem}")

    def put(question: str) -> str:
        if not (passage := passages.get(question, "")):
            return text_of[question]
        return fill(prompt.rstrip("\n"), {"passage": passage, "question": text_of[question]})

    texts_asked = questions["question_id"].map(put)
    return QUESTIONS.fill(questions.assign(question=texts_asked))[QUESTIONS.schema.names]


def limit_questions(questions: pd.DataFrame, n: int | None) -> pd.DataFrame:
    """Return the table QUESTIONS with only the first `n` of each split; others are unused.

    Excluded questions do not count. Without `n` nothing changes.
    """
    if n is None:
        return questions
    ordered = questions.sort_values("index")
    included = ordered[~ordered["excluded"].astype(bool)]
    place = included.groupby("split").cumcount().reindex(questions.index, fill_value=0)
    is_over = (place >= n) & questions["split"].isin(["train", "test"])
    return questions.assign(split=questions["split"].mask(is_over, "unused"))


EDITED, NEIGHBOUR, RETAIN = "edited", "neighbour", "retain"


def group_facts(facts: pd.DataFrame, shares: Mapping[str, float], *, seed: int) -> np.ndarray:
    """Return the group of each fact: a key of `shares`, "neighbour" or "retain".

    Each fact of the group "edited" has a neighbour with the same relation and answer, as long
    as facts are left. Few-shot examples, which are in every prompt, are retained. Shares refer
    to all facts, in whole hundredths, and are dealt like in `deal`, with other draws for the
    same seed.
    """
    hundredths = {name: round(100 * share) for name, share in shares.items()}
    step = gcd(100, *hundredths.values())
    sets = [name for name, n in hundredths.items() for _ in range(n // step)]
    sets += [RETAIN] * (100 // step - len(sets))
    facts = facts.reset_index(drop=True)
    category = pd.Series(np.array(sets, object)[deal(facts, len(sets), seed=[seed, 1]) - 1])
    example = facts["split"] == "few_shot"
    category[example] = RETAIN
    edited = facts[category == EDITED].groupby(["relation", "answer"]).size()
    left = facts[(category == RETAIN) & ~example].sort_values("question_id")
    left = left.sample(frac=1, random_state=np.random.default_rng([seed, 2]))
    pile = left.groupby(["relation", "answer"])
    wanted = edited.reindex(pd.MultiIndex.from_frame(left[["relation", "answer"]]))
    category[left.index[pile.cumcount().to_numpy() < wanted.to_numpy()]] = NEIGHBOUR
    return category.to_numpy()


def edit_answers(
    facts: pd.DataFrame, references: pd.Series, states: Sequence[str], *, seed: int
) -> pd.Series:
    """Return the truths of each fact: another answer at `states` for the group "edited".

    The answer is drawn uniformly from the answers to other questions of the relation that share
    no reference with the fact. The first of the `references` of a fact is its answer.
    """
    rng = np.random.default_rng([seed, 3])
    table = facts.assign(references=references, truths=None).sort_values("question_id")
    for _, of_relation in table.groupby("relation"):
        answers = {names[0]: names for names in of_relation["references"]}
        normalised = {
            name: set(map(normalise_answer, names)) for name, names in answers.items()
        }
        for row, fact in of_relation[of_relation["category"] == EDITED].iterrows():
            own_references = set(map(normalise_answer, fact["references"]))
            further = [name for name in answers if own_references.isdisjoint(normalised[name])]
            new = answers[further[rng.integers(len(further))]]
            truths = {state: list(new) for state in states}
            table.at[row, "truths"] = json.dumps(truths, ensure_ascii=False)
    return table["truths"].reindex(facts.index)


def deal(facts: pd.DataFrame, n_sets: int, *, seed: int | Sequence[int]) -> np.ndarray:
    """Return the set of each fact, from 1, so that no attribute tells sets apart.

    Facts of a relation and group are sorted by weight and dealt from the top, `n_sets` at
    a time, one to each set in random order. So for every relation, group and range of
    weights, the numbers of facts in two sets differ by at most one.
    """
    rng = np.random.default_rng([*np.ravel(seed), n_sets])
    number = np.zeros(len(facts), dtype=np.int64)
    strata = facts.reset_index(drop=True).groupby(["relation", "group"], sort=True)
    for _, stratum in strata:
        order = stratum.sort_values(["weight", "question_id"], ascending=[False, True]).index
        hands = [rng.permutation(n_sets) for _ in range(0, len(order), n_sets)]
        number[order] = np.concatenate(hands)[: len(order)] + 1
    return number
