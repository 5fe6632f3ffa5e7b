"""`threshold --lock` and `--check`: thresholds in a committed file."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run

from benchmarks.threshold_worlds import release_trains


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """Lock the threshold of 40 right answers at .9, and write versions with 40, 33 and 20."""
    folder = tmp_path_factory.mktemp("lock")
    for name, right in {"v1": 40, "v2": 39, "kept": 38, "undecided": 33, "broken": 20}.items():
        rows = {"question_id": range(60), "confidence": [0.9] * 40 + [0.4] * 20}
        rows["correct"] = [1] * right + [0] * (60 - right)
        pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
    words = ["--precision", 0.8, "--out", folder / "out", "--lock", folder / "lock.json"]
    assert run("threshold", folder / "v1.csv", folder / "v2.csv", *words) == 0
    return folder


@pytest.mark.parametrize(("name", "code"), [("kept", 0), ("undecided", 4), ("broken", 3)])
def test_a_locked_threshold_is_decided_without_the_old_file(locked, capsys, name, code):
    before = sorted(locked.rglob("*"))
    assert run("threshold", "--check", locked / "lock.json", locked / f"{name}.csv") == code
    assert f"threshold of confidence ({name}" in " ".join(capsys.readouterr().out.split())
    assert sorted(locked.rglob("*")) == before


@pytest.mark.parametrize(
    ("edit", "option", "reason"),
    [
        ({"schema": 2}, "", "has the schema 2, and this version reads 1"),
        ({"target": 0.7}, "", "was edited after --lock wrote it"),
        ({}, "--columns dataset=topic", "is of the dataset dataset, and the files have a"),
        ({}, "--columns estimator=topic", "is of the estimator confidence (seed 0), and the"),
        ({}, "--uncertainty confidence", "was written for probabilities"),
    ],
)
def test_a_lock_of_something_else_is_refused(locked, tmp_path, capsys, edit, option, reason):
    pd.read_csv(locked / "kept.csv").assign(topic="a").to_csv(tmp_path / "v3.csv", index=False)
    lock = json.loads((locked / "lock.json").read_text()) | edit
    (tmp_path / "t.json").write_text(json.dumps(lock))
    words = [*option.split(), "--check", tmp_path / "t.json"]
    assert run("threshold", tmp_path / "v3.csv", *words) == 1
    assert reason in capsys.readouterr().err


def test_the_version_that_selected_a_threshold_cannot_check_it(locked, tmp_path, capsys):
    pd.read_csv(locked / "v1.csv")[::-1].to_csv(tmp_path / "v3.csv", index=False)
    for file in (locked / "v1.csv", tmp_path / "v3.csv"):
        assert run("threshold", "--check", locked / "lock.json", file) == 1
        assert f"{file.stem} selected the threshold" in capsys.readouterr().err


def test_a_file_that_is_no_lock_is_neither_read_nor_replaced(locked, tmp_path, capsys):
    (notes := tmp_path / "notes.json").write_text("{}")
    words = ["--precision", 0.8, "--out", tmp_path, "--lock", notes]
    assert run("threshold", locked / "v1.csv", locked / "v2.csv", *words) == 1
    assert run("threshold", "--check", notes, locked / "kept.csv") == 1
    assert capsys.readouterr().err.count("is no file of thresholds") == 2
    assert notes.read_text() == "{}"


def test_few_release_trains_keep_a_threshold_wrongly():
    shares = release_trains(kept_label=0.9, drift=0.005, n=300, worlds=30)
    assert 0 <= shares["wrong_kept"] <= shares["of_a_train"] <= 10
    assert not np.isnan(shares["of_one_version"])
