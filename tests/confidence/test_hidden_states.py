"""Hidden states at the end of prompts, against the states that transformers returns."""

from types import SimpleNamespace

import pytest
import torch
from tiny_models import prompts_to_rate, tiny_model
from transformers.modeling_outputs import BaseModelOutput

from persistcal.models.packing import blocks, last_hidden_states


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_the_last_hidden_states_of_a_batch_equal_those_of_single_prompts(kind):
    model = tiny_model(kind)
    states_of_batch = last_hidden_states(model, prompts_to_rate())
    raw = last_hidden_states(model, prompts_to_rate(), last_layer="before_norm")
    assert states_of_batch.shape == raw.shape == (2, 7, 32)
    assert all(not block._forward_hooks for block in blocks(model))  # hooks are removed
    for row, prompt in enumerate(prompts_to_rate()):
        ids = torch.tensor([prompt], device=model.device)
        with torch.inference_mode():
            states = model(ids, output_hidden_states=True).hidden_states
        expected = torch.stack([state[0, -1] for state in states[1:]])
        torch.testing.assert_close(states_of_batch[:, row], expected, rtol=0, atol=1e-4)
        torch.testing.assert_close(raw[0, row], expected[0], rtol=0, atol=1e-4)
        # transformers gives the last block's output after the final norm
        normed = model.get_decoder().norm(raw[1, row])
        torch.testing.assert_close(normed, expected[1], rtol=0, atol=1e-4)
        assert (raw[1, row] - expected[1]).abs().max() > 0.1


class Tuple(torch.nn.Module):
    def forward(self, states):
        return states, None


class SplitModel(torch.nn.Module):
    """Two blocks: the first on the model's device "meta", the second on the CPU."""

    device, dtype = torch.device("meta"), torch.float32
    config = SimpleNamespace(hidden_size=5)

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Tuple(), torch.nn.Identity()])

    def get_decoder(self):
        return self

    def forward(self, input_ids, attention_mask, position_ids, use_cache):
        assert input_ids.device == position_ids.device == attention_mask.device == self.device
        for block, device in zip(self.layers, ("meta", "cpu"), strict=True):
            states = block(torch.ones(*input_ids.shape, 5, device=device))
        return BaseModelOutput(last_hidden_state=states)


def test_a_model_can_be_split_over_devices():
    states = last_hidden_states(SplitModel(), [[1, 2, 3], [4]])
    assert states.shape == (2, 2, 5) and states.device.type == "meta"
