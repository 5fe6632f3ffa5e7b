"""A file of one's own predictions: what is read, what is skipped, what is refused."""

import csv
import gzip
import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from import_predictions import import_predictions, read_batches

from persistcal.imports.own_predictions import OwnPredictionsError, collect_rows
from persistcal.store import artifacts

DOCS = Path("docs/own_predictions.md")
EXAMPLE = Path("config/example_predictions.csv")


def good():
    """Two models, two checkpoints, one dataset, two questions, one estimator."""
    return pd.DataFrame(
        [
            (
                model,
                checkpoint,
                "quiz",
                f"00{question}",
                "mine",
                0,
                0.25 * question,
                question % 2,
            )
            for model in ("m1", "m2")
            for checkpoint in "ab"
            for question in (1, 2)
        ],
        columns=[
            "model",
            "checkpoint",
            "dataset",
            "question_id",
            "estimator",
            "seed",
            "confidence",
            "correct",
        ],
    )


def run(folder, frame, *, suffix=".csv", models=("m1", "m2"), dataset="quiz", identical=True):
    path = folder / f"predictions{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
    outputs = [str(folder / "out" / f"{model}.parquet") for model in models]
    answers = [str(folder / "answers" / f"{m}-{c}.parquet") for m in models for c in "ab"]
    import_predictions(
        str(path),
        outputs,
        answers,
        wanted=[(model, dataset) for model in models],
        checkpoints={model: dict.fromkeys("ab", identical) for model in models},
    )
    return [artifacts.read(output, artifacts.PREDICTIONS) for output in outputs]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_every_row_arrives(tmp_path, suffix):
    first, second = run(tmp_path, good(), suffix=suffix)
    expected = pd.DataFrame(
        {
            "checkpoint": list("aabb"),
            "question_id": ["001", "002", "001", "002"],  # text stays text
            "train_dataset": "quiz",
            "estimator": "mine",
            "seed": 0,
            "confidence": [0.25, 0.5, 0.25, 0.5],
            "correct": [True, False, True, False],
        }
    )
    for found in (first, second):
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_columns_may_come_in_any_order_and_with_a_training_dataset(tmp_path):
    frame = good().assign(train_dataset="other")[::-1]
    found, _ = run(tmp_path, frame[sorted(frame.columns)])
    assert set(found["train_dataset"]) == {"other"}
    assert found["confidence"].tolist() == [0.5, 0.25, 0.5, 0.25]


@pytest.mark.parametrize("labels", [(True, False), ("True", "False"), ("1.0", "0"), (1.0, 0.0)])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_labels_may_be_numbers_words_or_flags(tmp_path, labels, suffix):
    found, _ = run(tmp_path, good().assign(correct=labels * 4), suffix=suffix)
    assert found["correct"].tolist() == [True, False, True, False]


@pytest.mark.slow
def test_categories_and_parts_of_a_file(tmp_path):
    # 300,000 rows are several parts of the reader, with the names in other orders.
    n = 150_000
    frame = pd.concat(
        pd.DataFrame(
            {
                "model": "m1",
                "checkpoint": checkpoint,
                "dataset": "quiz",
                "question_id": np.arange(n)[::step].astype(str),
                "estimator": "mine",
                "seed": 3,
                "confidence": np.arange(n)[::step] / n,
                "correct": np.arange(n)[::step] % 2,
            }
        )
        for checkpoint, step in (("b", 1), ("a", -1))
    )
    kinds = {"model": "category", "question_id": "category", "seed": "int16"}
    for suffix, table in ((".csv", frame), (".parquet", frame.astype(kinds))):
        (found,) = run(tmp_path, table, suffix=suffix, models=("m1",))
        number = found["question_id"].astype(int)
        assert len(found) == 2 * n
        assert np.allclose(found["confidence"], number / n)
        assert (found["correct"] == number % 2).all()
        assert found["checkpoint"].tolist() == ["b"] * n + ["a"] * n


def test_rows_outside_the_study_are_skipped_and_counted(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    frame = good()
    strange = frame.iloc[[0, 1, 2]].assign(
        model=["m9", "m1", "m1"], dataset=["quiz", "exam", "quiz"], checkpoint=["a", "a", "z"]
    )
    # What is skipped is not checked any further.
    strange = strange.assign(confidence=7.0)
    found, _ = run(tmp_path, pd.concat([strange, frame]))
    assert len(found) == 4
    messages = sorted(record.getMessage() for record in caplog.records)
    assert messages == [
        "Skipped 1 rows of checkpoint 'z', which is not in the study",
        "Skipped 1 rows of dataset 'exam', which is not in the study",
        "Skipped 1 rows of model 'm9', which is not in the study",
    ]


WRONG = [
    (
        "confidence",
        1.5,
        r"confidence is not valid \(row 3: '?1.5'?\); give a number in \[0, 1\]",
    ),
    ("confidence", -0.1, r"row 3: '?-0.1"),
    ("confidence", "high", r"confidence is not valid \(row 3: 'high'\)"),
    ("confidence", float("nan"), r"confidence is not valid \(row 3: "),
    ("confidence", float("inf"), r"confidence is not valid \(row 3: '?inf"),
    ("correct", 2, r"correct is not valid \(row 3: '?2.*give 0 or 1"),
    ("correct", "yes", r"correct is not valid \(row 3: 'yes'\)"),
    ("correct", float("nan"), r"correct is not valid \(row 3: "),
    ("seed", 1.5, r"seed is not valid \(row 3: '?1.5'?\); give a whole number"),
    ("seed", float("inf"), r"seed is not valid \(row 3"),
    ("seed", "first", r"seed is not valid \(row 3: 'first'\)"),
    ("question_id", "", r"question_id is empty \(row 3"),
    ("estimator", None, r"estimator is empty \(row 3"),
    ("model", None, r"model is empty \(row 3"),
]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("column", "value", "message"), WRONG)
def test_wrong_values_are_refused_with_their_row(tmp_path, column, value, message, suffix):
    frame = good()
    if isinstance(value, str):
        frame = frame.astype({column: str})
    elif isinstance(value, float):
        frame = frame.astype({column: float})
    frame.loc[2, column] = value
    with pytest.raises(ValueError, match=message) as caught:
        run(tmp_path, frame, suffix=suffix)
    assert f"predictions{suffix}: " in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("column", ["correct", "confidence", "question_id"])
def test_lists_in_parquet_are_refused(tmp_path, column):
    frame = good()
    frame[column] = [[value] for value in frame[column]]
    with pytest.raises(ValueError, match=rf"\.parquet: column '{column}' holds a list"):
        run(tmp_path, frame, suffix=".parquet")


def test_the_same_predictions_for_two_checkpoints_are_refused(tmp_path):
    one = good().query("model == 'm1' and checkpoint == 'a'")
    both = pd.concat([one, one.assign(checkpoint="b")[::-1]])
    said = rf"checkpoint b of m1 are those of a \(from row {len(one) + 1}\); give"
    with pytest.raises(ValueError, match=said):
        run(tmp_path, both, models=("m1",), identical=False)
    both.iloc[-1, both.columns.get_loc("confidence")] += 0.01
    run(tmp_path, both, models=("m1",), identical=False)


def test_three_wrong_rows_are_shown(tmp_path):
    frame = good().assign(confidence=2)
    with pytest.raises(ValueError, match=r"\(row 1: '2', row 2: '2', row 3: '2'\)"):
        run(tmp_path, frame)


def test_repeated_rows_are_refused(tmp_path):
    frame = pd.concat([good(), good().iloc[[6]]])
    with pytest.raises(ValueError, match=r"1 rows repeat another: rows 7 and 9 are both of"):
        run(tmp_path, frame)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1.0"), ("1", "01"), ("7", " 7"), ("caf\u00e9", "cafe\u0301"), ("q", "q\u200b")],
)
def test_a_question_with_two_names_is_refused_with_its_rows(tmp_path, one, other):
    names = {("001", "a"): one, ("001", "b"): other, ("002", "a"): "x", ("002", "b"): "x"}
    frame = good()
    places = zip(frame["question_id"], frame["checkpoint"], strict=True)
    frame = frame.assign(question_id=[names[place] for place in places])
    message = re.escape(f"(row 1: {one!r}, row 3: {other!r}); write each")
    with pytest.raises(OwnPredictionsError, match=message):
        run(tmp_path, frame, suffix=".parquet")


def test_names_that_are_both_at_each_checkpoint_are_of_two_questions(tmp_path):
    frame = good().assign(question_id=["1", "01"] * 4)
    assert set(run(tmp_path, frame)[0]["question_id"]) == {"1", "01"}


def test_questions_that_a_checkpoint_lacks_are_counted(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    run(tmp_path, good().drop(index=2))  # question 001 at checkpoint b of m1
    assert caplog.messages == [
        "m1, quiz: only 1 of 2 questions are at every checkpoint (a 2, b 1): a contrast set "
        "holds those that both of its checkpoints have",
        f"None of 1 answers in {tmp_path}/answers/m1-b.parquet is correct; see whether answers "
        "and references have the same form",
    ]


def test_unknown_missing_and_repeated_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown column 'prob'; predictions may hold only"):
        run(tmp_path, good().assign(prob=1))
    with pytest.raises(ValueError, match="column 'seed' is missing"):
        run(tmp_path, good().drop(columns="seed"))
    with pytest.raises(ValueError, match="column 'model' is missing"):
        run(tmp_path, pd.DataFrame())
    path = tmp_path / "twice.csv"
    path.write_text(",".join([*good().columns, "seed"]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="column 'seed' is there twice"):
        import_predictions(str(path), [], [], wanted=[], checkpoints={})


def test_files_that_do_not_fit_the_study_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no row belongs to the study's models \(m7\)"):
        run(tmp_path, good(), models=("m7",))
    with pytest.raises(ValueError, match="no row is of model 'm3' and dataset 'quiz'"):
        run(tmp_path, good(), models=("m1", "m3"))
    with pytest.raises(ValueError, match="no row belongs"):
        run(tmp_path, good().iloc[:0])
    with pytest.raises(ValueError, match=r"predictions.xls: is neither a .csv nor a .parquet"):
        run(tmp_path, good(), suffix=".xls")


def test_rows_of_other_length_and_files_of_other_kinds_are_refused(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text(good().to_csv(index=False) + "m1,a,quiz\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"short.csv: .*Expected 8 columns, got 3"):
        import_predictions(
            str(path),
            [""],
            [""],
            wanted=[("m1", "quiz")],
            checkpoints={"m1": dict.fromkeys("ab", True)},
        )
    path = tmp_path / "text.parquet"
    path.write_text("model,checkpoint\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"text\.parquet: "):
        import_predictions(
            str(path),
            [""],
            [""],
            wanted=[("m1", "quiz")],
            checkpoints={"m1": dict.fromkeys("ab", True)},
        )


def many_rows(n, model):
    questions = np.arange(n) % 50_000
    frame = pd.DataFrame({"seed": np.arange(n) // 50_000, "correct": questions % 2})
    frame["question_id"] = np.char.add("long question identifier " * 4, questions.astype(str))
    names = {"model": model, "checkpoint": "a", "dataset": "quiz", "estimator": "mine"}
    return pa.Table.from_pandas(frame.assign(confidence=0.5, **names), preserve_index=False)


@pytest.mark.slow
def test_the_file_is_not_held_in_memory(tmp_path):
    # Of a file of 140 MB one part in 500 belongs to the study.
    with pyarrow.csv.CSVWriter(tmp_path / "big.csv", many_rows(1, "m1").schema) as writer:
        writer.write(many_rows(2_000, "m1"))
        writer.write(many_rows(1_000_000, "other"))
    code = f"""
import sys
sys.path[:0] = [".", "workflow/scripts/imports"]
import pyarrow
from import_predictions import import_predictions
import_predictions({str(tmp_path / "big.csv")!r}, [{str(tmp_path / "out.parquet")!r}],
    [{str(tmp_path / "answers.parquet")!r}],
    wanted=[("m1", "quiz")], checkpoints={{"m1": {{"a": False}}}})
print(pyarrow.default_memory_pool().max_memory())
"""
    assert (tmp_path / "big.csv").stat().st_size > 140e6
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 80e6  # the text alone is 140 MB


def test_a_row_of_the_study_takes_little_memory():
    batches = many_rows(200_000, "m1").to_batches(max_chunksize=30_000)
    rows = collect_rows(batches, checkpoints={"m1": ["a"]}, datasets=["quiz"])
    # 4 bytes of code for a name at most, 8 for a number; text is kept once per question.
    assert len(rows) == 200_000
    assert rows.memory_usage(index=False, deep=True).sum() < 200_000 * 50 + 50_000 * 200


def test_the_example_is_what_the_documentation_makes():
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    names = {}
    exec(code, names)
    given = pd.read_csv(EXAMPLE)
    pd.testing.assert_frame_equal(names["example"].reset_index(drop=True), given)
    assert EXAMPLE.stat().st_size < 300_000


def test_the_example_can_be_imported(tmp_path):
    config = yaml.safe_load(Path("config/own_predictions.yaml").read_text(encoding="utf-8"))
    model, dataset = config["study"]["models"][0], config["study"]["datasets"][0]
    checkpoints = config["models"][model]["evaluation"]
    import_predictions(
        config["study"]["predictions"],
        [str(tmp_path / "out.parquet")],
        [str(tmp_path / f"{checkpoint}.parquet") for checkpoint in checkpoints],
        wanted=[(model, dataset)],
        checkpoints={model: dict.fromkeys(checkpoints, False)},
    )
    found = artifacts.read(tmp_path / "out.parquet", artifacts.PREDICTIONS)
    assert found.groupby(["estimator", "seed"]).size().tolist() == [900, 900, 900]
    answers = artifacts.read(tmp_path / f"{checkpoints[0]}.parquet", artifacts.ANSWERS)
    rows = found[(found["checkpoint"] == checkpoints[0])].drop_duplicates("question_id")
    assert dict(answers[["question_id", "correct"]].values) == dict(
        rows[["question_id", "correct"]].values
    )
    assert answers["answer"].isna().all() and set(answers["split"]) == {"test"}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz"])
def test_a_file_is_read_in_the_encoding_and_with_the_delimiter_that_it_shows(
    tmp_path, delimiter, encoding, name
):
    frame = good().assign(estimator="größer")
    content = frame.to_csv(index=False, sep=delimiter).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    import_predictions(
        str(tmp_path / name),
        [str(tmp_path / "out.parquet")],
        [str(tmp_path / f"{checkpoint}.parquet") for checkpoint in "ab"],
        wanted=[("m1", "quiz")],
        checkpoints={"m1": dict.fromkeys("ab", True)},
    )
    found = artifacts.read(tmp_path / "out.parquet", artifacts.PREDICTIONS)
    assert found["confidence"].tolist() == [0.25, 0.5, 0.25, 0.5]
    assert set(found["estimator"]) == {"größer"}


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(NAMES, min_size=1, max_size=5),
    NAMES,
    st.floats(0, 1),
    st.sampled_from(",;\t"),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_any_names_and_confidences_come_back(
    tmp_path, questions, estimator, confidence, delimiter, encoding, quoting
):
    frame = pd.DataFrame({"question_id": questions, "model": "m1", "dataset": "quiz"})
    frame = frame.assign(checkpoint="a", estimator=estimator, seed=1, correct=1)
    frame.assign(confidence=confidence).to_csv(
        tmp_path / "p.csv", index=False, sep=delimiter, encoding=encoding, quoting=quoting
    )
    found = collect_rows(
        read_batches(str(tmp_path / "p.csv")), checkpoints={"m1": ["a"]}, datasets=["quiz"]
    )
    assert found["question_id"].tolist() == questions
    assert set(found["estimator"]) == {estimator}
    assert set(found["confidence"]) == {confidence}


GOOD = good().assign(estimator="größer").to_csv(index=False)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", GOOD.encode("latin-1"), "is not utf-8 text .byte 0xF6 in line 2.*UTF-8"),
        ("p.csv", (GOOD * 500).encode() + GOOD.encode("latin-1"), "invalid UTF8 data"),
        ("p.csv", GOOD.encode("utf-16-le"), "holds zero bytes, as UTF-16 without a byte order"),
        ("p.csv.gz", gzip.compress(GOOD.encode())[:-20], "p.csv.gz: "),
        ("p.csv.gz", GOOD.encode(), "p.csv.gz: "),
        ("p.csv", GOOD.replace("m1,a,quiz,001", "m1,a,quiz,0,01").encode(), "8 columns, got 9"),
        ("p.parquet", b"PAR1" + bytes(99) + b"PAR1", "p.parquet: "),
    ],
)
def test_what_is_not_certain_is_refused_with_the_file(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(OwnPredictionsError, match=message) as caught:
        import_predictions(
            str(tmp_path / name),
            [""],
            [],
            wanted=[("m1", "quiz")],
            checkpoints={"m1": dict.fromkeys("ab", True)},
        )
    assert str(caught.value).startswith(f"{tmp_path / name}: ")
