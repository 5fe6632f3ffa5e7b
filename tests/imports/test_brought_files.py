"""Files as people bring them: read with the same meaning by every door, or refused."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run
from import_answers import import_answers
from import_predictions import import_predictions
from own_rows import ONE, wanted, write_rows
from sklearn.metrics import roc_auc_score

import persistcal
from persistcal.api.files import Reading, name_checkpoints, read_study
from persistcal.imports.scales import Scale, parse_scale
from persistcal.store.user_files import UserTableError, round_narrow

HERE = Path(__file__).parent
FORMATS = ["csv", "tsv", "jsonl", "json", "parquet"]
SAME = {"m1": {"a": True, "b": True}}


@pytest.fixture
def predictions():
    """Forty questions at two checkpoints, with confidences of two decimals."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(
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
    return rows


def answers_of(texts, **columns):
    """Rows of answers to one question per text, at two checkpoints."""
    rows = [
        {**ONE, "checkpoint": checkpoint, "question_id": f"q{n}", "question": f"{n}?"}
        | {"references": "Nile", "answer": text}
        | {name: values[n] for name, values in columns.items()}
        for checkpoint in "ab"
        for n, text in enumerate(texts if checkpoint == "a" else texts[::-1])
    ]
    return pd.DataFrame(rows)


def write(folder, rows, kind, name="own"):
    """Write rows as a file of a kind; return its path."""
    path = folder / f"{name}.{kind}"
    if kind == "tsv":
        rows.to_csv(path, sep="\t", index=False)
    elif kind == "json":
        path.write_text(rows.to_json(orient="records"))
    else:
        write_rows(path, rows.to_dict("records"))
    return str(path)


def read_confidences(path, **options):
    """Return the confidences of a file in the order of its rows."""
    study = read_study([path], Reading(**options))
    [rows] = study.predictions.values()
    return rows["confidence"].tolist(), study


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_command_notebook_and_workflow_the_same(
    predictions, tmp_path, kind, capsys
):
    path = write(tmp_path, predictions, kind)
    metrics = persistcal.evaluate(predictions)
    assert run("metrics", path) == 0
    printed = capsys.readouterr().out
    imported, _ = import_predictions(path, datasets=["quiz"], checkpoints=SAME)
    assert imported["confidence"].tolist() == predictions["confidence"].tolist()
    assert imported["correct"].astype(int).tolist() == predictions["correct"].tolist()
    assert metrics.to_csv(index=False) == printed


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_spellings_of_an_answer_are_one_group_and_one_label(tmp_path, kind):
    """Three samples say the same river, so accuracy and self-consistency are 1."""
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


# A column that is there twice -------------------------------------------------


@pytest.mark.parametrize("column", ["confidence", "correct", "question_id"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_a_column_that_is_there_twice_is_refused_by_every_door(
    predictions, tmp_path, kind, column
):
    rows = predictions.copy()
    path = tmp_path / f"own.{kind}"
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(rows)
        pq.write_table(table.append_column(column, table.column(column)), path)
    else:
        rows.insert(0, column, rows[column].iloc[::-1].tolist(), allow_duplicates=True)
        rows.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False)
    message = f"column '{column}' is there twice; keep one"
    with pytest.raises(UserTableError, match=message):
        read_study([str(path)])
    with pytest.raises(UserTableError, match=message):
        import_predictions(str(path), datasets=["quiz"], checkpoints=SAME)


def test_a_column_is_named_once_by_the_options(predictions, tmp_path, capsys):
    path = write(tmp_path, predictions.rename(columns={"confidence": "a"}), "csv")
    assert run("metrics", path, "--columns", "confidence=a", "confidence=seed") == 2
    assert "confidence twice" in capsys.readouterr().err
    assert run("metrics", path, "--columns", "confidence=a", "correct=a") == 1
    assert "--columns gives 'a' 2 times" in capsys.readouterr().err


# Scales -----------------------------------------------------------------------

SHOWN = {  # the scale, and a confidence on it
    "": lambda p: f"{p:g}",
    "percent": lambda p: f"{100 * p:g}%",
    "comma": lambda p: f"{p:g}".replace(".", ","),
    "--scale 100": lambda p: f"{100 * p:g}",
    "--scale 10": lambda p: f"{10 * p:g}",
}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("scale", list(SHOWN))
def test_confidences_on_a_scale_are_read_by_the_option_that_the_refusal_prints(
    predictions, tmp_path, scale, kind, capsys
):
    shown = predictions.assign(confidence=predictions["confidence"].map(SHOWN[scale]))
    path = write(tmp_path, shown, kind)
    options = []
    if scale.startswith("--"):
        assert run("metrics", path) == 1
        message = capsys.readouterr().err
        assert scale in message
        options = re.search(r"--scale [\d:]+", message)[0].split()
    assert run("metrics", path, *options) == 0
    printed = pd.read_csv(pd.io.common.StringIO(capsys.readouterr().out))
    expected = persistcal.evaluate(predictions)
    assert np.allclose(printed["value"], expected["value"], equal_nan=True, rtol=1e-9)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_answers_have_the_same_scales_as_predictions(tmp_path, kind, capsys):
    """On 1 to 5, 4 is (4 − 1) / (5 − 1) = .75."""
    rows = answers_of(["Nile", "Po", "nile"], confidence=["4", "1", "5"])
    path = write(tmp_path, rows, kind)
    assert run("metrics", path, "--estimator", "stated") == 1
    assert "give --scale 1:5" in capsys.readouterr().err
    scale = parse_scale("1:5", None, is_uncertainty=False)
    confidences, _ = read_confidences(path, scale=scale, estimators=["stated"])
    assert confidences == [0.75, 0.0, 1.0, 0.75, 0.0, 1.0]


def test_words_have_the_confidences_of_a_file(predictions, tmp_path, capsys):
    words = np.where(predictions["confidence"] < 0.5, "Low", "high")
    path = write(tmp_path, predictions.assign(confidence=words), "csv")
    assert run("metrics", path) == 1
    message = capsys.readouterr().err
    assert "--words FILE" in message and "a row for each of: Low, high" in message
    (tmp_path / "words.csv").write_text("word,confidence\nlow,0.1\nhigh,0.9\n")
    scale = parse_scale(None, str(tmp_path / "words.csv"), is_uncertainty=False)
    confidences, _ = read_confidences(path, scale=scale)
    assert confidences == [0.1 if word == "Low" else 0.9 for word in words]


def test_an_uncertainty_is_one_minus_the_confidence(predictions, tmp_path, capsys):
    doubt = (100 - 100 * predictions["confidence"]).round().astype(int)
    rows = predictions.drop(columns="confidence").assign(doubt=doubt)
    path = write(tmp_path, rows, "csv")
    assert run("metrics", path, "--uncertainty", "doubt", "--scale", "100") == 0
    printed = pd.read_csv(pd.io.common.StringIO(capsys.readouterr().out))
    expected = persistcal.evaluate(predictions)
    assert np.allclose(printed["value"], expected["value"], equal_nan=True, rtol=1e-9)


def test_labels_can_be_words(predictions, tmp_path):
    for yes, no in (("Yes", "No"), ("TRUE", "FALSE"), ("y", "n"), ("correct", "incorrect")):
        labels = np.where(predictions["correct"] == 1, yes, no)
        path = write(tmp_path, predictions.assign(correct=labels), "csv")
        [rows] = read_study([path]).predictions.values()
        assert rows["correct"].astype(int).tolist() == predictions["correct"].tolist()


def test_a_file_per_model_is_read_by_the_options_of_the_first_refusal(tmp_path, capsys):
    """The shape of a public data set: other names, labels as words, percentages, a model."""
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
    table = pd.read_csv(pd.io.common.StringIO(captured.out)).query("seed == 'mean'")
    [auc] = table.query("scope == 'full' and metric == 'auc'")["value"]
    rows = pd.concat(frames)
    assert auc == pytest.approx(roc_auc_score(rows["is_correct"], rows["confidence"]))


# Missing values ---------------------------------------------------------------


@pytest.mark.parametrize("column", ["confidence", "correct"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_missing_values_of_predictions_are_refused_counted_or_left_out(
    predictions, tmp_path, kind, column, capsys
):
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
    else:
        with pytest.raises(UserTableError, match="correct is missing in 2 rows"):
            read_confidences(path, missing="0.5")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_missing_values_of_answers_are_treated_as_those_of_predictions(tmp_path, kind):
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


# Numbers that lost their precision ---------------------------------------------


@pytest.mark.parametrize("door", ["text", "json", "object", "bytes swapped"])
def test_float32_is_rounded_if_it_has_lost_its_type(predictions, tmp_path, door):
    """0.1 in float32 is 0.10000000149011612."""
    narrow = predictions["confidence"].astype(np.float32)
    expected = predictions["confidence"].tolist()
    rows = predictions.assign(confidence=[float(value) for value in narrow])
    if door in ("text", "json"):
        path = write(tmp_path, rows, "csv" if door == "text" else "json")
        assert read_confidences(path)[0] == expected
        imported, _ = import_predictions(path, datasets=["quiz"], checkpoints=SAME)
        assert imported["confidence"].tolist() == expected
    else:
        values = list(narrow) if door == "object" else narrow.to_numpy().astype(">f4")
        kind = object if door == "object" else ">f4"
        rows = predictions.assign(confidence=pd.Series(values, dtype=kind))
        metrics = persistcal.evaluate(rows)
        assert metrics.equals(persistcal.evaluate(predictions))


def test_doubles_are_not_taken_for_float32():
    dyadic, random = np.arange(256) / 256, np.random.default_rng(1).random(50)
    for values in (dyadic, random, np.array([0.1, 0.2, 0.7])):
        assert round_narrow(values, "confidence").tolist() == values.tolist()


@pytest.mark.parametrize("noise", [1e-13, -1e-13])
def test_noise_of_a_mean_over_seeds_changes_no_verdict(predictions, noise):
    """Thresholds are compared with confidences: .7 − 1e-13 would be below .7."""
    noisy = predictions.assign(confidence=predictions["confidence"] + noise)
    exact, moved = (
        persistcal.threshold(rows, precision=0.3, n_replicates=200).tables["thresholds"]
        for rows in (predictions, noisy)
    )
    assert exact.equals(moved)
    exact, moved = (
        table[table["metric"].isin(["auc", "delta0", "delta0_balanced", "change_auc", "brier"])]
        for table in map(persistcal.evaluate, (predictions, noisy))
    )
    assert exact.equals(moved)


# Names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("run_1.csv", "run__1.csv"), ("x_1/p.csv", "x__1/p.csv"), ("a b.csv", "a  b.csv")]
)
def test_two_files_are_not_one_checkpoint(predictions, tmp_path, names):
    rows = predictions.drop(columns="checkpoint")
    files = [tmp_path / name for name in names]
    for path, part in zip(files, (rows[:40], rows[40:]), strict=True):
        path.parent.mkdir(exist_ok=True)
        part.to_csv(path, index=False)
    try:
        study = read_study([*map(str, files)])
    except ValueError as error:
        assert "rename the files" in str(error) or "differ only in spaces" in str(error)
    else:
        assert [len(found) for found in study.checkpoints.values()] == [2]


def test_names_of_checkpoints_differ_by_more_than_spaces(predictions, tmp_path, capsys):
    rows = predictions.drop(columns="checkpoint")
    files = [write(tmp_path, rows[:40], "csv", "x"), write(tmp_path, rows[40:], "csv", "y")]
    assert run("metrics", *files, "--names", " v", "v") == 1
    assert "give each file a name of its own" in capsys.readouterr().err


@pytest.mark.parametrize("heading", ["Question_ID", "question id", " QUESTION-ID "])
def test_a_heading_can_differ_in_case_and_spaces(predictions, tmp_path, heading):
    path = write(tmp_path, predictions.rename(columns={"question_id": heading}), "csv")
    confidences, study = read_confidences(path)
    assert confidences == predictions["confidence"].tolist()
    assert any("differ only in case or spaces" in note for note in study.notes)


# CSV --------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["aside", "question_id"])
def test_large_csv_files_can_have_line_breaks_inside_values(tmp_path, column):
    """A block of the reader is 1 MB; most of these rows have a line break in a value."""
    n = 30_000
    rows = pd.DataFrame({"question_id": [f"q{i}" for i in range(n)], "correct": 1})
    rows["confidence"] = np.arange(n) / n
    rows["aside"] = 'two lines, and "quotes"\nof a text that is ignored ' * 2
    if column == "question_id":
        rows["question_id"] += "\nsecond line"
    path = write(tmp_path, rows, "csv")
    confidences, _ = read_confidences(path)
    assert np.allclose(confidences, rows["confidence"], atol=1e-6)


def test_an_open_quote_swallows_no_rows(predictions, tmp_path):
    path = tmp_path / "own.csv"
    text = predictions.assign(aside="x").to_csv(index=False).splitlines()
    text[5] = text[5].removesuffix("x") + '"x'
    path.write_text("\n".join(text) + "\n")
    with pytest.raises(UserTableError, match="line 6 is not CSV"):
        read_study([str(path)])


def test_the_delimiter_line_of_a_spreadsheet_is_read(predictions, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("sep=;\n" + predictions.to_csv(index=False, sep=";"))
    assert read_confidences(str(path))[0] == predictions["confidence"].tolist()
    imported, _ = import_predictions(str(path), datasets=["quiz"], checkpoints=SAME)
    assert len(imported) == len(predictions)


# Nothing to compare -----------------------------------------------------------


@pytest.mark.parametrize("case", ["one", "one each", "none shared"])
def test_a_comparison_of_nothing_is_refused_in_one_sentence(
    predictions, tmp_path, case, capsys
):
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
def test_a_plan_refuses_what_is_no_number_of_questions(value):
    with pytest.raises(ValueError, match="give a whole number from 1"):
        persistcal.plan(value, 1, 1)
    with pytest.raises(ValueError, match="difference is "):
        persistcal.plan(100, 10, 5, difference="0.1")


def test_confidences_are_real_numbers():
    for wrong in ([1j, 0.5], ["high", "low"]):
        with pytest.raises(ValueError, match="A confidence is not a number"):
            persistcal.smooth_ece([1, 0], wrong)


# Logs -------------------------------------------------------------------------


def write_tasks(folder, right, tasks=("law", "art")):
    """Write the logs of two tasks with the same document numbers, two options each."""
    folder.mkdir(parents=True)
    for task, answers in zip(tasks, right, strict=True):
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


def test_the_logs_of_a_folder_are_one_version(tmp_path):
    """Of law 1 of 3 and then 3 of 3 are right; of art 2 of 3 and then 1 of 3."""
    write_tasks(tmp_path / "v1/org__model", [[1, 0, 0], [1, 1, 0]])
    write_tasks(tmp_path / "v2", [[1, 1, 1], [0, 0, 1]])
    for arguments in ([f"{tmp_path}/v1", f"{tmp_path}/v2"],
                      [f"{tmp_path}/v1/*/*.jsonl", f"{tmp_path}/v2/*.jsonl"]):  # fmt: skip
        study = read_study(arguments, Reading(names=["v1", "v2"]))
        shares = study.answers.groupby(["dataset", "checkpoint"])["correct"].sum().to_dict()
        assert shares == {
            ("law", "v1"): 1, ("law", "v2"): 3, ("art", "v1"): 2, ("art", "v2"): 1,
        }  # fmt: skip
        pooled = read_study(arguments, Reading(names=["v1", "v2"], pool=True))
        assert pooled.answers.groupby("checkpoint")["correct"].sum().to_dict() == {
            "v1": 3,
            "v2": 4,
        }
        assert set(pooled.questions["category"]) == {"law", "art"}
    assert name_checkpoints([f"{tmp_path}/v1", f"{tmp_path}/v2"]) == ["v1", "v2"]


def test_versions_have_the_same_tasks_and_a_task_one_log(tmp_path):
    write_tasks(tmp_path / "v1", [[1, 0], [1, 0]])
    write_tasks(tmp_path / "v2", [[1, 0], [0, 1]], tasks=("law", "music"))
    with pytest.raises(ValueError, match=r"v1: has no log of the task music"):
        read_study([f"{tmp_path}/v1", f"{tmp_path}/v2"])
    write_tasks(tmp_path / "v1/again", [[1, 0], [1, 0]])
    with pytest.raises(ValueError, match="are both of the task "):
        read_study([f"{tmp_path}/v1", f"{tmp_path}/v2"])


def test_ties_among_options_are_counted_with_both_accuracies(tmp_path, caplog):
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
    once, twice = (
        read_study([str(path)], Reading(beams=False, names=["a"])) for path in (single, double)
    )
    assert once.answers.equals(twice.answers)
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


def test_a_scale_of_other_values_is_refused(predictions, tmp_path):
    """Probabilities that were divided by 100 would all be below .01."""
    path = write(tmp_path, predictions, "csv")
    with pytest.raises(UserTableError, match=r"no confidence is above 1.*leave --scale out"):
        read_confidences(path, scale=Scale(0, 100))


def test_nothing_is_left_without_confidences(predictions, tmp_path):
    path = write(tmp_path, predictions.assign(confidence="nan"), "csv")
    with pytest.raises(UserTableError, match="nothing is left"):
        read_confidences(path, missing="drop")
    (tmp_path / "empty.json").write_text("[]")
    with pytest.raises(ValueError, match=r"empty\.json: is empty"):
        read_study([str(tmp_path / "empty.json")])


def test_an_empty_file_of_requests_is_named(tmp_path):
    line = {"doc_id": 0, "native_id": "q0", "model_output": [], "label": 0}
    log = write_rows(tmp_path / "quiz-predictions.jsonl", [line])
    (tmp_path / "quiz-requests.jsonl").touch()
    with pytest.raises(
        UserTableError, match=r"requests\.jsonl is empty; .* or delete the file"
    ):
        read_study([log])


def test_the_remedy_of_a_target_is_a_number_of_its_kind(predictions):
    with pytest.raises(ValueError, match=r"delta is 0; .* such as 0\.1"):
        persistcal.threshold(predictions, precision=0.9, delta=0)
    with pytest.raises(ValueError, match=r"precision is 1; .* such as 0\.9"):
        persistcal.threshold(predictions, precision=1)


def test_a_scale_needs_two_ends():
    assert parse_scale("100", None, is_uncertainty=False) == Scale(0, 100)
    for wrong in ("5:1", "abc", "0", "-1:1"):
        with pytest.raises(ValueError, match="write the greatest value"):
            parse_scale(wrong, None, is_uncertainty=False)


def test_answers_of_the_workflow_have_the_formats_of_the_command(tmp_path):
    rows = answers_of(["Nile", "Po"])
    for kind in FORMATS:
        path = write(tmp_path, rows, kind)
        questions, beams, _ = import_answers(
            entries=[{"file": path}], strategy="sample", known=SAME, wanted=wanted()
        )
        assert len(questions) == 2 and beams["text"].tolist() == ["Nile", "Po", "Po", "Nile"]
