"""Files as users have them: command, notebook and workflow read them the same."""

import gzip
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from command_line import run
from import_answers import import_answers
from import_predictions import import_predictions
from own_rows import ONE, wanted, write_rows
from sklearn.metrics import roc_auc_score

import persistcal
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.readers.reading import Reading
from persistcal.readers.scales import Scale, parse_scale
from persistcal.readers.study import read_predictions, read_study
from persistcal.readers.versions import files_of_version
from persistcal.store.user_files import UserTableError, round_narrow

HERE = Path(__file__).parent
FORMATS = ["csv", "tsv", "jsonl", "json", "parquet"]
CHECKPOINTS = {"m1": {"a": True, "b": True}}


@pytest.fixture
def predictions():
    """Return 40 questions at two checkpoints, with confidences of two decimals."""
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "model": "m1",
            "dataset": "quiz",
            "checkpoint": np.repeat(["a", "b"], 40),
            "question_id": [f"q{n}" for n in range(40)] * 2,
            "estimator": "mine",
            "seed": 0,
            "confidence": rng.integers(1, 100, 80) / 100,
            "correct": rng.integers(0, 2, 80),
        }
    )


def answers_of(texts, **columns):
    """Return rows of answers: a question per text, at two checkpoints."""
    rows = [
        {**ONE, "checkpoint": checkpoint, "question_id": f"q{n}", "question": f"{n}?"}
        | {"references": "Nile", "answer": text}
        | {name: values[n] for name, values in columns.items()}
        for checkpoint in "ab"
        for n, text in enumerate(texts if checkpoint == "a" else texts[::-1])
    ]
    return pd.DataFrame(rows)


def import_quiz(path):
    """Import the predictions of a file as a study does."""
    return import_predictions(str(path), datasets=["quiz"], checkpoints=CHECKPOINTS)[0]


def write(folder, rows, kind, name="own"):
    """Write rows as a file of a format and return its path."""
    path = folder / f"{name}.{kind}"
    if kind == "tsv":
        rows.to_csv(path, sep="\t", index=False)
    elif kind == "json":
        path.write_text(rows.to_json(orient="records"))
    else:
        write_rows(path, rows.to_dict("records"))
    return str(path)


def read_confidences(path, **options):
    """Return the confidences of a file by row, and the study that was read."""
    study = read_study([path], Reading(**options))
    [rows] = study.predictions.values()
    return rows["confidence"].tolist(), study


@pytest.mark.parametrize("kind", FORMATS)
def test_command_notebook_and_workflow_read_formats_alike(predictions, tmp_path, kind, capsys):
    path = write(tmp_path, predictions, kind)
    metrics = persistcal.evaluate(predictions)
    assert run("metrics", path) == 0
    printed = capsys.readouterr().out
    imported = import_quiz(path)
    assert imported["confidence"].tolist() == predictions["confidence"].tolist()
    assert imported["correct"].astype(int).tolist() == predictions["correct"].tolist()
    assert metrics.to_csv(index=False) == printed


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_spellings_of_an_answer_form_one_group_with_one_label(tmp_path, kind):
    """All three samples are correct and agree, so accuracy and self-consistency are 1."""
    texts = ["Nile", "The Nile", "Nile!"]
    rows = [
        {**ONE, "checkpoint": checkpoint, "question_id": "q1", "question": "River?"}
        | {"references": "Nile", "answer": text, "sample": n}
        for checkpoint, order in (("a", texts), ("b", ["the nile.", *texts[:2]]))
        for n, text in enumerate(order)
    ]
    path = write(tmp_path, pd.DataFrame(rows), kind)
    options = Reading(beams=False, estimators=["self_consistency"])
    study = read_study([path], options)
    assert study.answers["correct"].tolist() == [True, True]
    assert study.all_predictions["confidence"].tolist() == [1.0, 1.0]


# Repeated columns


@pytest.mark.parametrize("kind", ["tsv", "parquet"])
def test_a_repeated_column_is_refused_everywhere(predictions, tmp_path, kind):
    path = write(tmp_path, predictions, kind)
    if kind == "parquet":
        table = pq.read_table(path)
        pq.write_table(table.append_column("correct", table.column("correct")), path)
    else:
        predictions.insert(0, "correct", 0, allow_duplicates=True)
        write(tmp_path, predictions, kind)
    for read in (lambda: read_study([path]), lambda: import_quiz(path)):
        with pytest.raises(UserTableError, match="column 'correct' is there twice; keep one"):
            read()


# Scales

WRITTEN = {  # the scale, and how a confidence is written on it
    "": lambda p: f"{p:g}",
    "percent": lambda p: f"{100 * p:g}%",
    "comma": lambda p: f"{p:g}".replace(".", ","),
    "--scale 100": lambda p: f"{100 * p:g}",
    "--scale 10": lambda p: f"{10 * p:g}",
}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("scale", list(WRITTEN))
def test_confidences_on_a_scale_are_read_with_the_option_that_the_refusal_prints(
    predictions, tmp_path, scale, kind, capsys
):
    rows = predictions.assign(confidence=predictions["confidence"].map(WRITTEN[scale]))
    path = write(tmp_path, rows, kind)
    options = []
    if scale.startswith("--"):
        assert run("metrics", path) == 1
        message = capsys.readouterr().err
        assert scale in message
        options = re.search(r"--scale [\d:]+", message)[0].split()
    assert run("metrics", path, *options) == 0
    printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
    expected = persistcal.evaluate(predictions)
    assert np.allclose(printed["value"], expected["value"], equal_nan=True, rtol=1e-9)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_confidences_of_answers_have_the_same_scales(tmp_path, kind, capsys):
    """On 1 to 5, 4 is (4 − 1) / (5 − 1) = .75."""
    rows = answers_of(["Nile", "Po", "nile"], confidence=["4", "1", "5"])
    path = write(tmp_path, rows, kind)
    assert run("metrics", path, "--estimator", "stated") == 1
    assert "give --scale 1:5" in capsys.readouterr().err
    scale = parse_scale("1:5", None, is_uncertainty=False)
    confidences, _ = read_confidences(path, scale=scale, estimators=["stated"])
    assert confidences == [0.75, 0.0, 1.0, 0.75, 0.0, 1.0]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_scale_is_refused_if_a_group_of_rows_has_probabilities(predictions, tmp_path, kind):
    """Probabilities that were divided by 100 would all be below .01."""
    percent = predictions.assign(confidence=100 * predictions["confidence"])
    is_first = predictions["checkpoint"] == "a"
    mixed = predictions.where(is_first, percent)
    of_two = pd.concat([predictions, percent.assign(estimator="other")])
    message = r"no confidence of m1, a\b.* is above 1.*leave --scale out"
    for rows in (predictions, mixed, of_two):
        path = write(tmp_path, rows, kind)
        with pytest.raises(UserTableError, match=message):
            read_confidences(path, scale=Scale(0, 100))
    path = write(tmp_path, percent, kind)
    _, study = read_confidences(path, scale=Scale(0, 100))
    assert "Confidences are read on the scale 0 to 100." in study.notes
    answers = answers_of(["Nile", "Po"], confidence=[0.5, 0.9])
    is_second = answers["checkpoint"] == "b"
    answers["confidence"] = answers["confidence"].where(~is_second, 90)
    with pytest.raises(UserTableError, match=message):
        read_confidences(write(tmp_path, answers, kind), scale=Scale(0, 100))


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("1.0000001", r"from 0\.2 to 1\.0000001; give a number in \[0, 1\]"),
        ("-0.7", r"such as the exponential of a log-probability"),
        ("-1", r"if -1 means that there is none, leave it empty"),
        ("5", r"from 0\.2 to 5; give a number in \[0, 1\] \(1 of 80 values"),
        ("1e999", r"to inf; give a number in \[0, 1\] \(1 of 80 values"),
        ("８２％", None),
        ("#N/A", "give --missing drop"),
        ("90/100", "a row for each of: 90/100"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_an_odd_confidence_is_read_or_has_a_remedy(predictions, tmp_path, kind, value, remedy):
    rows = predictions.assign(confidence="0.2")
    rows.loc[3, "confidence"] = value
    path = write(tmp_path, rows, kind)
    if remedy is None:
        assert read_confidences(path)[0][3] == 0.82
    else:
        with pytest.raises(UserTableError, match=remedy):
            read_confidences(path)


@pytest.mark.parametrize("missing", ["drop", "0.5"])
def test_nothing_changes_if_no_value_is_missing(predictions, tmp_path, missing):
    path = write(tmp_path, predictions, "csv")
    assert read_confidences(path, missing=missing)[0] == read_confidences(path)[0]


COLUMNS = pd.DataFrame(0, range(80), [f"column {n}" for n in range(3000)])
REFUSED = [  # a change of the predictions, options, and the refusal
    (lambda p: p.assign(confidence=p["confidence"].where(p.index > 2, 47)), {},
     r"number in \[0, 1\] \(3 of 80 values are above"),
    (lambda p: p.assign(confidence=p["confidence"].where(p.index > 2, 47)),
     {"scale": Scale(0, 100)}, "only 3 of 40 confidence of m1, a, mine is above 1"),
    (lambda p: p.assign(correct="x" * 70_000), {},
     r"correct is not valid \(row 1: 'x{78}…, .{,400}$"),
    (lambda p: pd.concat([p, COLUMNS], axis=1), {"columns": {"confidence": "nothing"}},
     r"it has no 'nothing', but .{,500} and 2,97\d more"),
    (lambda p: p.assign(confidence="nan"), {"missing": "drop"}, "nothing is left"),
    (lambda p: p.assign(correct=p["correct"].astype(str).where(p.index != 3, "NOT_TRIED")),
     {}, r"row 4: 'NOT_TRIED'.* .*--missing drop"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "options", "message"), REFUSED)
def test_predictions_without_a_meaning_are_refused(
    predictions, tmp_path, change, options, message
):
    with pytest.raises(UserTableError, match=message):
        read_study([write(tmp_path, change(predictions), "parquet")], Reading(**options))


def test_many_columns_are_not_all_listed(predictions, tmp_path):
    path = write(tmp_path, pd.concat([predictions, COLUMNS], axis=1), "parquet")
    [note] = read_study([path]).notes
    assert note.startswith("Ignored columns: column 0, ") and note.endswith("and 2,970 more.")


def test_words_are_read_as_the_confidences_of_a_file(predictions, tmp_path, capsys):
    words = np.where(predictions["confidence"] < 0.5, "Low", "high")
    path = write(tmp_path, predictions.assign(confidence=words), "csv")
    assert run("metrics", path) == 1
    message = capsys.readouterr().err
    assert "--words FILE" in message and "a row for each of: Low, high" in message
    (tmp_path / "words.csv").write_text("word,word,confidence\nlow,high,0.1\n")
    assert run("metrics", path, "--words", tmp_path / "words.csv") == 1
    assert "words.csv: column 'word' is there twice" in capsys.readouterr().err
    assert run("metrics", path, "--words", "FILE") == 1
    assert "columns word and confidence" in capsys.readouterr().err
    (tmp_path / "words.csv").write_text("word,confidence\nlow,0.1\nhigh,0.9\n")
    scale = parse_scale(None, str(tmp_path / "words.csv"), is_uncertainty=False)
    confidences, _ = read_confidences(path, scale=scale)
    assert confidences == [0.1 if word == "Low" else 0.9 for word in words]


def test_an_uncertainty_is_one_minus_the_confidence(predictions, tmp_path, capsys):
    uncertainty = (100 - 100 * predictions["confidence"]).round().astype(int)
    rows = predictions.drop(columns="confidence").assign(doubt=uncertainty)
    path = write(tmp_path, rows, "csv")
    assert run("metrics", path, "--uncertainty", "doubt", "--scale", "100") == 0
    printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
    expected = persistcal.evaluate(predictions)
    assert np.allclose(printed["value"], expected["value"], equal_nan=True, rtol=1e-9)


def test_labels_can_be_words(predictions, tmp_path):
    words = [("Yes", "No"), ("TRUE", "FALSE"), ("y", "n"), ("correct", "incorrect")]
    for yes, no in [*words, ("WAHR", "FALSCH"), ("oui", "non"), ("1.0", "0.0")]:
        labels = np.where(predictions["correct"] == 1, yes, no)
        path = write(tmp_path, predictions.assign(correct=labels), "csv")
        [rows] = read_study([path]).predictions.values()
        imported = import_quiz(path)
        for read in (rows, imported):
            assert read["correct"].astype(int).tolist() == predictions["correct"].tolist()
        for column in ("label", "correct"):
            answers = answers_of(["Po", "Li"], **{column: [yes, no]}).drop(columns="references")
            study = read_study([write(tmp_path, answers, "csv")])
            assert study.answers["correct"].tolist() == [True, False] * 2


def test_a_file_per_model_is_read_with_the_options_that_the_refusal_prints(tmp_path, capsys):
    """Public data sets have other names, labels as words, percentages and no checkpoint."""
    rng = np.random.default_rng(3)
    files, frames = [], []
    for model in ("lab/first@1", "lab/second@2"):
        frame = pd.DataFrame({"model": model, "item_id": range(200), "subject": "law"})
        frame["answer"], frame["correct_answer"] = rng.choice(list("ABCD"), (2, 200))
        frame["is_correct"] = frame["answer"] == frame["correct_answer"]
        frame["confidence"] = rng.integers(40, 101, 200)
        files.append(write(tmp_path, frame, "csv", name=model[-1]))
        frames.append(frame)
    assert run("metrics", *files) == 1

    [options] = re.findall(r"give (--columns .*) if these are meant", capsys.readouterr().err)
    assert run("metrics", *files, *shlex.split(options)) == 0
    captured = capsys.readouterr()
    assert "model: lab/first@1 → lab/second@2" in captured.err

    table = pd.read_csv(io.StringIO(captured.out)).query("seed == 'mean'")
    [auc] = table.query("scope == 'full' and metric == 'auc'")["value"]
    rows = pd.concat(frames)
    assert auc == pytest.approx(roc_auc_score(rows["is_correct"], rows["confidence"]))


@pytest.mark.parametrize(
    "names",
    [
        {"question_id": "Item ID", "confidence": "Confidence (%)", "correct": "Correct?"},
        {"question_id": "ID", "confidence": "verbalized confidence"},
        {"checkpoint": "model version", "confidence": "confidence"},
        {"question_id": "qid", "confidence": "Doubt", "correct": "acc"},
        {"confidence": "error probability"},
    ],
)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_copied_options_of_a_refusal_read_the_file(predictions, tmp_path, kind, names, capsys):
    """Columns with a low confidence at high values are not taken for confidences."""
    name = names["confidence"]
    rows = predictions.rename(columns=names)
    if "(%)" in name:
        rows[name] *= 100
    if name in ("Doubt", "error probability"):
        rows[name] = (1 - rows[name]).round(2)
    path = write(tmp_path, rows, kind)
    assert run("metrics", path) == 1

    [options] = re.findall(r"give (--.*) if these are meant", capsys.readouterr().err)
    assert run("metrics", path, *shlex.split(options)) == 0
    printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
    expected = persistcal.evaluate(predictions)
    assert np.allclose(printed["value"], expected["value"], equal_nan=True, rtol=1e-9)


def test_the_printed_options_read_answers_with_other_names(tmp_path, capsys):
    """A file with a confidence but no label has predictions or answers."""
    names = {"question": "prompt", "references": "target", "answer": "response"}
    answers = answers_of(["Nile", "Po"], confidence=[20, 90]).rename(columns=names)
    path = write(tmp_path, answers, "csv")
    assert run("metrics", path) == 1
    [options] = re.findall(r"give (--.*) if these are meant", capsys.readouterr().err)
    assert options.endswith("--scale 100")
    assert run("metrics", path, "--estimator", "stated", *shlex.split(options)) == 0


# Missing values


def export_of(layout, n, answer, is_right):
    """Return a row of an answer as a tool exports it."""
    question, right = f"Where is place {n}?", int(is_right)
    return {
        "promptfoo": {
            **{"id": f"{n}-{answer}", "provider": {"id": "openai:gpt", "label": ""}},
            **{"vars": {"question": question}, "response": {"output": answer, "cached": False}},
            **{"score": right, "gradingResult": {"pass": is_right, "score": right}},
        },
        "lighteval": {
            "doc": {"query": question, "choices": [f"A{n}"], "gold_index": [0], "id": str(n)},
            "metric": {"exact_match": float(right)},
            "model_response": {"text": [answer], "input": f"Q: {question}"},
        },
        "uqlm": {
            **{"prompt": question, "response": answer, "sampled_responses": [answer, "x"]},
            **{"noncontradiction": 0.5, "response_correct": is_right},
        },
        "NeMo Evaluator": {
            **{"problem": question, "expected_answer": f"A{n}", "generation": f"So {answer}"},
            **{"predicted_answer": answer, "symbolic_correct": is_right},
        },
        "Every Eval Ever": {  # version 0.3
            **{"schema_version": "0.3.0", "evaluation_id": "e", "model_id": "org/model"},
            **{"evaluation_name": "quiz", "interaction_type": "single_turn", "metadata": None},
            "answer_attribution": [{"turn_idx": 0, "extracted_value": answer}],
            **{"sample_id": str(n), "input": {"raw": question, "reference": [f"A{n}"]}},
            **{
                "output": {"raw": [answer]},
                "evaluation": {"score": 1.0, "is_correct": is_right},
            },
        },
        "labels": {"prompt": question, "label": right},
        "samples": {
            **{"question": question, "target": [f"A{n}"], "responses": [answer, answer, "x"]}
        },
        "perplexity": {
            **{"question_id": n, "logit_perplexity_confidence": 0.5 + n / 100},
            **{"passed": is_right, "score": right},
        },
    }[layout]


@pytest.mark.parametrize(
    "layout",
    [
        *("promptfoo", "lighteval", "uqlm", "NeMo Evaluator", "Every Eval Ever", "labels"),
        *("samples", "perplexity"),
    ],
)
def test_the_printed_options_read_exports_of_other_tools(tmp_path, layout, capsys):
    """The answers to 24 and to 32 of 40 questions are right."""
    for name, n_right in (("v1", 24), ("v2", 32)):
        answers = [(n, f"A{n}" if n < n_right else f"B{n}{name}") for n in range(40)]
        rows = [export_of(layout, n, text, n < n_right) for n, text in answers]
        lines = [json.dumps(row) + "\n" for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    files = [str(tmp_path / f"{name}.jsonl") for name in ("v1", "v2")]
    with pytest.raises(UserTableError, match=r"give --columns .* if these") as refused:
        read_study(files)
    options = shlex.split(re.search(r"give (--.*) if these are meant", str(refused.value))[1])
    assert not {"--uncertainty", "confidence=score"} & {*options}
    columns = dict(word.split("=") for word in options[1:])
    study = read_study(files, Reading(columns=columns))
    right = study.answers.groupby("checkpoint")["correct"].agg(["sum", "size"])
    assert right.to_numpy().tolist() == [[24, 40], [32, 40]]
    if layout == "samples":
        rated = study.predictions["model", "dataset", "self_consistency"]
        assert set(rated["confidence"].round(3)) == {0.667}
    if layout == "perplexity":
        assert columns["confidence"] == "logit_perplexity_confidence"


@pytest.mark.parametrize(
    "column", ["model", "dataset", "checkpoint", "estimator", "seed", "question_id"]
)
def test_a_wrong_cell_is_named_with_its_row_and_the_usual_name(predictions, tmp_path, column):
    predictions = predictions.replace({"m1": "model1"})
    other = predictions.assign(estimator="other", confidence=predictions["confidence"][::-1])
    rows = pd.concat([predictions, other], ignore_index=True)
    usual = rows.loc[44, column]
    slip = 99 if column == "seed" else f"{usual[:-1]}_{usual[-1]}"
    rows.loc[44, column] = slip
    message = (
        f"own.csv: a new {column} '{slip}' (1 rows, first row 45); is it a slip of '{usual}'"
    )
    with pytest.raises(UserTableError, match=re.escape(message)):
        read_study([write(tmp_path, rows, "csv")])


def test_few_groups_are_named(predictions):
    """Groups of two questions are twenty groups, and single questions are none."""
    sizes = {2: 1, 1: 0}
    for size, n_notes in sizes.items():
        number = predictions["question_id"].str[1:].astype(int)
        rows = predictions.assign(group=(number // size).astype(str))
        study = read_predictions(rows, None, EvaluationSettings())
        notes = [note for note in study.assumptions(EvaluationSettings()) if "groups" in note]
        assert len(notes) == n_notes
        assert all("40 questions of quiz are in 20 groups" in note for note in notes)


def test_a_folder_with_a_file_per_estimator_is_no_folder_of_datasets(predictions, tmp_path):
    rows = predictions.drop(columns=["model", "dataset", "checkpoint", "estimator"])
    for version, part in (("v1", rows[:40]), ("v2", rows[40:])):
        (tmp_path / version).mkdir()
        for name, confidence in (("a", part["confidence"]), ("b", 1 - part["confidence"])):
            write(tmp_path / version, part.assign(confidence=confidence), "csv", name)
    folders = [str(tmp_path / version) for version in ("v1", "v2")]
    message = (
        "b.csv: has the questions and labels of .*a.csv.* join them into one with the column"
    )
    with pytest.raises(ValueError, match=message):
        read_study(folders)
    for folder in folders:  # other labels, other datasets
        other = pd.read_csv(f"{folder}/b.csv")
        other.assign(correct=1 - other["correct"]).to_csv(f"{folder}/b.csv", index=False)
    assert len(read_study(folders).predictions) == 2


@pytest.mark.parametrize("column", ["confidence", "correct"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_missing_predictions_need_an_option(predictions, tmp_path, kind, column, capsys):
    rows = predictions.astype({column: object})
    rows.loc[[3, 50], column] = None
    path = write(tmp_path, rows, kind)
    assert run("metrics", path) == 1
    assert f"{column} is missing in 2 rows" in capsys.readouterr().err
    confidences, study = read_confidences(path, missing="drop")
    assert len(confidences) == 78 and "Left out: 2 answers" in " ".join(study.notes)
    if column == "confidence":
        confidences, study = read_confidences(path, missing="0.5")
        assert (confidences[3], confidences[50], len(confidences)) == (0.5, 0.5, 80)
        assert "2 missing confidences count as 0.5." in study.notes
        for given, counted in (("50%", "0.5"), ("0.1234567", "0.1234567")):
            assert run("metrics", path, "--missing", given) == 0
            assert f"2 missing confidences count as {counted}." in capsys.readouterr().err
    else:
        with pytest.raises(UserTableError, match="correct is missing in 2 rows"):
            read_confidences(path, missing="0.5")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_missing_values_of_answers_are_refused_replaced_or_left_out(tmp_path, kind):
    rows = answers_of(["Nile", "Po", "nile"], confidence=[0.9, None, 0.4])
    path = write(tmp_path, rows, kind)
    with pytest.raises(UserTableError, match="confidence is missing in 2 rows"):
        read_confidences(path, estimators=["stated"])
    confidences, _ = read_confidences(path, missing="0.25", estimators=["stated"])
    assert sorted(confidences) == [0.25, 0.25, 0.4, 0.4, 0.9, 0.9]
    confidences, study = read_confidences(path, missing="drop", estimators=["stated"])
    assert sorted(confidences) == [0.4, 0.4, 0.9, 0.9] and len(study.answers) == 4
    labelled = rows.drop(columns=["references", "confidence"]).assign(correct=[1, "", 0] * 2)
    path = write(tmp_path, labelled.astype({"correct": str}), kind)
    with pytest.raises(UserTableError, match="correct is missing in 2 rows"):
        read_confidences(path, estimators=["end_correct"])
    confidences, _ = read_confidences(path, missing="drop", estimators=["end_correct"])
    assert len(confidences) == 4


# Numbers that lost their precision


@pytest.mark.parametrize("storage", ["csv", "json", "object", ">f4"])
def test_float32_is_rounded_even_if_its_type_is_lost(predictions, tmp_path, storage):
    """0.1 in float32 is 0.10000000149011612."""
    narrow = predictions["confidence"].astype(np.float32)
    expected = predictions["confidence"].tolist()
    rows = predictions.assign(confidence=[float(value) for value in narrow])
    if storage in ("csv", "json"):
        path = write(tmp_path, rows, storage)
        assert read_confidences(path)[0] == expected
        imported = import_quiz(path)
        assert imported["confidence"].tolist() == expected
    else:
        values = pd.Series(narrow.to_numpy().astype(storage), dtype=storage)
        metrics = persistcal.evaluate(predictions.assign(confidence=values))
        assert metrics.equals(persistcal.evaluate(predictions))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "file per version", "notebook"])
@pytest.mark.parametrize("narrow", ["a", "b"])
def test_versions_of_which_one_was_float32_have_the_same_confidences(tmp_path, narrow, kind):
    """0.7 in float32 is less than 0.7, and 1/3 rounded to six digits less than 1/3."""
    rows = pd.DataFrame({"checkpoint": list("aaabbb"), "question_id": [*"xyz"] * 2})
    rows = rows.assign(correct=[1, 0, 1, 0, 1, 1], confidence=[0.7, 1 / 3, 0.1] * 2)
    rows["estimator"] = "mine"
    other = rows.assign(estimator="other", confidence=[0.12345678, 1 / 3, 0.5] * 2)
    was = rows["checkpoint"] == narrow
    lost = rows["confidence"].astype(np.float32).astype(float)
    rows["confidence"] = rows["confidence"].mask(was, lost)
    rows = pd.concat([rows, other], ignore_index=True)
    if kind == "notebook":
        inputs = read_predictions(rows, None, EvaluationSettings())
        [read] = inputs.predictions.values()
    else:
        parts = [part for _, part in rows.groupby("checkpoint")]
        is_split = kind == "file per version"
        files = [
            write(tmp_path, part, "csv" if is_split else kind, name)
            for part, name in zip(parts if is_split else [rows], "ab", strict=False)
        ]
        [read] = read_study(files).predictions.values()
    stated = read.groupby(["checkpoint", "estimator"])["confidence"].agg(sorted)
    assert stated["a", "mine"] == stated["b", "mine"] == [0.1, 0.333333, 0.7]
    assert stated["a", "other"] == [0.12345678, 1 / 3, 0.5]  # was never float32


def test_float32_beside_doubles_in_one_file_is_recognised_by_estimator(predictions, tmp_path):
    """JSON of pandas has ten decimals: 0.7 in float32 becomes 0.6999999881."""
    narrow = predictions["confidence"].astype(np.float32).astype(float).round(10)
    wide = predictions["confidence"] / 3
    rows = [predictions.assign(confidence=narrow), predictions.assign(confidence=wide)]
    both = pd.concat([rows[0], rows[1].assign(estimator="other")], ignore_index=True)
    path = tmp_path / "own.jsonl"
    both.to_json(path, orient="records", lines=True, double_precision=15)
    [read] = read_study([str(path)]).predictions.values()
    confidences = read["confidence"].to_numpy().reshape(2, -1)
    assert confidences[0].tolist() == predictions["confidence"].tolist()
    assert np.abs(confidences[1] - wide).max() < 1e-15


def test_doubles_are_not_rounded_to_float32():
    dyadic, random = np.arange(256) / 256, np.random.default_rng(1).random(50)
    for values in (dyadic, random, np.array([0.1, 0.2, 0.7])):
        assert round_narrow(values, "confidence").tolist() == values.tolist()


@pytest.mark.parametrize("noise", [1e-13, -1e-13])
def test_rounding_noise_changes_no_metric_and_no_verdict(predictions, noise):
    """A threshold of .7 would exclude a confidence of .7 - 1e-13."""
    noisy = predictions.assign(confidence=predictions["confidence"] + noise)
    exact, shifted = (
        persistcal.threshold(rows, precision=0.3, n_replicates=200).tables["thresholds"]
        for rows in (predictions, noisy)
    )
    assert exact.equals(shifted)
    exact, shifted = (
        table[table["metric"].isin(["auc", "delta0", "delta0_balanced", "change_auc", "brier"])]
        for table in map(persistcal.evaluate, (predictions, noisy))
    )
    assert exact.equals(shifted)


# Names


@pytest.mark.parametrize(
    "names",
    [
        ("run_1.csv", "run__1.csv"),
        ("x_1/p.csv", "x__1/p.csv"),
        ("a b.csv", "a  b.csv"),
        ("a .csv", "a.csv"),
        ("\u00e9.csv", "e\u0301.csv"),
        ("a\u200b.csv", "a.csv"),
    ],
)
def test_similar_file_names_do_not_merge_two_checkpoints(predictions, tmp_path, names):
    rows = predictions.drop(columns="checkpoint")
    files = [tmp_path / name for name in names]
    for path, part in zip(files, (rows[:40], rows[40:]), strict=True):
        path.parent.mkdir(exist_ok=True)
        part.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"rename the files|only in spaces or invisible"):
        read_study([*map(str, files)])


def test_checkpoint_names_that_differ_only_in_spaces_are_refused(predictions):
    for same in ("a ", "a\u200b"):
        with pytest.raises(ValueError, match=r"m1: the checkpoints 'a' and 'a.+' differ only"):
            persistcal.evaluate(predictions.replace({"checkpoint": {"b": same}}))


@pytest.mark.parametrize("heading", ["Question_ID", "question id", " QUESTION-ID "])
def test_a_heading_can_differ_in_case_and_spaces(predictions, tmp_path, heading):
    path = write(tmp_path, predictions.rename(columns={"question_id": heading}), "csv")
    confidences, study = read_confidences(path)
    assert confidences == predictions["confidence"].tolist()
    answers = answers_of(["Nile", "Po"], confidence=[0.2, 0.9])
    names = {"question_id": heading, "confidence": "Confidence", "answer": "ANSWER"}
    path = write(tmp_path, answers.rename(columns=names), "csv")
    confidences, study_of_answers = read_confidences(path, estimators=["stated"])
    assert confidences == [0.2, 0.9] * 2
    options = answers.drop(columns=["references", "answer", "confidence"]).assign(
        **{"options": '["x", "y"]', "GOLD": [0, 1, 0, 1]},
        **{"Option Logprobs": ["[-1, -2]", "[-1, -2]", "[-3, -2]", "[-1, -2]"]},
    )
    study_of_options = read_study([write(tmp_path, options, "csv")])
    assert study_of_options.answers["correct"].tolist() == [True, False, False, False]
    for read in (study, study_of_answers, study_of_options):
        assert any("differ only in case or spaces" in note for note in read.notes)


# CSV


def test_an_open_quote_is_refused_with_its_line(predictions, tmp_path):
    path = tmp_path / "own.csv"
    text = predictions.assign(note="x").to_csv(index=False).splitlines()
    text[5] = text[5].removesuffix("x") + '"x'
    path.write_text("\n".join(text) + "\n")
    with pytest.raises(UserTableError, match="line 6 is not CSV"):
        read_study([str(path)])


SPELLINGS = {  # of a CSV file: the end of its name and its text
    "capital letters": ("CSV", lambda text: text),
    "blank rows": (
        "csv",
        lambda text: f"{text}{text.count(',', 0, text.index(chr(10))) * ','}\n",
    ),
    "gzip in spite of its name": ("csv", lambda text: gzip.compress(text.encode())),
    "no gzip in spite of its name": ("csv.gz", lambda text: text),
    "vertical bars": ("csv", lambda text: text.replace(",", "|")),
    "vertical bars named": ("csv", lambda text: "sep=|\n" + text.replace(",", "|")),
    "semicolons named": ("csv", lambda text: "sep=;\n" + text.replace(",", ";")),
}


@pytest.mark.parametrize("spelling", list(SPELLINGS))
def test_csv_files_of_spreadsheets_and_other_programs_are_read(predictions, tmp_path, spelling):
    ending, change = SPELLINGS[spelling]
    path = tmp_path / f"own.{ending}"

    def write_changed(rows):
        content = change(rows.to_csv(index=False))
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    write_changed(predictions)
    assert read_confidences(str(path))[0] == predictions["confidence"].tolist()
    imported = import_quiz(path)
    assert imported["confidence"].tolist() == predictions["confidence"].tolist()
    write_changed(answers_of(["Nile", "Po"]))
    assert len(read_study([str(path)]).answers) == 4
    questions, _, _ = import_answers(
        entries=[{"file": str(path)}], strategy="sample", known=CHECKPOINTS, wanted=wanted()
    )
    assert len(questions) == 2


def test_long_texts_and_headings_of_two_lines_are_read(predictions, tmp_path):
    """The csv module has a limit of 131,072 characters for a value."""
    rows = predictions.assign(**{"two\nlines": 'x, and "quotes"\ny'})
    path = write(tmp_path, rows.assign(question_id=rows["question_id"] + "\nx"), "csv")
    assert read_confidences(path)[0] == predictions["confidence"].tolist()
    path = write(tmp_path, answers_of(["Nile", "Po " * 50_000]), "csv")
    assert len(read_study([path]).answers) == 4


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        # A quote that opens in one row and closes in a later one would hide the rows between.
        ("a.csv", lambda t: t.replace("m1", '"m1', 1).replace("m1", 'm1" x', 3), "is not CSV"),
        ("a.csv", lambda t: t.replace(",", "^"), r"first line is one column, 'model\^"),
        ("a.csv.gz", lambda t: gzip.compress(t.encode())[:-9], "is not a whole gzip file"),
        ("a.json", lambda t: pd.read_csv(io.StringIO(t)).to_json(), "orient='records'"),
        ("a.json", lambda t: '{"rows": [{"confidence": 1}]}', "write an object for each row"),
        ("a.json", lambda t: "[]", "is empty"),
    ],
)  # fmt: skip
def test_a_file_of_another_layout_has_a_remedy(predictions, tmp_path, name, change, message):
    content = change(predictions.to_csv(index=False))
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}: .*{message}"):
        read_study([str(tmp_path / name)])


# Nothing to compare


@pytest.mark.parametrize("case", ["one", "one each", "none shared"])
def test_a_comparison_of_nothing_is_refused(predictions, tmp_path, case, capsys):
    first, second = predictions[:40], predictions[40:]
    rows, message = {
        "one": (first, "No model has two checkpoints"),
        "one each": (
            pd.concat([first, second.assign(model="m2")]),
            "name them in the column checkpoint",
        ),
        "none shared": (
            pd.concat([first, second.assign(question_id=[f"p{n}" for n in range(40)])]),
            "answered a question in common",
        ),
    }[case]
    path = write(tmp_path, rows, "csv")

    for command in ("compare", "page"):
        assert run(command, path, "--out", tmp_path / "out") == 1
        assert message in capsys.readouterr().err
    with pytest.raises(ValueError, match=message):
        persistcal.compare(rows)


@pytest.mark.parametrize("value", ["10", None, 1e-300, float("nan")])
def test_a_plan_refuses_wrong_numbers_of_questions(value):
    with pytest.raises(ValueError, match="give a whole number from 1"):
        persistcal.plan(value, 1, 1)
    with pytest.raises(ValueError, match="difference is "):
        persistcal.plan(100, 10, 5, difference="0.1")


# Logs


def write_tasks(folder, labels_by_task, tasks=("law", "art")):
    """Write the logs of two tasks with the same document numbers and two options each."""
    folder.mkdir(parents=True)
    for task, answers in zip(tasks, labels_by_task, strict=True):
        lines = [
            {
                "doc_id": n,
                "doc": {"question": f"{task} {n}?", "choices": ["x", "y"]},
                "target": "0",
                "arguments": [[f"{task} {n}?", " x"], [f"{task} {n}?", " y"]],
                "resps": [[[-1.0 - n / 10, False]], [[-3.0 if is_right else -0.5, False]]],
                "doc_hash": f"{task}{n}",
            }
            for n, is_right in enumerate(answers)
        ]
        write_rows(folder / f"samples_{task}_2026-01-01T08-16-28.840983.jsonl", lines)


def test_all_logs_of_a_folder_belong_to_one_version(tmp_path):
    """In law 1 of 3 answers, then 3 are right; in art 2 of 3, then 1."""
    write_tasks(tmp_path / "v1/org__model", [[1, 0, 0], [1, 1, 0]])
    write_tasks(tmp_path / "v2", [[1, 1, 1], [0, 0, 1]])
    write_tasks(tmp_path / "v2/.ipynb_checkpoints", [[0, 0, 0], [0, 0, 0]])
    folders = [f"{tmp_path}/v1", f"{tmp_path}/v2"]
    patterns = [f"{tmp_path}/v1/*/*.jsonl", f"{tmp_path}/v2/*.jsonl"]
    assert [*map(files_of_version, folders)] == [*map(files_of_version, patterns)]
    study = read_study(folders)
    assert study.answers.groupby(["dataset", "checkpoint"])["correct"].sum().to_dict() == {
        ("law", "v1"): 1, ("law", "v2"): 3, ("art", "v1"): 2, ("art", "v2"): 1,
    }  # fmt: skip
    pooled = read_study(patterns, Reading(names=["v1", "v2"], pool=True))
    assert pooled.answers.groupby("checkpoint")["correct"].sum().to_dict() == {"v1": 3, "v2": 4}
    assert set(pooled.questions["category"]) == {"law", "art"}


def test_versions_with_other_tasks_or_two_logs_of_a_task_are_refused(tmp_path):
    write_tasks(tmp_path / "v1", [[1, 0], [1, 0]])
    write_tasks(tmp_path / "v2", [[1, 0], [0, 1]], tasks=("law", "music"))
    with pytest.raises(ValueError, match=r"v1: has no log of the task music"):
        read_study([f"{tmp_path}/v1", f"{tmp_path}/v2"])
    write_tasks(tmp_path / "v1/again", [[1, 0], [1, 0]])
    with pytest.raises(ValueError, match="are both of the task "):
        read_study([f"{tmp_path}/v1", f"{tmp_path}/v2"])


def test_logs_of_tasks_that_are_given_as_versions_are_refused_with_the_folder(tmp_path):
    """A shell replaces a pattern without quotes by the files."""
    write_tasks(tmp_path / "v1", [[1, 0], [1, 0]])
    write_tasks(tmp_path / "v2", [[1, 0], [0, 1]])
    for versions in (["v1"], ["v1", "v2"]):
        files = [str(file) for v in versions for file in sorted((tmp_path / v).iterdir())]
        with pytest.raises(ValueError, match=r"logs of the tasks art, law.* give the folder"):
            read_study(files)


def test_a_folder_can_have_logs_of_inspect_in_json_and_other_files(tmp_path):
    for name in ("a_law.json", "results.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "a_law.json").write_text('{\n "version": 2,\n "status": "success"}')
    assert files_of_version(str(tmp_path)) == [str(tmp_path / "a_law.json")]
    assert files_of_version(f"{tmp_path.parent}/{tmp_path.name}*") == [
        str(tmp_path / "a_law.json")
    ]


def test_ties_among_options_are_reported_with_the_accuracy_of_each_order(tmp_path, caplog):
    """Four equal scores and the first option right: 1 by order, 1/4 by chance."""
    rows = [
        {**ONE, "checkpoint": checkpoint, "question_id": f"q{n}", "question": f"{n}?"}
        | {"options": list("wxyz"), "option_logprobs": scores, "gold": 0}
        for checkpoint, scores in (("a", [-2.0, -1.0, -3.0, -4.0]), ("b", [-1.0] * 4))
        for n in range(5)
    ]
    path = write(tmp_path, pd.DataFrame(rows), "jsonl")
    study = read_study([path])
    [note] = [text for text in study.notes if "several best options" in text]
    assert "m1, b, quiz: 5 of 5 questions" in note
    assert "accuracy 1.000, with a random one 0.250" in note
    assert note in caplog.text


def test_a_log_that_was_appended_twice_is_read_once(tmp_path, caplog):
    text = (HERE / "lm_eval_samples.jsonl").read_text()
    single, double = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    single.write_text(text)
    double.write_text(text + text)
    read_single, read_double = (
        read_study([str(path)], Reading(beams=False, names=["a"])) for path in (single, double)
    )
    assert read_single.answers.equals(read_double.answers)
    assert "repeat a document's responses" in caplog.text


def test_outputs_of_unnamed_filters_are_refused_only_if_they_are_needed(tmp_path):
    log = (HERE / "lm_eval_filtered.jsonl").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    for line in lines:
        line.pop("filter", None)
    path = write_rows(tmp_path / "a.jsonl", lines)
    assert len(read_study([path]).answers)
    with pytest.raises(UserTableError, match="keep the lines of one filter"):
        read_study([path], Reading(labels="log"))


def test_an_empty_file_of_requests_is_refused(tmp_path):
    line = {"doc_id": 0, "native_id": "q0", "model_output": [], "label": 0}
    log = write_rows(tmp_path / "quiz-predictions.jsonl", [line])
    (tmp_path / "quiz-requests.jsonl").touch()
    with pytest.raises(UserTableError, match=r"requests\.jsonl is empty; .* delete the file"):
        read_study([log])


def test_a_scale_needs_two_ends():
    assert parse_scale("100", None, is_uncertainty=False) == Scale(0, 100)
    for wrong in ("5:1", "abc", "0", "-1:1"):
        with pytest.raises(ValueError, match="write the greatest value"):
            parse_scale(wrong, None, is_uncertainty=False)
