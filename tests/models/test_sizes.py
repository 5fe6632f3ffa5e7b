"""Computed GPU memory, compared with the tensors that a model stores."""

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPTNeoXConfig,
    LlamaConfig,
    Olmo3Config,
    SmolLM3Config,
)

from persistcal.models.packing import pack_prompts
from persistcal.models.sizes import (
    DecoderShape,
    questions_at_once,
    scoring_bytes,
    training_bytes,
)
from persistcal.training.data import TrainingQuestion
from persistcal.training.train import initialise, question_losses, share_adapter

KINDS = {
    "smollm3": (SmolLM3Config, {"kv_heads": 2, "tied": True}),
    "gpt_neox": (GPTNeoXConfig, {"gated": False}),
    "llama": (LlamaConfig, {}),
    "olmo3": (Olmo3Config, {}),
}


def model_and_shape(kind, hidden=64, intermediate=160, layers=4):
    config, traits = KINDS[kind]
    shape = DecoderShape(hidden, intermediate, layers, heads=4, vocabulary=320, **traits)
    heads = {"num_key_value_heads": shape.kv_heads} if shape.kv_heads else {}
    model_config = config(
        vocab_size=shape.vocabulary,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=shape.heads,
        tie_word_embeddings=shape.tied,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        **heads,
    )
    model = AutoModelForCausalLM.from_config(model_config, dtype=torch.bfloat16).eval()
    return model, shape


def questions_and_tokens(n=6):
    """Return questions with two candidates each, and the prompts' tokens."""
    generator = torch.Generator().manual_seed(0)
    tokens, questions = {}, []
    for number in range(n):
        stem = torch.randint(20, 300, (30,), generator=generator).tolist()
        pair = (f"{number}a", f"{number}b")
        for name in pair:
            tokens[name] = stem + torch.randint(20, 300, (5,), generator=generator).tolist()
        questions.append(TrainingQuestion(pair, (0.5, 0.5), (1.0, 0.0)))
    return questions, tokens


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_weights_of_a_shape_equals_that_of_the_model(kind):
    model, shape = model_and_shape(kind)
    assert shape.weights == sum(p.numel() for p in model.parameters() if p.dim() > 1)
    adapter = share_adapter([model], rank=8, alpha=16)
    assert shape.adapter_weights(8) == sum(p.numel() for p in adapter.values())


@pytest.mark.parametrize("kind", KINDS)
def test_the_memory_of_training_is_computed_from_the_shape(kind):
    model, shape = model_and_shape(kind)
    adapter = share_adapter([model], rank=8, alpha=16)
    initialise(adapter, 17)
    questions, tokens = questions_and_tokens()
    permanent = {p.untyped_storage().data_ptr() for p in model.parameters()}
    stored = {}

    def store(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in permanent:
            stored[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(store, lambda tensor: tensor):
        question_losses(model, questions, tokens, list(range(10, 20)))

    n_tokens = pack_prompts(list(tokens.values()), shape.hidden).token_ids.size
    computed = training_bytes(shape, n_tokens) - scoring_bytes(shape, n_tokens)
    computed -= 16 * shape.adapter_weights(8)
    measured = sum(n_bytes for n_bytes, _ in stored.values())
    # Outputs of the adapters' first matrices are not part of it: 32 bytes for each linear
    # layer, which is much at 64 units and little at 2,048.
    measured -= n_tokens * shape.layers * (7 if shape.gated else 4) * 32
    assert 0.8 * computed < measured < 1.05 * computed


def test_joint_training_counts_a_copy_of_the_model_per_checkpoint():
    shape = DecoderShape(2048, 11008, 36, 16, 128_256, kv_heads=4, tied=True)
    # 3,074,949,120 weights of two bytes
    difference = training_bytes(shape, 1000, copies=4) - training_bytes(shape, 1000)
    assert difference == 3 * 6_149_898_240


@pytest.mark.parametrize(
    ("memory_gb", "n_questions", "expected"),
    [(1, 8, 3), (0.3, 8, 1), (1, 2, 2), (99, 500, 128)],
)
def test_questions_are_decoded_together_if_memory_suffices(memory_gb, n_questions, expected):
    """Three questions of 320 MB fit into 1 GB; at least one is decoded, and at most 128."""
    assert questions_at_once(320e6, memory_gb, n_questions) == expected
