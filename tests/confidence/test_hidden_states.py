"""Hidden states at the end of prompts, against those that transformers returns."""

from types import SimpleNamespace

import pytest
import torch
from tiny_models import prompts_to_rate, tiny_model
from transformers.modeling_outputs import BaseModelOutput

from persistcal.confidence.hidden_states import blocks, last_hidden_states


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_last_hidden_states_are_those_of_each_prompt_alone(kind):
    model = tiny_model(kind)
    found = last_hidden_states(model, prompts_to_rate())
    raw = last_hidden_states(model, prompts_to_rate(), last_layer="before_norm")
    assert found.shape == raw.shape == (2, 7, 32)
    assert all(not block._forward_hooks for block in blocks(model))  # none is left behind
    for place, prompt in enumerate(prompts_to_rate()):
        ids = torch.tensor([prompt], device=model.device)
        with torch.inference_mode():
            states = model(ids, output_hidden_states=True).hidden_states
        expected = torch.stack([state[0, -1] for state in states[1:]])
        torch.testing.assert_close(found[:, place], expected, rtol=0, atol=1e-4)
        torch.testing.assert_close(raw[0, place], expected[0], rtol=0, atol=1e-4)
        # transformers gives the last block's output after the final norm
        normed = model.get_decoder().norm(raw[1, place])
        torch.testing.assert_close(normed, expected[1], rtol=0, atol=1e-4)
        assert (raw[1, place] - expected[1]).abs().max() > 0.1


class Tuple(torch.nn.Module):
    def forward(self, states):
        return states, None


class SplitModel(torch.nn.Module):
    """Two blocks, the first on the device of the model: "meta" stands for a GPU."""

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


def test_blocks_on_other_devices_than_the_model_begins_on():
    states = last_hidden_states(SplitModel(), [[1, 2, 3], [4]])
    assert states.shape == (2, 2, 5) and states.device.type == "meta"
