"""Killed jobs continue from their saved work and end with the same files."""

import logging
import multiprocessing
import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from adapter_files import write_checkpoints
from jobs import NAMES, adapters_job, beams_job, scores_job

from persistcal.answers import decode
from persistcal.confidence import verbalised
from persistcal.store import progress
from persistcal.store.progress import Progress, Snapshot
from persistcal.training import train

JOBS = {
    "beams": (partial(beams_job, batch_size=1), "beams.parquet"),  # four are saved together
    "scores": (scores_job, "scores.parquet"),
    "adapters": (adapters_job, "seed17/adapter_model.safetensors"),
}
WORK = {  # the function that computes one batch or micro-batch of each job
    "beams": (decode, "answer_queue"),
    "scores": (verbalised, "confidence_of"),
    "adapters": (train, "question_losses"),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Make two checkpoints, their adapters, and the results of jobs that nothing stops."""
    folder = tmp_path_factory.mktemp("study")
    write_checkpoints(folder, NAMES)
    adapters_job(folder, folder / "adapters/seed17/adapter_model.safetensors")
    for job, name in JOBS.values():
        job(folder, folder / "whole" / name)
    return folder


def content(folder):
    """Return the bytes of all results, and of the training table all but its times."""
    contents = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if path.name == "training.parquet":
            contents[name] = pd.read_parquet(path).drop(columns="seconds").to_csv()
        else:
            contents[name] = path.read_bytes()
    return contents


def undisturbed(study, kind):
    prefix = JOBS[kind][1].split("17")[0]
    return {n: c for n, c in content(study / "whole").items() if n.startswith(prefix)}


def in_fork(function, log, kill_after_s=None):
    """Call `function` in a forked process, kill it after a while, return its exit code."""

    def run():
        logging.basicConfig(filename=log, level=logging.INFO, force=True)
        progress.SAVE_EVERY_S = 0
        function()

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    if kill_after_s is not None:
        process.join(kill_after_s)
        process.kill()
    process.join(120)
    return process.exitcode


def delete_results(folder):
    """Delete the outputs, as Snakemake does after a failed job."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.parent.name.endswith(".progress"):
            path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("kind", JOBS)
def test_a_job_killed_at_random_times_makes_the_same_files(kind, study, tmp_path):
    job, name = JOBS[kind]
    start = time.monotonic()
    assert in_fork(lambda: job(study, tmp_path / "timed" / name), tmp_path / "timing") == 0
    duration = time.monotonic() - start
    rng = np.random.default_rng(17)
    folder, log = tmp_path / "killed", tmp_path / "log"
    for share in rng.uniform(0.2, 0.9, 4):
        in_fork(lambda: job(study, folder / name), log, kill_after_s=share * duration)
        delete_results(folder)
    assert in_fork(lambda: job(study, folder / name), log) == 0
    assert content(folder) == undisturbed(study, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", JOBS)
def test_a_job_killed_while_saving_repeats_one_batch(kind, study, tmp_path, monkeypatch):
    job, name = JOBS[kind]
    folder, log = tmp_path / "killed", tmp_path / "log"
    write, (module, work) = progress.write_whole, WORK[kind]
    compute = getattr(module, work)
    with (tmp_path / "calls").open("ab", buffering=0) as calls:

        def count(*arguments, **settings):
            calls.write(b".")
            return compute(*arguments, **settings)

        def kill_at_write(n):
            written = []

            def write_or_die(path, content):
                written.append(path)
                if len(written) == n:  # half of the file is there
                    path = Path(path)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    half = content[: len(content) // 2]
                    path.with_name(f".{path.name}.{os.getpid()}.part").write_bytes(half)
                    os.kill(os.getpid(), signal.SIGKILL)
                write(path, content)

            return write_or_die

        monkeypatch.setattr(module, work, count)
        # 1: the key itself; afterwards: the key is there, so the third write is work.
        for n in (1, 3, 3):
            monkeypatch.setattr(progress, "write_whole", kill_at_write(n))
            code = in_fork(lambda: job(study, folder / name), log)
            assert code == -signal.SIGKILL
            delete_results(folder)
        monkeypatch.setattr(progress, "write_whole", write)
        assert in_fork(lambda: job(study, folder / name), log) == 0
        n_killed = (tmp_path / "calls").stat().st_size
        assert content(folder) == undisturbed(study, kind)
        assert in_fork(lambda: job(study, tmp_path / "again" / name), log) == 0
        n_whole = (tmp_path / "calls").stat().st_size - n_killed
    assert log.read_text().count("Continuing an interrupted run") == 2
    # Each of three kills repeats a batch, in training a step of two checkpoints.
    assert n_killed - n_whole == 3 * (2 if kind == "adapters" else 1)


def test_saved_work_is_used_only_for_the_same_settings_inputs_and_code(tmp_path):
    questions, output = tmp_path / "questions", tmp_path / "beams"
    questions.write_text("Who?")
    for text, settings in (
        ("Who?", {"n_beams": 10, "code": "a"}),
        ("Who?", {"n_beams": 5, "code": "a"}),
        ("Who?", {"n_beams": 5, "code": "b"}),
        ("Where?", {"n_beams": 5, "code": "b"}),
    ):
        questions.write_text(text)
        for compute in (lambda: "first", lambda: "second"):
            with (
                pytest.raises(KeyboardInterrupt),
                Progress(output, [questions], settings) as work,
            ):
                assert work.read_snapshot("state") is None
                assert work.remember("beams", 3, compute) == "first"
                raise KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt), Progress(output, [questions], settings) as work:
            work.write_snapshot("state", Snapshot({"x": torch.ones(2)}, {"step": 4}))
            raise KeyboardInterrupt
        tensors, record = Progress(output, [questions], settings).read_snapshot("state")
        assert (tensors["x"].tolist(), record) == ([1.0, 1.0], {"step": 4})


def test_a_short_job_saves_no_work(tmp_path):
    with Progress(tmp_path / "beams", [], {}) as work:
        batches = [work.remember("beams", n, lambda n=n: [n, 0.1]) for n in (0, 1)]
        assert batches == [[0, 0.1], [1, 0.1]]
        assert not list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_saved_work_keeps_numbers_and_texts_exactly(tmp_path):
    beams = [[" ⟨Ödön⟩\ud800", float(np.float32(-1.2345678))], ["", -1e-300], ["\0", 0.1 + 0.2]]
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), Progress(tmp_path / "beams", [], {}) as work:
            remembered = work.remember("beams", 0, lambda: beams)
            raise KeyboardInterrupt
        assert remembered == beams
    assert [p.name for p in sorted(Path(work.folder).iterdir())] == ["000000.json", "key"]
