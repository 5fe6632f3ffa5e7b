"""Further training of a checkpoint: fine-tuning and unlearning, on random weights."""

import math
from copy import deepcopy
from functools import cache
from itertools import chain, islice

import pandas as pd
import pytest
import torch
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.training.changes import (
    answer_logprobs,
    batches,
    change_weights,
    write_documents,
)
from persistcal.training.methods import open_method

COUNTRIES = ["Norway", "France", "Egypt", "Peru", "Mali"]
CITIES = ["Oslo", "Lyon", "Cairo", "Lima", "Bamako"]


def documents(rows):
    """Return the tokens of the questions about some of the cities."""
    questions = pd.DataFrame(
        {
            "question": [f"Where is {city}?" for city in CITIES[rows]],
            "references": [[country] for country in COUNTRIES[rows]],
        }
    )
    return write_documents(tiny_tokenizer(), questions)


NO_DOCUMENTS, THREE, TWO = (
    documents(slice(0, 0)),
    documents(slice(0, 3)),
    documents(slice(3, 5)),
)
TUNING = {"of": "x", "method": "fine_tuning", "learn": ["a"]}
TUNING |= {"learning_rate": 1e-2, "epochs": 15, "batch_size": 2}
UNLEARNING = {"of": "x", "learning_rate": 3e-3, "epochs": 10, "batch_size": 2}
UNLEARNING |= {"forget": ["a"], "keep": ["b"]}


def fine_tuned(sets=None, **keys):
    """Return a fine-tuned model; it learns the first three answers unless `sets` is given."""
    sets = sets or {"learn": THREE, "forget": NO_DOCUMENTS, "keep": NO_DOCUMENTS}
    return change_weights(tiny_model(), sets, open_method({**TUNING, **keys}))


@cache
def shared_model(**keys):
    """Return a model that several tests read and none changes."""
    return fine_tuned(**keys)


@cache
def model_of_all_answers():
    return fine_tuned({"learn": [*THREE, *TWO], "forget": NO_DOCUMENTS, "keep": NO_DOCUMENTS})


def mean_probability(model, answers):
    with torch.no_grad():
        return answer_logprobs(model, answers).mean().exp().item()


def largest_change(model):
    initial, trained = tiny_model().state_dict(), model.state_dict()
    return max((trained[name] - initial[name]).abs().max().item() for name in initial)


# An adapter gains little on random weights.
@pytest.mark.parametrize(("keys", "least_probability"), [({}, 0.9), ({"rank": 4}, 1e-6)])
def test_training_learns_the_answers_and_repeats_with_its_seed(keys, least_probability):
    weights, repeated, second_seed = (
        fine_tuned(**keys, epochs=2, seed=seed).state_dict() for seed in (1, 1, 2)
    )

    assert mean_probability(tiny_model(), THREE) < 1e-9
    assert mean_probability(shared_model(**keys), THREE) > least_probability
    assert weights.keys() == tiny_model().state_dict().keys()
    assert all(torch.equal(weights[name], repeated[name]) for name in weights)
    assert any(not torch.equal(weights[name], second_seed[name]) for name in weights)


def test_answers_to_keep_are_trained_in_proportion_to_their_weight():
    not_kept = shared_model()
    sets = {"learn": THREE, "forget": NO_DOCUMENTS, "keep": TWO}
    weighted, unweighted = fine_tuned(sets), fine_tuned(sets, keep_weight=0)

    assert mean_probability(weighted, THREE) > 0.9
    assert mean_probability(weighted, TWO) > 0.9 > 1e-3 > mean_probability(not_kept, TWO)
    assert mean_probability(unweighted, TWO) == pytest.approx(mean_probability(not_kept, TWO))


def test_an_adapter_changes_only_linear_layers_and_by_its_rank():
    initial, trained = tiny_model().state_dict(), shared_model(rank=4).state_dict()

    changed = {name for name in initial if not torch.equal(initial[name], trained[name])}
    assert changed == {name for name in initial if "_proj" in name}
    name = "model.layers.0.mlp.up_proj.weight"
    assert torch.linalg.matrix_rank(trained[name] - initial[name], atol=1e-6) <= 4


def test_no_weight_changes_by_more_than_max_change():
    assert largest_change(fine_tuned(max_change=0.002, epochs=2)) == pytest.approx(
        0.002, rel=1e-3
    )
    assert largest_change(shared_model()) > 0.01


@pytest.mark.parametrize(
    "keys", [{"method": "gradient_difference"}, {"method": "npo", "beta": 1.0}]
)
def test_unlearning_forgets_some_answers_and_keeps_others(keys):
    model = model_of_all_answers()
    assert mean_probability(model, THREE) > 0.9

    sets = {"learn": NO_DOCUMENTS, "forget": THREE, "keep": TWO}
    unlearnt = change_weights(deepcopy(model), sets, open_method({**UNLEARNING, **keys}))

    assert mean_probability(unlearnt, THREE) < 1e-6
    assert mean_probability(unlearnt, TWO) > 1e-3


def test_each_epoch_draws_every_document_once_in_a_new_order():
    drawn = [batch.tolist() for batch in islice(batches(5, 2, seed=[3]), 6)]
    assert [len(batch) for batch in drawn] == [2, 2, 1, 2, 2, 1]
    first, second = list(chain(*drawn[:3])), list(chain(*drawn[3:]))
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4] and first != second


def test_a_loss_that_is_not_finite_stops_the_training():
    with pytest.raises(FloatingPointError, match=r"lower change\.learning_rate"):
        fine_tuned(learning_rate=1e30)


# Losses of unlearning: log-probabilities of three answers to forget, now and before the
# change, and of two answers to keep.
FORGET, BEFORE, KEEP = [-2.0, -0.5, -7.0], [-1.0, -0.75, -1.5], [-0.25, -3.0]


def loss_of(method, forget, keep, logprobs_before=None, **keys):
    method = open_method({"method": method, **UNLEARNING, **keys})
    return method.loss({"forget": forget, "keep": keep}, logprobs_before)


@pytest.mark.parametrize("beta", [0.1, 1.0, 3.0])
def test_npo_is_the_mean_of_its_formula(beta):
    expected = 0.0
    for logprob, logprob_before in zip(FORGET, BEFORE, strict=True):
        ratio = math.exp(logprob) / math.exp(logprob_before)
        expected += 2 / beta * math.log(1 + ratio**beta) / 3
    expected -= 0.5 * (-0.25 - 3.0) / 2  # the weight of KEEP times its mean

    forget, logprobs_before, keep = map(torch.tensor, (FORGET, BEFORE, KEEP))
    loss = loss_of("npo", forget, keep, logprobs_before, beta=beta, keep_weight=0.5)

    assert loss.item() == pytest.approx(expected, rel=1e-5)


def gradients(loss):
    """Return the gradients of a loss by the five log-probabilities of FORGET and KEEP."""
    forget, keep = (torch.tensor(values, dtype=torch.float64) for values in (FORGET, KEEP))
    forget.requires_grad_(True)
    keep.requires_grad_(True)
    loss(forget, keep).backward()
    return [*forget.grad.tolist(), *keep.grad.tolist()]


def test_npo_lies_between_gradient_difference_and_a_loss_on_risen_answers_only():
    logprobs_before = torch.tensor(BEFORE, dtype=torch.float64)
    # Means of -3 and -1: the loss is -3 + 2 x 1.
    means = map(torch.tensor, ([-2.0, -4.0], [-1.0]))
    assert loss_of("gradient_difference", *means, keep_weight=2.0).item() == -1
    difference = gradients(lambda f, k: loss_of("gradient_difference", f, k, keep_weight=2.0))
    assert difference == pytest.approx([1 / 3, 1 / 3, 1 / 3, -1, -1])

    small = gradients(
        lambda f, k: loss_of("npo", f, k, logprobs_before, beta=1e-6, keep_weight=2.0)
    )
    large = gradients(
        lambda f, k: loss_of("npo", f, k, logprobs_before, beta=100, keep_weight=2.0)
    )

    assert small == pytest.approx(difference, abs=1e-5)
    # Only the second answer to forget has become more probable: the factor 2 over 3 answers.
    assert large == pytest.approx([0, 2 / 3, 0, -1, -1], abs=1e-9)
