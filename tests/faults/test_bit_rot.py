"""Flipped bits on a disk are noticed or have no effect; they never change a number."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from persistcal.store import artifacts
from persistcal.store.files import DamagedFileError, Digests, sha256, write_whole, written_whole
from persistcal.store.progress import Progress, Snapshot, read_sealed, seal
from persistcal.store.tables import content_digest

ROOT = Path(__file__).parents[2]
# Tables with lists, missing values, and repeated numbers, which parquet encodes
TABLES = {
    "clusters": (
        artifacts.CLUSTERS,
        {
            "question_id": ["q1", "q1", "q2"],
            "cluster": [0, 1, 0],
            "answer": ["Paris", "", "上海"],
            "probability": [0.5, 0.25, 1.0],
            "members": [["Paris", "paris."], [], ["上海"]],
        },
    ),
    "headroom": (
        artifacts.HEADROOM,
        {
            **{"model": ["a", "a"], "dataset": ["q", "r"], "headroom": [0.1, None]},
            **{"lower_2_5pct": [0.1, None], "upper_97_5pct": [0.1, 0.2]},
            **{"error_rate": [0.1, 0.2], "n_answered": [1, 2], "n": [1, 2]},
        },
    ),
}
LABELS = {
    "question_id": ["q1", "q2"],
    "cluster": [0, 0],
    "label": ["correct", "incorrect"],
    "source": ["lexical", "lexical"],
}


def flipped(content, bit):
    content = bytearray(content)
    content[bit // 8] ^= 1 << bit % 8
    return bytes(content)


def some_bits(content, n=100):
    """Return n bits of a content, evenly spaced."""
    return [int(bit) for bit in np.linspace(0, 8 * len(content) - 1, n)]


@pytest.mark.parametrize("name", TABLES)
def test_a_flipped_bit_in_a_table_is_refused_or_has_no_effect(name, tmp_path):
    table, columns = TABLES[name]
    path = tmp_path / "table.parquet"
    artifacts.write(pd.DataFrame(columns), path, table)
    expected, content = artifacts.read(path, table).to_dict("list"), path.read_bytes()
    n_refused, bits = 0, some_bits(content, n=200)
    for bit in bits:
        path.write_bytes(flipped(content, bit))
        try:
            assert repr(artifacts.read(path, table).to_dict("list")) == repr(expected), bit
        except artifacts.TableError as error:
            assert str(path) in str(error)
            n_refused += 1
    assert n_refused > len(bits) / 3  # other bits are statistics, and bytes that are not read


def test_the_refusal_of_a_changed_table_contains_the_remedy(tmp_path):
    path = tmp_path / "labels.parquet"
    artifacts.write(pd.DataFrame(LABELS), path, artifacts.LABELS)
    # Another program rewrites the file with its checksums: the digest remains.
    original = pq.read_table(path)
    changed = original.set_column(2, "label", [["incorrect", "incorrect"]])
    pq.write_table(changed.cast(original.schema), path)
    with pytest.raises(artifacts.TableError, match="does not match its digest; delete it"):
        artifacts.read(path, artifacts.LABELS)
    pd.DataFrame(LABELS).to_parquet(path)  # as another program does
    with pytest.raises(artifacts.TableError, match="it has no digest; delete it, so that"):
        artifacts.read(path, artifacts.LABELS)


def test_a_digest_does_not_depend_on_how_a_table_lies_in_memory():
    table, columns = TABLES["clusters"]
    content = artifacts.check(pd.DataFrame(columns), table, "here")
    pieces = pa.concat_tables([content.slice(0, 1), content.slice(1)])
    assert content_digest(pieces) == content_digest(content)
    variants = [
        {"answer": ["Pari", "s", "上海"]},
        {"members": [["Paris"], ["paris."], ["上海"]]},
        {"probability": [0.5, 0.5, 0.25]},
    ]
    digests = {
        content_digest(artifacts.check(pd.DataFrame(columns | o), table, "here"))
        for o in [{}, *variants]
    }
    assert len(digests) == 4


def test_the_digest_of_a_users_file_stays_with_the_table(tmp_path):
    table, path = artifacts.LABELS, tmp_path / "labels.parquet"
    frame = pd.DataFrame(LABELS)
    frame.attrs["sources"] = {"quiz.csv": "0f"}
    artifacts.write(frame, path, table)
    assert artifacts.sources(path) == {"quiz.csv": "0f"}
    assert artifacts.read(path, table).to_dict("list") == LABELS
    artifacts.write(pd.DataFrame(LABELS), path, table)
    assert artifacts.sources(path) == {}


def interrupted(output, compute):
    """Interrupt a run after part 0; return the part, computed or saved by an earlier run."""
    with pytest.raises(KeyboardInterrupt), Progress(output, [], {}) as work:
        part = work.remember("beams", 0, compute)
        work.write_snapshot("seed17", Snapshot({"x": torch.ones(4)}, {"step": 3}))
        raise KeyboardInterrupt
    return part


def test_saved_progress_with_a_flipped_bit_is_computed_again(tmp_path, caplog):
    output = tmp_path / "beams.parquet"
    interrupted(output, lambda: [["Paris", -1.25]])
    assert interrupted(output, lambda: "not asked") == [["Paris", -1.25]]
    folder = tmp_path / ".beams.parquet.progress"
    part, snapshot = folder / "000000.json", folder / "seed17.safetensors"
    assert not caplog.records
    for path in (part, snapshot):
        content, n_refused = path.read_bytes(), 0
        for bit in some_bits(content):
            path.write_bytes(flipped(content, bit))
            caplog.clear()
            work = Progress(output, [], {})
            if path == part:
                beams = work.remember("beams", 0, lambda: "computed again")
                assert beams in ("computed again", [["Paris", -1.25]])
                is_refused = beams == "computed again"
            else:
                state = work.read_snapshot("seed17")
                is_refused = state is None
                assert is_refused or state.tensors["x"].tolist() == [1.0] * 4
                assert is_refused or state.record == {"step": 3}
            assert is_refused == any("is damaged" in message for message in caplog.messages)
            n_refused += is_refused
        assert n_refused > 0.9 * len(some_bits(content))
        path.write_bytes(content)


def test_sealed_files_have_the_same_bytes_each_time_and_other_programs_read_them(tmp_path):
    tensors = {"b": torch.arange(6).view(2, 3).bfloat16(), "a": torch.ones(1)}
    content = seal(tensors, {"format": "pt", "step": "3"}, "beside")
    contents = {seal(tensors, {"step": "3", "format": "pt"}, "beside") for _ in range(9)}
    assert contents == {content}
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert torch.equal(load_file(path)["b"], tensors["b"])
    assert torch.equal(read_sealed(path, "beside")[0]["b"], tensors["b"])
    with pytest.raises(DamagedFileError, match=r"a\.safetensors or the file next to it is da"):
        read_sealed(path, "other")


def test_a_cached_digest_is_used_for_one_version_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("persistcal.store.files.READ_EACH_TIME", 0)
    path, digests = tmp_path / "weights", Digests(tmp_path / "cache")
    path.write_bytes(b"one")
    digest = digests.sha256(path)
    path.write_bytes(b"two")
    assert digests.sha256(path) == sha256(path) != digest
    [entry] = (tmp_path / "cache").iterdir()
    for content in ("", "{", "[1, 2]", json.dumps([["elsewhere"], digest])):
        entry.write_text(content)
        assert digests.sha256(path) == sha256(path)


def test_a_failed_write_leaves_the_former_file(tmp_path):
    path = tmp_path / "record.json"
    write_whole(path, "before")
    with pytest.raises(OSError, match="No space") as raised, written_whole(path) as part:
        part.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(path)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_a_write_removes_the_temporary_files_of_killed_processes_only(tmp_path):
    path = tmp_path / "a[1].json"
    waits = f"""from persistcal.store.files import written_whole
with written_whole({str(path)!r}) as part:
    part.write_text('half')
    print(flush=True)
    input()
"""
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": ROOT}
    dead, alive = (subprocess.Popen([sys.executable, "-c", waits], **piped) for _ in range(2))
    for process in (dead, alive):
        process.stdout.readline()
    dead.kill()
    dead.wait()
    assert len([*tmp_path.iterdir()]) == 2
    write_whole(path, "whole")
    assert path.read_text() == "whole"
    [part] = (file for file in tmp_path.iterdir() if file != path)
    assert part.name.endswith(f".{alive.pid}.part")
    alive.communicate(b"\n")
    assert path.read_text() == "half"  # the last write that succeeded
    assert [*tmp_path.iterdir()] == [path]
