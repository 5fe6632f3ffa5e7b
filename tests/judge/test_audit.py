"""The audit sheet: questions that are drawn, and the summary of a filled sheet."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from answer_tables import questions_table
from draw_audit import draw_audit
from sheet_files import saved_sheet
from summarise_audit import summarise_audit

from persistcal.judge.audit import (
    GIVEN,
    TO_FILL,
    AuditError,
    Draws,
    draw_sheet,
    kappa,
    share_of,
    summarise_sheet,
)
from persistcal.store import artifacts
from persistcal.store.jobs import Job, execute
from persistcal.store.sheets import SheetError

COUNTS = Draws(n_contrast=6, n_correct=3, n_incorrect=3)
N_QUESTIONS = 40


def correctness():
    """Ten questions each: only earlier correct, only later, both, neither."""
    earlier, later = np.zeros(N_QUESTIONS, bool), np.zeros(N_QUESTIONS, bool)
    earlier[:10] = later[10:20] = earlier[20:30] = later[20:30] = True
    return earlier, later


def questions():
    texts = [f"What is {i}, or =1+{i}?" for i in range(N_QUESTIONS)]
    references = [[f"a{i}", "NA"] for i in range(N_QUESTIONS)]
    return questions_table(n_train=0, n_test=N_QUESTIONS).assign(
        question=texts, references=references
    )


def answers(correct, name):
    ids = [f"q{i}" for i in range(N_QUESTIONS)]
    texts = [f'"{name}", {i}' for i in range(N_QUESTIONS)]
    return pd.DataFrame({"question_id": ids, "answer": texts, "correct": correct})


def answer_tables():
    return [answers(c, n) for c, n in zip(correctness(), ("NA", "new"), strict=True)]


def test_a_sheet_has_each_kind_of_question_in_random_order_without_labels():
    sheet = draw_sheet(questions(), *answer_tables(), draws=COUNTS, seed=17)
    assert list(sheet.columns) == [*GIVEN, *TO_FILL]
    number = sheet["question_id"].str[1:].astype(int).to_numpy()
    assert len(set(number)) == 12
    kind = np.array(["contrast", "contrast", "correct", "incorrect"])[number // 10]
    assert Counter(kind.tolist()) == {"contrast": 6, "correct": 3, "incorrect": 3}
    assert kind.tolist() != sorted(kind)
    first = sheet.iloc[0]
    i = number[0]
    assert first["question"] == f"What is {i}, or =1+{i}?"
    assert first["references"] == f"a{i} | NA"
    assert first["earlier_answer"] == f'"NA", {i}' and first["later_answer"] == f'"new", {i}'
    assert (sheet[TO_FILL] == "").all(axis=None)
    assert sheet.equals(draw_sheet(questions(), *answer_tables(), draws=COUNTS, seed=17))
    second_sheet = draw_sheet(questions(), *answer_tables(), draws=COUNTS, seed=18)
    assert set(second_sheet["question_id"]) != set(sheet["question_id"])


def test_too_few_questions_of_a_kind_are_refused():
    sheet = draw_sheet(
        questions(), *answer_tables(), draws=COUNTS._replace(n_correct=10), seed=17
    )
    assert len(sheet) == 6 + 10 + 3
    assert {f"q{i}" for i in range(20, 30)} <= {*sheet["question_id"]}  # correct both times
    with pytest.raises(AuditError, match=r"needs 11 correct questions, .* have 10"):
        draw_sheet(questions(), *answer_tables(), draws=COUNTS._replace(n_correct=11), seed=17)


def filled_sheet():
    """Return a sheet filled like the judge, except for one answer of each group."""
    sheet = draw_sheet(questions(), *answer_tables(), draws=COUNTS, seed=17)
    number = sheet["question_id"].str[1:].astype(int).to_numpy()
    labels = [np.where(c[number], "yes", " No") for c in correctness()]
    sheet["earlier_correct"], sheet["later_correct"] = labels
    sheet["reference_correct"] = "Y"
    is_contrast, is_other = number < 20, number >= 20
    first, second = np.flatnonzero(is_contrast)[0], np.flatnonzero(is_other)[0]
    for row in (first, second):
        is_right = sheet.loc[row, "earlier_correct"] == "yes"
        sheet.loc[row, "earlier_correct"] = "0" if is_right else "1"
    sheet.loc[first, "reference_incomplete"] = "yes"
    sheet.loc[second, "reference_correct"] = "no"
    last = np.flatnonzero(is_other)[-1]
    sheet.loc[last, ["later_correct", "reference_correct"]] = ""
    return sheet


def test_a_filled_sheet_is_summarised_as_agreement_by_group(tmp_path):
    rows = summarise_sheet(
        saved_sheet(filled_sheet(), tmp_path), questions(), *answer_tables()
    ).set_index(["group", "measure"])
    counts = {key: (row["count"], row["n"]) for key, row in rows.iterrows()}

    assert counts == {
        ("contrast", "agreement"): (11, 12),  # two answers to six questions, one differs
        ("contrast", "agreement_complete"): (10, 10),  # without that question
        ("contrast", "reference_correct"): (6, 6),
        ("contrast", "reference_incomplete"): (1, 6),
        ("non_contrast", "agreement"): (10, 11),  # an answer is not labelled
        ("non_contrast", "agreement_complete"): (10, 11),
        ("non_contrast", "reference_correct"): (4, 5),
        ("non_contrast", "reference_incomplete"): (0, 5),
        ("all", "agreement"): (21, 23),
        ("all", "agreement_complete"): (20, 21),
        ("all", "reference_correct"): (10, 11),
        ("all", "reference_incomplete"): (1, 11),
    }
    assert rows["kappa"].notna().tolist() == [True, True, False, False] * 3
    assert rows.loc[("contrast", "agreement_complete"), "kappa"] == 1
    # The judge calls 6 of 12 answers correct and the person one more or less. The chance of
    # agreement is 6/12 * 7/12 + 6/12 * 5/12 = 1/2, and kappa is (11/12 - 1/2) / (1/2).
    assert rows.loc[("contrast", "agreement"), "kappa"] == pytest.approx(5 / 6)


def test_shares_have_wilson_intervals_and_are_undefined_without_answers():
    assert np.isnan(list(share_of(0, 0).values())).all()
    share, lower, upper = share_of(9, 10).values()
    assert share == 0.9 and [round(lower, 3), round(upper, 3)] == [0.596, 0.982]  # Wilson
    assert np.isnan(kappa(np.ones(3, bool), np.ones(3, bool)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.assign(later_correct="maybe"), "row 2 has 'maybe'.*write yes or no"),
        (lambda s: s.assign(earlier_correct="", later_correct=""), "no answer of the sheet"),
        (lambda s: s.assign(later_answer="x"), "row 2 has the later_answer 'x', and now"),
        (
            lambda s: s.assign(question=s["question"].sort_values().to_numpy()),
            "has the question .*, and now",
        ),
        (
            lambda s: s.assign(references=s["references"].sort_values().to_numpy()),
            "has the references .*, and now",
        ),
        (lambda s: s.assign(question_id="q99"), "row 2 has the question_id 'q99', which"),
        (lambda s: pd.concat([s, s[:1]]), "row 14 repeats the question_id .* of row 2"),
    ],
)
def test_a_wrong_sheet_is_refused_with_its_file_and_row(change, message, tmp_path):
    sheet = saved_sheet(change(filled_sheet()), tmp_path)
    with pytest.raises(ValueError, match=rf"filled\.csv: .*{message}"):
        summarise_sheet(sheet, questions(), *answer_tables())


ANSWERS = ["answers/early", "answers/late"]


def draw(seed):
    inputs = {"questions": "questions", "answers": ANSWERS}
    settings = {"draws": COUNTS._asdict(), "seed": seed}
    execute(draw_audit, Job(inputs, {"sheet": "sheet.csv"}, settings, threads=1))


def summarise(sheet):
    inputs = {"sheet": sheet, "questions": "questions", "answers": ANSWERS}
    outputs = {"agreements": "agreements.csv"}
    execute(summarise_audit, Job(inputs, outputs, settings={}, threads=1))


def test_rules_draw_and_summarise_a_sheet_and_never_replace_a_filled_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subject = {"model": "m", "dataset": "d"}
    artifacts.write(questions(), "questions", artifacts.QUESTIONS, values=subject)
    for path, frame in zip(ANSWERS, answer_tables(), strict=True):
        rows = frame.assign(probability=0.5)
        values = {**subject, "checkpoint": path[8:], "split": "test"}
        rows = rows[artifacts.ANSWERS.schema.names]
        artifacts.write(rows, path, artifacts.ANSWERS, values=values)
    draw(17)
    drawn = (tmp_path / "sheet.csv").read_bytes()
    draw(17)  # the sheet has no entries
    assert (tmp_path / "sheet.csv").read_bytes() == drawn

    assert drawn.startswith(b"\xef\xbb\xbfquestion_id,")  # for spreadsheets: UTF-8
    sheet = pd.read_csv("sheet.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(
        sheet,
        draw_sheet(questions(), *answer_tables(), draws=COUNTS, seed=17),
        check_dtype=False,
    )
    sheet.loc[5, "note"] = "unclear"
    sheet.to_csv("sheet.csv", index=False)
    with pytest.raises(SheetError, match=r"sheet\.csv: someone has written into it"):
        draw(18)
    with pytest.raises(AuditError, match=r"sheet\.csv: no answer of the sheet is labelled"):
        summarise("sheet.csv")

    filled_sheet().to_csv("filled.csv", index=False)
    original = (tmp_path / "filled.csv").read_bytes()
    summarise("filled.csv")
    assert (tmp_path / "filled.csv").read_bytes() == original
    rows = artifacts.read_csv("agreements.csv", artifacts.AUDIT_AGREEMENTS)
    assert rows.loc[rows["group"] == "all", "count"].tolist() == [21, 20, 10, 1]
