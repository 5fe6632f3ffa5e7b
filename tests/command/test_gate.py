"""`--gate`: questions pass, fail or stay undecided under a policy."""

import hashlib
import json
import os
import subprocess
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml
from command_line import run

import persistcal
from persistcal.api.gate import read_rules, rules_of_words
from persistcal.evaluation.findings import Finding, to_row
from persistcal.evaluation.gate import PolicyError, check_policy, close_gate

ROOT = Path(__file__).parents[2]


def row_of(
    question, mark, word="", interval=(np.nan,) * 3, *, name="own", base=False, **numbers
):
    """Return a row of FINDINGS about an estimator (about accuracy: about none)."""
    found = Finding(question, mark, word, *interval, evidence=numbers)
    member = ("d", "" if question == "accuracy" else name)
    place = {"model": "m", "dataset": "d", "earlier": "v1", "later": "v2", "slice": ""}
    return {**place, **to_row(member, base, found)}


def gaps(*ends, p_adjusted=0.01):
    return {"gaps": [[0.5, 0.5, *pair] for pair in ends], "p_adjusted": p_adjusted}


ACCURACY = row_of("accuracy", "open", "can be chance", (-0.01, -0.03, 0.01))
CALIBRATION = row_of("calibration", "open", **gaps((-0.04, 0.03), (0.0, 0.045)))
GAP = gaps((0.06, 0.1))
CHANCE = gaps((0.06, 0.1), p_adjusted=0.2)
FOLLOWED, PRECISION = {"confidence": "followed"}, {"threshold": 0.9}


@pytest.mark.parametrize(
    ("row", "policy", "result"),
    [
        (ACCURACY, {"accuracy": -0.03}, "pass"),
        (ACCURACY, {"accuracy": -0.02}, "undecided"),
        (ACCURACY, {"accuracy": 0.02}, "fail"),
        (row_of("accuracy", "none"), {"accuracy": -0.5}, "undecided"),
        (CALIBRATION, {"calibration": 0.05}, "pass"),
        (CALIBRATION, {"calibration": 0.04}, "undecided"),
        (row_of("calibration", "yes", **GAP), {"calibration": 0.05}, "fail"),
        (row_of("calibration", "no", **CHANCE), {"calibration": 0.05}, "undecided"),
        (row_of("following", "yes", "followed"), FOLLOWED, "pass"),
        (row_of("following", "no", "moved against"), FOLLOWED, "fail"),
        (row_of("following", "no", "did not move"), FOLLOWED, "fail"),
        (row_of("following", "open", "not shown"), FOLLOWED, "undecided"),
        (row_of("following", "with the labels", "with labels"), FOLLOWED, "undecided"),
        (row_of("threshold", "yes", "kept", n_questions=9), PRECISION, "pass"),
        (row_of("threshold", "no", "broken", n_questions=9), PRECISION, "fail"),
        (row_of("threshold", "open", "undecided", n_questions=9), PRECISION, "undecided"),
        (ACCURACY, PRECISION, "undecided"),  # no row of it
    ],
)
def test_a_finding_passes_if_its_interval_is_inside_the_limit(row, policy, result):
    gate = close_gate(pd.DataFrame([row]), policy)
    assert gate.result == result
    assert gate.exit_code == {"pass": 0, "fail": 3, "undecided": 4}[result]


def test_one_failure_fails_and_baselines_and_unused_estimators_are_not_gated():
    kept = row_of("threshold", "yes", "kept", n_questions=9)
    broken = row_of("threshold", "no", "broken", n_questions=9, name="other")
    base = row_of("threshold", "none", "none", n_questions=9, name="end", base=True)
    rows = pd.DataFrame([ACCURACY, kept, broken, base])
    policy = {"accuracy": -0.02, "threshold": 0.9}
    gate = close_gate(rows, policy)
    results = {ruling.estimator: ruling.result for ruling in gate.rulings}
    assert results == {"": "undecided", "own": "pass", "other": "fail"}
    assert gate.result == "fail"
    assert close_gate(rows, policy, estimators=["own"]).result == "undecided"
    assert close_gate(rows, {"threshold": 0.9}, estimators=["own"]).result == "pass"
    assert close_gate(rows[:0], policy).exit_code == 4


FALL, RISE, ALONE = {"accuracy": -0.03}, {"accuracy": 0.02}, {("m", "e"): "v1"}


@pytest.mark.parametrize(
    ("further", "policy", "by_dataset", "results"),
    [
        ({"dataset": "e"}, FALL, {"e": RISE}, {("m", "d"): "pass", ("m", "e"): "fail"}),
        ({"dataset": "e"}, {}, {"f": {"accuracy": 0.0}}, {}),
        ({"model": "n"}, FALL, {"d": RISE}, {("m", "d"): "fail", ("n", "d"): "fail"}),
        ({}, {}, {"d": FALL, "e": FALL}, {("m", "d"): "pass", ("m", "e"): "undecided"}),
    ],
)
def test_limits_of_a_dataset_replace_those_of_all(further, policy, by_dataset, results):
    """They are of all models, and a dataset with a single version stays open."""
    rows = pd.DataFrame([ACCURACY, *([ACCURACY | further] if further else [])])
    gate = close_gate(rows, policy, by_dataset=by_dataset, unpaired={} if further else ALONE)
    made = {(ruling.model, ruling.dataset): ruling.result for ruling in gate.rulings}
    assert made == results if results else gate.result == "undecided"


@pytest.mark.parametrize(
    "policy",
    [
        *({}, {"size": 1}, {"accuracy": "x"}, {"accuracy": 2}, {"accuracy": float("nan")}),
        *({"calibration": -0.1}, {"threshold": 0}, {"threshold": 1}, {"confidence": "moved"}),
    ],
)
def test_policies_without_meaning_are_refused_with_an_example(policy):
    with pytest.raises(PolicyError, match="confidence=followed"):
        check_policy(policy)


@pytest.fixture(scope="module")
def update(tmp_path_factory):
    """Write two versions: 2,000 answers, calibrated before and over-confident after."""
    folder, rng = tmp_path_factory.mktemp("gate"), np.random.default_rng(0)
    stated, paths = rng.uniform(0.5, 1, 2000), []
    for name, bias in (("v1", 0.0), ("v2", 0.2)):
        right = (rng.random(2000) < stated - bias).astype(int)
        rows = {"question_id": np.arange(2000), "confidence": stated.round(3), "correct": right}
        paths.append(folder / f"{name}.csv")
        pd.DataFrame(rows).to_csv(paths[-1], index=False)
    return paths


QUICK = ("--replicates", 200)


def last_line(capsys):
    """Return the line of the gate, which is folded at the width of a terminal."""
    output = capsys.readouterr()
    assert "undecided" not in output.err
    *_, last = output.out.split("\nGate: ")
    assert max(map(len, last.splitlines())) <= 100
    return "Gate: " + " ".join(last.split())


def test_the_printed_gap_of_a_calibration_is_the_one_that_decides():
    """The mean is within .05, and a group by confidence can be beyond."""
    wide = row_of("calibration", "open", **gaps((-0.045, 0.03), (-0.02, 0.08)))
    [ruling] = close_gate(pd.DataFrame([wide]), {"calibration": 0.05}).rulings
    assert (ruling.result, ruling.lower, ruling.upper) == ("undecided", -0.02, 0.08)


def test_the_gate_is_the_last_line_and_in_the_json_and_on_the_page(update, tmp_path, capsys):
    rules = ("--gate", "accuracy=-0.02", "calibration=0.05", "threshold=0.8")
    words = ("compare", *update, "--out", tmp_path / "out", *QUICK, *rules)
    assert run(*words) == 3
    last = last_line(capsys)
    assert last.startswith("Gate: fail; failed: accuracy (falls, −.")
    assert "], at least −.020), calibration of confidence (over-confident, .2" in last
    assert last in (tmp_path / "out/report/index.html").read_text()
    assert run(*words, "--json") == 3
    record = json.loads(capsys.readouterr().out)
    assert (record["exit_code"], record["schema_version"]) == (3, 1)
    assert record["version"] == persistcal.__version__
    digests = {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in update}
    assert record["inputs"] == digests
    schema = files("persistcal.api").joinpath("verdict.schema.json").read_text()
    jsonschema.validate(record, json.loads(schema))
    rules = {(r["key"], r["result"]) for r in record["gate"]["rules"]}
    assert rules == {("accuracy", "fail"), ("calibration", "fail"), ("threshold", "fail")}
    assert record["verdicts"][0]["next"].startswith("let v2 select a threshold")


def test_a_doubt_about_the_files_is_in_all_that_a_pipeline_reads(
    update, tmp_path, capsys, caplog
):
    paths, page = [tmp_path / "v1.csv", tmp_path / "v2.csv"], tmp_path / "out/report/index.html"
    for given, path in zip(update, paths, strict=True):
        rows = pd.read_csv(given).drop_duplicates("confidence").head(300)
        again = rows.assign(question_id=rows["question_id"] + 2_000)
        pd.concat([rows, again]).to_csv(path, index=False)
    words = ("compare", *paths, "--out", tmp_path / "out", *QUICK, "--gate", "accuracy=-0.9")
    assert run(*words, "--json", "--markdown", tmp_path / "gate.md") == 0
    output = capsys.readouterr().out
    [doubt] = json.loads(output)["verdicts"][0]["doubts"]
    assert doubt.startswith("300 of 600 questions have the confidences and labels of another")
    for text in ((tmp_path / "gate.md").read_text(), page.read_text()):
        assert "300 of 600 questions have the confidences and labels of" in text
    assert run("threshold", *paths, "--out", tmp_path / "out", "--precision", "0.6") == 0
    assert doubt in caplog.text


def test_pipelines_get_the_gate_as_markdown_and_junit(update, tmp_path, monkeypatch, capsys):
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    written = ("--markdown", tmp_path / "gate.md", "--junit", tmp_path / "gate.xml")
    words = ("compare", *update, "--out", tmp_path / "out", *QUICK, *written)
    assert run(*words) == 2
    assert "--junit is for a gate" in capsys.readouterr().err
    assert run(*words, "--gate", "accuracy=-0.02", "calibration=0.2") == 3
    text = (tmp_path / "gate.md").read_text()
    assert text == summary.read_text()
    assert "**Gate: fail**" in text and "| ❌ fail | accuracy (falls, −.2" in text.replace(
        "model dataset ", ""
    )
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert {case.get("name"): [part.tag for part in case] for case in suite} == {
        "accuracy": ["failure"],
        "calibration confidence": ["skipped"],
    }


def test_a_policy_in_a_file_is_the_policy_in_words(update, tmp_path, capsys):
    path = tmp_path / "policy.yaml"
    words = ("compare", *update, "--out", tmp_path / "out", *QUICK)
    path.write_text("accuracy: -0.3\nthreshold: 0.8\ndatasets: {math: {accuracy: 0}}\n")
    rules = rules_of_words(["accuracy=-0.3", "threshold"], 0.8)
    assert read_rules(str(path)) == rules._replace(by_dataset={"math": {"accuracy": 0.0}})
    for text, problem in (
        ("accuracy", "has no keys"),
        ("a: [", "is no YAML file"),
        ("datasets: [1]", "datasets must name a dataset"),
        ("datasets: {d: {threshold: 0.9}}", "all datasets have one threshold"),
        ("size: 1", "The gate has the key 'size'"),
    ):
        path.write_text(text)
        assert run(*words, "--policy", path) == 1
        assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (("--gate", "accuracy=0", "accuracy=1"), 1, "The gate has accuracy twice"),
        (("--gate", "accuracy=0", "--fail-if", "broken"), 2, "are forms of one gate"),
        (("--gate", "threshold", "--gate-estimator", "x"), 1, "names the estimator 'x'; ch"),
        (("--gate", "calibration=0.1"), 4, "the answers have no confidence; add the column"),
        (("--policy", "policy.yaml"), 4, "has the dataset 'math', and the files have no row"),
    ],
)
def test_a_gate_that_cannot_be_checked_is_one_sentence_and_writes_nothing(
    update, tmp_path, monkeypatch, capsys, options, code, problem
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text("datasets: {math: {accuracy: 0}}")
    given = update
    if code == 4:
        given = [tmp_path / path.name for path in update]
        for path, bare in zip(update, given, strict=True):
            pd.read_csv(path).drop(columns="confidence").to_csv(bare, index=False)
    assert run("compare", *given, "--out", "out", *QUICK, *options) == code
    assert problem in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("code", "open_is", "ends"),
    [(0, "fail", 0), (3, "pass", 3), (4, "fail", 4), (4, "pass", 0)],
)
def test_the_action_ends_as_the_command_does(tmp_path, code, open_is, ends):
    (command := tmp_path / "persistcal").write_text(f'#!/bin/sh\necho "$@"; exit {code}\n')
    command.chmod(0o755)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    [step] = [one for one in action["runs"]["steps"] if one.get("id") == "compare"]
    given = {"FILES": "v1.csv v2.csv", "OPTIONS": "--gate accuracy=0", "OUT": "c d"}
    given |= {"UNDECIDED": open_is, "GITHUB_OUTPUT": str(tmp_path / "output")}
    env = os.environ | given | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert {*step["env"]} == {*given} - {"GITHUB_OUTPUT"}
    bash = ["bash", "-eo", "pipefail", "-c", step["run"]]
    made = subprocess.run(bash, env=env, capture_output=True, text=True)
    assert made.returncode == ends
    assert made.stdout == "compare v1.csv v2.csv --out c d --gate accuracy=0\n"
    assert (tmp_path / "output").read_text() == f"code={code}\n"
