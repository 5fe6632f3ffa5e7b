"""Verbalised confidence, against full forward passes of single prompts."""

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
def test_packed_logits_equal_the_logits_of_single_prompts(kind, chosen):
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    digits = digit_tokens(tokenizer)
    prompts = [prompt for i in chosen for prompt in token_rows(tokenizer)[i]]
    with torch.inference_mode():
        packed = digit_logits(model, prompts, digits)
    single = logits_alone(model, prompts)[:, digits]
    assert single.std() > 0.1  # logits that differ, so that the comparison means something
    torch.testing.assert_close(packed, single, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_the_models_own_head_gives_the_logits_of_the_full_forward_pass_in_bfloat16(kind):
    """They are rounded to bfloat16's 8 bits; the default head returns float32."""
    model, tokenizer = tiny_model(kind, dtype=torch.bfloat16), tiny_tokenizer()
    digits, prompts = digit_tokens(tokenizer), [row[0] for row in token_rows(tokenizer)]
    with torch.inference_mode():
        for prompt in prompts:  # single prompts, so that hidden states are equal
            from_head = digit_logits(model, [prompt], digits, "model")
            full = logits_alone(model, [prompt])[:, digits]
            assert full.dtype == torch.bfloat16 and from_head.dtype == torch.float32
            # Another order of summation changes at most the last of 8 bits.
            torch.testing.assert_close(from_head, full.float(), rtol=2**-7, atol=0)
            assert torch.equal(from_head, from_head.bfloat16().float())
            exact = digit_logits(model, [prompt], digits)
            assert not torch.equal(exact, exact.bfloat16().float())
            torch.testing.assert_close(from_head, exact, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "stored"), [("olmo3", torch.float32), ("llama", torch.bfloat16)]
)
def test_both_heads_give_the_same_bits_in_float32(kind, stored):
    """For weights stored in float32, and for bfloat16 weights computed in float32."""
    tokenizer, model = tiny_tokenizer(), compute_in_float32(tiny_model(kind, dtype=stored))
    prompts = [prompt for row in token_rows(tokenizer) for prompt in row]
    heads = [digit_logits(model, prompts, digit_tokens(tokenizer), h) for h in get_args(Head)]
    assert torch.equal(*heads)


def random_prompts(n, seed):
    """Return prompts of at most 12 tokens, drawn from three, so that many share a prefix."""
    rng = np.random.default_rng(seed)
    return [rng.integers(1, 4, size=rng.integers(1, 13)).tolist() for _ in range(n)]


@pytest.mark.parametrize(
    ("n", "width"), [(1, 16), (2, 1), (9, 10_000), (60, 1), (60, 16), (60, 10_000)]
)
def test_the_last_token_of_a_packed_prompt_attends_to_its_prompt_only(n, width):
    prompts = random_prompts(n, seed=n)
    batch = pack_prompts(prompts, width)
    visible = visible_tokens(torch.from_numpy(batch.until)).numpy()
    for prompt, row, column in zip(prompts, batch.row, batch.column, strict=True):
        seen = np.flatnonzero(visible[row, column])
        assert batch.token_ids[row, seen].tolist() == prompt
        assert batch.positions[row, seen].tolist() == list(range(len(prompt)))
        # Each token attends to the tokens up to itself.
        for i, token in enumerate(seen):
            assert np.flatnonzero(visible[row, token]).tolist() == seen[: i + 1].tolist()
    assert visible.any(-1).all()  # attention to nothing is not a number


def test_a_tree_contains_each_prefix_once():
    prompts = sorted(random_prompts(60, seed=1))
    prefixes = {tuple(prompt[:end]) for prompt in prompts for end in range(1, len(prompt) + 1)}
    assert len(make_tree(prompts).token_ids) == len(prefixes)


def test_prompts_are_packed_into_the_number_of_trees_that_costs_least():
    """64 prompts share instructions of 30 tokens and have 10 tokens each: 64 * 40 in all."""
    prompts = [[9] * 30 + [i] * 10 for i in range(64)]

    def cost(n_trees, width):  # a tree has 30 + 64 / n_trees * 10 tokens
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
    # Prompts without a common prefix are not packed together.
    unrelated = [[i] * 10 for i in range(64)]
    batch = pack_prompts(unrelated, 10_000)
    assert batch.token_ids.shape == (64, 10)
    assert not batch.branches


def test_a_prompt_without_tokens_is_refused():
    with pytest.raises(ValueError, match="no tokens"):
        pack_prompts([[1], []], 16)


def test_clamped_confidences_keep_their_gradient():
    confidence = torch.tensor([0.0, 0.3, 1.0], requires_grad=True)
    clamped = clamp_straight_through(confidence)
    torch.testing.assert_close(clamped, torch.tensor([1e-6, 0.3, 1 - 1e-6]), rtol=0, atol=1e-9)
    clamped.log().sum().backward()
    # d log(p) / dp at the clamped value
    expected = torch.tensor([1e6, 1 / 0.3, 1 / (1 - 1e-6)])
    torch.testing.assert_close(confidence.grad, expected)


def test_digit_tokens_are_the_tokens_of_the_ten_digits():
    tokenizer = tiny_tokenizer(TEXT + " 12 12 12", vocab_size=320)
    assert tokenizer.convert_ids_to_tokens(digit_tokens(tokenizer)) == list("0123456789")


def test_a_model_that_scales_its_logits_is_refused():
    prompts = token_rows(tiny_tokenizer())[0]
    with pytest.raises(ValueError, match=r"GraniteForCausalLM.*not supported"):
        check_digit_logits(tiny_model("granite"), prompts, range(10, 20))


def test_a_model_on_two_gpus_gets_a_batch_in_two_pieces_per_gpu():
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
    assert len(passes) == 4  # two per GPU
    digit_logits(model, prompts[:3], digits)
    assert len(passes) == 4 + 3
