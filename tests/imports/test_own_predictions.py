"""A file of a user's predictions: rows that are read, skipped or refused."""

import csv
import logging
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from import_predictions import import_predictions

from persistcal.readers.columns import PREDICTIONS
from persistcal.readers.predictions import collect_rows
from persistcal.store import artifacts
from persistcal.store.files import sha256
from persistcal.store.jobs import Job, execute
from persistcal.store.user_files import UserTableError, read_file

CHECKPOINTS = {model: dict.fromkeys("ab", True) for model in ("m1", "m2")}  # True: can be equal


def valid():
    """Return rows of two models and two checkpoints: two questions and one estimator."""
    rows = [
        (model, checkpoint, f"00{question}", 0.25 * question, question % 2)
        for model in ("m1", "m2")
        for checkpoint in "ab"
        for question in (1, 2)
    ]
    columns = ["model", "checkpoint", "question_id", "confidence", "correct"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(dataset="quiz", estimator="mine", seed=0)


def run(folder, frame, *, suffix=".csv", checkpoints=CHECKPOINTS):
    """Import `frame` from a file and return a table of predictions for each model."""
    path = folder / f"predictions{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False)
    imported, _ = import_predictions(str(path), datasets=["quiz"], checkpoints=checkpoints)
    return [imported[imported["model"] == model] for model in checkpoints]


def run_bytes(path, content):
    """Import predictions of m1 from the bytes of a file."""
    path.write_bytes(content)
    return import_predictions(
        str(path), datasets=["quiz"], checkpoints={"m1": CHECKPOINTS["m1"]}
    )[0]


def test_columns_can_have_any_order_and_include_a_training_dataset(tmp_path):
    frame = valid().assign(train_dataset="other")[::-1]
    imported, _ = run(tmp_path, frame[sorted(frame.columns)])
    assert set(imported["train_dataset"]) == {"other"}
    assert imported["confidence"].tolist() == [0.5, 0.25, 0.5, 0.25]


def test_a_job_writes_predictions_per_model_and_answers_per_checkpoint(tmp_path):
    valid().to_csv(tmp_path / "p.csv", index=False)
    models = [{"model": m, "dataset": "quiz"} for m in CHECKPOINTS]
    checkpoints = [{**m, "checkpoint": c, "split": "test"} for m in models for c in "ab"]
    subjects = {"predictions": models, "answers": checkpoints}
    outputs = {
        name: [str(tmp_path / f"{name}{i}") for i in range(len(files))]
        for name, files in subjects.items()
    }
    params = {f"{name}_of": files for name, files in subjects.items()}
    params |= {"datasets": ["quiz"], "checkpoints": CHECKPOINTS}
    job = Job({"file": str(tmp_path / "p.csv")}, outputs, params, threads=1)
    execute(import_predictions, job)
    second = artifacts.read_files(tmp_path / "predictions1", artifacts.PREDICTIONS)
    assert set(second["model"]) == {"m2"} and len(second) == 4

    sources = artifacts.sources(tmp_path / "predictions1")
    assert sources == {str(tmp_path / "p.csv"): sha256(tmp_path / "p.csv")}
    answers = artifacts.read_files(tmp_path / "answers3", artifacts.ANSWERS)
    rows = answers[["model", "checkpoint", "question_id", "split", "correct"]].values.tolist()
    assert rows == [["m2", "b", "001", "test", True], ["m2", "b", "002", "test", False]]
    assert answers["answer"].isna().all() and answers["probability"].isna().all()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_large_file_is_read_in_the_order_of_its_rows(tmp_path, suffix):
    """The names are in other orders in the second half of the file."""
    n = 30_000
    parts = [
        pd.DataFrame({"question_id": number.astype(str), "confidence": number / n}).assign(
            checkpoint=checkpoint, correct=number % 2
        )
        for checkpoint, number in (("b", np.arange(n)), ("a", np.arange(n)[::-1]))
    ]
    frame = pd.concat(parts).assign(model="m1", dataset="quiz", estimator="mine", seed=3)
    if suffix == ".parquet":
        kinds = {"model": "category", "question_id": "category", "seed": "int16"}
        frame = frame.astype(kinds)
    (imported,) = run(tmp_path, frame, suffix=suffix, checkpoints={"m1": CHECKPOINTS["m1"]})
    number = imported["question_id"].astype(int)

    assert np.allclose(imported["confidence"], number / n)
    assert (imported["correct"] == number % 2).all()
    assert imported["checkpoint"].tolist() == ["b"] * n + ["a"] * n
    assert (tmp_path / f"predictions{suffix}").stat().st_size > 2**21 or suffix == ".parquet"


def test_rows_outside_the_study_are_skipped_and_counted(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    unknown = valid()[:3].assign(model=["m9", "m1", "m1"], checkpoint=["a", "a", "z"])
    # Skipped rows are not checked: their confidence of 7 is not an error.
    unknown = unknown.assign(dataset=["quiz", "exam", "quiz"], confidence=7.0)
    imported, _ = run(tmp_path, pd.concat([unknown, valid()]))
    assert len(imported) == 4
    assert caplog.messages == [
        "Skipped 1 rows of model 'm9', which is not in the study",
        "Skipped 1 rows of dataset 'exam', which is not in the study",
        "Skipped 1 rows of checkpoint 'z', which is not in the study",
    ]


WRONG = [
    ("confidence", 1.5, r"is not valid \(row 3: '?1.5'?\); give a number in \[0, 1\]"),
    ("confidence", -0.1, r"row 3: '?-0.1"),
    ("confidence", "high", r"confidence is not valid \(row 3: 'high'\)"),
    ("confidence", float("nan"), r"confidence is empty \(row 3\); give a number in"),
    ("correct", 2, r"correct is not valid \(row 3: '?2.*give 0 or 1"),
    ("correct", "perhaps", r"correct is not valid \(row 3: 'perhaps'\)"),
    ("correct", float("nan"), r"correct is empty \(row 3\); give 0 or 1, or nothing"),
    ("seed", 1.5, r"seed is not valid \(row 3: '?1.5'?\); give a whole number"),
    ("seed", 2.0**53, r"seed is not valid \(row 3"),
    ("seed", float("inf"), r"seed is not valid \(row 3"),
    ("seed", "first", r"seed is not valid \(row 3: 'first'\)"),
    ("question_id", "", r"question_id is empty \(row 3\); fill it in"),
    ("model", None, r"model is empty \(row 3"),
]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("column", "value", "message"), WRONG)
def test_wrong_values_are_refused_with_their_row(tmp_path, column, value, message, suffix):
    frame = valid()
    if isinstance(value, str | float):
        frame = frame.astype({column: type(value)})
    frame.loc[2, column] = value
    with pytest.raises(UserTableError, match=message) as error:
        run(tmp_path, frame, suffix=suffix)
    assert f"predictions{suffix}: " in str(error.value)


@pytest.mark.parametrize("column", ["correct", "confidence", "question_id"])
def test_lists_in_parquet_are_refused(tmp_path, column):
    frame = valid()
    frame[column] = [[value] for value in frame[column]]
    message = rf"\.parquet: column '{column}' of row 1 holds \["
    with pytest.raises(UserTableError, match=message):
        run(tmp_path, frame, suffix=".parquet")


def test_the_same_predictions_for_two_checkpoints_are_refused(tmp_path):
    first_name = valid().query("model == 'm1' and checkpoint == 'a'")
    rows = pd.concat([first_name, first_name.assign(checkpoint="b")[::-1]])
    different = {"m1": dict.fromkeys("ab", False)}
    message = rf"checkpoint b of m1 are those of a \(from row {len(first_name) + 1}\); give"
    with pytest.raises(UserTableError, match=message):
        run(tmp_path, rows, checkpoints=different)
    run(tmp_path, rows, checkpoints={"m1": {"a": True, "b": False}})
    run(tmp_path, rows, checkpoints={"m1": {"a": False, "b": True}})
    rows.iloc[-1, rows.columns.get_loc("confidence")] += 0.01
    run(tmp_path, rows, checkpoints=different)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (valid().assign(confidence=2), r"\(row 1: '2', row 2: '2', row 3: '2'\)"),
        (
            pd.concat([valid(), valid().iloc[[6]]]),
            "1 rows repeat another, the first of checkpoint b, question_id 001, train_dataset "
            r"quiz, estimator mine, seed 0, ask 0 \(row 7, row 9\); keep one",
        ),
        (valid().assign(prob=1), "unknown column 'prob'; known are model, check"),
        (valid().drop(columns="seed"), "column 'seed' is missing; add it to every row"),
        (pd.DataFrame(), "is empty; give a heading and a row"),
        (valid().iloc[:0], "no row belongs"),
        (valid().assign(model="m7"), r"no row belongs to the study's models \(m1, m2\), their"),
        (valid()[:4], "no row is of model 'm2' and dataset 'quiz'; add them, or take"),
    ],
)
def test_repeated_missing_or_unknown_rows_and_columns_are_refused(tmp_path, frame, message):
    with pytest.raises(UserTableError, match=message):
        run(tmp_path, frame)


@pytest.mark.parametrize(
    ("first_name", "second_name"),
    [("1", "1.0"), ("1", "01"), ("7", " 7"), ("caf\u00e9", "cafe\u0301"), ("q", "q\u200b")],
)
@pytest.mark.parametrize("column", ["checkpoint", "model"])
def test_a_question_with_two_names_is_refused(tmp_path, first_name, second_name, column):
    frame = valid()
    is_first = frame[column] == frame[column].iloc[0]
    frame["question_id"] = np.where(frame["question_id"] == "002", "x", first_name)
    frame.loc[~is_first & (frame["question_id"] == first_name), "question_id"] = second_name
    names = f"{first_name!r} at a of m1; {second_name!r} at"
    message = f"quiz: the ids of 1 questions differ in spelling ({names}"
    with pytest.raises(UserTableError, match=re.escape(message)):
        run(tmp_path, frame, suffix=".parquet")


def test_similar_ids_that_every_checkpoint_has_are_two_questions(tmp_path):
    frame = valid().assign(question_id=["1", "01"] * 4)
    assert set(run(tmp_path, frame)[0]["question_id"]) == {"1", "01"}


def test_questions_that_a_checkpoint_lacks_are_counted_in_the_log(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    run(tmp_path, valid().drop(index=2))  # question 001 at checkpoint b of m1
    assert caplog.messages == [
        "m1, quiz: only 1 of 2 questions are at every checkpoint (a 2, b 1): a contrast set "
        "holds those that both of its checkpoints have",
        "None of 1 answers of m1, b, quiz is correct; see whether answers and references have "
        "the same form",
    ]


def many_rows(n, model):
    questions = np.arange(n) % 50_000
    frame = pd.DataFrame({"seed": np.arange(n) // 50_000, "correct": questions % 2})
    frame["question_id"] = np.char.add("long question identifier " * 4, questions.astype(str))
    names = {"model": model, "checkpoint": "a", "dataset": "quiz", "estimator": "mine"}
    return pa.Table.from_pandas(frame.assign(confidence=0.5, **names), preserve_index=False)


@pytest.mark.slow
def test_a_large_file_is_not_loaded_into_memory(tmp_path):
    # The study reads 1 row in 300 of a file of 85 MB.
    with pyarrow.csv.CSVWriter(tmp_path / "big.csv", many_rows(1, "m1").schema) as writer:
        writer.write(many_rows(2_000, "m1"))
        writer.write(many_rows(600_000, "other"))
    code = f"""
import sys
sys.path[:0] = [".", "workflow/scripts/imports"]
from pathlib import Path
from import_predictions import import_predictions
path = {str(tmp_path / "big.csv")!r}
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
start = peak()
import_predictions(path, datasets=["quiz"], checkpoints={{"m1": {{"a": False}}}})
print(1024 * (peak() - start))
"""
    assert (tmp_path / "big.csv").stat().st_size > 84e6
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(process.stdout) < 48e6  # the text has 85 MB


def test_a_row_of_the_study_takes_little_memory():
    given = many_rows(200_000, "m1").to_pandas()
    rows = collect_rows(given)
    # At most 4 bytes for a name and 8 for a number; texts are stored once per question.
    assert len(rows) == 200_000
    assert rows["row"].tolist() == list(range(1, 200_001))
    assert rows.memory_usage(index=False, deep=True).sum() < 200_000 * 50 + 50_000 * 200


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(NAMES, min_size=1, max_size=5),
    NAMES,
    st.floats(0, 1),
    st.sampled_from(",;\t"),
    st.sampled_from(["utf-8", "utf-8-sig"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["p.csv", "p.csv.gz"]),
)
def test_any_names_and_confidences_are_read_exactly(
    tmp_path, questions, estimator, confidence, delimiter, encoding, quoting, name
):
    frame = pd.DataFrame({"question_id": questions, "model": "m1", "dataset": "quiz"})
    frame = frame.assign(checkpoint="a", estimator=estimator, seed=1, correct=1)
    frame.assign(confidence=confidence).to_csv(  # pandas compresses files named .gz
        tmp_path / name, index=False, sep=delimiter, encoding=encoding, quoting=quoting
    )
    rows = read_file(str(tmp_path / name), known_names=PREDICTIONS.names)
    imported = collect_rows(rows)
    assert imported["question_id"].tolist() == questions
    assert set(imported["estimator"]) == {estimator}
    # Rounding errors of a decimal are removed.
    assert imported["confidence"].to_numpy() == pytest.approx(confidence, abs=1e-12)


COLUMNS = ["model", "checkpoint", "dataset", "question_id", "estimator", "seed"]
GOOD_CSV = valid().assign(estimator="größer")[[*COLUMNS, "confidence", "correct"]]
GOOD_CSV = GOOD_CSV.to_csv(index=False)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", GOOD_CSV.encode("latin-1"), "is not UTF-8 text .byte 0xF6 in line 2.*UTF-8"),
        ("p.csv", (GOOD_CSV * 500).encode() + GOOD_CSV.encode("latin-1"), "0xF6 in line 4502"),
        ("p.csv", GOOD_CSV.encode("utf-16"), "zero bytes, as UTF-16 does; save it as UTF-8"),
        ("p.csv", GOOD_CSV.replace("001", "0,01").encode(), "line 2 has 9 fields, but the he"),
        ("p.csv", f"{GOOD_CSV}m1,a,quiz\n".encode(), "line 10 has 3 fields"),
        ("p.csv", b"seed," + GOOD_CSV.encode(), "column 'seed' is there twice; keep one"),
        ("p.parquet", b"PAR1" + bytes(99) + b"PAR1", "p.parquet: "),
        ("p.parquet", b"model,checkpoint\n", "p.parquet: "),
        ("p.xls", GOOD_CSV.encode(), "files of kind .* are not read; give .csv, .tsv"),
    ],
)
def test_an_ambiguous_file_is_refused_with_its_path(tmp_path, name, content, message):
    with pytest.raises(UserTableError, match=message) as error:
        run_bytes(tmp_path / name, content)
    assert str(error.value).startswith(f"{tmp_path / name}: ")


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 3), ("float32", 6)])
def test_confidences_of_fewer_bits_are_rounded_once(tmp_path, caplog, dtype, digits):
    caplog.set_level(logging.INFO)
    stored = valid().assign(confidence=[0.1, 0.29] * 4).astype({"confidence": dtype})
    for imported in run(tmp_path, stored, suffix=".parquet"):
        assert list(imported["confidence"]) == [0.1, 0.29] * 2
    line = f"confidence: {dtype}, rounded to {digits} significant digits"
    assert caplog.messages.count(line) == 1
