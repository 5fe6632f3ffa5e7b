"""Results do not depend on shards or on batches that do not fit into memory."""

import logging
from unittest.mock import Mock

import pandas as pd
import pytest
import torch
from adapter_files import write_checkpoints
from jobs import NAMES, adapters_job, beams_job, merge_job, scores_job
from merge_beams import merge_beams
from merge_scores import merge_scores
from records import content_of, write_record

from persistcal.answers import decode
from persistcal.confidence import verbalised
from persistcal.models.batches import Work, in_batches, in_halves
from persistcal.store import artifacts

pytestmark = pytest.mark.slow

JOBS = {"BEAMS": beams_job, "SCORES": scores_job}
MERGES = {"BEAMS": merge_beams, "SCORES": merge_scores}
WORK = {  # the function that computes a batch, and its size
    "BEAMS": (decode, "answer_queue", lambda *arguments: arguments[4]),
    "SCORES": (verbalised, "confidence_of", len),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_checkpoints(folder, NAMES)
    adapters_job(folder, folder / "adapters/seed17/adapter_model.safetensors", epochs=1)
    for table, job in JOBS.items():
        job(folder, folder / table)
    return folder


@pytest.mark.parametrize("table", JOBS)
@pytest.mark.parametrize("n_shards", [2, 4])
def test_any_number_of_shards_makes_the_same_file(table, n_shards, study, tmp_path):
    shards = [tmp_path / f"shard{i}" for i in range(n_shards)]
    for i, path in enumerate(shards):
        JOBS[table](study, path, shard=i, n_shards=n_shards)
    sizes = [len(pd.read_parquet(path)) for path in shards]
    # Batches: 18 / 8 of beams; 6 / 2 of scores. The last of four shards has none.
    assert sum(sizes) == {"BEAMS": 18 * 3, "SCORES": 6 * 4}[table]
    assert max(sizes) < sum(sizes)
    merge_job(MERGES[table], study, shards[::-1], tmp_path / "merged", answers="own")
    assert content_of(tmp_path / "merged") == content_of(study / table)


def out_of_memory_above(n, compute, size_of, sizes):
    """Return `compute`, made to fail for more than `n` items at once."""

    def fail_or_compute(*arguments, **settings):
        sizes.append(size_of(*arguments))
        if sizes[-1] > n:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return compute(*arguments, **settings)

    return fail_or_compute


@pytest.mark.parametrize("table", JOBS)
def test_a_batch_too_large_for_memory_is_halved(table, study, tmp_path, monkeypatch, caplog):
    module, name, size_of = WORK[table]
    sizes = []
    compute = out_of_memory_above(2, getattr(module, name), size_of, sizes)
    monkeypatch.setattr(module, name, compute)
    caplog.set_level(logging.WARNING)
    JOBS[table](study, tmp_path / "halved", batch_size=8)
    kind = getattr(artifacts, table)
    halved, expected = (
        artifacts.read(path, kind) for path in (tmp_path / "halved", study / table)
    )
    pd.testing.assert_frame_equal(halved, expected, rtol=0, atol=1e-5)

    # 24 questions: 8, 4 and 2 at once. 6 prompts per adapter: 6, 3 and (3 + 1) // 2 = 2, then
    # the other half of 3.
    first, second = (8, 4) if table == "BEAMS" else (6, 3)
    assert sizes == [8, 4, 2] if table == "BEAMS" else sizes[:4] == [6, 3, 2, 1]

    text = "A batch of {} does not fit into the GPU's memory and is computed in halves"
    for message, size in zip(caplog.messages, (first, second), strict=False):
        assert message.startswith(text.format(size))


def test_halves_that_do_not_fit_are_halved_again():
    sizes = []
    compute = out_of_memory_above(3, lambda items: items, len, sizes)
    assert in_halves(compute, list(range(7))) == list(range(7))
    assert sizes == [7, 4, 2, 2, 3]  # (7 + 1) // 2 = 4, 4 // 2 = 2
    with pytest.raises(MemoryError, match=r"One question alone .* Tried to allocate 2 GiB"):
        in_halves(out_of_memory_above(0, list, len, []), [1, 2])


@pytest.fixture
def bfloat16_study(tmp_path):
    write_checkpoints(tmp_path, ["a"])
    write_record(tmp_path / "a", tmp_path / "a.json", dtype="bfloat16")
    return tmp_path


def spy_on_queue(monkeypatch, refuse=lambda suffixes, at_once: False):
    """Record the questions of each queue and the number at once; refuse some."""
    seen, answer = [], decode.answer_queue

    def spied(model, shared, suffixes, begin, at_once):
        assert model.dtype == torch.bfloat16
        suffixes = [tuple(tokens) for tokens in suffixes]
        if refuse(suffixes, at_once):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        seen.append((suffixes, at_once))
        return answer(model, shared, suffixes, begin, at_once)

    monkeypatch.setattr(decode, "answer_queue", spied)
    return seen


def test_shards_agree_in_bfloat16_even_if_a_batch_does_not_fit(bfloat16_study, monkeypatch):
    """The second of three queues does not fit, in any of the jobs."""
    with monkeypatch.context() as patch:
        whole = spy_on_queue(patch)
        beams_job(bfloat16_study, bfloat16_study / "fits", batch_size=2)

    # 18 questions of the split
    assert [(len(queue), at_once) for queue, at_once in whole] == [(8, 2), (8, 2), (2, 2)]
    first, second, third = whole
    files = []

    for n_shards in (1, 3):
        with monkeypatch.context() as patch:
            seen = spy_on_queue(patch, lambda *queue: queue == (second[0], 2))
            shards = [bfloat16_study / f"shard{i}of{n_shards}" for i in range(n_shards)]
            for i, path in enumerate(shards):
                beams_job(bfloat16_study, path, shard=i, n_shards=n_shards)
        assert sorted(seen) == sorted([first, (second[0], 1), third])
        merged = bfloat16_study / f"of{n_shards}"
        merge_job(merge_beams, bfloat16_study, shards, merged)
        files.append(merged.read_bytes())
    assert files[0] == files[1]


def test_free_memory_does_not_change_the_batches(bfloat16_study, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    runs = []
    for free in (1e5, 1e15):
        monkeypatch.setattr("psutil.virtual_memory", lambda n=free: Mock(available=n))
        with monkeypatch.context() as patch:
            seen = spy_on_queue(patch)
            output = bfloat16_study / f"beams{free}"
            # A token needs 2 layers x 2 x 16 x 2 bytes; a tree of about 40 tokens, and the
            # logits of 3 beams, 300 x 20 bytes each, need about 23 kB: eight questions fit.
            beams_job(bfloat16_study, output, batch_size="auto", memory_gb=1.9e-4)
            runs.append((seen, output.read_bytes()))
    assert runs[0] == runs[1]
    assert {at_once for _, at_once in runs[0][0]} == {8}
    [message] = caplog.messages
    assert "0.0 GB are free; should the job be killed, lower decoding.memory_gb" in message


def test_finished_batches_are_not_computed_again():
    seen = []

    def remember(number, compute):
        return [10, 11] if number == 1 else compute()

    def compute(batch):
        seen.append(batch)
        return [str(item) for item in batch]

    answers = in_batches(compute, range(5), batch_size=2, work=Work(remember=remember))
    assert answers == {0: "0", 1: "1", 2: 10, 3: 11, 4: "4"}
    assert seen == [[0, 1], [4]]


def test_logits_that_are_not_finite_stop_the_job(study, tmp_path, monkeypatch):
    monkeypatch.setattr("score_answers.check_digit_logits", lambda *_: None)
    monkeypatch.setattr(
        verbalised,
        "digit_logits",
        lambda _model, rows, *_: torch.full((len(rows), 10), torch.nan),
    )
    with pytest.raises(FloatingPointError, match="logits are not finite"):
        scores_job(study, tmp_path / "scores")
