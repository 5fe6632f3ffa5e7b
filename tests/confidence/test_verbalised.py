"""Verbalised confidence against the full forward pass of each prompt alone."""

from typing import get_args

import numpy as np
import pytest
import torch
from tiny_models import TEMPLATE, TEXT, logits_alone, tiny_model, tiny_tokenizer

from persistcal.confidence.verbalised import (
    Head,
    check_digit_logits,
    clamp_straight_through,
    digit_logits,
    digit_tokens,
)
from persistcal.models.load import compute_in_float32
from persistcal.models.packing import make_tree, pack_prompts, visible_tokens

torch.set_num_threads(1)
PROMPTS = [
    [
        TEMPLATE.format(question="Where is Oslo?", answer=a)
        for a in ("Norway", "Sweden, I think")
    ],
    [TEMPLATE.format(question="What is the capital of Peru, by the way?", answer="Lima")],
    [TEMPLATE.format(question="Who?", answer=a) for a in ("me", "me too", "you")],
]


def token_rows(tokenizer):
    return [[tokenizer(prompt)["input_ids"] for prompt in prompts] for prompts in PROMPTS]


@pytest.mark.parametrize(
    ("kind", "chosen"), [("olmo3", [0, 1, 2]), ("llama", [0, 1, 2]), ("olmo3", [1])]
)
def test_packed_logits_equal_those_of_each_prompt_alone(kind, chosen):
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    digits = digit_tokens(tokenizer)
    prompts = [prompt for i in chosen for prompt in token_rows(tokenizer)[i]]
    with torch.inference_mode():
        ours = digit_logits(model, prompts, digits)
    theirs = logits_alone(model, prompts)[:, digits]
    assert theirs.std() > 0.1  # else the comparison says little
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_logits_of_the_models_own_head_are_its_own(kind):
    """In bfloat16: rounded to 8 bits, and the very logits of the full forward pass."""
    model, tokenizer = tiny_model(kind, dtype=torch.bfloat16), tiny_tokenizer()
    digits, prompts = digit_tokens(tokenizer), [row[0] for row in token_rows(tokenizer)]
    with torch.inference_mode():
        for prompt in prompts:  # alone, so that both see the same hidden state
            own = digit_logits(model, [prompt], digits, "model")
            full = logits_alone(model, [prompt])[:, digits]
            assert full.dtype == torch.bfloat16 and own.dtype == torch.float32
            # at most one of 2^-8 apart, where sums are made in another order
            torch.testing.assert_close(own, full.float(), rtol=2**-7, atol=0)
            assert torch.equal(own, own.bfloat16().float())
            exact = digit_logits(model, [prompt], digits)
            assert not torch.equal(exact, exact.bfloat16().float())
            torch.testing.assert_close(own, exact, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "stored"), [("olmo3", torch.float32), ("llama", torch.bfloat16)]
)
def test_in_float32_both_heads_are_the_same_bits(kind, stored):
    """As stored, or computed from weights in bfloat16."""
    tokenizer, model = tiny_tokenizer(), compute_in_float32(tiny_model(kind, dtype=stored))
    prompts = [prompt for row in token_rows(tokenizer) for prompt in row]
    heads = [digit_logits(model, prompts, digit_tokens(tokenizer), h) for h in get_args(Head)]
    assert torch.equal(*heads)


def random_prompts(n, seed):
    """Prompts of up to 12 of three tokens, so that many begin alike and some are equal."""
    rng = np.random.default_rng(seed)
    return [rng.integers(1, 4, size=rng.integers(1, 13)).tolist() for _ in range(n)]


@pytest.mark.parametrize(
    ("n", "width"), [(1, 16), (2, 1), (9, 10_000), (60, 1), (60, 16), (60, 10_000)]
)
def test_each_prompt_is_what_its_last_token_sees(n, width):
    prompts = random_prompts(n, seed=n)
    batch = pack_prompts(prompts, width)
    visible = visible_tokens(torch.from_numpy(batch.until)).numpy()
    for prompt, row, column in zip(prompts, batch.row, batch.column, strict=True):
        seen = np.flatnonzero(visible[row, column])
        assert batch.token_ids[row, seen].tolist() == prompt
        assert batch.positions[row, seen].tolist() == list(range(len(prompt)))
        # So does every token on the way see what is before it, and nothing else.
        for place, token in enumerate(seen):
            assert np.flatnonzero(visible[row, token]).tolist() == seen[: place + 1].tolist()
    assert visible.any(-1).all()  # attention to nothing is not a number


def test_every_beginning_is_in_a_tree_once():
    prompts = sorted(random_prompts(60, seed=1))
    beginnings = {
        tuple(prompt[:end]) for prompt in prompts for end in range(1, len(prompt) + 1)
    }
    assert len(make_tree(prompts).token_ids) == len(beginnings)


def test_trees_are_as_long_as_pays():
    """Instructions of 30 tokens, then 10 of each of 64 prompts: in all 64 * 40 tokens."""
    prompts = [[9] * 30 + [i] * 10 for i in range(64)]

    def cost(n_trees, width):  # of trees of 30 + 64 / n_trees * 10 tokens
        length = 30 + -(-64 // n_trees) * 10
        return n_trees * length * (6 * width + length)

    for width, shape in {
        # 1 * 670 * (60000 + 670) = 40.6e6, against 2 * 350 * (60000 + 350) = 42.2e6
        10_000: (1, 670),
        # 8 * 110 * (96 + 110) = 181e3, against 13 * 80 * (96 + 80) = 183e3
        16: (8, 110),
    }.items():
        assert pack_prompts(prompts, width).token_ids.shape == shape
        assert cost(shape[0], width) == min(cost(n, width) for n in range(1, 65))
    # Nothing is shared: no tree of two, whose tokens would see each other for nothing.
    apart = [[i] * 10 for i in range(64)]
    batch = pack_prompts(apart, 10_000)
    assert batch.token_ids.shape == (64, 10)
    assert not batch.branches


def test_a_prompt_without_tokens_is_refused():
    with pytest.raises(ValueError, match="no tokens"):
        pack_prompts([[1], []], 16)


def test_clamp_passes_the_gradient():
    confidence = torch.tensor([0.0, 0.3, 1.0], requires_grad=True)
    clamped = clamp_straight_through(confidence)
    torch.testing.assert_close(clamped, torch.tensor([1e-6, 0.3, 1 - 1e-6]), rtol=0, atol=1e-9)
    clamped.log().sum().backward()
    # d log(p) / dp at the clamped value
    expected = torch.tensor([1e6, 1 / 0.3, 1 / (1 - 1e-6)])
    torch.testing.assert_close(confidence.grad, expected)


def test_digit_tokens_are_the_digits():
    tokenizer = tiny_tokenizer(TEXT + " 12 12 12", vocab_size=320)
    assert tokenizer.convert_ids_to_tokens(digit_tokens(tokenizer)) == list("0123456789")


def test_scaled_logits_are_refused():
    prompts = token_rows(tiny_tokenizer())[0]
    with pytest.raises(ValueError, match=r"GraniteForCausalLM.*not supported"):
        check_digit_logits(tiny_model("granite"), prompts, range(10, 20))


def test_a_split_model_has_a_batch_in_pieces():
    model, tokenizer = tiny_model(), tiny_tokenizer()
    digits = digit_tokens(tokenizer)
    prompts = [[5, 9, 200, i, j] for i in range(5) for j in (7, 8)]
    whole = digit_logits(model, prompts, digits)
    model.hf_device_map = {"model.embed_tokens": 0, "model.layers": 0, "model.norm": 1}
    passes = []
    model.get_decoder().register_forward_pre_hook(
        lambda _, __, inputs: passes.append(inputs["input_ids"].shape[0]), with_kwargs=True
    )
    torch.testing.assert_close(digit_logits(model, prompts, digits), whole)
    assert len(passes) == 4  # two for each GPU
    digit_logits(model, prompts[:3], digits)
    assert len(passes) == 4 + 3
