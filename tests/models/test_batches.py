"""Shards and batches that do not fit into memory leave results as they are."""

import logging
from unittest.mock import Mock

import pandas as pd
import pytest
import torch
from adapter_files import write_checkpoints
from jobs import NAMES, adapters_job, beams_job, scores_job
from merge_shards import merge_shards
from records import write_record

from persistcal.answers import decode
from persistcal.confidence import scoring
from persistcal.models.batches import Work, in_batches, in_halves
from persistcal.store import artifacts

pytestmark = pytest.mark.slow

JOBS = {"BEAMS": beams_job, "SCORES": scores_job}
WORK = {"BEAMS": (decode, "answer_queue", 4), "SCORES": (scoring, "digit_logits", 1)}


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
    assert sizes[:4] == [first, second, 2, (second - 2) % 2 or 2]
    text = "A batch of {} does not fit into the GPU's memory and is computed in halves"
    for said, size in zip(caplog.messages, (first, second), strict=False):
        assert said.startswith(text.format(size))


@pytest.mark.parametrize("table", JOBS)
def test_a_single_question_that_does_not_fit_stops_the_job(table, study, tmp_path, monkeypatch):
    module, name, at = WORK[table]
    monkeypatch.setattr(module, name, out_of_memory_above(0, getattr(module, name), at, []))
    monkeypatch.setattr("score_answers.check_digit_logits", lambda *_: None)
    with pytest.raises(MemoryError, match=r"One question alone .* Tried to allocate 2 GiB"):
        JOBS[table](study, tmp_path / "beams")
    assert not (tmp_path / "beams").exists()


def test_each_part_that_does_not_fit_is_halved():
    sizes = []
    compute = out_of_memory_above(3, lambda items: items, 0, sizes)
    assert in_halves(compute, list(range(7))) == list(range(7))
    assert sizes == [7, 4, 2, 2, 3]  # (7 + 1) // 2 = 4, 4 // 2 = 2


@pytest.fixture
def in_bfloat16(tmp_path):
    write_checkpoints(tmp_path, ["a"])
    write_record(tmp_path / "a", tmp_path / "a.json", dtype="bfloat16")
    return tmp_path


def spy_on_search(monkeypatch, refuse=lambda suffixes: False):
    """Questions of each search; it runs out of memory on those that `refuse` is true of."""
    together, search = [], decode._search

    def spied(model, shared, suffixes, found):
        assert model.dtype == torch.bfloat16
        if refuse([tuple(tokens) for tokens in suffixes]):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        together.append([tuple(tokens) for tokens in suffixes])
        search(model, shared, suffixes, found)

    monkeypatch.setattr(decode, "_search", spied)
    return together


def test_shards_agree_in_bfloat16_where_a_batch_does_not_fit(in_bfloat16, monkeypatch):
    """The second of three batches meets too little memory, in whichever job it is."""
    with monkeypatch.context() as patch:
        whole = spy_on_search(patch)
        beams_job(in_bfloat16, in_bfloat16 / "fits", batch_size=8)
    assert [len(batch) for batch in whole] == [8, 8, 8]
    first, second, third = whole
    files = []
    for n_shards in (1, 2, 3):
        with monkeypatch.context() as patch:
            together = spy_on_search(
                patch, lambda suffixes: len(suffixes) > 2 and suffixes[0] in second
            )
            shards = [in_bfloat16 / f"shard{i}of{n_shards}" for i in range(n_shards)]
            for i, path in enumerate(shards):
                beams_job(in_bfloat16, path, batch_size=8, shard=i, n_shards=n_shards)
        halves = [second[start : start + 2] for start in (0, 2, 4, 6)]
        assert sorted(together) == sorted([first, *halves, third])
        merged, questions = in_bfloat16 / f"of{n_shards}", in_bfloat16 / "questions.parquet"
        merge_shards([*map(str, shards)], str(questions), str(merged), table="BEAMS")
        files.append(merged.read_bytes())
    assert files[0] == files[1] == files[2]


def test_free_memory_does_not_decide_what_is_decoded_together(in_bfloat16, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    found = []
    for free in (1e5, 1e15):
        monkeypatch.setattr("psutil.virtual_memory", lambda n=free: Mock(available=n))
        with monkeypatch.context() as patch:
            together = spy_on_search(patch)
            output = in_bfloat16 / f"beams{free}"
            # A token takes 2 layers x 2 x 16 x 2 bytes; a tree of about 60, and the logits of
            # 3 beams, 300 x 20 bytes each, take about 27 kB: seven questions fit
            beams_job(in_bfloat16, output, batch_size="auto", memory_gb=1.9e-4)
            found.append((together, output.read_bytes()))
    assert found[0] == found[1]
    assert 1 < max(map(len, found[0][0])) < 24
    [message] = caplog.messages
    assert "0.0 GB are free; should the job be killed, lower decoding.memory_gb" in message


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
        lambda _model, rows, *_: torch.full((len(rows), 10), torch.nan),
    )
    with pytest.raises(FloatingPointError, match="logits are not finite"):
        scores_job(study, tmp_path / "scores")
