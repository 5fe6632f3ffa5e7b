"""every_eval_ever: what is exported is read back as it was, and a bad line is named.

Its own validator is not at hand (its package asks for Python 3.12): `RECORD` has what its
schema, version 0.2.2, asks of the fields that are written.
"""

import json
from hashlib import sha256

import pandas as pd
import pytest
from export_every_eval_ever import export_every_eval_ever
from import_predictions import import_predictions
from jsonschema import Draft7Validator

from persistcal.imports.answer_files import read_answers, read_options
from persistcal.imports.every_eval_ever import LINE
from persistcal.imports.own_answers import beam_table, question_table
from persistcal.imports.user_tables import UserTableError

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
KEYS = {  # a line may have no others
    *["schema_version", "evaluation_id", "model_id", "evaluation_name", "evaluation_result_id"],
    *["sample_id", "sample_hash", "interaction_type", "input", "output", "messages"],
    *["answer_attribution", "evaluation", "token_usage", "performance", "error", "metadata"],
}
ATTRIBUTION = {"turn_idx", "source", "extracted_value", "extraction_method", "is_terminal"}


def some(required, **properties):
    return {"type": "object", "required": required, "properties": properties}


SOURCE = some(
    ["source_type", "source_organization_name", "evaluator_relationship"],
    source_type={"enum": ["documentation", "evaluation_run"]},
    evaluator_relationship={"enum": ["first_party", "third_party", "collaborative", "other"]},
)
INTERVAL = some(["lower", "upper"], lower=NUMBER, upper=NUMBER)
UNCERTAINTY = some([], confidence_interval=INTERVAL, num_samples={"type": "integer"})
METRIC = ["lower_is_better", "min_score", "max_score"]
RESULT = some(
    ["evaluation_name", "source_data", "metric_config", "score_details"],
    source_data=some(["dataset_name", "source_type"], source_type={"const": "other"}),
    metric_config=some(METRIC, lower_is_better={"type": "boolean"}),
    score_details=some(["score"], score=NUMBER, uncertainty=UNCERTAINTY),
)
RECORD = some(
    [
        *["schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata"],
        *["model_info", "eval_library", "evaluation_results"],
    ],
    schema_version=TEXT,
    evaluation_id=TEXT,
    retrieved_timestamp=TEXT,
    source_metadata=SOURCE,
    eval_library=some(["name", "version"], name=TEXT, version=TEXT),
    model_info=some(["name", "id"], additional_details={"additionalProperties": TEXT}),
    evaluation_results={"type": "array", "items": RESULT},
    detailed_evaluation_results=some(
        ["format", "file_path"], format={"const": "jsonl"}, total_rows={"type": "integer"}
    ),
)
PLACE = {
    "model": "m1",
    "checkpoint": "a",
    "dataset": "quiz",
    "model_id": "unknown/m1",
    "file_path": "data/quiz/unknown/m1/u_samples.jsonl",
}


def tables(options=False):
    """Two questions of three answers each, and one that nothing was said to."""
    ids = ["q1", "q2", "q3"]
    questions = pd.DataFrame(
        {
            "question_id": ids,
            "question": ["Wer? “sie”", "two\nlines", "c"],
            "references": [["x"], ["y", "Y"], ["z"]],
            "split": ["test", "train", "test"],
            "options": [["A", "B", "C"]] * 3 if options else None,
            "gold": [0, 2, 1] if options else None,
        }
    )
    texts = ["A", "B", "C"] * 3 if options else ["x", "X", "w", "y", "n", "", "", "", ""]
    beams = pd.DataFrame(
        {
            "question_id": [i for i in ids for _ in range(3)],
            "beam": [0, 1, 2] * 3,
            "text": texts,
            "logprob": [-0.1, -1 / 3, -2.5, -0.2, -1.7, -4.0, -1.0, -2.0, -3.0],
            "n_tokens": [1.0, 2, 3, 4, 5, 6, 7, 8, 9],
            "entropy": [0.1 * i for i in range(9)],
            "unconditional": [-9.5] * 9 if options else [float("nan")] * 9,
        }
    )
    clusters = pd.DataFrame(
        {"question_id": ["q1", "q1", "q2"], "cluster": [0, 1, 0], "answer": ["x", "w", "y"]}
    )
    said = ["correct", "incorrect", "correct"]
    labels = clusters[["question_id", "cluster"]].assign(label=said)
    answers = clusters.iloc[[0, 2]][["question_id", "answer"]].assign(correct=True)
    rows = [(c, *of) for c in "ab" for of in (("own", 0, 1 / 3), ("“é”", 17, 0.1 + 0.2))]
    predictions = pd.DataFrame(rows, columns=["checkpoint", "estimator", "seed", "confidence"])
    predictions = predictions.assign(question_id="q1", train_dataset="quiz", correct=True)
    return questions, beams, clusters, labels, answers, predictions


def exported(folder, options=False, **place):
    record, lines = export_every_eval_ever(*tables(options), place={**PLACE, **place})
    file = folder / f"{place.get('checkpoint', 'a')}_samples.jsonl"
    file.write_text(lines, encoding="utf-8")
    return json.loads(record), [json.loads(line) for line in lines.splitlines()], file


def test_records_are_as_the_format_asks(tmp_path):
    record, lines, file = exported(tmp_path)
    Draft7Validator(RECORD).validate(record)
    for line in lines:
        Draft7Validator(LINE).validate(line)
        assert set(line) <= KEYS
        assert line["schema_version"] == record["schema_version"] == "0.2.2"
        assert line["evaluation_id"] == record["evaluation_id"]
        assert line["model_id"] == record["model_info"]["id"]
        [result] = record["evaluation_results"]
        assert line["evaluation_result_id"] == result["evaluation_result_id"]
        assert all(set(of) == ATTRIBUTION for of in line["answer_attribution"])
    details = record["detailed_evaluation_results"]
    assert details["checksum"] == sha256(file.read_bytes()).hexdigest()
    assert details["total_rows"] == len(lines) == 3
    # Two test questions were asked; one was answered, rightly
    assert result["score_details"]["score"] == 0.5
    assert [line["evaluation"]["is_correct"] for line in lines] == [True, True, False]


def test_answers_come_back_as_they_were(tmp_path):
    _, _, file = exported(tmp_path)
    rows = read_answers({"file": str(file), "labels": "log"})
    questions, beams, *_ = tables()
    columns = ["question_id", "beam", "text", "logprob", "n_tokens", "entropy"]
    back = beam_table(rows)[columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(back, beams[columns], check_exact=True, check_dtype=False)
    found = question_table(rows)
    for name in ("question_id", "question", "references", "split"):
        assert found[name].tolist() == questions[name].tolist(), name
    assert set(rows["model"] + rows["checkpoint"] + rows["dataset"]) == {"m1aquiz"}
    # of a cluster, the answer that stands for it has the label
    assert rows["label"].tolist() == ["correct", "", "incorrect", "correct", *[""] * 5]
    assert set(read_answers({"file": str(file)})["label"]) == {""}


def test_options_come_back_as_they_were(tmp_path):
    _, _, file = exported(tmp_path, options=True)
    rows = read_options({"file": str(file)}, "per_token")
    questions, beams, *_ = tables(options=True)
    assert rows["options"].map(list).tolist() == questions["options"].tolist()
    assert rows["gold"].tolist() == [0, 2, 1]
    for name in ("logprob", "n_tokens"):
        assert [x for of in rows[name] for x in of] == beams[name].tolist()
    with pytest.raises(UserTableError, match="line 1 has choices"):
        read_answers({"file": str(file)})


def test_predictions_come_back_as_they_were(tmp_path):
    *_, first = exported(tmp_path)
    *_, second = exported(tmp_path, checkpoint="b")
    both = tmp_path / "both.jsonl"
    both.write_bytes(first.read_bytes() + second.read_bytes())
    known = {"m1": {"a": True, "b": True}}
    found, _ = import_predictions(str(both), datasets=["quiz"], checkpoints=known)
    *_, predictions = tables()
    back = found[list(predictions)].astype({n: object for n in ("checkpoint", "estimator")})
    order = ["checkpoint", "estimator"]
    back, given = (t.sort_values(order).reset_index(drop=True) for t in (back, predictions))
    for name in predictions:
        assert back[name].astype(object).tolist() == given[name].astype(object).tolist(), name


def test_a_file_of_others_has_one_answer_and_its_score(tmp_path):
    _, lines, file = exported(tmp_path)
    for line in lines:
        line |= {"metadata": None, "output": {"raw": ["said"]}}
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    named = {"model": "m", "checkpoint": "c", "dataset": "d", "file": str(file)}
    rows = read_answers({**named, "labels": "log"})
    assert rows["label"].tolist() == ["correct", "correct", "incorrect"]
    assert rows["answer"].tolist() == ["said"] * 3 and rows["logprob"].isna().all()
    several = [line | {"output": {"raw": ["said", "too"]}} for line in lines]
    file.write_text("\n".join(map(json.dumps, several)), encoding="utf-8")
    with pytest.raises(UserTableError, match="line 1 has one score for 2 outputs, so `labels:"):
        read_answers({**named, "labels": "log"})
    with pytest.raises(UserTableError, match="line 1 does not say its model"):
        import_predictions(str(file), datasets=["d"], checkpoints={"m": {"c": True}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"evaluation": {"score": 1.0}}, "evaluation: 'is_correct' is a required property"),
        ({"input": {"raw": 3, "reference": []}}, "input.raw: 3 is not of type 'string'"),
        ({"interaction_type": "agentic"}, "is no single turn"),
        ({"output": None}, "is no single turn"),
        ({"metadata": {"responses": "[{"}}, "metadata.responses of line 3 is no JSON"),
        ({"metadata": {"responses": "[{}]"}}, "3 outputs and 1 metadata.responses"),
    ],
)
def test_a_malformed_record_is_named_by_its_line(tmp_path, change, said):
    _, lines, file = exported(tmp_path)
    texts = [json.dumps(line) for line in [lines[0], lines[2] | change]]
    file.write_text(f"{texts[0]}\n\n{texts[1]}\n", encoding="utf-8")  # a blank line counts
    with pytest.raises(UserTableError, match="line 3") as error:
        read_answers({"file": str(file)})
    assert said in str(error.value) and str(file) in str(error.value)
