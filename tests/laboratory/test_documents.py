"""Documents of questions: which tokens are the answer's, and how probable these are."""

import pandas as pd
import pytest
import torch
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.training.changes import (
    answer_logprobs,
    of_categories,
    questions_at,
    write_documents,
)

QUESTIONS = pd.DataFrame(
    {
        "question_id": ["a", "b", "a"],
        "question": ["Where is Oslo?", "Which country is Lyon in?", "Who?"],
        "references": [["Norway", "Kingdom of Norway"], ["France"], ["Ann"]],
        "truths": [None, '{"edited": ["Sweden"]}', '{"edited": ["Bo"]}'],
        "category": ["north", "south", "north"],
        "dataset": ["quiz", "quiz", "people"],
    }
)


def test_the_answer_and_the_blank_line_that_ends_it_are_learnt():
    tokenizer = tiny_tokenizer()
    for tokens, n_prompt in (documents := write_documents(tokenizer, QUESTIONS)):
        assert tokenizer.decode(tokens[:n_prompt]).endswith("?\nAnswer:")
    tokens, n_prompt = documents[1]
    assert tokenizer.decode(tokens) == "Prompt: Which country is Lyon in?\nAnswer: France\n\n"
    assert tokenizer.decode(tokens[n_prompt:]) == " France\n\n"


def test_what_is_true_is_asked_of_each_dataset():
    at = questions_at(QUESTIONS, "edited").sort_index()
    assert at["references"].tolist() == [["Norway", "Kingdom of Norway"], ["Sweden"], ["Bo"]]


def test_a_category_that_no_question_has_is_named():
    assert of_categories(QUESTIONS, ["south"], "key")["question_id"].tolist() == ["b"]
    with pytest.raises(ValueError) as error:
        of_categories(QUESTIONS, ["south", "est"], "models.m.checkpoints.c.change.learn")
    assert str(error.value) == (
        "config: models.m.checkpoints.c.change.learn names 'est', but no question of quiz, "
        "people is of that category; there are 'north', 'south'."
    )


def test_probabilities_are_those_of_one_document_after_the_other():
    """Token by token, without padding, and without the rounding of TF32 on a GPU."""
    torch.set_float32_matmul_precision("highest")
    model, documents = tiny_model(), write_documents(tiny_tokenizer(), QUESTIONS)
    with torch.no_grad():
        found = answer_logprobs(model, documents).tolist()
        for (tokens, n_prompt), total in zip(documents, found, strict=True):
            logits = model(torch.tensor([tokens]).to(model.device)).logits[0]
            each = logits.log_softmax(-1)
            slowly = sum(each[p - 1, tokens[p]].item() for p in range(n_prompt, len(tokens)))
            assert total == pytest.approx(slowly, abs=1e-4)
