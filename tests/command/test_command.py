"""The command `persistcal`: input files, written tables and pages, exit codes."""

import html
import io
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from command_line import run
from own_rows import write_rows
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.api import command, display, evaluate
from persistcal.api.evaluate import compare_inputs
from persistcal.readers.columns import PREDICTIONS
from persistcal.readers.inputs import make_settings
from persistcal.readers.reading import Reading
from persistcal.readers.study import read_study
from persistcal.readers.versions import name_checkpoints
from persistcal.store.files import one_writer

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "config" / "example_answers.csv"
FAST = ("--replicates", "200", "--min-contrast", "5")


@pytest.fixture(scope="module")
def predictions():
    rows = make_predictions(n=60).round({"confidence": 6})  # pandas keeps 10 digits in JSON
    rows["correct"] = rows["correct"].astype(int)
    return rows[[name for name in PREDICTIONS.names if name in {*rows} - {"train_dataset"}]]


def write_files(folder, predictions):
    """Write a file of another format for each checkpoint, without a column `checkpoint`."""
    first, second, third = (
        predictions[predictions["checkpoint"] == name].drop(columns="checkpoint")
        for name in CHECKPOINTS
    )
    files = [folder / name for name in ("a.csv", "b.jsonl", "c.parquet")]
    first.to_csv(files[0], index=False)
    second.to_json(files[1], orient="records", lines=True)
    third.to_parquet(files[2])
    return files


@pytest.mark.parametrize(
    ("name", "words"), [("metrics", "compare"), ("selective", "threshold"), ("own", "page")]
)
def test_results_never_replace_a_file_that_was_read(predictions, tmp_path, name, words, capsys):
    path = tmp_path / f"{name}.csv"
    predictions.to_csv(path, index=False)
    content = path.read_bytes()
    out = path if words == "page" else tmp_path
    for files in ([path], [tmp_path]):
        assert run(words, *files, "--out", out) == 1
        assert f"{name}.csv: " in capsys.readouterr().err
    assert path.read_bytes() == content


def test_printed_metrics_contain_no_formula(predictions, tmp_path, capsys):
    path = tmp_path / "own.csv"
    predictions.assign(model="=1+1", dataset="@x").to_csv(path, index=False)
    assert run("metrics", path, "--min-contrast", 5) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("'=1+1,'@x,")


def test_files_of_any_format_are_checkpoints_in_the_given_order(predictions, tmp_path, capsys):
    predictions = predictions[predictions["estimator"].isin(["own", "coarse"])]
    files = write_files(tmp_path, predictions)
    joint_file = tmp_path / "all.csv"
    predictions.to_csv(joint_file, index=False)
    assert run("compare", *files, "--out", tmp_path / "several", *FAST) == 0
    output = capsys.readouterr().out
    assert f"Checkpoints in order, model: {' → '.join(CHECKPOINTS)}." in output
    assert "Contrast sets of fewer than 5 questions are left out." in output
    tables = {path.name for path in (tmp_path / "several").glob("*.csv")}
    assert {"metrics.csv", "significance.csv", "states.csv"} < tables
    assert "<html" in (tmp_path / "several/report/index.html").read_text()
    several, one = (read_study([*map(str, paths)]) for paths in (files, [joint_file]))
    assert several.checkpoints == one.checkpoints == {"model": CHECKPOINTS}
    pd.testing.assert_frame_equal(several.all_predictions, one.all_predictions)

    backwards = read_study([*map(str, files[::-1])], Reading(estimators=["own"]))
    tests = compare_inputs(backwards, make_settings(min_contrast=5, n_replicates=200)).tables
    states = pd.read_csv(tmp_path / "several/states.csv"), tests["states"]
    forward, backward = (rows.query("metric == 'accuracy'") for rows in states)
    forward = forward.set_index(["earlier", "later"])["difference"]
    backward = backward.set_index(["later", "earlier"])["difference"]
    assert len(forward) == 3 and (-backward).to_dict() == pytest.approx(forward.to_dict())
    sets = tests["contrast_sets"][["earlier", "later"]].to_numpy().tolist()
    assert sets == [["c", "b"], ["c", "a"], ["b", "a"]]


def test_models_are_compared_on_their_common_questions(predictions, tmp_path, caplog):
    predictions = predictions[predictions["estimator"] == "own"]
    lacking = predictions["question_id"] > "q0009"
    rows_by_model = [predictions.assign(model="m"), predictions[lacking].assign(model="n")]
    pd.concat(rows_by_model).to_csv(tmp_path / "both.csv", index=False)
    assert run("compare", tmp_path / "both.csv", "--out", tmp_path / "out", *FAST) == 0
    note = "the last checkpoints of m and n share 50 of 60 questions and are compared on these"
    assert note in caplog.text
    assert note in (tmp_path / "out/report/index.html").read_text()


def test_metrics_reads_and_writes_standard_streams(predictions, tmp_path, capsys, monkeypatch):
    path = tmp_path / "all.csv"
    predictions.to_csv(path, index=False)
    assert run("metrics", path, "--min-contrast", "5") == 0
    from_file = capsys.readouterr().out
    stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run("metrics", "-", "--min-contrast", "5") == 0
    assert capsys.readouterr().out == from_file
    means = pd.read_csv(io.StringIO(from_file)).query("seed == 'mean' and metric == 'auc'")
    assert len(means) and means["value"].notna().all()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    assert run("metrics", "-") == 1
    assert capsys.readouterr().err.startswith("persistcal: stdin.csv: ")


def test_logs_are_named_by_their_folders_and_keep_their_labels(tmp_path, capsys):
    text = (ROOT / "tests/imports/lm_eval_filtered.jsonl").read_text()
    logged = [json.loads(line) for line in text.splitlines()]
    files = [tmp_path / name / "samples_gsm8k.jsonl" for name in ("step1", "step2")]
    for path in files:
        path.parent.mkdir()
        write_rows(path, logged)
        for line in logged:  # for the second file
            if line["doc_id"] in (0, 1):
                line["resps"] = [[f"{line['resps'][0][0]} Or so."]]
                line["filtered_resps"] = ["99" if line["exact_match"] else line["target"][-1]]
                line["exact_match"] = 1 - line["exact_match"]
    options = ("--labels", "log", "--filter", "strict-match", "--min-contrast", "1")
    out = tmp_path / "out"
    assert run("metrics", *files, *options) == 0

    printed = capsys.readouterr()
    assert "All labels came with the answers." in printed.err
    assert "model,dataset,dataset,end_correct,odds,contrast,auc,mean" in printed.out
    assert run("page", *files, "--out", out, "--replicates", "200", "--min-contrast", "1") == 0

    output = capsys.readouterr().out
    assert "model: step1 → step2" in output and "Answers were grouped lexically" in output
    assert "Left out: the estimator self_consistency needs several answers" in output
    assert "Rated by end_correct." in output and out.stat().st_size > 10_000


CHOICES = [ROOT / f"tests/imports/lm_eval_choice_{n}.jsonl" for n in (1, 2)]


def rated(files, **settings):
    """Return predictions by estimator, and the study."""
    study = read_study(list(map(str, files)), Reading(**settings))
    rows = study.all_predictions.set_index(["checkpoint", "question_id"])
    return dict(iter(rows.groupby("estimator"))), study


@pytest.mark.parametrize(
    ("normalisation", "metric"), [(None, "acc"), ("per_character", "acc_norm")]
)
def test_multiple_choice_logs_are_rated_by_options_and_keep_their_labels(normalisation, metric):
    by_estimator, study = rated(CHOICES, normalisation=normalisation, names=["a", "b"])
    names = ["end_correct", "option_probability", "option_margin", "option_entropy"]
    assert sorted(by_estimator) == sorted(names)
    for name, file in zip("ab", CHOICES, strict=True):
        for line in map(json.loads, file.read_text().splitlines()):
            key = (name, str(line["doc_id"]))
            assert by_estimator["option_margin"].loc[key, "correct"] == line[metric]
            n = len(line["doc"]["choices"])  # later requests lack the question
            scores = np.array([float(r[0][0]) for r in line["resps"][:n]])
            if normalisation:
                scores /= [len(text) for text in line["doc"]["choices"]]
            second, best = np.sort(np.exp(scores) / np.exp(scores).sum())[-2:]
            confidences = [by_estimator[e].loc[key, "confidence"] for e in names[1:3]]
            np.testing.assert_allclose(confidences, [best, best - second], rtol=1e-12)
    if normalisation:
        page = compare_inputs(study, make_settings(min_contrast=1, n_replicates=200)).to_html()
        assert "<dd>none (the right options of the questions)</dd>" in page
    assert "Kingdom of Denmark" in study.clusters["answer"].tolist()


def olmes(folder, name, scores, requests):
    """Write OLMES predictions for two questions with three options, and maybe the requests."""
    outputs = [[{"sum_logits": s, "num_chars": 3} for s in row] for row in scores]
    lines = [
        {"doc_id": i, "native_id": f"q{i}", "label": 0, "metrics": {}, "model_output": output}
        for i, output in enumerate(outputs)
    ]
    asked = [
        {"doc_id": i, "idx": k, "doc": {"query": f"Why {i}?"}}
        | {"request": {"continuation": text}}
        for i in range(2)
        for k, text in enumerate(["sun", "sky", "sea"])
    ]
    (folder / name).mkdir(parents=True)
    if requests:
        write_rows(folder / name / "task-000-arc-requests.jsonl", asked)
    return write_rows(folder / name / "task-000-arc-predictions.jsonl", lines)


def test_olmes_predictions_read_texts_from_the_requests_in_their_folder(tmp_path):
    scores = {"v1": [(-1.0, -2, -3), (-2, -1, -4)], "v2": [(-2.0, -1, -3), (-1, -4, -4)]}
    for requests in (True, False):
        folder = tmp_path / str(requests)
        files = [olmes(folder, name, rows, requests) for name, rows in scores.items()]
        by_estimator, study = rated(files, labels="log")
        predictions = by_estimator["option_probability"]
        assert predictions["correct"].tolist() == [True, False, False, True]
        assert list(predictions.index) == [(v, q) for v in ("v1", "v2") for q in "01"]
        # e^-1 / (e^-1 + e^-2 + e^-3) = 1 / (1 + .3679 + .1353)
        assert predictions["confidence"].iloc[0] == pytest.approx(0.6652, abs=1e-4)
        texts = ["Why 0?", "Why 1?"] if requests else ["q0", "q1"]
        assert study.questions["question"].tolist() == texts
        assert any("are those of" in note for note in study.notes) == requests


GENERATED = ROOT / "tests/imports/lm_eval_samples.jsonl"


@pytest.mark.parametrize(
    ("files", "words", "message"),
    [
        (CHOICES, "--deployed first", "scored options, so --deployed has no meaning"),
        (CHOICES, "--samples", "scored options, so --beams or --samples has no meaning"),
        (CHOICES, "--columns gold=answer", "is a log, so --columns has no meaning"),
        (CHOICES, "--normalisation per_token", "needs the column 'option_tokens', which is"),
        (CHOICES, "--estimator p_true", "no estimator is 'p_true'; choose from "),
        ([CHOICES[0], GENERATED], "", "contains answers and"),
        ([CHOICES[0], "copy.jsonl"], "", "its own (for checkpoints that are meant to be equal"),
    ],
)
def test_options_without_use_are_refused(tmp_path, monkeypatch, capsys, files, words, message):
    monkeypatch.chdir(tmp_path)
    shutil.copy(CHOICES[0], "copy.jsonl")
    names = ["--names", "a", "b"] if files is CHOICES else []
    assert run("metrics", *files, *names, *words.split()) == 1
    assert message in capsys.readouterr().err


def test_a_question_id_names_different_questions_in_different_datasets(tmp_path):
    # quiz: correct at a and wrong at b. other: the same answer at both.
    rows = pd.DataFrame({"checkpoint": list("abab"), "dataset": ["quiz"] * 2 + ["other"] * 2})
    rows["answer"] = ["Oslo", "Rome", "Paris", "paris."]
    references = rows["dataset"].map({"quiz": "Oslo", "other": "Paris"})
    rows = rows.assign(question_id="q1", question=rows["dataset"], references=references)
    rows.to_csv(tmp_path / "own.csv", index=False)
    options = ("--replicates", "200", "--min-contrast", "1")
    assert run("compare", tmp_path / "own.csv", "--out", tmp_path / "out", *options) == 0
    sets = pd.read_csv(tmp_path / "out/contrast_sets.csv").set_index("dataset")
    assert sets["size"].to_dict() == {"quiz": 1, "other": 0}
    assert sets["same_answers"].to_dict() == {"quiz": 0, "other": 0}


def test_an_output_folder_that_cannot_be_written_is_refused_before_reading(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run("compare", "nowhere.csv", "--out", "") == 2
    assert run("page", "nowhere.csv", "--out", " ") == 2
    assert "--out is empty" in capsys.readouterr().err
    out = tmp_path / "file" / "out"
    path = tmp_path / "a.csv"
    path.write_text("question_id,confidence,correct\n1,x,1\n")
    assert run("compare", path, "--out", out) == 1
    assert f"persistcal: {out}: Not a directory" in capsys.readouterr().err
    with one_writer(tmp_path / "out"):
        for command in ("compare", "threshold", "label-curve"):
            assert run(command, path, "--out", tmp_path / "out") == 1
            assert "out: another run writes into it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.csv: is empty; give a heading and a row"),
        ("\n", "a.csv: is empty"),
        ("question_id,question,references,answer,split\n1,?,x,x,train\n", "has the split test"),
        ("question_id,question,references,answer\n1,?,x,\n", "all 1 answers of model model"),
    ],
)
def test_files_without_evaluated_rows_are_refused(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_study([str(tmp_path / "a.csv")])


OTHER = ["--columns", "question_id=id", "confidence=conf", "correct=is_correct"]


def test_columns_are_renamed_and_others_are_ignored(predictions, tmp_path, capsys, caplog):
    table = predictions[predictions["estimator"] == "own"].drop(columns=["seed", "estimator"])
    for name in ("a", "b"):
        rows = table[table["checkpoint"] == name].drop(columns="checkpoint")
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        renamed = rows.rename(columns=dict(word.split("=") for word in OTHER[1:]))
        renamed = renamed.assign(latency=0.1, tokens=7)
        renamed.to_csv(tmp_path / f"other_{name}.csv", index=False, sep=";")
    options = ["--min-contrast", 5]
    assert run("metrics", tmp_path / "a.csv", tmp_path / "b.csv", *options) == 0
    expected = capsys.readouterr().out
    renamed_files = tmp_path / "other_a.csv", tmp_path / "other_b.csv"
    assert run("metrics", *renamed_files, *options, *OTHER) == 0
    printed = capsys.readouterr()
    assert printed.out == expected and "model: a → b." in printed.err
    assert printed.err.count("Ignored columns: latency, tokens.") == 1
    assert caplog.messages.count("Ignored columns: latency, tokens") == 1
    assert run("metrics", *renamed_files, *options, *OTHER, "--names", "v1", "v2") == 0
    assert "model: v1 → v2." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("heading", "words", "message"),
    [
        ("question_id,confidence,hits", "",
         "column 'correct' is missing; give --columns correct=hits if these are meant"),
        ("question_id,confidence,seen", "",
         "column 'correct' is missing; add it to every row, or name the column that holds it"),
        ("question_id,confidence", "", "column 'correct' is missing; add it to every row"),
        ("question_id,confidence,correct", "confidence=conf",
         "--columns confidence=conf: it has no 'conf', but question_id, confidence, correct"),
        ("question_id,confidence,correct,conf", "confidence=conf",
         "--columns confidence=conf: it has a column 'confidence', too; rename one"),
        ("question_id,confidence,correct,x", "sureness=x",
         "--columns sureness=x: there is no column 'sureness' to give; give question_id, "),
        ("question_id,confidence,correct,models", "",
         "column 'models' looks like 'model'; give --columns model=models, or rename it"),
    ],
)  # fmt: skip
def test_a_missing_column_is_refused_with_an_option(heading, words, message, tmp_path, capsys):
    (tmp_path / "a.csv").write_text(f"{heading}\n1{',1' * heading.count(',')}\n")
    option = ["--columns", words] if words else []
    out = tmp_path / "out"
    assert run("compare", tmp_path / "a.csv", "--out", out, *option) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not out.exists()


def test_a_column_of_labels_replaces_references_and_judging(tmp_path):
    rows = pd.DataFrame({"question_id": ["1", "1", "2", "2"], "question": list("aabb")})
    rows["answer"], rows["is_correct"] = ["x", "x", "y", "z"], [1, 1, 0, 1]
    path = tmp_path / "own.csv"
    rows.to_csv(path, index=False)
    study = read_study([str(path)], Reading(columns={"correct": "is_correct"}))
    assert study.answers["correct"].tolist() == [True, False]
    assert set(study.labels["source"]) == {"given"}
    rows.assign(is_correct=["1", "so so", "0", "1"]).to_csv(path, index=False)
    with pytest.raises(
        ValueError, match=r"correct is not valid \(row 2: 'so so'\); it can be 1, 0 or"
    ):
        read_study([str(path)], Reading(columns={"correct": "is_correct"}))
    stated = rows.iloc[[0, 2]].assign(confidence=[0.9, 0.2])
    stated.rename(columns={"is_correct": "correct"}).to_csv(path, index=False)
    study = read_study([str(path)])
    [predictions] = study.predictions.values()
    assert predictions["confidence"].tolist() == [0.9, 0.2]
    assert predictions["correct"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/samples_q_2026-11-24T08-16-28.840983.jsonl", "b/samples_q.jsonl"], ["a", "b"]),
        (["x/2026-11-24T08-16-28+00-00_q_v1.jsonl", "x/2026-11-25T08-16-28+00-00_q_v2.jsonl"],
         ["v1", "v2"]),
        (["x/q_2026-11-24T08-16-28.jsonl", "x/q_2026-11-25T08-16-28.jsonl"],
         ["2026-11-24T08-16-28", "2026-11-25T08-16-28"]),
        (["x/q.csv"], ["q"]),
    ],
)  # fmt: skip
def test_checkpoints_are_named_by_the_differing_part_of_the_file_names(files, names):
    assert name_checkpoints(files) == names


def deployed_rows(answers):
    rows = [
        {"question_id": q, "question": f"{q}?", "references": "x", "answer": text}
        for q, texts in answers.items()
        for text in texts
    ]
    return pd.DataFrame(rows)


def test_a_deployed_answer_is_rated_by_the_other_samples(tmp_path):
    """q1: two of three other samples agree. q2: no other sample agrees."""
    path = tmp_path / "own.csv"
    answers = {"q1": ["x", "x", "y", "X."], "q2": ["z", "x", "x", "x"]}
    deployed_rows(answers).to_csv(path, index=False)
    reading = Reading(deployed="first")
    study = read_study([str(path)], reading)
    assert study.answers["answer"].tolist() == ["x", "z"]
    assert study.answers["correct"].tolist() == [True, False]

    consistency = study.predictions["model", "dataset", "self_consistency"]["confidence"]
    assert consistency.tolist() == pytest.approx([2 / 3, 0])

    # Entropy of the other samples x, x, y at q1: 2/3 ln 3/2 + 1/3 ln 3; at q2 they are equal: 0
    entropy = study.predictions["model", "dataset", "semantic_entropy"]["confidence"]
    expected = math.exp(-(2 / 3 * math.log(1.5) + math.log(3) / 3))
    assert entropy.tolist() == pytest.approx([expected, 1])
    assert "The first answer to each question is the deployed one" in " ".join(study.notes)

    assert read_study([str(path)]).answers["answer"].tolist() == ["x", "x"]

    deployed_rows({"q1": ["x"], "q2": ["y"]}).to_csv(path, index=False)
    with pytest.raises(ValueError, match="'q1' has one answer, but --deployed first needs"):
        read_study([str(path)], reading)


def beams_of(checkpoint):
    """Return rows of four questions with two meanings: x of .5, and y of .2 twice."""
    texts = [("x", 0.5), ("y", 0.2), ("Y.", 0.2)]
    return [
        {"checkpoint": checkpoint, "question_id": f"q{i}", "question": f"{i}?"}
        | {"references": "x", "answer": text, "logprob": math.log(share)}
        for i in range(4)
        for text, share in texts
    ]


def test_rows_that_could_be_beams_or_samples_need_an_option(tmp_path, capsys):
    rows = pd.DataFrame(beams_of("a") + beams_of("b"))
    rows.loc[rows["checkpoint"] == "b", "logprob"] -= 0.1  # other answers than at a
    path = tmp_path / "own.csv"
    rows.to_csv(path, index=False)
    assert run("metrics", path) == 1
    assert "give --beams if they are beams" in capsys.readouterr().err

    shares = {}
    for strategy, answer in (("beams", "x"), ("sample", "y")):
        reading = Reading(estimators=["self_consistency"], beams=strategy == "beams")
        study = read_study([str(path)], reading)
        assert set(study.answers["answer"]) == {answer}
        shares[strategy] = study.predictions["model", "dataset", "self_consistency"]
        assert study.notes[0].startswith(f"Answers are {strategy.removesuffix('s')}s: ")
    # Beams: x has .5 of .9. Samples: y and Y. are two of three.
    assert shares["beams"]["confidence"].tolist() == pytest.approx([5 / 9] * 8)
    assert shares["sample"]["confidence"].tolist() == pytest.approx([2 / 3] * 8)
    assert shares["beams"]["correct"].all() and not shares["sample"]["correct"].any()
    for option in ("--beams", "--samples"):
        assert run("metrics", path, option, "--estimator", "self_consistency") == 0
        assert f"Answers are {option[2:]}: " in capsys.readouterr().err

    repeated = rows.assign(answer="x", logprob=-0.1)  # only samples repeat
    repeated.loc[0, "answer"] = "z"
    repeated.to_csv(path, index=False)
    assert len(read_study([str(path)]).answers) == 8
    with pytest.raises(ValueError, match=r"is there 2 times .*in the command, --samples"):
        read_study([str(path)], Reading(beams=True))


def test_stated_confidences_are_estimators_with_a_default_for_missing_values(tmp_path):
    path = tmp_path / "own.csv"
    rows = [
        {"checkpoint": c, "question_id": f"q{i}", "question": f"{i}?", "references": "x"}
        | {"answer": "x" if i == (c == "b") else "z", "confidence": 0.2, "confidence_words": w}
        | {"split": "test"}
        for c, words in (("a", (0.5, 0.6)), ("b", (0.3, "")))
        for i, w in enumerate(words)
    ]
    train = {"split": "train", "question_id": "t", "question": "T?"}
    pd.DataFrame([*rows, rows[0] | train]).to_csv(path, index=False)
    study = read_study([str(path)], Reading(missing="0.5"))
    confidences = {
        name: rows["confidence"].tolist() for (*_, name), rows in study.predictions.items()
    }
    assert confidences["stated"] == [0.2] * 4 and confidences["words"] == [0.5, 0.6, 0.3, 0.5]

    notes = " ".join(study.notes)
    assert "words: 1 answers of model, b to dataset state no confidence and count" in notes
    assert "Left out: 1 answers of the split train" in notes

    chosen = read_study([str(path)], Reading(estimators=["words"], missing="0.5"))
    assert [name for *_, name in chosen.predictions] == ["words"]


@pytest.mark.parametrize("column", ["confidence", "answer"])
def test_a_file_named_like_a_checkpoint_of_another_file_is_refused(tmp_path, capsys, column):
    rows = {"question_id": ["1", "2"]}
    if column == "confidence":
        rows |= {"confidence": [0.5, 0.6], "correct": [1, 0]}
    else:
        rows |= {"question": ["1?", "2?"], "references": ["x", "x"], "answer": ["x", "y"]}
    files = [tmp_path / "late.csv", tmp_path / "other.csv"]
    pd.DataFrame(rows).to_csv(files[0], index=False)
    pd.DataFrame(rows).assign(checkpoint="late").to_csv(files[1], index=False)
    assert run("metrics", *files) == 1
    text = capsys.readouterr().err
    assert "so its checkpoint is called 'late', and" in text and "other.csv has another" in text


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("compare nowhere.csv", 1, "nowhere.csv: there is no such file"),
        ("compare a.csv answers.csv", 1, "only answers or only predictions"),
        ("compare a.csv ./a.csv", 1, "given twice"),
        ("compare a.csv --labels log", 1, "labels has no meaning"),
        ("compare answers.csv --estimator perplexity", 1, "needs the logprob"),
        ("compare nested.jsonl", 1, "column 'seed' of row 1 holds ['0']; give one"),
        ("compare x/a.csv x/a.csv.gz", 1, "rename the files, give --names, or add a column"),
        ("compare", 2, "Missing argument"),
        ("compare a.csv --labels mine", 2, "--labels is 'mine'"),
        ("compare a.csv --columns conf", 2, "write it as confidence=conf"),
        ("compare a.csv --pairs a-b", 2, "--pairs is 'a-b'"),
        ("compare a.csv --names x y", 1, "gives x, y for 1 files"),
        ("compare a.csv x/a.csv --names ' v' v", 1, "give a different name to each file"),
        ("compare a.csv --pairs a:d", 1, "but the checkpoints are a, b, c; name two of one"),
        ("compare a.csv --pairs a:b b:d", 1, "but the checkpoints are a, b, c; name two of"),
        ("compare a.csv --columns confidence=a confidence=b", 2, "gives confidence twice"),
        ("compare a.csv --columns confidence=a correct=a", 1, "--columns gives 'a' 2 times"),
        ("compare answers.csv --deployed last", 2, "'last' is not 'first'"),
        ("compare logs", 1, "the folder has no log"),
        ("compare pipe.csv", 1, "is a folder or a pipe; give a file, or - for stdin"),
        ("compare answers.csv --names x", 1, "--names has no meaning"),
        ("compare a.csv --min-contrast 0", 2, "--min-contrast"),
        ("guess", 2, "guess"),
    ],
)
def test_wrong_input_ends_with_one_sentence_and_wrong_usage_with_help(
    words, code, message, predictions, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    predictions.to_csv("a.csv", index=False)
    shutil.copy(ANSWERS, "answers.csv")
    nested = predictions.head(2).assign(seed=[[0], [0]])
    nested.to_json("nested.jsonl", orient="records", lines=True)
    for folder in ("x", "logs"):
        Path(folder).mkdir()
    predictions.to_csv("x/a.csv", index=False)
    predictions.to_csv("x/a.csv.gz", index=False)
    os.mkfifo("pipe.csv")
    assert run(*shlex.split(words)) == code
    error = capsys.readouterr().err
    assert message in " ".join(error.replace("│", " ").split())
    assert code == 2 or error.count("\n") == 1


def test_the_page_contains_the_sentences_of_the_summary():
    study = read_study([str(ANSWERS)], Reading(estimators=["self_consistency"]))
    comparison = compare_inputs(study, make_settings(min_contrast=10, n_replicates=200))
    page, text = comparison.to_html(), comparison.summary()
    change, followed, only, *_ = (" ".join(t.split()) for t in text.split("\n\n"))
    assert only.startswith("m1 · quiz: The Δ₀ᵇ of Self-consistency is .421 [")
    sentences = (t.partition(": ")[2] for t in (change, followed))
    assert all(sentence in html.unescape(page) for sentence in sentences)


@pytest.mark.parametrize("command", ["compare", "metrics", "page", "plan"])
def test_the_help_of_each_command_has_an_example(command, capsys):
    assert run(command, "--help") == 0
    assert f"persistcal {command} " in capsys.readouterr().out.partition("For example")[2]


def test_command_and_workflow_print_the_same_table():
    tables = yaml.safe_load((ROOT / "config/tables.yaml").read_text())["tables"]
    assert tables["all_estimators"] == display.ALL_ESTIMATORS


def test_help_imports_no_numerical_package():
    """Help is fast, because pandas, scipy and matplotlib take seconds to import."""
    script = (
        "import sys; from persistcal.api.command import main\n"
        "try: main(['compare', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'scipy', 'matplotlib', 'numba', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.fixture(scope="module")
def update(predictions, tmp_path_factory):
    """Write a file of three checkpoints, and return it with options of a fast comparison."""
    folder = tmp_path_factory.mktemp("update")
    predictions[predictions["estimator"] == "own"].to_csv(folder / "all.csv", index=False)
    return folder / "all.csv", ("--out", folder / "out", *FAST, "--precision", "0.6")


def test_the_verdict_compares_the_chosen_pairs_only(update, capsys):
    file, options = update
    assert run("compare", file, *options, "--pairs", "a:b", "--json") == 0
    [verdict] = json.loads(capsys.readouterr().out)["verdicts"]
    assert (verdict["earlier"], verdict["later"], verdict["precision"]) == ("a", "b", 0.6)
    thresholds = pd.read_csv(file.parent / "out" / "thresholds.csv")
    assert set(zip(thresholds["earlier"], thresholds["later"], strict=True)) == {("a", "b")}


def test_tables_that_were_made_are_written_although_a_later_step_fails(update, monkeypatch):
    def fail(*_args, **_settings):
        raise MemoryError

    file, options = update
    out = file.parent / "partly"
    words = ("compare", file, *options, "--out", out)
    monkeypatch.setattr(evaluate, "compare_study", fail)
    with pytest.raises(MemoryError):
        run(*words)
    assert {p.stem for p in out.iterdir()} == {
        *("metrics", "significance", "intervals", "claims", "placebos", "contrast_sets")
    }
    monkeypatch.undo()
    monkeypatch.setattr(display.Comparison, "to_html", fail)
    with pytest.raises(MemoryError):
        run(*words)
    assert {"states", "thresholds", "selective"} < {p.stem for p in out.iterdir()}


def test_the_release_gate_of_compare_fails_if_a_threshold_is_undecided(update, capsys):
    file, options = update
    impossible = [*options[:-1], "0.999", "--fail-if", "undecided"]
    assert run("compare", file, *impossible) == 4  # no threshold reaches it
    assert run("compare", file, *impossible[:-1], "broken") == 0
    assert "as no old one is sure:\n  persistcal threshold " in capsys.readouterr().out


@pytest.mark.parametrize(("patience", "shown"), [(0, True), (3600, False)])
def test_parts_of_a_long_step_are_shown_and_are_no_steps(monkeypatch, capsys, patience, shown):
    monkeypatch.setattr(command, "PATIENCE", patience)
    with command._bar(1) as step:
        step("500 of 1,000 replicates …")
        step("bootstrap")
    part, whole = "0 of 1 steps after 0 s: 500 of 1,000", "1 of 1 steps after 0 s: bootstrap"
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith(part) for line in lines] == ([True, False] if shown else [False])
    assert lines[-1] == whole
