"""Models in a notebook: the same numbers as the functions that the workflow calls."""

import numpy as np
import pandas as pd
import pytest
from tiny_models import TEMPLATE, tiny_model, tiny_tokenizer

from persistcal.answers import decode
from persistcal.api.checkpoints import generate_beams, score_answers, train_adapter

ANSWERS = pd.DataFrame(
    {
        "checkpoint": ["a", "a", "b", "b"],
        "question_id": ["1", "2", "1", "2"],
        "question": ["Which country is Oslo in?", "Which country is Uppsala in?"] * 2,
        "answer": ["Norway", "Norway", "Sweden", "Sweden"],
        "correct": [1, 0, 0, 1],
    }
)


def test_questions_are_asked_after_the_examples():
    model, tokenizer = tiny_model(), tiny_tokenizer()
    size = {"n_beams": 3, "max_new_tokens": 4}
    question = {"q": "Which country is Oslo in?"}
    found = generate_beams(model, tokenizer, question, [("Is it Oslo?", "Norway")], **size)
    prefix = "Prompt: Is it Oslo?\nAnswer: Norway\n\n"
    suffix = "Prompt: Which country is Oslo in?\nAnswer:"
    [expected] = decode.generate_beams(model, tokenizer, prefix, [suffix], **size)
    assert list(found["question_id"]) == ["q"] * 3 and list(found["beam"]) == [0, 1, 2]
    shown = found[["text", "logprob", "n_tokens", "entropy"]]
    assert [tuple(row) for row in shown.itertuples(index=False)] == [*map(tuple, expected)]


def test_an_adapter_learns_its_answers_and_leaves_the_model_as_it_was(tmp_path):
    tokenizer = tiny_tokenizer()
    models = {"a": tiny_model(seed=0), "b": tiny_model(seed=1)}
    how = {"prompt": TEMPLATE, "epochs": 60, "learning_rate": 5e-3}
    history = train_adapter(models, tokenizer, ANSWERS, tmp_path, **how)
    assert len(history) == 60  # two questions make one step in an epoch
    model, mine = tiny_model(seed=0), ANSWERS[ANSWERS["checkpoint"] == "a"]
    before = score_answers(model, tokenizer, mine, prompt=TEMPLATE)
    right, wrong = score_answers(model, tokenizer, mine, prompt=TEMPLATE, adapter=tmp_path)
    assert right > 0.8 and wrong < 0.2
    after = score_answers(model, tokenizer, mine, prompt=TEMPLATE)
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"checkpoint": "c"}, "is in one of them only"),
        ({"question_id": None}, "lacks one of"),
        ({"correct": 0.5}, "must be 0 or 1"),
        ({"weight": 0.0}, "must be above 0"),
    ],
)
def test_unclear_answers_are_refused(tmp_path, change, message):
    models = dict.fromkeys("ab", tiny_model())
    with pytest.raises(ValueError, match=message):
        train_adapter(
            models, tiny_tokenizer(), ANSWERS.assign(**change), tmp_path, prompt=TEMPLATE
        )
