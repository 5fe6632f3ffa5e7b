"""Ranks take a GPU each, and train the same adapters as one process."""

import logging
from pathlib import Path

import torch
from adapter_files import adapter_paths, training_job, write_checkpoints
from safetensors.torch import load_file
from train_adapters import train_adapters

from persistcal.training.launch import execute_on_ranks, visible_gpus

SCRIPT = str(Path(__file__).parents[2] / "workflow/scripts/adapters/train_adapters.py")


def test_two_ranks_on_two_gpus_train_the_same_adapters(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    names = ["a", "b"]
    write_checkpoints(tmp_path, names, n_train=6)
    adapters = {}
    for n_ranks in (1, 2):
        to = tmp_path / str(n_ranks)
        job = training_job(tmp_path, names, to, epochs=1)
        execute_on_ranks(train_adapters, SCRIPT, job, n_ranks=n_ranks, timeout_min=5)
        adapters[n_ranks] = [load_file(path) for path in adapter_paths(to)]
    assert "rank 1 INFO Models run on cuda" in caplog.messages
    torch.testing.assert_close(adapters[2], adapters[1], rtol=0, atol=1e-4)


def test_gpus_are_counted_without_starting_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "_initialized", False)
    monkeypatch.setattr(torch.cuda, "_cached_device_count", None)
    for name in ("_cuda_getDeviceCount", "_cuda_init"):
        monkeypatch.setattr(torch._C, name, None)
    assert visible_gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert visible_gpus() == ["1"]
