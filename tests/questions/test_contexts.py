"""Passages before questions: the prompts of a checkpoint, and wrong files."""

import pandas as pd
import pytest
from answer_tables import questions_table
from read_context import read_context

from persistcal.confidence.estimate import AnswerTables
from persistcal.questions.question_list import asked_by
from persistcal.store import artifacts
from persistcal.store.files import sha256
from persistcal.store.jobs import Job, execute
from persistcal.store.user_files import UserTableError
from persistcal.training.data import Plan

PROMPT = "Read: {passage}\nNow: {question}\n"
SPLITS = ["test", "test", "train", "few_shot", "unused"]
QUESTIONS = questions_table(n_train=0, n_test=5).assign(
    question_id=list("abcde"), split=SPLITS, question=[f"Q{i} {{passage}}?" for i in range(5)]
)


def questions_with_passages(folder, lines, prompt=PROMPT, splits=("train", "test")):
    artifacts.QUESTIONS.write(QUESTIONS, str(folder / "q.parquet"), {"dataset": "quiz"})
    (folder / "passages.csv").write_text("\n".join(lines) + "\n")
    subject = {"model": "m", "checkpoint": "open", "dataset": "quiz"}
    inputs = {"questions": str(folder / "q.parquet"), "file": str(folder / "passages.csv")}
    settings = {"prompt": prompt, "splits": list(splits), **subject}
    outputs = {"contexts": str(folder / "c.parquet")}
    execute(read_context, Job(inputs, outputs, settings, threads=1))
    files = [str(folder / "q.parquet"), str(folder / "c.parquet")]
    return artifacts.read_files(files, artifacts.QUESTIONS)


ROWS = ["question_id,passage", "a,A {question}", "b,B", "c,C"]


def test_each_question_is_asked_after_its_passage(tmp_path):
    questions = questions_with_passages(tmp_path, ROWS)
    texts = asked_by(questions, "open").set_index("question_id")["question"]
    # Braces of a question or passage are kept; unused and few-shot questions need no passage.
    assert texts.tolist() == [
        "Read: A {question}\nNow: Q0 {passage}?",
        "Read: B\nNow: Q1 {passage}?",
        "Read: C\nNow: Q2 {passage}?",
        "Q3 {passage}?",
        "Q4 {passage}?",
    ]
    file = str(tmp_path / "passages.csv")
    assert artifacts.sources(tmp_path / "c.parquet") == {file: sha256(file)}
    for checkpoint in (None, "closed"):
        assert (
            asked_by(questions, checkpoint)["question"].tolist()
            == QUESTIONS["question"].tolist()
        )


def test_rows_of_another_dataset_are_left_out(tmp_path):
    lines = [*(f"{row},quiz" for row in ROWS[1:]), "z,Z,other"]
    questions = questions_with_passages(tmp_path, ["question_id,passage,dataset", *lines])
    assert len(asked_by(questions, "open")) == 5


@pytest.mark.parametrize(
    ("lines", "prompt", "message"),
    [
        (ROWS[:-1], PROMPT, r"passages.csv: question 'c' has no passage; add one"),
        ([*ROWS[:-1], "c,"], PROMPT, "question 'c' has no passage"),
        ([*ROWS, "z,Z"], PROMPT, "question 'z' is none of the dataset's; remove it, or add a"),
        ([*ROWS, "a,B"], PROMPT, "question 'a' is there twice; keep one"),
        (["question_id,text", "a,A"], PROMPT, "unknown column 'text'"),
        (ROWS, "{question}", r"the context's prompt lacks the field \{passage\}; add it"),
        (ROWS, "{passage}", r"the context's prompt lacks the field \{question\}; add it"),
        (ROWS, PROMPT + "{question}", r"has the field \{question\} 2 times; keep one"),
        (ROWS, PROMPT + "{qestion}", r"has the unknown field \{qestion\}; known are \{pass"),
    ],
)
def test_wrong_passages_or_prompts_are_refused_with_a_remedy(tmp_path, lines, prompt, message):
    with pytest.raises(UserTableError, match=message):
        questions_with_passages(tmp_path, lines, prompt)


def test_each_base_of_a_joint_training_is_asked_its_own_questions(tmp_path):
    """Two bases learn from both checkpoints' answers: 2 x 2 prompts about question c."""
    questions = questions_with_passages(tmp_path, ROWS)
    names = ["closed", "open"]
    clusters = pd.DataFrame(
        {"question_id": "c", "cluster": 0, "answer": ["no", "yes"], "probability": 1.0}
    ).assign(checkpoint=names)
    labels = clusters.assign(label=["incorrect", "correct"])
    plan = Plan(names, names, "own", "judged", 1, "{question} -> {answer}")
    prompts = {
        (base, source): training_questions["c"].prompts
        for bases, sources in plan.read(questions, clusters, labels)
        for base in bases
        for source, training_questions in sources.items()
    }
    passage = "Read: C\nNow: "

    assert prompts == {
        ("closed", "closed"): ("Q2 {passage}? -> no",),
        ("closed", "open"): ("Q2 {passage}? -> yes",),
        ("open", "closed"): (passage + "Q2 {passage}? -> no",),
        ("open", "open"): (passage + "Q2 {passage}? -> yes",),
    }

    [plain_training] = plan.read(QUESTIONS, clusters, labels)
    assert plain_training.checkpoints == names


def test_an_estimator_receives_the_questions_as_each_checkpoint_is_asked(tmp_path):
    questions = questions_with_passages(tmp_path, ROWS)
    clusters = pd.DataFrame(
        {"checkpoint": ["open", "closed"], "question_id": "a", "split": "test", "answer": "x"}
    ).assign(cluster=0, probability=1.0)
    empty = pd.DataFrame()
    tables = AnswerTables(questions, empty, empty, clusters)
    received = tables.predictions(["closed", "open"], "test")["question"].tolist()
    assert received == ["Read: A {question}\nNow: Q0 {passage}?", "Q0 {passage}?"]
