"""Files with labels and no confidence are compared in accuracy."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run
from scipy.stats import binomtest

import persistcal


def two_versions(folder, n=400, gain=0.1, **columns):
    """Write two files of labels, and return their paths and labels."""
    rng = np.random.default_rng(n)
    ease = rng.random(n)
    labels = [(rng.random(n) < ease * (1 - gain) + shift).astype(int) for shift in (0, gain)]
    paths = [folder / f"{name}.csv" for name in ("v1", "v2")]
    for path, correct in zip(paths, labels, strict=True):
        rows = pd.DataFrame({"question_id": np.arange(n), "correct": correct, **columns})
        rows.to_csv(path, index=False)
    return paths, labels


@pytest.mark.parametrize("gain", [0.0, 0.03, 0.2])
def test_labels_alone_give_mcnemars_test_and_a_bootstraps_interval(tmp_path, capsys, gain):
    paths, (first, second) = two_versions(tmp_path, gain=gain)
    assert run("compare", *paths, "--out", tmp_path / "out", "--json") == 0
    [verdict] = json.loads(capsys.readouterr().out)["verdicts"]
    gained, lost = int((second > first).sum()), int((second < first).sum())
    assert (verdict["gained"], verdict["lost"], verdict["estimators"]) == (gained, lost, [])
    [row] = pd.read_csv(tmp_path / "out" / "findings.csv").to_dict("records")
    exact = binomtest(lost, gained + lost).pvalue
    assert json.loads(row["evidence"])["p_value"] == pytest.approx(exact)
    assert row["value"] == pytest.approx(second.mean() - first.mean())
    drawn = np.random.default_rng(0).integers(0, 400, (4000, 400))
    ends = np.quantile((second - first)[drawn].mean(axis=1), [0.025, 0.975])
    assert [row["lower"], row["upper"]] == pytest.approx(ends, abs=0.012)


def test_the_verdict_and_the_page_say_that_there_is_no_confidence(tmp_path, capsys):
    paths, _ = two_versions(tmp_path)
    assert run("compare", *paths, "--out", tmp_path / "out", "--verbose") == 0
    text = capsys.readouterr().out
    for name in ("confidence", "calibration", "threshold"):
        assert f"{name:<12} – no confidence\n" in text
    assert "Labels only: accuracies are compared" in text
    assert "Next: add the column confidence to the files" in text
    page = (tmp_path / "out" / "report" / "index.html").read_text()
    assert "No confidence is given, so only the accuracy is compared." in page
    assert pd.read_csv(tmp_path / "out" / "metrics.csv").empty
    assert run("compare", *paths, "--estimator", "own") == 1
    assert "no estimator 'own'; add the column confidence" in capsys.readouterr().err


def test_a_notebook_compares_labels_as_the_command_does(tmp_path):
    paths, labels = two_versions(tmp_path)
    rows = [
        pd.DataFrame({"checkpoint": path.stem, "question_id": range(400), "correct": correct})
        for path, correct in zip(paths, labels, strict=True)
    ]
    comparison = persistcal.compare(pd.concat(rows))
    assert comparison._repr_html_().startswith("<pre>v1 → v2, 400 questions, ")
    assert run("compare", *paths, "--out", tmp_path / "out") == 0
    given = pd.read_csv(tmp_path / "out" / "findings.csv")
    [noted] = comparison.tables["findings"].to_dict("records")
    assert noted["lower"] == pytest.approx(given["lower"].item())
    with pytest.raises(ValueError, match="'confidence' is missing"):
        persistcal.evaluate(pd.concat(rows))


def test_groups_of_labels_have_the_interval_of_the_bootstrap(tmp_path, capsys):
    paths, _ = two_versions(tmp_path, group=np.arange(400) // 4)
    words = ["--out", tmp_path / "out", "--replicates", 300, "--verbose"]
    assert run("compare", *paths, *words) == 0
    rows = pd.read_csv(tmp_path / "out" / "findings.csv")
    states = pd.read_csv(tmp_path / "out" / "states.csv")
    assert rows["lower"].item() == pytest.approx(states["lower_2_5pct"].item())


@pytest.mark.parametrize(
    ("command", "columns", "problem"),
    [
        ("compare", {"conf": 0.5}, "give --columns confidence=conf if"),
        ("metrics", {}, "the answers have labels and no confidence; add the column"),
        ("threshold", {}, "the answers have labels and no confidence; add the column"),
    ],
)
def test_labels_alone_are_refused_where_a_confidence_is_needed_or_may_be_meant(
    tmp_path, capsys, command, columns, problem
):
    paths, _ = two_versions(tmp_path, **columns)
    assert run(command, *paths) == 1
    assert problem in capsys.readouterr().err


def test_a_confidence_in_one_file_only_is_refused(tmp_path, capsys):
    paths, _ = two_versions(tmp_path)
    pd.read_csv(paths[0]).assign(confidence=0.5).to_csv(paths[0], index=False)
    for files in (paths, paths[::-1]):
        assert run("compare", *files, "--out", tmp_path / "out") == 1
        error = capsys.readouterr().err
        assert f"{paths[1]}: has no column 'confidence', and {paths[0]} has one" in error
    assert not (tmp_path / "out").exists()
