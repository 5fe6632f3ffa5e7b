"""The benchmarks for a GPU finish on a tiny model without a GPU, and report each part."""

import re
import subprocess
import sys

import pytest
import torch
import warm_python

from benchmarks import gpu


def test_all_limits_together_are_below_ten_minutes():
    assert sum(limit for _, limit in gpu.PARTS.values()) < 600


def test_a_part_that_fails_or_takes_too_long_is_a_row(monkeypatch):
    def run(words, *, timeout, **_):
        part = words[words.index("--part") + 1]
        if part == "memory":
            raise subprocess.TimeoutExpired(words, timeout)
        status = int(part == "ranks")
        return subprocess.CompletedProcess(words, status, '["a", "b", "c", true]\n', "x\nwhy\n")

    monkeypatch.setattr(gpu.subprocess, "run", run)
    rows = gpu.run_parts("cpu", "tiny")
    assert [(row.part, row.found) for row in rows if row.ok is False] == [
        ("memory", "ended at its limit of 60 s"),
        ("ranks", "failed: why"),
    ]
    assert "| memory | all of it | ended at its limit of 60 s | **no** |" in gpu.as_markdown(
        rows, ""
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gpu"])
    with pytest.raises(SystemExit, match="No GPU was found"):
        gpu.main()


@pytest.mark.slow
def test_all_parts_run_on_a_cpu(tmp_path, monkeypatch):
    page = tmp_path / "gpu.md"
    words = ["gpu", "--device", "cpu", "--shape", "tiny", "--to", str(page)]
    monkeypatch.setattr(gpu.subprocess, "run", warm_python.run_words)
    monkeypatch.setattr(sys, "argv", words)
    gpu.main()
    text = page.read_text()
    rows = re.findall(r"^\| (\w+) \| (.*?) \| (.*?) \| (.*?) \|$", text, flags=re.MULTILINE)
    assert {part for part, *_ in rows} >= {*gpu.PARTS, "rates"}
    assert sum(ok == "yes" for *_, ok in rows) == 13
    # 2 of 6 questions fit: 3 at once, then 2
    assert ("memory", "halvings of a batch of 6, simulated", "2", "yes") in rows
