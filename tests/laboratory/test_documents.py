"""Training documents: the tokens of the answers and their log-probabilities."""

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


def test_training_learns_the_answer_and_the_blank_line_after_it():
    tokenizer = tiny_tokenizer()
    for tokens, n_prompt in (documents := write_documents(tokenizer, QUESTIONS)):
        assert tokenizer.decode(tokens[:n_prompt]).endswith("?\nAnswer:")
    tokens, n_prompt = documents[1]
    assert tokenizer.decode(tokens) == "Prompt: Which country is Lyon in?\nAnswer: France\n\n"
    assert tokenizer.decode(tokens[n_prompt:]) == " France\n\n"


def test_questions_take_the_answers_that_are_true_at_a_checkpoint():
    questions = questions_at(QUESTIONS, "edited").sort_index()
    assert questions["references"].tolist() == [
        ["Norway", "Kingdom of Norway"],  # no truth of `edited`: the references
        ["Sweden"],
        ["Bo"],
    ]


def test_an_unknown_category_is_refused_with_the_config_key():
    assert of_categories(QUESTIONS, ["south"], "key")["question_id"].tolist() == ["b"]
    with pytest.raises(ValueError) as error:
        of_categories(QUESTIONS, ["south", "est"], "models.m.checkpoints.c.change.learn")
    assert str(error.value) == (
        "config: models.m.checkpoints.c.change.learn names 'est', but no question of quiz, "
        "people is of that category; there are 'north', 'south'."
    )


def test_log_probabilities_of_a_batch_equal_those_of_single_documents():
    torch.set_float32_matmul_precision("highest")  # TF32 rounds on a GPU
    model, documents = tiny_model(), write_documents(tiny_tokenizer(), QUESTIONS)
    with torch.no_grad():
        totals = answer_logprobs(model, documents).tolist()
        for (tokens, n_prompt), total in zip(documents, totals, strict=True):
            logits = model(torch.tensor([tokens]).to(model.device)).logits[0]
            logprobs = logits.log_softmax(-1)
            answer = range(n_prompt, len(tokens))
            expected = sum(logprobs[i - 1, tokens[i]].item() for i in answer)
            assert total == pytest.approx(expected, abs=1e-4)
