"""Shards and batches that do not fit into memory leave results as they are."""

import logging

import pandas as pd
import pytest
import torch
from adapter_files import write_checkpoints
from jobs import NAMES, adapters_job, beams_job, scores_job
from merge_shards import merge_shards

from persistcal import artifacts
from persistcal.answers import decode
from persistcal.confidence import scoring
from persistcal.models.batches import Halving, Work, in_batches

pytestmark = pytest.mark.slow

JOBS = {"BEAMS": beams_job, "SCORES": scores_job}
WORK = {"BEAMS": (decode, "_search", 2), "SCORES": (scoring, "digit_logits", 1)}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_checkpoints(folder, NAMES)
    adapters_job(folder, folder / "adapters/seed17/adapter_model.safetensors")
    for table, job in JOBS.items():
        job(folder, folder / table)
    return folder


@pytest.mark.parametrize("table", JOBS)
@pytest.mark.parametrize("n_shards", [2, 3, 10])
def test_any_number_of_shards_makes_the_same_file(table, n_shards, study, tmp_path):
    shards = [tmp_path / f"shard{i}" for i in range(n_shards)]
    for i, path in enumerate(shards):
        JOBS[table](study, path, shard=i, n_shards=n_shards)
    sizes = [len(pd.read_parquet(path)) for path in shards]
    # Batches: 24 / 3 of beams; 6 / 2 of scores. The last shards may have none.
    assert sum(sizes) == {"BEAMS": 24 * 3, "SCORES": 6 * 4}[table]
    assert max(sizes) < sum(sizes)
    merge_shards(
        [str(path) for path in reversed(shards)],
        str(study / "questions.parquet"),
        str(tmp_path / "merged"),
        table=table,
    )
    assert (tmp_path / "merged").read_bytes() == (study / table).read_bytes()


def out_of_memory_above(n, compute, at, sizes):
    """`compute`, which fails when its argument number `at` has more than `n` items."""

    def fail_or_compute(*arguments, **settings):
        sizes.append(len(arguments[at]))
        if sizes[-1] > n:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return compute(*arguments, **settings)

    return fail_or_compute


@pytest.mark.parametrize("table", JOBS)
def test_a_batch_that_does_not_fit_is_halved(table, study, tmp_path, monkeypatch, caplog):
    module, name, at = WORK[table]
    sizes = []
    compute = out_of_memory_above(2, getattr(module, name), at, sizes)
    monkeypatch.setattr(module, name, compute)
    caplog.set_level(logging.WARNING)
    JOBS[table](study, tmp_path / "halved", batch_size=8)
    kind = getattr(artifacts, table)
    ours, whole = (artifacts.read(path, kind) for path in (tmp_path / "halved", study / table))
    pd.testing.assert_frame_equal(ours, whole, rtol=0, atol=1e-5)
    # Beams: 24 questions; scores: 6 prompts of each adapter, (3 + 1) // 2 = 2.
    first, second = (8, 4) if table == "BEAMS" else (6, 3)
    assert sizes[:4] == [first, second, 2, 2]
    text = "A batch of {} does not fit into the GPU's memory; going on with {} at a time"
    assert caplog.messages[:2] == [text.format(first, second), text.format(second, 2)]


@pytest.mark.parametrize("table", JOBS)
def test_a_single_question_that_does_not_fit_stops_the_job(table, study, tmp_path, monkeypatch):
    module, name, at = WORK[table]
    monkeypatch.setattr(module, name, out_of_memory_above(0, getattr(module, name), at, []))
    monkeypatch.setattr("score_answers.check_digit_logits", lambda *_: None)
    with pytest.raises(MemoryError, match=r"One question alone .* Tried to allocate 2 GiB"):
        JOBS[table](study, tmp_path / "beams")
    assert not (tmp_path / "beams").exists()


def test_a_smaller_size_is_kept_for_the_batches_after():
    sizes = []
    halving = Halving(out_of_memory_above(3, lambda items: items, 0, sizes), 7)
    assert halving(list(range(7))) == list(range(7))
    assert sizes == [7, 4, 2, 2, 2, 1]  # (7 + 1) // 2 = 4, 4 // 2 = 2
    assert halving([5, 6, 7]) == [5, 6, 7]
    assert sizes[6:] == [2, 1]


def test_finished_batches_are_not_computed_again():
    seen = []

    def remember(number, compute):
        return [10, 11] if number == 1 else compute()

    def compute(batch):
        seen.append(batch)
        return [str(item) for item in batch]

    found = in_batches(compute, range(5), batch_size=2, work=Work(remember=remember))
    assert found == {0: "0", 1: "1", 2: 10, 3: 11, 4: "4"}
    assert seen == [[0, 1], [4]]


def test_a_confidence_that_is_not_a_number_stops_the_job(study, tmp_path, monkeypatch):
    monkeypatch.setattr("score_answers.check_digit_logits", lambda *_: None)
    monkeypatch.setattr(
        scoring,
        "digit_logits",
        lambda _model, rows, _digits: torch.full((len(rows), 10), torch.nan),
    )
    with pytest.raises(FloatingPointError, match="logits are not finite"):
        scores_job(study, tmp_path / "scores")
