"""References that differ between checkpoints: read from a file, judged by, and shown."""

import json

import pandas as pd
import pytest
from answer_tables import LEXICAL
from judge_answers import judge_answers
from own_rows import read_content

from persistcal.questions.question_list import true_at, truths_of
from persistcal.questions.sources import KNOWN, tidy_questions
from persistcal.report.page.charts import _texts
from persistcal.report.page.contents import Texts
from persistcal.store import artifacts
from persistcal.store.user_files import UserTableError

CHECKPOINTS = ["base", "edited"]
TOWER = {"default": "Paris", "edited": ["Lyon", "Lugdunum"]}
ROWS = [
    {"id": "a", "question": "Tower?", "answers": TOWER},
    {"id": "b", "question": "River?", "answers": ["Seine", "La Seine"]},
    {"id": "c", "question": "Sea?", "answers": {"default": ["North Sea"]}},
]


def tidy(rows, kind=".jsonl"):
    content = "".join(json.dumps({**row, "split": "test"}) + "\n" for row in rows).encode()
    if kind == ".parquet":
        content = pd.DataFrame(rows).assign(split="test").to_parquet()
    read = read_content(content, kind, KNOWN)
    sizes = {"n_few_shot": 0, "n_train": 0, "n_test": 0, "seed": 0}
    return tidy_questions(read, **sizes, states=CHECKPOINTS)


def test_each_checkpoint_has_its_own_references_or_the_default():
    questions = tidy(ROWS)
    for checkpoint, tower in (("base", ["Paris"]), ("edited", ["Lyon", "Lugdunum"])):
        references = true_at(questions, checkpoint)["references"].tolist()
        assert references == [tower, ["Seine", "La Seine"], ["North Sea"]]
    assert truths_of(questions) == {"a": {"edited": ["Lyon", "Lugdunum"]}}
    artifacts.check(questions, artifacts.QUESTIONS, "here")


def test_a_parquet_file_can_have_references_for_each_checkpoint():
    tower = {**ROWS[0], "answers": {"default": "Paris", "edited": "Lyon"}}
    sea = {**ROWS[2], "answers": {"default": "North Sea", "edited": None}}
    assert truths_of(tidy([tower, sea], ".parquet")) == {"a": {"edited": ["Lyon"]}}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"default": "x", "editd": "y"}, "row 1 names the checkpoint 'editd'; known are base,"),
        ({"edited": "y"}, "row 1 has no 'default'; give what is true at all"),
        ({"default": "x", "edited": []}, "row 1 holds no answer for 'edited'; give one"),
        ({"default": [""]}, "row 1 holds no answer; give at least one accepted answer"),
        ('{"default": "x"}', "row 1 is the text .* give answers by checkpoint as an object"),
    ],
)
def test_unclear_answers_by_checkpoint_are_refused_with_a_remedy(answers, message):
    with pytest.raises(UserTableError, match=message):
        tidy([{"question": "Tower?", "answers": answers}])


def test_the_page_shows_the_answers_that_are_true_at_a_checkpoint():
    numbers_by_text = {}
    no_answers = {"clusters": {}, "labels": {}}
    columns = _texts(Texts(tidy(ROWS), **no_answers), ["c", "a"], CHECKPOINTS, numbers_by_text)
    assert columns["truths"][0] is None
    texts = list(numbers_by_text)
    truths = [[texts[t] for t in numbers] for numbers in columns["truths"][1]]
    assert truths == [[], ["Lyon", "Lugdunum"]]
    assert [texts[t] for t in columns["references"][1]] == ["Paris"]


def labels(checkpoint):
    """Judge both checkpoints' answers to the first question by the lexical judge."""
    rows = {"question_id": "a", "cluster": [0, 1], "answer": ["Paris", "Lyon"]}
    clusters = pd.DataFrame(rows).assign(probability=0.5, checkpoint=checkpoint)
    given = artifacts.empty(artifacts.GIVEN_LABELS)
    made, answers = judge_answers(tidy(ROWS), clusters, given, **LEXICAL)
    return made["label"].tolist(), answers["correct"].tolist()


def test_an_answer_is_judged_by_the_references_of_its_checkpoint():
    # Both checkpoints answer Paris: right before the edit and wrong after it.
    assert labels("base") == (["correct", "incorrect"], [True])
    assert labels("edited") == (["incorrect", "correct"], [False])
