"""`--by`: the verdict in slices of the questions, all at once."""

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import pytest
from command_line import run
from make_findings import make_findings

import persistcal
from benchmarks.gate_levels import KINDS, wrong_fails
from persistcal.evaluation.findings import accuracy_finding

QUICK = ("--replicates", 200)


@pytest.fixture(scope="module")
def update(tmp_path_factory):
    """Write two versions of 1,600 answers; only law falls, is over-confident and breaks."""
    folder, rng = tmp_path_factory.mktemp("slices"), np.random.default_rng(0)
    n = 1600
    topic = np.array(["art", "law", "sea", "war"])[np.arange(n) % 4]
    stated = np.where(np.arange(n) // 4 % 2, 0.9, 0.5)
    ease, paths = rng.random(n), []
    for name, fall in (("v1", 0.0), ("v2", 0.4)):
        right = ease < stated - fall * (topic == "law")
        rows = {"question_id": np.arange(n), "confidence": stated, "correct": right.astype(int)}
        frame = pd.DataFrame(
            rows | {"topic": topic, "level": np.arange(n) % 2, "id2": np.arange(n)}
        )
        paths.append(folder / f"{name}.csv")
        frame.to_csv(paths[-1], index=False)
    return paths


def test_the_verdict_names_the_slice_that_a_test_shows(update, tmp_path, capsys):
    words = ("compare", *update, "--out", tmp_path / "out", *QUICK, "--precision", "0.8")
    assert run(*words, "--by", "topic") == 0
    output = capsys.readouterr()
    assert "slices       topic=law ✗ accuracy falls: .7" in output.out
    assert "topic=law ✗ calibration of Confidence" in output.out.replace(
        "confidence", "Confidence"
    )
    assert "topic=law ✗ threshold of confidence broken: 5" in output.out
    assert "tested: 4 slices at once" in output.out
    assert "Ignored columns: level, id2." in output.out
    page = (tmp_path / "out/report/index.html").read_text()
    assert "Slices: topic=law ✗ accuracy falls" in page
    assert run(*words, "--by", "topic", "level", "--json", "--gate", "accuracy=-0.5") == 0
    record = json.loads(capsys.readouterr().out)
    jsonschema.validate(
        record, json.loads(files("persistcal.api").joinpath("verdict.schema.json").read_text())
    )
    names = {row["slice"] for row in record["verdicts"][0]["slices"]}
    assert names == {"level=0", "level=1", "topic=art", "topic=law", "topic=sea", "topic=war"}
    assert run(*words, "--by", "topic", "--gate", "accuracy=-0.15") == 3
    assert "failed: topic=law accuracy (falls" in " ".join(capsys.readouterr().out.split())


def test_intervals_of_a_slice_are_those_of_its_questions_at_the_shared_level(update, tmp_path):
    frames = [pd.read_csv(path).assign(checkpoint=path.stem) for path in update]
    comparison = persistcal.compare(pd.concat(frames), n_replicates=200, by=["topic"])
    rows = comparison.tables["findings"]
    row = rows[(rows["slice"] == "topic=law") & (rows["question"] == "accuracy")]
    ends = np.stack([frame.loc[frame["topic"] == "law", "correct"] for frame in frames])
    direct = accuracy_finding(ends, np.arange(400), n_compared=4)
    assert row["lower"].item() == direct.lower < accuracy_finding(ends, np.arange(400)).lower
    assert (rows["slice"] == "").sum() == 4


def test_categories_of_a_study_are_slices_as_by_makes_them(update):
    named = np.repeat(["small", "a", "b"], [10, 790, 800])
    rows = [pd.read_csv(path).assign(checkpoint=path.stem, category=named) for path in update]
    by = persistcal.compare(pd.concat(rows), n_replicates=200, by=["category"])
    ((_, dataset, _),) = inputs = by.inputs.predictions
    ids = pd.DataFrame({"question_id": np.arange(1600).astype(str), "dataset": dataset})

    def slices(categories):
        table = make_findings(
            pd.concat(inputs.values()),
            None,
            *(by.tables[name] for name in ("claims", "states", "thresholds")),
            ids.assign(split="test", excluded=False, category=categories),
            checkpoints=by.inputs.checkpoints,
            settings={dataset: by.settings},
        )
        return table.query("slice != ''").reset_index(drop=True)

    expected = by.tables["findings"].query("slice != ''").reset_index(drop=True)
    pd.testing.assert_frame_equal(found := slices(named), expected, check_dtype=False)
    assert [*found.query("word == 'too few questions'")["slice"]] == ["category=small"]
    (many,) = slices(np.arange(1600) % 60)[["slice", "word"]].to_numpy().tolist()
    assert many == ["category (60 values, at most 50 are tested)", "not tested"]
    assert slices("one").empty


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (("topik",), "has no further column 'topik' for --by, but topic, level, id2; name"),
        (("correct",), "has no further column 'correct' for --by"),
        (("id2",), "--by id2 makes 1600 slices of dataset; give a column with at most 50"),
        (("version",), "question '0' has the values v1 and v2 in the column 'version'"),
    ],
)
def test_columns_without_slices_are_refused(update, tmp_path, capsys, columns, problem):
    paths = [tmp_path / path.name for path in update]
    for path, given in zip(paths, update, strict=True):
        rows = pd.read_csv(given)
        rows = rows.assign(version=path.stem) if "version" in columns else rows
        rows.to_csv(path, index=False)
    assert run("compare", *paths, "--out", tmp_path / "out", "--by", *columns) == 1
    assert problem in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_small_slices_are_listed_without_a_test_unless_all_are_small(update, tmp_path, capsys):
    paths = [tmp_path / path.name for path in update]
    words = ("compare", *paths, "--out", tmp_path / "out", *QUICK, "--by", "part")
    for size, code in ((10, 1), (385, 0)):
        for path, given in zip(paths, update, strict=True):
            rows = pd.read_csv(given).head(400)
            rows.assign(part=np.arange(400) // size).to_csv(path, index=False)
        assert run(*words) == code
    assert "no slice of dataset has 20 questions" in capsys.readouterr().err
    rows = pd.read_csv(tmp_path / "out/findings.csv").query("slice == 'part=1'")
    assert rows[["mark", "word"]].to_numpy().tolist() == [["none", "too few questions"]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_slices", [1, 4, 20])
def test_few_gates_fail_if_nothing_differs_from_the_limit(kind, n_slices):
    """Of 200 studies at most 12 fail: P[Bin(200, .025) > 12] < .005."""
    assert wrong_fails(kind, n_slices, 200) <= 6
