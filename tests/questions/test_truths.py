"""References that differ between states: read from a file, judged by, and shown."""

import json

import pandas as pd
import pytest
from answer_tables import LEXICAL
from judge_answers import judge_answers

from persistcal.questions.question_list import true_at, truths_of
from persistcal.questions.sources import KNOWN, tidy_questions
from persistcal.report.page.charts import _texts
from persistcal.report.page.contents import Texts
from persistcal.store import artifacts
from persistcal.store.user_files import UserTableError, read_rows

STATES = ["base", "edited"]
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
    read = read_rows(content, kind, known=KNOWN)
    sizes = {"n_few_shot": 0, "n_train": 0, "n_test": 0, "seed": 0}
    return tidy_questions(read, **sizes, states=STATES)


def test_each_state_has_its_own_references_or_the_default():
    questions = tidy(ROWS)
    for state, tower in (("base", ["Paris"]), ("edited", ["Lyon", "Lugdunum"])):
        references = true_at(questions, state)["references"].tolist()
        assert references == [tower, ["Seine", "La Seine"], ["North Sea"]]
    assert truths_of(questions) == {"a": {"edited": ["Lyon", "Lugdunum"]}}
    artifacts.check(questions, artifacts.QUESTIONS, "here")


def test_a_parquet_file_whose_rows_have_all_keys():
    both = [ROWS[0], {**ROWS[2], "answers": {"default": "North Sea", "edited": None}}]
    both[0] = {**ROWS[0], "answers": {"default": "Paris", "edited": "Lyon"}}
    assert truths_of(tidy(both, ".parquet")) == {"a": {"edited": ["Lyon"]}}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"default": "x", "editd": "y"}, "row 1 names the checkpoint 'editd'; known are base,"),
        ({"edited": "y"}, "row 1 has no 'default'; give what is true at all"),
        ({"default": "x", "edited": []}, "row 1 holds no answer for 'edited'; give one"),
        ({"default": [""]}, "row 1 holds no answer; give at least one accepted answer"),
        ('{"default": "x"}', "row 1 is the text .* give answers by checkpoint as an object"),
    ],
)
def test_answers_by_checkpoint_that_cannot_be_right(answers, said):
    with pytest.raises(UserTableError, match=said):
        tidy([{"question": "Tower?", "answers": answers}])


def test_the_page_has_the_truth_of_each_state_that_has_one():
    words = {}
    none = {"clusters": {}, "labels": {}}
    columns = _texts(Texts(tidy(ROWS), **none), ["c", "a"], STATES, words)
    assert columns["truths"][0] is None
    texts = list(words)
    truths = [[texts[t] for t in some] for some in columns["truths"][1]]
    assert truths == [[], ["Lyon", "Lugdunum"]]
    assert [texts[t] for t in columns["references"][1]] == ["Paris"]


def labels(checkpoint):
    """By the lexical judge, of the two answers that both states give."""
    rows = {"question_id": "a", "cluster": [0, 1], "answer": ["Paris", "Lyon"]}
    clusters = pd.DataFrame(rows).assign(probability=0.5, checkpoint=checkpoint)
    given = artifacts.empty(artifacts.GIVEN_LABELS)
    made, answers = judge_answers(tidy(ROWS), clusters, given, **LEXICAL)
    return made["label"].tolist(), answers["correct"].tolist()


def test_labels_follow_what_is_true_at_the_state():
    """Both say Paris first: right before the edit and wrong after it, which is a flip."""
    assert labels("base") == (["correct", "incorrect"], [True])
    assert labels("edited") == (["incorrect", "correct"], [False])
