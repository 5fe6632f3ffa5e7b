"""Bits that flip on a disk: noticed, or without meaning; never another number."""

import errno
import json
import subprocess
import sys
from pathlib import Path

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
# With lists, missing values, and numbers of which few differ (so that they are coded).
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
            "model": ["a", "a"],
            "dataset": ["q", "r"],
            "headroom": [0.1, None],
            "lower_2_5pct": [0.1, None],
            "upper_97_5pct": [0.1, 0.2],
            "error_rate": [0.1, 0.2],
            "n_answered": [1, 2],
            "n": [1, 2],
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


@pytest.mark.parametrize("name", TABLES)
def test_a_bit_that_flips_in_a_table_never_changes_what_is_read(name, tmp_path):
    table, columns = TABLES[name]
    path = tmp_path / "table.parquet"
    artifacts.write(pd.DataFrame(columns), path, table)
    expected, whole = artifacts.read(path, table).to_dict("list"), path.read_bytes()
    refused, bits = 0, range(0, 8 * len(whole), 61)
    for bit in bits:
        path.write_bytes(flipped(whole, bit))
        try:
            assert repr(artifacts.read(path, table).to_dict("list")) == repr(expected), bit
        except artifacts.TableError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > len(bits) / 3  # the rest are statistics, and what nothing reads


def test_a_table_says_what_to_do_when_a_value_has_changed(tmp_path):
    path = tmp_path / "labels.parquet"
    artifacts.write(pd.DataFrame(LABELS), path, artifacts.LABELS)
    # As a program would that rewrites the file with its checksums: the digest remains.
    other = pq.read_table(path)
    changed = other.set_column(2, "label", [["incorrect", "incorrect"]])
    pq.write_table(changed.cast(other.schema), path)
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
    others = [
        {"answer": ["Pari", "s", "上海"]},
        {"members": [["Paris"], ["paris."], ["上海"]]},
        {"probability": [0.5, 0.5, 0.25]},
    ]
    digests = {
        content_digest(artifacts.check(pd.DataFrame(columns | o), table, "here"))
        for o in [{}, *others]
    }
    assert len(digests) == 4


def test_the_digest_of_a_users_file_stays_with_the_table(tmp_path):
    table, path = artifacts.LABELS, tmp_path / "labels.parquet"
    artifacts.write(pd.DataFrame(LABELS), path, table, sources={"quiz.csv": "0f"})
    assert artifacts.sources(path) == {"quiz.csv": "0f"}
    assert artifacts.read(path, table).to_dict("list") == LABELS
    artifacts.write(pd.DataFrame(LABELS), path, table)
    assert artifacts.sources(path) == {}


def interrupted(output, compute):
    """Return part 0 as an interrupted run finds it, and the work files that it leaves."""
    with pytest.raises(KeyboardInterrupt), Progress(output, [], {}) as work:
        found = work.remember("beams", 0, compute)
        work.write_snapshot("seed17", Snapshot({"x": torch.ones(4)}, {"step": 3}))
        raise KeyboardInterrupt
    return found


def test_a_bit_that_flips_in_saved_progress_makes_it_absent(tmp_path, caplog):
    output = tmp_path / "beams.parquet"
    interrupted(output, lambda: [["Paris", -1.25]])
    assert interrupted(output, lambda: "not asked") == [["Paris", -1.25]]
    folder = tmp_path / ".beams.parquet.progress"
    part, snapshot = folder / "000000.json", folder / "seed17.safetensors"
    assert not caplog.records
    for path in (part, snapshot):
        whole, said = path.read_bytes(), 0
        for bit in range(0, 8 * len(whole), 11):
            path.write_bytes(flipped(whole, bit))
            caplog.clear()
            work = Progress(output, [], {})
            if path == part:
                found = work.remember("beams", 0, lambda: "computed again")
                assert found in ("computed again", [["Paris", -1.25]])
                told = found == "computed again"
            else:
                state = work.read_snapshot("seed17")
                told = state is None
                assert told or state.tensors["x"].tolist() == [1.0] * 4
                assert told or state.record == {"step": 3}
            assert told == any("is damaged" in message for message in caplog.messages)
            said += told
        assert said > 0.9 * len(range(0, 8 * len(whole), 11))
        path.write_bytes(whole)


def test_sealed_files_are_the_same_each_time_and_those_of_others_are_read(tmp_path):
    tensors = {"b": torch.arange(6).view(2, 3).bfloat16(), "a": torch.ones(1)}
    content = seal(tensors, {"format": "pt", "step": "3"}, "beside")
    again = {seal(tensors, {"step": "3", "format": "pt"}, "beside") for _ in range(9)}
    assert again == {content}
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert torch.equal(load_file(path)["b"], tensors["b"])
    assert torch.equal(read_sealed(path, "beside")["b"], tensors["b"])
    with pytest.raises(DamagedFileError, match=r"a\.safetensors or the file next to it is da"):
        read_sealed(path, "other")


def test_what_is_known_of_a_file_is_of_one_version(tmp_path, monkeypatch):
    monkeypatch.setattr("persistcal.store.files.READ_EACH_TIME", 0)
    path, digests = tmp_path / "weights", Digests(tmp_path / "known")
    path.write_bytes(b"one")
    one = digests.sha256(path)
    path.write_bytes(b"two")
    assert digests.sha256(path) == sha256(path) != one
    [entry] = (tmp_path / "known").iterdir()
    for content in ("", "{", "[1, 2]", json.dumps([["elsewhere"], one])):
        entry.write_text(content)
        assert digests.sha256(path) == sha256(path)


def test_a_file_is_there_whole_or_as_before(tmp_path):
    path = tmp_path / "record.json"
    write_whole(path, "before")
    with pytest.raises(OSError, match="No space") as raised, written_whole(path) as part:
        part.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(path)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path):
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
    [other] = (file for file in tmp_path.iterdir() if file != path)
    assert other.name.endswith(f".{alive.pid}.part")
    alive.communicate(b"\n")
    assert path.read_text() == "half"  # the last that ended well
    assert [*tmp_path.iterdir()] == [path]
