import re
from pathlib import Path

import pandas as pd
import pytest

from persistcal.store import artifacts

ROOT = Path(__file__).parents[2]

LABELS = pd.DataFrame(
    {
        "question_id": ["q1", "q1", "q2"],
        "cluster": [0, 1, 0],
        "label": ["correct", "incorrect", "correct"],
        "source": ["lexical"] * 3,
    }
)


def test_what_is_written_is_read_back(tmp_path):
    clusters = {"question_id": ["q"], "cluster": [0], "answer": ["Paris"], "probability": [0.5]}
    clusters = pd.DataFrame(clusters | {"members": [["Paris", "paris."]]})
    artifacts.write(clusters, tmp_path / "deep" / "c.parquet", artifacts.CLUSTERS)
    read = artifacts.read(tmp_path / "deep" / "c.parquet", artifacts.CLUSTERS)
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["c.parquet"]
    assert list(read.pop("members")[0]) == ["Paris", "paris."]
    assert read.equals(clusters.drop(columns="members"))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (LABELS.drop(columns="label"), "column 'label' is missing"),
        (LABELS.assign(judge="x"), "unknown column 'judge'"),
        (LABELS.assign(label=["correct", None, "correct"]), "'label' has no value in row 1"),
        (LABELS.assign(cluster=[0, 0, 0]), r"two rows have the key {'question_id': 'q1'"),
        (LABELS.assign(cluster=["a", "b", "c"]), "wrong type"),
    ],
)
def test_another_shape_is_refused_and_leaves_no_file(tmp_path, frame, message):
    path = tmp_path / "labels.parquet"
    with pytest.raises(artifacts.TableError, match=message) as refused:
        artifacts.write(frame, path, artifacts.LABELS)
    assert str(path) in str(refused.value)
    assert "judge_answers" in str(refused.value)
    assert not path.exists()


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "labels.parquet").write_bytes(b"not parquet")
    with pytest.raises(artifacts.TableError, match=r"labels\.parquet: not a readable parquet"):
        artifacts.read(tmp_path / "labels.parquet", artifacts.LABELS)


def test_every_table_names_rules_that_exist():
    """A rule is named like its script; adapters are trained by a rule for each recipe."""
    scripts = {path.stem for path in ROOT.glob("workflow/scripts/*/*.py")}
    tables = [table for table in vars(artifacts).values() if isinstance(table, artifacts.Table)]
    assert len(tables) > 20
    for table in tables:
        assert set(re.findall(r"\w+_\w+", table.rule)) <= scripts, table.name


def test_whole_numbers_of_which_one_is_missing_are_whole_in_a_csv(tmp_path):
    place = {"model": "m", "dataset": "d", "earlier": "a"}
    counts = {"size": 2, "improvement": 1, "regression": 1, "kept": True}
    rows = [{"later": "b", "same_answers": 1}, {"later": "c", "same_answers": None}]
    frame = pd.DataFrame([{**place, **counts, **row} for row in rows])
    artifacts.write_csv(frame, tmp_path / "sets.csv", artifacts.CONTRAST_SETS)
    lines = (tmp_path / "sets.csv").read_text().splitlines()
    assert [line.split(",")[-1] for line in lines] == ["same_answers", "1", ""]
    back = artifacts.read_csv(tmp_path / "sets.csv", artifacts.CONTRAST_SETS)
    assert back["same_answers"].isna().tolist() == [False, True]
