"""The audit sheet: what is drawn, what is hidden, what a filled one says."""

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
N = 40


def correctness():
    """Ten questions each: earlier alone right, later alone, both, none."""
    earlier, later = np.zeros(N, bool), np.zeros(N, bool)
    earlier[:10] = later[10:20] = earlier[20:30] = later[20:30] = True
    return earlier, later


def questions():
    texts = [f"What is {i}, or =1+{i}?" for i in range(N)]
    references = [[f"a{i}", "NA"] for i in range(N)]
    return questions_table(n_train=0, n_test=N).assign(question=texts, references=references)


def answers(correct, name):
    ids = [f"q{i}" for i in range(N)]
    texts = [f'"{name}", {i}' for i in range(N)]
    return pd.DataFrame({"question_id": ids, "answer": texts, "correct": correct})


def both():
    return [answers(c, n) for c, n in zip(correctness(), ("NA", "new"), strict=True)]


def test_sheet_holds_the_kinds_in_random_order_and_hides_them():
    sheet = draw_sheet(questions(), *both(), draws=COUNTS, seed=17)
    assert list(sheet.columns) == [*GIVEN, *TO_FILL]
    place = sheet["question_id"].str[1:].astype(int).to_numpy()
    assert len(set(place)) == 12
    kind = np.array(["contrast", "contrast", "correct", "incorrect"])[place // 10]
    assert Counter(kind.tolist()) == {"contrast": 6, "correct": 3, "incorrect": 3}
    assert kind.tolist() != sorted(kind)
    first = sheet.iloc[0]
    i = place[0]
    assert first["question"] == f"What is {i}, or =1+{i}?"
    assert first["references"] == f"a{i} | NA"
    assert first["earlier_answer"] == f'"NA", {i}' and first["later_answer"] == f'"new", {i}'
    assert (sheet[TO_FILL] == "").all(axis=None)
    assert sheet.equals(draw_sheet(questions(), *both(), draws=COUNTS, seed=17))
    other = draw_sheet(questions(), *both(), draws=COUNTS, seed=18)
    assert set(other["question_id"]) != set(sheet["question_id"])


def test_too_few_questions_of_a_kind():
    every = draw_sheet(questions(), *both(), draws=COUNTS._replace(n_correct=10), seed=17)
    assert len(every) == 6 + 10 + 3
    assert {f"q{i}" for i in range(20, 30)} <= {*every["question_id"]}  # correct both times
    with pytest.raises(AuditError, match=r"needs 11 correct questions, .* have 10"):
        draw_sheet(questions(), *both(), draws=COUNTS._replace(n_correct=11), seed=17)


def filled_sheet():
    """Filled as the judge did, but for one answer of each group."""
    sheet = draw_sheet(questions(), *both(), draws=COUNTS, seed=17)
    place = sheet["question_id"].str[1:].astype(int).to_numpy()
    labels = [np.where(c[place], "yes", " No") for c in correctness()]
    sheet["earlier_correct"], sheet["later_correct"] = labels
    sheet["reference_correct"] = "Y"
    contrast, other = place < 20, place >= 20
    first, second = np.flatnonzero(contrast)[0], np.flatnonzero(other)[0]
    for row in (first, second):
        right = sheet.loc[row, "earlier_correct"] == "yes"
        sheet.loc[row, "earlier_correct"] = "0" if right else "1"
    sheet.loc[first, "reference_incomplete"] = "yes"
    sheet.loc[second, "reference_correct"] = "no"
    last = np.flatnonzero(other)[-1]
    sheet.loc[last, ["later_correct", "reference_correct"]] = ""
    return sheet


def test_summary_of_a_filled_sheet(tmp_path):
    rows = summarise_sheet(saved_sheet(filled_sheet(), tmp_path), *both()).set_index(
        ["group", "measure"]
    )
    found = {key: (row["count"], row["n"]) for key, row in rows.iterrows()}
    assert found == {
        ("contrast", "agreement"): (11, 12),  # two answers to six questions, one differs
        ("contrast", "agreement_complete"): (10, 10),  # without that question
        ("contrast", "reference_correct"): (6, 6),
        ("contrast", "reference_incomplete"): (1, 6),
        ("non_contrast", "agreement"): (10, 11),  # one answer is not labelled
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
    # Of twelve answers the judge has six right; the person one more or less, so
    # chance agreement is 6/12 * 7/12 + 6/12 * 5/12 = 1/2 and kappa (11/12 - 1/2) / (1/2)
    assert rows.loc[("contrast", "agreement"), "kappa"] == pytest.approx(5 / 6)


def test_a_share_of_nothing_and_the_kappa_of_one_label_are_undefined():
    assert np.isnan(list(share_of(0, 0).values())).all()
    share, lower, upper = share_of(9, 10).values()
    assert share == 0.9 and [round(lower, 3), round(upper, 3)] == [0.596, 0.982]  # Wilson's
    assert np.isnan(kappa(np.ones(3, bool), np.ones(3, bool)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.assign(later_correct="maybe"), "row 2 has 'maybe'.*write yes or no"),
        (lambda s: s.assign(earlier_correct="", later_correct=""), "no answer of the sheet"),
        (lambda s: s.assign(later_answer="x"), "row 2 has the later_answer 'x', and now"),
        (
            lambda s: s.assign(question_id="q99"),
            "row 2 has the question_id 'q99', which",
        ),
        (lambda s: pd.concat([s, s[:1]]), "row 14 repeats the question_id .* of row 2"),
    ],
)
def test_a_sheet_that_cannot_be_used_is_refused_with_file_and_row(change, message, tmp_path):
    sheet = saved_sheet(change(filled_sheet()), tmp_path)
    with pytest.raises(ValueError, match=rf"filled\.csv: {message}"):
        summarise_sheet(sheet, *both())


ANSWERS = ["answers/early", "answers/late"]


def draw(seed):
    inputs = {"questions": "questions", "answers": ANSWERS}
    settings = {"draws": COUNTS._asdict(), "seed": seed}
    execute(draw_audit, Job(inputs, {"sheet": "sheet.csv"}, settings, threads=1))


def summarise(sheet):
    files = {"sheet": sheet, "answers": ANSWERS}, {"agreements": "agreements.csv"}
    execute(summarise_audit, Job(*files, settings={}, threads=1))


def test_from_files_to_agreement_and_never_over_a_filled_sheet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    about = {"model": "m", "dataset": "d"}
    artifacts.write(questions(), "questions", artifacts.QUESTIONS, values=about)
    for path, frame in zip(ANSWERS, both(), strict=True):
        rows = frame.assign(probability=0.5)
        values = {**about, "checkpoint": path[8:], "split": "test"}
        rows = rows[artifacts.ANSWERS.schema.names]
        artifacts.write(rows, path, artifacts.ANSWERS, values=values)
    draw(17)
    drawn = (tmp_path / "sheet.csv").read_bytes()
    draw(17)  # nobody has written into it
    assert (tmp_path / "sheet.csv").read_bytes() == drawn

    assert drawn.startswith(b"\xef\xbb\xbfquestion_id,")  # spreadsheets then read UTF-8
    sheet = pd.read_csv("sheet.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(
        sheet, draw_sheet(questions(), *both(), draws=COUNTS, seed=17), check_dtype=False
    )
    sheet.loc[5, "note"] = "unclear"
    sheet.to_csv("sheet.csv", index=False)
    with pytest.raises(SheetError, match=r"sheet\.csv: someone has written into it"):
        draw(18)
    with pytest.raises(AuditError, match=r"sheet\.csv: no answer of the sheet is labelled"):
        summarise("sheet.csv")

    filled_sheet().to_csv("filled.csv", index=False)
    before = (tmp_path / "filled.csv").read_bytes()
    summarise("filled.csv")
    assert (tmp_path / "filled.csv").read_bytes() == before
    rows = artifacts.read_csv("agreements.csv", artifacts.AUDIT_AGREEMENTS)
    assert rows.loc[rows["group"] == "all", "count"].tolist() == [21, 20, 10, 1]
