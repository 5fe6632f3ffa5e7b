"""Tables between rules: read as written, and refused in another shape."""

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


def test_a_table_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "deep" / "c.parquet"
    clusters = {"question_id": ["q"], "cluster": [0], "answer": ["Paris"], "probability": [0.5]}
    clusters = pd.DataFrame(clusters | {"members": [["Paris", "paris."]]})
    artifacts.write(clusters, path, artifacts.CLUSTERS)
    read = artifacts.read(path, artifacts.CLUSTERS)
    assert list(path.parent.iterdir()) == [path]
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
def test_a_table_of_another_shape_is_refused_and_leaves_no_file(tmp_path, frame, message):
    path = tmp_path / "labels.parquet"
    with pytest.raises(artifacts.TableError, match=message) as error:
        artifacts.write(frame, path, artifacts.LABELS)
    assert str(path) in str(error.value)
    assert "judge_answers" in str(error.value)
    assert not path.exists()


def test_a_file_that_is_not_parquet_is_refused_with_its_name(tmp_path):
    (tmp_path / "labels.parquet").write_bytes(b"not parquet")
    with pytest.raises(artifacts.TableError, match=r"labels\.parquet: not a readable parquet"):
        artifacts.read(tmp_path / "labels.parquet", artifacts.LABELS)


def test_each_table_names_the_rules_that_write_it():
    """A rule is named like its script; training has a rule for each recipe."""
    scripts = {path.stem for path in ROOT.glob("*/scripts/**/*.py")}
    tables = [table for table in vars(artifacts).values() if isinstance(table, artifacts.Table)]
    assert len(tables) > 20
    for table in tables:
        assert set(re.findall(r"\w+_\w+", table.rule)) <= scripts, table.name


def test_whole_numbers_have_no_decimals_in_a_csv_with_missing_values(tmp_path):
    row = {"model": "m", "dataset": "d", "earlier": "a", "later": "b", "size": 2}
    row |= {"improvement": 1, "regression": 1, "kept": True, "same_answers": 1}
    frame = pd.DataFrame([row, row | {"later": "c", "same_answers": None}])
    artifacts.write_csv(frame, tmp_path / "sets.csv", artifacts.CONTRAST_SETS)
    lines = (tmp_path / "sets.csv").read_text().splitlines()
    assert [line.split(",")[-1] for line in lines] == ["same_answers", "1", ""]
    read = artifacts.read_csv(tmp_path / "sets.csv", artifacts.CONTRAST_SETS)
    assert read["same_answers"].isna().tolist() == [False, True]
