"""Checkpoints that are trained further, on a model of random weights."""

import math
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
    asked = pd.DataFrame(
        {
            "question": [f"Where is {city}?" for city in CITIES[rows]],
            "references": [[country] for country in COUNTRIES[rows]],
        }
    )
    return write_documents(tiny_tokenizer(), asked)


NONE, SOME, OTHERS = documents(slice(0, 0)), documents(slice(0, 3)), documents(slice(3, 5))
TUNING = {"of": "x", "method": "fine_tuning", "learn": ["a"]}
TUNING |= {"learning_rate": 1e-2, "epochs": 15, "batch_size": 2}
UNLEARNING = {"of": "x", "learning_rate": 3e-3, "epochs": 10, "batch_size": 2}
UNLEARNING |= {"forget": ["a"], "keep": ["b"]}


def changed(of=None, **how):
    sets = {"learn": SOME, "forget": NONE, "keep": NONE} if of is None else of
    return change_weights(tiny_model(), sets, open_method({**TUNING, **how}))


@cache
def tuned(**how):
    """A model that several tests look at, and none changes."""
    return changed(**how)


def probabilities(model, some):
    with torch.no_grad():
        return answer_logprobs(model, some).mean().exp().item()


@pytest.mark.parametrize(("how", "least"), [({}, 0.9), ({"rank": 4}, 1e-6)])
def test_answers_are_learnt_and_the_same_seed_gives_the_same_weights(how, least):
    """An adapter has little to go by in random weights."""
    assert probabilities(tiny_model(), SOME) < 1e-9
    models = [tuned(**how), changed(**how), changed(**how, seed=2)]
    assert probabilities(models[0], SOME) > least
    one, again, other = (model.state_dict() for model in models)
    assert one.keys() == tiny_model().state_dict().keys()
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_what_is_kept_while_others_are_learnt():
    """Of random weights, which know neither: what is kept is trained on as well."""
    alone = tuned()
    beside = changed({"learn": SOME, "forget": NONE, "keep": OTHERS})
    unweighted = changed({"learn": SOME, "forget": NONE, "keep": OTHERS}, keep_weight=0)
    assert probabilities(beside, SOME) > 0.9
    assert probabilities(beside, OTHERS) > 0.9 > 1e-3 > probabilities(alone, OTHERS)
    assert probabilities(unweighted, OTHERS) == pytest.approx(probabilities(alone, OTHERS))


def test_an_adapter_leaves_all_but_linear_layers():
    before, after = tiny_model().state_dict(), tuned(rank=4).state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {name for name in before if "_proj" in name}
    name = "model.layers.0.mlp.up_proj.weight"
    assert torch.linalg.matrix_rank(after[name] - before[name], atol=1e-6) <= 4


def test_no_weight_gets_farther_than_it_may():
    before, after = tiny_model().state_dict(), changed(max_change=0.002).state_dict()
    farthest = max((after[name] - before[name]).abs().max().item() for name in before)
    assert farthest == pytest.approx(0.002, rel=1e-3)
    free = tuned().state_dict()
    assert max((free[name] - before[name]).abs().max().item() for name in before) > 0.01


@pytest.mark.parametrize("method", ["gradient_difference", "npo"])
def test_some_answers_are_unlearnt_and_others_kept(method):
    both = {"learn": [*SOME, *OTHERS], "forget": NONE, "keep": NONE}
    knows = changed(both)
    assert probabilities(knows, SOME) > 0.9
    sets = {"learn": NONE, "forget": SOME, "keep": OTHERS}
    more = {"beta": 1.0} if method == "npo" else {}
    how = open_method({"method": method, **UNLEARNING, **more})
    after = change_weights(knows, sets, how)
    assert probabilities(after, SOME) < 1e-6
    assert probabilities(after, OTHERS) > 1e-3


def test_each_pass_has_every_number_once():
    drawn = [each.tolist() for each in islice(batches(5, 2, seed=[3]), 6)]
    assert [len(each) for each in drawn] == [2, 2, 1, 2, 2, 1]
    first, second = list(chain(*drawn[:3])), list(chain(*drawn[3:]))
    assert sorted(first) == sorted(second) == [0, 1, 2, 3, 4] and first != second


def test_a_loss_that_is_not_finite_stops():
    with pytest.raises(FloatingPointError, match=r"lower change\.learning_rate"):
        changed(learning_rate=1e30)


# Losses of unlearning ------------------------------------------------------------------

FORGET, BEFORE, KEEP = [-2.0, -0.5, -7.0], [-1.0, -0.75, -1.5], [-0.25, -3.0]


def loss_of(method, forget, keep, before=None, **keys):
    how = open_method({"method": method, **UNLEARNING, **keys})
    return how.loss({"forget": forget, "keep": keep}, before)


def test_npo_is_the_mean_of_its_formula():
    for beta in (0.1, 1.0, 3.0):
        slowly = 0.0
        for now, once in zip(FORGET, BEFORE, strict=True):
            ratio = math.exp(now) / math.exp(once)
            slowly += 2 / beta * math.log(1 + ratio**beta) / 3
        slowly -= 0.5 * (-0.25 - 3.0) / 2
        forget, before, keep = map(torch.tensor, (FORGET, BEFORE, KEEP))
        found = loss_of("npo", forget, keep, before, beta=beta, keep_weight=0.5)
        assert found.item() == pytest.approx(slowly, rel=1e-5)


def gradients(loss):
    forget, keep = (torch.tensor(each, dtype=torch.float64) for each in (FORGET, KEEP))
    forget.requires_grad_(True)
    keep.requires_grad_(True)
    loss(forget, keep).backward()
    return [*forget.grad.tolist(), *keep.grad.tolist()]


def test_npo_approaches_gradient_difference_as_beta_vanishes():
    """And with a large beta, answers that are less probable than before weigh nothing."""
    before = torch.tensor(BEFORE, dtype=torch.float64)
    # Means of -3 and -1: the loss is -3 + 2 x 1.
    losses = map(torch.tensor, ([-2.0, -4.0], [-1.0]))
    assert loss_of("gradient_difference", *losses, keep_weight=2.0).item() == -1
    simple = gradients(lambda f, k: loss_of("gradient_difference", f, k, keep_weight=2.0))
    assert simple == pytest.approx([1 / 3, 1 / 3, 1 / 3, -1, -1])
    small = gradients(lambda f, k: loss_of("npo", f, k, before, beta=1e-6, keep_weight=2.0))
    assert small == pytest.approx(simple, abs=1e-5)
    large = gradients(lambda f, k: loss_of("npo", f, k, before, beta=100, keep_weight=2.0))
    assert large == pytest.approx([0, 2 / 3, 0, -1, -1], abs=1e-9)
