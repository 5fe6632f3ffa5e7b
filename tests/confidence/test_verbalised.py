"""Verbalised confidence against the full forward pass of each prompt alone."""

import math

import numpy as np
import pytest
import torch
from tiny_models import TEMPLATE, TEXT, tiny_model, tiny_tokenizer
from tokenizers import normalizers
from transformers import GraniteConfig, GraniteForCausalLM

from persistcal.confidence.packing import collate, pack_prompts
from persistcal.confidence.verbalised import (
    check_digit_logits,
    clamp_straight_through,
    confidence_of,
    digit_logits,
    digit_tokens,
    tokenise,
)

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


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
@pytest.mark.parametrize("chosen", [[0, 1, 2], [1], [2, 0]])
def test_packed_logits_equal_those_of_each_prompt_alone(kind, chosen):
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    digits = digit_tokens(tokenizer)
    rows = [token_rows(tokenizer)[i] for i in chosen]
    with torch.inference_mode():
        ours = digit_logits(model, [pack_prompts(row) for row in rows], digits)
        theirs = torch.stack(
            [
                model(torch.tensor([prompt])).logits[0, -1, digits]
                for row in rows
                for prompt in row
            ]
        )
    assert theirs.std() > 0.1  # else the comparison says little
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_packing_saves_the_shared_beginning():
    row = token_rows(tiny_tokenizer())[2]
    packed = pack_prompts(row)
    shared = len("Prompt: Who?\nCandidate:")  # at least one token for each 10 characters
    assert len(packed.token_ids) <= sum(map(len, row)) - 2 * shared // 10
    for prompt, branch, end in zip(row, (1, 2, 3), packed.ends, strict=True):
        mine = [i for i, b in enumerate(packed.branches) if b in (0, branch)]
        assert [packed.token_ids[i] for i in mine] == prompt
        assert [packed.positions[i] for i in mine] == list(range(len(prompt)))
        assert mine[-1] == end


def test_each_token_sees_its_own_prompt_only():
    rows = [pack_prompts([[1, 2, 3, 4], [1, 2, 5]]), pack_prompts([[7, 8]])]
    batch = collate(rows)
    assert batch.token_ids.tolist() == [[1, 2, 3, 4, 5], [7, 8, 0, 0, 0]]
    seen = [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 4]]
    assert [np.flatnonzero(row).tolist() for row in batch.visible[0]] == seen
    assert not batch.visible[1, :2, 2:].any()
    assert batch.row.tolist() == [0, 0, 1]
    assert batch.column.tolist() == [3, 4, 1]


def test_equal_prompts_and_a_prompt_that_begins_another():
    for prompts in ([[1, 2, 3], [1, 2, 3]], [[1, 2], [1, 2, 3, 4]]):
        packed = pack_prompts(prompts)
        assert [packed.token_ids[end] for end in packed.ends] == [p[-1] for p in prompts]
        assert [packed.positions[end] for end in packed.ends] == [len(p) - 1 for p in prompts]


def test_a_prompt_without_tokens_is_refused():
    with pytest.raises(ValueError, match="no tokens"):
        pack_prompts([[1], []])


def test_tokenise_gives_the_tokens_of_each_prompt_alone():
    tokenizer = tiny_tokenizer()
    prompts = [prompt for row in PROMPTS for prompt in row]
    tokens = tokenise(tokenizer, prompts * 2)
    assert tokens == {prompt: tokenizer(prompt)["input_ids"] for prompt in prompts}


def test_confidence_is_the_mean_digit_over_nine():
    logits = torch.tensor([[0.0] * 10, [math.log(3)] + [-1e9] * 8 + [0.0]])
    # Uniform: 45 / 10 / 9 = 0.5. Then 0 with 3/4 and 9 with 1/4: 0.25.
    torch.testing.assert_close(confidence_of(logits), torch.tensor([0.5, 0.25]))


def test_clamp_passes_the_gradient():
    confidence = torch.tensor([0.0, 0.3, 1.0], requires_grad=True)
    clamped = clamp_straight_through(confidence)
    torch.testing.assert_close(clamped, torch.tensor([1e-6, 0.3, 1 - 1e-6]), rtol=0, atol=1e-9)
    clamped.log().sum().backward()
    # d log(p) / dp at the clamped value
    expected = torch.tensor([1e6, 1 / 0.3, 1 / (1 - 1e-6)])
    torch.testing.assert_close(confidence.grad, expected)


def test_digits_that_are_not_single_tokens_are_refused():
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("7", "seven")
    tokenizer.name_or_path = "some/tokenizer"
    with pytest.raises(ValueError, match=r"'some/tokenizer' splits the digit '7' into"):
        digit_tokens(tokenizer)


def test_digit_tokens_are_the_digits():
    tokenizer = tiny_tokenizer(TEXT + " 12 12 12", vocab_size=320)
    assert tokenizer.convert_ids_to_tokens(digit_tokens(tokenizer)) == list("0123456789")


def test_scaled_logits_are_refused():
    shape = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 64}
    config = GraniteConfig(
        **shape,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        logits_scaling=8.0,
        initializer_range=0.2,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
    )
    prompts = token_rows(tiny_tokenizer())[0]
    with pytest.raises(ValueError, match=r"GraniteForCausalLM.*not supported"):
        check_digit_logits(GraniteForCausalLM(config).eval(), prompts, range(10, 20))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_supported_models_pass_the_check(kind, dtype):
    prompts = token_rows(tiny_tokenizer())[2]
    check_digit_logits(tiny_model(kind, dtype=dtype), prompts, range(10, 20))
