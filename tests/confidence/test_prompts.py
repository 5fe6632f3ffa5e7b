"""Questions and answers stand verbatim in the prompts."""

from hypothesis import example, given
from hypothesis import strategies as st

from persistcal.confidence.prompts import confidence_prompt, few_shot_prefix, question_suffix

# Of one line, as the readers of questions make sure; with what formats would take for theirs.
PIECES = st.sampled_from(
    ["{question}", "{answer}", "{}", "{0}", "%s", "\\1", "\\g<0>", "$HOME"]
)
TEXT = st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8")) | PIECES).map(
    "".join
)


@given(st.lists(st.tuples(TEXT, TEXT)), TEXT)
def test_examples_and_question_can_be_read_back_from_the_prompt(examples, question):
    lines = (few_shot_prefix(examples) + question_suffix(question)).split("\n")
    *shown, last, end = lines
    assert (last, end) == (f"Prompt: {question}", "Answer:")
    read = [
        (asked.removeprefix("Prompt: "), answered.removeprefix("Answer: "))
        for asked, answered in zip(shown[::3], shown[1::3], strict=True)
    ]
    assert read == examples
    assert set(shown[2::3]) <= {""}


@given(TEXT, TEXT)
@example("What is {answer}?", "{question}")
@example(r"\g<0>", r"\1")
def test_question_and_answer_stand_verbatim_in_the_confidence_prompt(question, answer):
    filled = confidence_prompt("{a}\n{question}\n{answer}\n%s {0} {question}", question, answer)
    first, asked, answered, last = filled.split("\n")
    assert (first, asked, answered) == ("{a}", question, answer)
    assert last == f"%s {{0}} {question}"
