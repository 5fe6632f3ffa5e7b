"""Copies of a model that do not fit into a GPU together take turns on the GPU."""

import copy
import gc
import logging
import weakref
from types import SimpleNamespace

import pytest
import torch
from adapter_files import adapter_paths, training_job, write_checkpoints
from safetensors.torch import load_file
from tiny_models import tiny_model
from train_adapters import train_adapters

from persistcal.store.jobs import execute
from persistcal.training.train import park, present

NAMES = ["a", "b", "c"]


@pytest.fixture
def one_gpu(monkeypatch):
    """A single GPU; tests set the size of the memory."""
    gpu = SimpleNamespace(total_memory=80e9, major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: gpu)
    return gpu


@pytest.fixture
def embeddings_on_gpu(monkeypatch):
    """The number of models with embeddings on the GPU at each forward pass."""
    counts, forward, modules = [], torch.nn.Embedding.forward, weakref.WeakSet()

    def counted(module, ids):
        modules.add(module)
        counts.append(sum(m.weight.device.type == "cuda" for m in modules))
        return forward(module, ids)

    monkeypatch.setattr(torch.nn.Embedding, "forward", counted)
    return counts


def test_a_small_gpu_trains_the_same_adapter(tmp_path, one_gpu, embeddings_on_gpu, caplog):
    caplog.set_level(logging.INFO)
    write_checkpoints(tmp_path, NAMES, n_train=6)
    adapters = {}
    for n_at_once, memory in ((3, 80e9), (1, 60_000)):
        gc.collect()
        embeddings_on_gpu.clear()
        one_gpu.total_memory = memory
        folder = tmp_path / str(n_at_once)
        execute(train_adapters, training_job(tmp_path, NAMES, folder, epochs=1))
        adapters[n_at_once] = [load_file(path) for path in adapter_paths(folder)]
        assert max(embeddings_on_gpu) == n_at_once
        assert ("one at a time is on the GPU" in caplog.text) == (n_at_once == 1)
    torch.testing.assert_close(adapters[1], adapters[3], rtol=0, atol=1e-6)


def test_weights_are_in_main_memory_before_and_after_a_computation():
    model = tiny_model()
    expected = copy.deepcopy(model.state_dict())
    device = model.device
    parked = park(model)
    in_memory = {name: p.data_ptr() for name, p in parked.named_parameters()}
    with pytest.raises(ZeroDivisionError), present(parked, device):
        assert {p.device for p in parked.parameters()} == {device}
        raise ZeroDivisionError
    assert {name: p.data_ptr() for name, p in parked.named_parameters()} == in_memory
    assert {p.device.type for p in parked.parameters()} == {"cpu"}
    for name, tensor in parked.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], check_device=False)
