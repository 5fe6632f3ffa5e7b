"""Prompts contain questions and answers verbatim, after the right examples."""

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from persistcal.models.prompts import (
    FewShot,
    confidence_prompt,
    few_shot_groups,
    few_shot_prefix,
    question_suffix,
)

# Texts of one line, because readers of questions refuse others, with fields of formats.
PIECES = st.sampled_from(r"{question} {answer} {} {0} %s \1 \g<0> $HOME".split())
LINE = st.text(st.characters(exclude_characters="\n", codec="utf-8"))
TEXT = st.lists(LINE | PIECES).map("".join)


@settings(max_examples=50)
@given(st.lists(st.tuples(TEXT, TEXT), max_size=4), TEXT)
def test_a_few_shot_prompt_contains_examples_and_question_verbatim(examples, question):
    lines = (few_shot_prefix(examples) + question_suffix(question)).split("\n")
    *shown, last, end = lines
    assert (last, end) == (f"Prompt: {question}", "Answer:")
    read = [
        (shown_question.removeprefix("Prompt: "), shown_answer.removeprefix("Answer: "))
        for shown_question, shown_answer in zip(shown[::3], shown[1::3], strict=True)
    ]
    assert read == examples
    assert set(shown[2::3]) <= {""}


@given(TEXT, TEXT)
@example("What is {answer}?", "{question}")
@example(r"\g<0>", r"\1")
def test_a_confidence_prompt_contains_question_and_answer_verbatim(question, answer):
    filled = confidence_prompt("{a}\n{question}\n{answer}\n%s {0} {question}", question, answer)
    first, shown_question, shown_answer, last = filled.split("\n")
    assert (first, shown_question, shown_answer) == ("{a}", question, answer)
    assert last == f"%s {{0}} {question}"


EXAMPLES = pd.DataFrame(
    [("A?", "x"), ("B?", "y"), ("C?", "x"), ("D?", "x"), ("E?", "y"), ("F?", "x")],
    columns=["question", "category"],
).assign(references=[["a"], ["b", "bb"], ["c"], ["d"], ["e"], ["f"]], split="few_shot")
ASKED = pd.DataFrame({"question": ["P?", "Q?"], "category": ["y", "x"]})


def test_a_second_prompt_shows_the_next_examples_and_too_few_are_refused():
    def shown(n_examples, **settings):
        groups = few_shot_groups(EXAMPLES, ASKED, FewShot(n_examples, **settings))
        return [examples for examples, _ in groups]

    assert shown(2, by_category=False) == [[("A?", "a"), ("B?", "b")]]
    # examples in category x: A, C, D, F; category y: B, E
    assert shown(1, by_category=True, example_set=1) == [[("C?", "c")], [("E?", "e")]]
    assert shown(2, by_category=False, example_set=2) == [[("E?", "e"), ("F?", "f")]]
    with pytest.raises(ValueError, match=r"few_shot is 2 after 6 others, .* holds 6 questions"):
        shown(2, by_category=False, example_set=3)
    with pytest.raises(ValueError, match="holds 2 questions of 'y'"):
        shown(2, by_category=True, example_set=1)
