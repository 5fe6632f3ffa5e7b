"""The same numbers whatever the threads and the size of a batch."""

import numpy as np
import pytest
import torch
from tiny_models import TEMPLATE, tiny_model, tiny_tokenizer

from persistcal.answers.decode import Search, generate_beams
from persistcal.confidence.verbalised import digit_tokens, score_answers
from persistcal.models.prompts import confidence_prompt, few_shot_prefix, question_suffix

HIDDEN = 128  # wide enough that matrix products are split over threads
CITIES = ["Oslo", "Bergen", "Lima", "Cusco", "Quito", "Accra"]
QUESTIONS = [f"Which country is {city} in?" for city in CITIES]


def answers_and_confidences(model, tokenizer, threads, batch_size):
    """Return the beams for each question, and the confidence in each beam."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        beams_by_question = generate_beams(
            model,
            tokenizer,
            few_shot_prefix([("Oslo?", "Norway")]),
            [question_suffix(question) for question in QUESTIONS],
            Search(n_beams=3, max_new_tokens=5, batch_size=batch_size),
        )
        texts = [[beam.text for beam in beams] for beams in beams_by_question]
        prompts = [
            tokenizer(confidence_prompt(TEMPLATE, question, text))["input_ids"]
            for question, beams in zip(QUESTIONS, texts, strict=True)
            for text in beams
        ]
        digits = digit_tokens(tokenizer)
        return texts, score_answers(model, prompts, digits, batch_size=batch_size)
    finally:
        torch.set_num_threads(n_threads)


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_threads_and_batches_change_no_answer_and_no_confidence_beyond_rounding(kind):
    model, tokenizer = tiny_model(kind, hidden=HIDDEN), tiny_tokenizer()
    texts, confidences = answers_and_confidences(model, tokenizer, 1, 1)
    assert len({text for beams in texts for text in beams}) > len(QUESTIONS)
    assert np.std(confidences) > 0.01
    for threads, batch_size in ((1, 3), (2, 100)):
        other_texts, close = answers_and_confidences(model, tokenizer, threads, batch_size)
        assert other_texts == texts
        np.testing.assert_allclose(close, confidences, rtol=0, atol=1e-5)


def test_the_same_batches_give_the_same_bits():
    model, tokenizer = tiny_model(hidden=HIDDEN), tiny_tokenizer()
    first, second = (answers_and_confidences(model, tokenizer, 1, 3) for _ in range(2))
    assert first[0] == second[0]
    assert first[1].tobytes() == second[1].tobytes()
