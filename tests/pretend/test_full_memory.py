"""A full GPU: batches are halved, and indivisible work stops with a sentence."""

import gc
import logging
from types import SimpleNamespace

import pretended_cuda
import pytest
import torch
from tiny_models import TEMPLATE, tiny_model, tiny_tokenizer

from persistcal.answers.decode import Search, generate_beams
from persistcal.confidence.verbalised import check_digit_logits, digit_tokens, score_answers
from persistcal.models import sizes as model_sizes
from persistcal.models.packing import last_hidden_states
from persistcal.models.prompts import confidence_prompt
from persistcal.store.jobs import explain
from persistcal.training import train as training
from persistcal.training.data import TrainingQuestion
from persistcal.training.train import Optimisation, prepare, train_adapter

TOKENIZER = tiny_tokenizer()
DIGITS = digit_tokens(TOKENIZER)
TEXTS = [confidence_prompt(TEMPLATE, f"Is it {i}?", a) for i in range(8) for a in ("y", "n o")]
PROMPTS = TOKENIZER(TEXTS)["input_ids"]
# the message of a GPU's allocator, and the message of a library that called the driver
MESSAGES = [None, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"]
FULL = "The GPU's memory holds the model, but not its computation"


def decode(model):
    suffixes = ["yes", "no 1", "what now", "7"]
    return generate_beams(model, TOKENIZER, "Is it? ", suffixes, Search(3, 4, batch_size=4))


def train(model, micro_batch=16):
    data = {
        f"q{i}": TrainingQuestion(tuple(TEXTS[2 * i : 2 * i + 2]), (0.6, 0.4), (1.0, 0.0))
        for i in range(8)
    }
    trainee = prepare({"a": model}, TOKENIZER, [data], rank=2, alpha=4)
    optimisation = Optimisation(lr=1e-2, epochs=1, batch_size=8, micro_batch=micro_batch)
    return train_adapter(trainee, {"a": data}, list(data), optimisation, seed=17)["loss"]


def score(model):
    return score_answers(model, PROMPTS, DIGITS, batch_size=16)


@pytest.mark.parametrize("run", [decode, score])
def test_with_less_memory_batches_are_halved_and_results_stay(run, caplog):
    caplog.set_level(logging.WARNING)
    model = tiny_model()
    gc.collect()
    n_before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    expected = run(model)
    needed = torch.cuda.max_memory_allocated() - n_before
    gc.collect()
    held = torch.cuda.memory_allocated()
    with pretended_cuda.limited(int(0.6 * needed)):
        results = run(model)
    assert "is computed in halves" in caplog.text
    if run is score:
        assert results == pytest.approx(expected, abs=1e-5)
    else:
        assert [[b.text for b in bs] for bs in results] == [
            [b.text for b in bs] for bs in expected
        ]
    gc.collect()
    assert torch.cuda.memory_allocated() == held


@pytest.mark.parametrize(("gigabytes", "n_passes"), [(4, 1), (0.001, 2)])
def test_auto_trains_on_as_many_candidates_as_fit(gigabytes, n_passes, monkeypatch):
    losses, sizes = training.question_losses, []

    def count(model, questions, *rest):
        sizes.append(len(questions))
        return losses(model, questions, *rest)

    gpu = SimpleNamespace(total_memory=gigabytes * 1e9)
    monkeypatch.setattr(training, "TRAINED_ON_CPU", 8)
    monkeypatch.setattr(model_sizes, "TRAINED_ON_CPU", 8)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    monkeypatch.setattr(training, "question_losses", count)
    train(tiny_model(), "auto")
    assert sizes == [8 // n_passes] * n_passes  # questions with two candidates


@pytest.mark.parametrize("message", MESSAGES)
def test_a_micro_batch_that_does_not_fit_is_halved(message, caplog, monkeypatch):
    caplog.set_level(logging.WARNING)
    expected = train(tiny_model())
    losses, fails = training.question_losses, [True]

    def fail_first(*arguments):
        with pretended_cuda.failing(100 if fails and fails.pop() else -1, message):
            return losses(*arguments)

    monkeypatch.setattr(training, "question_losses", fail_first)
    assert train(tiny_model()).tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert "going on with 8 candidates" in caplog.text


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(
    "run",
    [
        decode,  # the shared prefix is encoded first
        lambda model: check_digit_logits(model, PROMPTS[:4], DIGITS),
        lambda model: last_hidden_states(model, PROMPTS),
    ],
)
def test_indivisible_work_on_a_full_gpu_stops_with_a_sentence(run, message):
    with pretended_cuda.failing(5, message), pytest.raises(RuntimeError) as error:
        run(tiny_model())
    assert explain(error.value).startswith(FULL)
    assert "\n" not in explain(error.value)


def test_a_full_gpu_at_the_first_step_of_the_optimizer_stops_with_a_sentence(monkeypatch):
    step = torch.optim.AdamW.step

    def fail(*arguments):
        with pretended_cuda.failing(0):
            return step(*arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", fail)
    with pytest.raises(torch.OutOfMemoryError) as error:
        train(tiny_model())
    assert explain(error.value).startswith(FULL)
