"""Answers that were generated elsewhere: rows that are imported or refused."""

import json

import numpy as np
import pandas as pd
import pytest
from answer_tables import LEXICAL
from import_answers import import_answers
from judge_answers import judge_answers
from own_rows import ONE, wanted, write_rows

from persistcal.readers.answer_files import read_answers, read_options
from persistcal.readers.answers import check_stated
from persistcal.store.artifacts import BEAMS, CLUSTERS, GIVEN_LABELS, QUESTIONS, check
from persistcal.store.files import sha256
from persistcal.store.user_files import UserTableError

ODD = 'Côte d\'Ivoire, "CI"'


def valid(n_samples=2):
    """Return rows of two checkpoints: two questions with some samples each."""
    return [
        {
            **ONE,
            "checkpoint": checkpoint,
            "question_id": f"q{question}",
            "question": f"Where is {question}?",
            "references": ["Oslo", "Oslo city"] if question else "Lima",
            "answer": f" Oslo{'.' * sample}",
            "sample": sample,
            "logprob": -0.25 * (sample + 1),
        }
        for checkpoint in "ab"
        for question in range(2)
        for sample in range(n_samples)
    ]


def run(folder, rows, *, kind="jsonl", strategy="sample", identical=True, **study):
    """Import rows, or the text of a file; return questions, beams by checkpoint, labels."""
    path = folder / f"answers.{kind}"
    if isinstance(rows, str):
        path.write_text(rows)
    elif kind == "parquet":
        lists = (r if isinstance(r := row["references"], list) else [r] for row in rows)
        write_rows(path, [{**row, "references": next(lists)} for row in rows])
    else:
        write_rows(path, rows)
    questions, beams, labels = import_answers(
        entries=[{"file": str(path)}],
        strategy=strategy,
        known={"m1": dict.fromkeys("abz", identical)},
        wanted=wanted(**study),
        computed=[*study.get("needs", {})],
    )
    for table in (questions, beams, labels):
        assert table.attrs["sources"] == {str(path): sha256(path)}
    by_checkpoint = {c: beams[beams["checkpoint"] == c] for c in "ab"}
    tables = [(questions, QUESTIONS), (labels, GIVEN_LABELS)]
    tables += [(rows, BEAMS) for rows in by_checkpoint.values()]
    for frame, table in tables:
        check(frame[table.schema.names], table, table.name)
    return questions, by_checkpoint, labels


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_answers_are_imported_exactly_from_every_format(tmp_path, kind):
    """Numbers are exact to the last bit, so that a written study can be read again."""
    rows = change(valid(), answer=ODD, logprob=-1 / 3)
    questions, beams, _ = run(tmp_path, rows, kind=kind)
    assert questions["question_id"].tolist() == ["q0", "q1"]
    assert questions["split"].tolist() == ["test", "test"]
    references = [list(texts) for texts in questions["references"]]
    assert references == [["Lima"], ["Oslo", "Oslo city"]]
    assert beams["b"][["question_id", "beam", "text", "logprob"]].values.tolist() == [
        ["q0", 0, "Oslo", -0.25],
        ["q0", 1, ODD, -1 / 3],
        ["q1", 0, "Oslo", -0.25],
        ["q1", 1, "Oslo.", -0.5],
    ]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_questions_of_answers_keep_their_group(tmp_path, kind):
    facts = {"q0": "Peru", "q1": "Norway"}
    rows = [row | {"group": facts[row["question_id"]]} for row in valid()]
    questions, _, _ = run(tmp_path, rows, kind=kind)
    assert questions["group"].tolist() == ["Peru", "Norway"]


def test_a_question_of_answers_without_a_group_is_refused_if_others_have_one(tmp_path):
    with pytest.raises(ValueError, match="group is empty in 7 rows, first for question 'q0'"):
        run(tmp_path, change(valid(), group="Norway"))


def test_token_logprobs_are_summed(tmp_path):
    rows = [row | {"token_logprobs": [-0.5, -0.125]} for row in drop(valid(), "logprob")]
    _, beams, _ = run(tmp_path, rows, kind="csv")
    assert beams["a"]["logprob"].tolist() == [-0.625] * 4
    assert beams["a"]["min_logprob"].tolist() == [-0.5] * 4


def judged_labels(folder, rows, *texts):
    """Return labels and their sources of clusters with one text each: (question, text)."""
    questions, _, given = run(folder, rows)
    rows = [(name, 0, text, 0.5, [text]) for name, text in texts]
    clusters = pd.DataFrame(rows, columns=CLUSTERS.schema.names)
    labels, _ = judge_answers(questions, clusters, given, **LEXICAL)
    return labels[["label", "source"]].values.tolist()


def test_given_labels_are_kept_and_the_judge_labels_the_other_answers(tmp_path):
    """The reference of q0 is Lima, so the lexical judge would call Oslo incorrect."""
    rows = [r | {"label": "correct"} if r["question_id"] == "q0" else r for r in valid()]
    labels = judged_labels(tmp_path, rows, ("q0", "OSLO"), ("q1", "Oslo"))
    assert labels == [["correct", "given"], ["correct", "lexical"]]


@pytest.mark.parametrize(("text", "label"), [("3.5.", "correct"), ("35", "incorrect")])
def test_the_decimal_point_of_a_number_is_part_of_the_labelled_answer(tmp_path, text, label):
    rows = change(change(valid(), row=0, answer="3.5", label="correct"), answer="35.")
    rows = change(rows, label="incorrect")
    assert judged_labels(tmp_path, rows, ("q0", text)) == [[label, "given"]]


def test_a_checkpoint_without_correct_answers_causes_a_warning(tmp_path, caplog):
    """Chains of thought have no correct answer by comparison with short references."""
    judged_labels(tmp_path, valid(), *((f"q{i}", "So it is Oslo") for i in range(2)))
    assert "None of 2 answers is correct; see whether answers" in caplog.text


def change(rows, row=5, **values):
    """Change a row; by default row 6: question q0, second sample, checkpoint b."""
    rows[row] |= values
    return rows


def drop(rows, column):
    return [{name: value for name, value in row.items() if name != column} for row in rows]


def all_with(**values):
    return [{**row, **values} for row in valid()]


CUT_OFF = "".join(json.dumps(row) + "\n" for row in valid())[:-20]
LABELLED = change(change(valid(), row=0, label="correct"), label="incorrect")
REPEATED = all_with(question="Where is it?", references=["Oslo"])
EMPTY_CORRECT = change(valid(), answer="", label="correct")
NO_LOGPROB = drop(valid(), "logprob")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (change(valid(), checkpoint="c"), r"checkpoint is not in models.m1 \(row 6"),
        (change(valid(), model="m2"), r"model is not in the config \(row 6: 'm2'\)"),
        (change(valid(), question="Why?"), r"question of question 'q0' of quiz .*row 6"),
        (change(valid(), references="Rome"), r"references of question 'q0' of quiz differs"),
        (change(valid(), split="train"), r"split of question 'q0' of quiz differs"),
        (valid()[:6], r"m1, checkpoint b has no row of 1 questions .*\(row 3: 'q1'\)"),
        (valid()[:4], r"no row is of model 'm1', checkpoint 'b', dataset 'quiz'"),
        (change(valid(), logprob=0.5), r"logprob is not valid \(row 6: '0.5'\); give the sum"),
        (change(valid(), logprob="nan"), r"logprob is not valid \(row 6: 'nan'\)"),
        (change(valid(), logprob="-inf"), r"logprob is not valid \(row 6: '-inf'\)"),
        (change(valid(), logprob=None), r"logprob is missing, but not in every row \(row 6"),
        (change(valid(), sample=0), r"1 rows repeat .* q0, sample 0 \(row 5, row 6\); number"),
        (change(valid(), sample="x"), r"sample is not valid \(row 6: 'x'\); give a whole"),
        (change(valid(), sample=2**63), r"sample is not valid \(row 6: .*up to 18 digits"),
        (change(valid(), sample=None), r"sample is missing, but not .* \(row 6\); give all"),
        (valid()[:7], r"'q1' of quiz has 1 answers at checkpoint b of m1, others have 2"),
        (change(valid(), answer=None), r"answer is empty \(row 6\); give an empty text"),
        (change(valid(), label="half"), r"label is not valid \(row 6: 'half'"),
        (change(valid(), references=[]), r"references is empty \(row 6\)"),
        (change(valid(), question=" "), r"question is empty \(row 6\); fill it in"),
        (change(valid(), references="['red', 'zz']"), r"of row 6 is the text of a list"),
        (change(valid(), lable="x"), r"unknown column 'lable'"),
        (drop(valid(), "question_id"), r"column 'question_id' is missing"),
        (LABELLED, r"'oslo' .* 'q0' disagree \(row 1: 'correct', row 6: 'incorrect'\)"),
        (REPEATED, r"1 questions .* have several ids.*\(row 1: 'q0', row 3: 'q1'\); keep"),
        (EMPTY_CORRECT, r"an empty answer is labelled correct \(row 6\); empty answers"),
        (all_with(token_logprobs=[-0.5, -0.5], logprob=-0.5), r"is not the sum of .* \(row 1"),
        (all_with(token_logprobs=[-0.5, 0.5]), r"token_logprobs is not valid \(row 1: \[.*li"),
        (all_with(token_logprobs="-0.5"), r"token_logprobs is not valid \(row 1: '-0.5', row"),
        (CUT_OFF, "line 8 is not JSON .* it may be cut off"),
    ],
)  # fmt: skip
def test_wrong_rows_are_refused_with_their_number(tmp_path, rows, message):
    with pytest.raises(UserTableError, match=message):
        run(tmp_path, rows)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (NO_LOGPROB, {"needs": {"sp": ["logprob"]}}, "sp needs the logprob of each answer"),
        (NO_LOGPROB, {"strategy": "beams"}, "decoding.strategy is beams.*logprob is missing"),
        (valid(1), {"needs": {"sc": ["several_answers"]}}, "sc needs several answers"),
        (valid(), {"split": "train"}, "estimators.some needs answers .* train split"),
    ],
)
def test_columns_that_estimators_or_a_strategy_need_are_named(tmp_path, rows, options, message):
    with pytest.raises(UserTableError, match=message):
        run(tmp_path, rows, **options)


def test_labels_of_empty_answers_are_not_used(tmp_path, caplog):
    *_, labels = run(tmp_path, change(valid(), answer=" . ", label="incorrect"))
    assert labels.empty
    assert caplog.messages[0].startswith("1 labels of empty answers are not used")


def test_rows_outside_the_study_are_skipped_and_counted(tmp_path, caplog):
    questions, *_ = run(tmp_path, [*valid(), *all_with(checkpoint="z", question_id="q9")])
    assert questions["question_id"].tolist() == ["q0", "q1"]
    assert caplog.messages == ["Skipped 8 rows of m1, z, quiz, which the study does not read"]


def test_sums_and_probabilities_of_beams_have_a_tolerance_for_rounding(tmp_path):
    """Sums of 1e-5 above 0, sums off by 1/1000, and beams with 1 % more than all mass."""
    run(tmp_path, all_with(logprob=1e-5))
    run(tmp_path, all_with(logprob=-2.001, token_logprobs=[-1, -1]))
    with pytest.raises(UserTableError, match="is not the sum"):
        run(tmp_path, all_with(logprob=-2.003, token_logprobs=[-1, -1]))
    halves = [{**row, "logprob": -0.69 - row["sample"] / 100} for row in valid()]
    run(tmp_path, halves, strategy="beams")  # exp(-0.69) + exp(-0.70) = 0.998


def test_references_that_are_the_text_of_a_list_are_refused_in_parquet(tmp_path):
    text, path = "['Oslo', 'Oslo city']", tmp_path / "a.parquet"
    with pytest.raises(UserTableError, match="'references' of row 1 is the text of a list"):
        read_answers({"file": write_rows(path, all_with(references=text))})
    answers = read_answers({"file": write_rows(path, all_with(references=[text]))})
    assert answers["references"].iloc[0] == (text,)


@pytest.mark.parametrize("read", [read_answers, lambda entry: read_options(entry, "none")])
def test_a_column_that_the_config_also_sets_is_refused(tmp_path, read):
    """Even equal values are refused, because either could be wrong."""
    scored = {"options": ["Oslo", "Lima"], "option_logprobs": [-1.0, -2.0], "gold": 0}
    rows = all_with() if read is read_answers else [row | scored for row in valid()]
    file = write_rows(tmp_path / "answers.jsonl", rows)
    with pytest.raises(UserTableError, match=r"has a column 'dataset', and study\.answers se"):
        read({"file": file, "dataset": "quiz"})


def test_samples_are_not_accepted_as_beams(tmp_path):
    """Weights of samples and of beams differ, so the config has to name the strategy."""
    samples = change(valid(), answer="Oslo", logprob=-0.25)  # rows 5 and 6 are the same
    repeated = (
        r"question 'q0' is there 2 times with the logprob -0.25 \(row 5: 'Oslo', row 6: "
        r"'Oslo'\); set decoding.strategy to sample"
    )
    with pytest.raises(UserTableError, match=repeated):
        run(tmp_path, samples, strategy="beams")
    run(tmp_path, samples, strategy="sample")
    # exp(-0.25) + exp(-0.5) = 0.779 + 0.607
    mass = r"'q[01]' have probabilities that sum to 1.39 \(.*; set decoding.strategy to"
    with pytest.raises(UserTableError, match=mass):
        run(tmp_path, valid(), strategy="beams")


def test_samples_are_ordered_by_their_numbers(tmp_path):
    """Two texts are equally frequent: sample 0 is the answer, in any order of the rows."""
    rows = [{**row, "answer": f"Oslo {row['sample']}"} for row in valid()]
    beams = run(tmp_path, rows[::-1])[1]["a"]
    assert beams["beam"].tolist() == [0, 1] * 2
    assert beams["text"].tolist() == ["Oslo 0", "Oslo 1"] * 2
    assert beams["question_id"].tolist() == ["q1", "q1", "q0", "q0"]


def test_the_same_answers_for_two_checkpoints_are_refused(tmp_path):
    message = (
        r"answers to quiz of checkpoint b of m1 are those of a, .* \(row 5: .* sets "
        r"models\.m1\.checkpoints\.b\.allow_identical_weights"
    )
    with pytest.raises(UserTableError, match=message):
        run(tmp_path, valid()[:4] + valid()[:3:-1], identical=False)
    run(tmp_path, change(valid(), answer="Lima"), identical=False)


def stated(*values, **columns):
    """Return two answers of a question at each checkpoint, with confidences in turn."""
    columns = {**({"confidence": values} if values else {}), **columns}
    rows = [row for row in valid() if row["question_id"] == "q0"]
    return [
        row | {name: cells[i] for name, cells in columns.items()} for i, row in enumerate(rows)
    ]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_stated_confidences_are_named_like_their_columns(tmp_path, kind):
    rows = stated(0.5, None, 1, 0, confidence_words=[None, None, 0.25, 0.75])
    _, beams, _ = run(tmp_path, rows, kind=kind)
    texts = [*beams["a"]["stated"], *beams["b"]["stated"]]
    read = [json.loads(text) if isinstance(text, str) else {} for text in texts]
    assert read[:2] == [{"stated": 0.5}, {}]
    assert read[2:] == [{"stated": 1.0, "words": 0.25}, {"stated": 0.0, "words": 0.75}]


def test_stated_confidences_of_float32_are_rounded(tmp_path):
    rows = pd.DataFrame(stated(confidence_words=[0.1] * 4)).assign(logprob=-0.1)
    narrow = rows.astype({"confidence_words": "float32", "logprob": "float32"})
    narrow.to_parquet(tmp_path / "answers.parquet")
    rows = read_answers({"file": str(tmp_path / "answers.parquet")})
    assert rows["stated"].tolist() == [{"words": 0.1}] * 4
    assert set(rows["logprob"]) == {float(np.float32(-0.1))}  # not a confidence


@pytest.mark.parametrize("value", ["90", "high", 1.01, -0.1, True])
def test_a_stated_confidence_outside_0_to_1_is_refused(tmp_path, value):
    message = r"confidence is not valid .*row 2.*give a number in \[0, 1\], or nothing"
    with pytest.raises(UserTableError, match=message):
        run(tmp_path, stated(0.5, value, 1, 0))


def test_a_stated_confidence_with_the_name_of_an_estimator_is_refused(tmp_path):
    rows = stated(0.5, 0.5, 1, 0, confidence_p_true=[1, 1, 1, 1])
    read = read_answers({"file": write_rows(tmp_path / "answers.jsonl", rows)})
    check_stated(read, ["self_consistency"], ["stated", "p_true"])
    with pytest.raises(UserTableError, match=r"names 'wrods', .* column 'confidence_wrods'"):
        check_stated(read, ["self_consistency"], ["stated", "wrods"])
    with pytest.raises(UserTableError, match="'confidence_p_true' is named like estimators"):
        check_stated(read, ["self_consistency", "p_true"])
