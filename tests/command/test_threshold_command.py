"""`persistcal threshold`: verdicts, the release gate, and a sheet of answers to label."""

import numpy as np
import pandas as pd
import pytest
from command_line import run

import persistcal
from persistcal.report.threshold_views import threshold_sentences


@pytest.fixture
def versions(tmp_path):
    """Two versions of a model: at the threshold 29 of 30 right, then 24, 20 or 29 of 30.

    The selection is the worked example of tests/evaluation/test_thresholds.py.
    """
    rows = {"question_id": [f"q{i:02d}" for i in range(40)]}
    rows |= {"confidence": [0.9] * 30 + [0.4] * 10, "correct": [1] * 29 + [0] * 11}
    files = {"v1": tmp_path / "v1.csv"}
    pd.DataFrame(rows).to_csv(files["v1"], index=False)
    for name, right in {"undecided": 24, "broken": 18, "kept": 29}.items():
        stated = [0.91] * 30 + [0.4] * 10
        later = rows | {"confidence": stated, "correct": [1] * right + [0] * (40 - right)}
        files[name] = tmp_path / f"{name}.csv"
        pd.DataFrame(later).to_csv(files[name], index=False)
    return files


@pytest.mark.parametrize(
    ("later", "fail_if", "code"),
    [
        ("kept", "broken", 0),
        ("kept", "undecided", 0),
        ("broken", "broken", 3),
        ("broken", "undecided", 3),
        ("broken", None, 0),
        ("undecided", "broken", 0),
        ("undecided", "undecided", 4),
    ],
)
def test_a_release_gate_ends_with_the_verdict(versions, tmp_path, capsys, later, fail_if, code):
    gate = ["--fail-if", fail_if] if fail_if else []
    words = ["--precision", 0.8, "--out", tmp_path / "out", *gate]
    assert run("threshold", versions["v1"], versions[later], *words) == code
    printed = capsys.readouterr().out
    reached, verdict = {
        "kept": ("97 % [83, 100]", "kept. No confident answer"),
        "broken": ("60 % [41, 77]", "broken. 11 confident answers"),
        "undecided": ("80 % [61, 92]", "undecided. 5 confident answers"),
    }[later]
    assert (
        f"threshold .41 promised 80 % precision on v1; on {later} it reaches {reached} at a "
        f"coverage of .75 (before: .75): {verdict}"
    ) in printed
    [row] = pd.read_csv(tmp_path / "out/thresholds.csv").to_dict("records")
    assert row["verdict"] == later
    assert (tmp_path / "out/threshold_cells.csv").exists()
    selective = pd.read_csv(tmp_path / "out/selective.csv").set_index(["checkpoint", "metric"])
    # at v1 one error is spread over the first 30 answers, and each of the last 10 is one
    errors = [0, *np.linspace(0, 1, 31)[1:], *range(2, 12)]
    assert selective.loc[("v1", "augrc"), "value"] == pytest.approx(np.trapezoid(errors) / 1600)


def test_notebook_and_command_give_the_same_numbers(versions, tmp_path):
    words = ["--precision", 0.8, "--out", tmp_path / "out"]
    assert run("threshold", versions["v1"], versions["broken"], *words) == 0
    frames = [
        pd.read_csv(versions[name]).assign(checkpoint=name, estimator="confidence")
        for name in ("v1", "broken")
    ]
    found = persistcal.threshold(pd.concat(frames), ["v1", "broken"], precision=0.8)
    for name, table in found.tables.items():
        written = pd.read_csv(tmp_path / f"out/{name}.csv")
        shown = table[written.columns].replace({None: np.nan})
        pd.testing.assert_frame_equal(written, shown, check_dtype=False)
    assert "broken. 11 confident answers" in found.summary()


def test_bad_input_ends_with_one_sentence_and_writes_nothing(versions, tmp_path, capsys):
    def refused(*words):
        assert run("threshold", *words, "--out", tmp_path / "none") in (1, 2)
        assert not (tmp_path / "none").exists()
        return capsys.readouterr().err

    both, sheet = (versions["v1"], versions["kept"]), tmp_path / "sheet.csv"
    assert "has only the checkpoint 'v1'; give a later one" in refused(versions["v1"])
    for words, message in [
        (("--precision", 1.5), "precision is 1.5; give a number between 0 and 1"),
        (("--fail-if", "kept"), "give 'broken' or 'undecided'"),
        (("--estimator", "x"), "there is no estimator 'x'; choose from confidence"),
        (("--sheet", 41), "labels are asked for; give a number from"),
        (("--labels", sheet), "no such file; give a sheet"),
    ]:
        assert message in refused(*both, *words)
    for ids, correct, message in [
        (["q00", "q99"], [1, 0], "question 'q99' is not in the files"),
        (["q00", "q00"], [1, 0], "question 'q00' is repeated"),
        (["q00", "q01"], [1, ""], "row 2 has '' in the column 'correct'"),
    ]:
        pd.DataFrame({"question_id": ids, "correct": correct}).to_csv(sheet, index=False)
        assert message in refused(*both, "--labels", sheet)


def test_a_constant_confidence_has_a_threshold_only_if_all_answers_reach_the_target(tmp_path):
    frames = []
    for name in ("v1", "v2"):
        rows = pd.DataFrame({"question_id": range(100), "confidence": 0.7, "checkpoint": name})
        frames.append(rows.assign(correct=[1] * 95 + [0] * 5, estimator="constant"))
    for target, verdict in ((0.8, "kept"), (0.99, "")):
        found = persistcal.threshold(pd.concat(frames), ["v1", "v2"], precision=target)
        assert found.tables["thresholds"]["verdict"].item() == verdict


def answers_of(tmp_path):
    """Files of answers of two versions, the second without labels: a third of them changed."""
    rng = np.random.default_rng(0)
    rows = []
    for question in range(120):
        right = question % 4 > 0
        texts = ["red"] * 9 + ["blue"] if right else ["green"] * 5 + ["blue"] * 5
        rows += [(question, text) for text in texts]
    frames = [pd.DataFrame(rows, columns=["question_id", "answer"])] * 2
    changed = rng.choice(120, 40, replace=False)
    swapped = frames[1]["question_id"].isin(changed)
    frames[1] = frames[1].assign(
        answer=frames[1]["answer"].where(~swapped, frames[1]["answer"].replace("red", "pink"))
    )
    files = []
    for name, frame in zip(("v1", "v2"), frames, strict=True):
        files.append(tmp_path / f"{name}.csv")
        question = "Which colour is number " + frame["question_id"].astype(str) + "?"
        frame.assign(question=question, references="red").to_csv(files[-1], index=False)
    return files


def test_a_sheet_hides_labels_and_certifies_with_carried_ones(tmp_path, capsys):
    files, out = answers_of(tmp_path), tmp_path / "out"
    words = ["--estimator", "self_consistency", "--precision", 0.6]
    assert run("threshold", *files, *words, "--sheet", 60, "--out", out) == 0
    sheet = pd.read_csv(out / "sheet.csv")
    assert len(sheet) == 60 and sheet["correct"].isna().all()
    assert set(sheet["earlier_answer"]) == {"red", "green"}
    sheet["correct"] = (sheet["later_answer"] == "red").astype(int)
    sheet.to_csv(out / "filled.csv", index=False)
    capsys.readouterr()
    assert run("threshold", *files, *words, "--labels", out / "filled.csv") == 0
    printed = capsys.readouterr().out
    # 90 answers were red; those that turned pink are wrong
    changed = 120 - int(printed.partition(" labels and ")[2].split()[0])
    assert 20 <= changed <= 40
    assert "certify" in printed
    sheet.head(50).to_csv(out / "filled.csv", index=False)
    assert run("threshold", *files, *words, "--labels", out / "filled.csv") == 1
    assert "these are not the 50 answers that --sheet draws" in capsys.readouterr().err


def test_a_label_curve_shows_how_many_labels_are_needed(versions, tmp_path, capsys):
    (tmp_path / "answers").mkdir()
    files, out = answers_of(tmp_path / "answers"), tmp_path / "out"
    words = ["--estimator", "self_consistency", "--precision", 0.6, "--out", out]
    assert run("label-curve", *files, *words) == 0
    curve = pd.read_csv(out / "label_curve.csv")
    assert curve["n_labels"].unique().tolist() == [30, 60, 120]
    assert set(curve["labels"]) == {"fresh", "carried"}
    assert curve.loc[curve["n_labels"] == 120, "certified"].isin([0, 1]).all()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["fresh", "carried"]
    assert [line.split()[0] for line in printed[3:6]] == ["30", "60", "120"]
    # Nothing is known about answers that are not in the files
    predictions = versions["v1"], versions["kept"]
    assert run("label-curve", *predictions, "--out", out) == 0
    assert set(pd.read_csv(out / "label_curve.csv")["labels"]) == {"fresh"}


def test_the_later_predictions_need_no_labels_for_a_sheet(versions, tmp_path):
    later, out = pd.read_csv(versions["kept"]).drop(columns="correct"), tmp_path / "out"
    later.to_csv(tmp_path / "v2.csv", index=False)
    both = versions["v1"], tmp_path / "v2.csv"
    assert run("threshold", *both, "--sheet", 20, "--out", out) == 0
    assert run("threshold", *both, "--out", out) == 1


@pytest.mark.parametrize("missing", ["", float("nan")])
def test_an_estimator_without_a_threshold_has_a_sentence(missing):
    row = {"earlier": "p40", "later": "p100", "train_dataset": "d", "estimator": "oracle"}
    row |= {"target": 0.8, "n_questions": 800, "least_abstention": 0.4, "verdict": missing}
    [text] = threshold_sentences(pd.DataFrame([row]), {"oracle": "Oracle training"})
    assert text.startswith("Oracle training: no threshold is certain to reach 80 % precision")


def test_seeds_share_a_sentence():
    row = {"earlier": "p40", "later": "p100", "train_dataset": "d", "estimator": "oracle"}
    row |= {"target": 0.8, "n_questions": 800, "least_abstention": 0.4}
    row |= {"later_precision_lower_2_5pct": 0.8, "later_precision_upper_97_5pct": 0.9}
    seeds = [
        row
        | {"threshold": t, "later_precision": p, "verdict": v, "confident_regressions": n}
        | {"later_coverage": t / 2, "earlier_coverage": 0.5, "labels_to_decide": 0.0}
        for t, p, v, n in [
            (0.7, 0.84, "kept", 3),
            (0.72, 0.86, "kept", 5),
            (0.8, 0.82, "undecided", 4),
        ]
    ]
    assert threshold_sentences(pd.DataFrame(seeds), {"oracle": "Oracle training"}) == [
        "Oracle training: the threshold .70 to .80 promised 80 % precision on p40; on p100 it "
        "reaches 82 to 86 % at a coverage of .35 to .40 (before: .50): undecided with 1 of 3 "
        "seeds. 3 to 5 confident answers that were right are wrong now."
    ]
