"""`persistcal threshold`: verdicts, the release gate, and a sheet of answers to label."""

import shutil

import numpy as np
import pandas as pd
import pytest
from command_line import run
from scipy.integrate import trapezoid

import persistcal
from persistcal.api.thresholds import read_looks
from persistcal.report.phrases import threshold_sentences
from persistcal.store import artifacts


@pytest.fixture
def versions(tmp_path):
    """Write files of two versions. Above the threshold, 29 of 30 answers are correct at v1.

    The later version has 29 (kept), 24 (undecided) or 18 (broken) correct answers there. The
    selection is the worked example of tests/evaluation/test_thresholds.py.
    """
    rows = {"question_id": [f"q{i:02d}" for i in range(40)]}
    rows |= {"confidence": [0.9] * 30 + [0.4] * 10, "correct": [1] * 29 + [0] * 11}
    files = {"v1": tmp_path / "v1.csv"}
    pd.DataFrame(rows).to_csv(files["v1"], index=False)
    for name, n_correct in {"undecided": 24, "broken": 18, "kept": 29}.items():
        stated = [0.91] * 30 + [0.4] * 10
        later = rows | {
            "confidence": stated,
            "correct": [1] * n_correct + [0] * (40 - n_correct),
        }
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
def test_the_exit_code_follows_the_verdict(versions, tmp_path, capsys, later, fail_if, code):
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
        f"threshold .90 promised 80 % precision on v1 (90 % sure); on {later} it reaches "
        f"{reached} at a coverage of .75 (before: .75): {verdict}"
    ) in printed

    [row] = pd.read_csv(tmp_path / "out/thresholds.csv").to_dict("records")
    assert row["verdict"] == later
    assert (tmp_path / "out/threshold_cells.csv").exists()

    selective = pd.read_csv(tmp_path / "out/selective.csv").set_index(["checkpoint", "metric"])
    # Errors at v1 by coverage: 30 tied answers share one error, and 10 errors follow.
    errors = [0, *np.linspace(0, 1, 31)[1:], *range(2, 12)]
    assert selective.loc[("v1", "augrc"), "value"] == pytest.approx(trapezoid(errors) / 1600)


def test_notebook_and_command_give_the_same_thresholds(versions, tmp_path):
    words = ["--precision", 0.8, "--out", tmp_path / "out"]
    assert run("threshold", versions["v1"], versions["broken"], *words) == 0
    frames = [
        pd.read_csv(versions[name]).assign(checkpoint=name, estimator="confidence")
        for name in ("v1", "broken")
    ]
    comparison = persistcal.threshold(pd.concat(frames), ["v1", "broken"], precision=0.8)
    for name, table in comparison.tables.items():
        written = pd.read_csv(tmp_path / f"out/{name}.csv")
        shown = table[written.columns].replace({None: np.nan})
        pd.testing.assert_frame_equal(written, shown, check_dtype=False)
    assert "broken. 11 confident answers" in comparison.summary()


def test_wrong_options_of_threshold_are_refused_before_writing(versions, tmp_path, capsys):
    def refused(*words):
        assert run("threshold", *words, "--out", tmp_path / "none") in (1, 2)
        assert not (tmp_path / "none").exists()
        return capsys.readouterr().err

    files, sheet = (versions["v1"], versions["kept"]), tmp_path / "sheet.csv"
    assert "has only the checkpoint 'v1'; give a later one" in refused(versions["v1"])
    for words, message in [
        (("--precision", 1.5), "precision is 1.5; give a number between 0 and 1"),
        (("--precision", 1), "precision is 1.0; give a number between 0 and 1, such as 0.9"),
        (("--delta", 0), "delta is 0.0; give a number between 0 and 1, such as 0.1"),
        (("--fail-if", "kept"), "'kept' is not one of 'broken', 'undecided'"),
        (("--estimator", "x"), "there is no estimator 'x'; choose from confidence"),
        (("--sheet", 20, 41), "41 labels are asked for; give a number from 1 to 40"),
        (("--labels", sheet), "no such file; give a sheet"),
        (("--labels", versions["v1"]), "v1.csv: the first line must name the columns order"),
        (("--sheet", 20, "--fail-if", "undecided"), "so --fail-if has no meaning"),
        (("--sheet", 20, "--labels", sheet), "so --labels has no meaning"),
        (("--texts", sheet), "--texts is for --sheet"),
        (("--sheet", 20, "--texts", versions["v1"]), "v1.csv: has no question_id, or none of"),
    ]:
        assert message in refused(*files, *words)


@pytest.fixture
def unfilled_sheet(versions, tmp_path):
    """Draw a sheet for 20 and then 30 of the 40 answers of the version "kept"."""
    files, out = (versions["v1"], versions["kept"]), tmp_path / "drawn"
    assert run("threshold", *files, "--sheet", 20, 30, "--out", out) == 0
    return files, out / "sheet.csv"


def fill(path, n, *, column="correct", label="1"):
    """Label the first n rows of a sheet."""
    sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
    sheet.loc[sheet.index[:n], column] = label
    sheet.to_csv(path, index=False)
    return sheet


def test_labels_drawn_for_other_answers_are_refused(versions, unfilled_sheet, capsys):
    [v1, _], path = unfilled_sheet
    fill(path, 30)
    for files in ((v1, versions["broken"]), (versions["kept"], v1)):
        assert run("threshold", *files, "--labels", path, "--out", path.parent) == 1
        message = capsys.readouterr().err
        assert "sheet.csv: row 2 was drawn from other data; give the files and" in message
    assert not (path.parent / "looks.csv").exists()


def test_a_filled_sheet_is_kept_and_a_larger_one_keeps_labels(unfilled_sheet, versions, capsys):
    files, path = unfilled_sheet
    filled = fill(path, 20, label="yes")
    content = path.read_bytes()
    assert run("threshold", *files, "--sheet", 35, "--out", path.parent) == 0
    assert "35 answers, 5 of which are new" in capsys.readouterr().out
    assert path.read_bytes().startswith(content)
    sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(sheet[:30], filled)
    assert set(sheet["planned_looks"]) == {"at 20 and 30 labels"}
    other_files = versions["v1"], versions["broken"]
    assert run("threshold", *other_files, "--sheet", 10, "--out", path.parent) == 1
    assert "someone has written into it, so it is kept" in capsys.readouterr().err
    assert path.read_bytes().startswith(content)


def test_each_look_at_the_labels_spends_a_share_of_the_error(unfilled_sheet, capsys):
    files, path = unfilled_sheet
    words = ["--labels", path, "--precision", 0.6, "--out", path.parent]
    for n, level, total in ((20, 0.05, 0.05), (25, 0.025, 0.075), (30, 0.05, 0.125)):
        fill(path, n)
        assert run("threshold", *files, *words) == 0
        looks = pd.read_csv(path.parent / "looks.csv")
        row = looks.iloc[-1]
        assert (row["n_labels"], row["planned"]) == (n, n != 25)
        assert row["level"] == level and row["error_so_far"] == pytest.approx(total)
    assert len(looks) == 3 and (looks["n_correct"] == looks["n_labels"]).all()
    assert (
        "error probability 5 % at a planned look; 12.5 % over all 3" in capsys.readouterr().out
    )
    assert run("threshold", *files, *words) == 0  # a repetition is not another look
    assert len(pd.read_csv(path.parent / "looks.csv")) == 3
    # With half the δ, the earlier looks have the error probability that they had.
    assert run("threshold", *files, *words, "--delta", 0.05) == 0
    row = pd.read_csv(path.parent / "looks.csv").iloc[-1]
    assert (row["level"], row["error_so_far"]) == (0.025, 0.125)


def test_estimators_with_one_sheet_share_the_error_probability(versions, tmp_path, capsys):
    files, out = [], tmp_path / "drawn"
    for name in ("v1", "kept"):
        rows = pd.read_csv(versions[name])
        other = rows.assign(estimator="other", confidence=1 - rows["confidence"])
        files.append(tmp_path / f"both_{name}.csv")
        pd.concat([rows.assign(estimator="own"), other]).to_csv(files[-1], index=False)
    words, both = (
        ["--out", out, "--precision", 0.6],
        ("--estimator", "own", "--estimator", "other"),
    )
    assert run("threshold", *files, *words, "--sheet", 30) == 1
    assert "share --delta; choose one or more with --estimator from other, own" in (
        capsys.readouterr().err
    )
    assert run("threshold", *files, *words, "--sheet", 30, *both) == 0
    fill(out / "sheet.csv", 30)
    words += ["--labels", out / "sheet.csv"]
    assert run("threshold", *files, *words, *both[:2]) == 1
    assert run("threshold", *files, *words, *both) == 0
    looks = pd.read_csv(out / "looks.csv").set_index("estimator")
    assert looks["level"].to_dict() == {"other": 0.05, "own": 0.05}
    assert looks["error_so_far"].tolist() == [0.1, 0.1]
    printed = capsys.readouterr().out
    assert "own: 30 labels certify 60 % precision on the 40 answers of kept" in printed
    assert printed.count("(error probability 10 % for all 2 estimators together)") == 2


def test_deleted_rows_make_no_look_a_planned_one(unfilled_sheet, capsys):
    files, path = unfilled_sheet
    fill(path, 25)
    sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
    sheet[:25].to_csv(path, index=False)
    words = ["--labels", path, "--precision", 0.6, "--out", path.parent]
    assert run("threshold", *files, *words) == 0
    look = pd.read_csv(path.parent / "looks.csv").iloc[-1]
    assert not look["planned"] and look["level"] == 0.025
    sheet.assign(planned_looks="at 25 labels").head(1).to_csv(path, index=False)
    sheet[1:].to_csv(path, mode="a", header=False, index=False)
    assert run("threshold", *files, *words) == 1
    assert "restore the column from the sheet as drawn" in capsys.readouterr().err


def test_labels_that_skip_rows_of_the_random_order_are_refused(unfilled_sheet, capsys):
    files, path = unfilled_sheet
    sheet = fill(path, 10)
    sheet.loc[15, "correct"] = "0"
    sheet.to_csv(path, index=False)
    assert run("threshold", *files, "--labels", path, "--out", path.parent) == 1
    assert "row 12 has no entry and row 17 has one" in capsys.readouterr().err
    sheet.loc[15, "correct"] = ""
    sheet[sheet["order"] != "3"].to_csv(path, index=False)
    assert run("threshold", *files, "--labels", path, "--out", path.parent) == 1
    assert "number 3 of the random order; --sheet 29 adds it" in capsys.readouterr().err
    assert run("threshold", *files, "--sheet", 29, "--out", path.parent) == 0
    assert "30 answers, 1 of which are new" in capsys.readouterr().out
    assert sorted(pd.read_csv(path)["order"]) == list(range(1, 31))
    # A column that was sorted without the others labels other questions.
    sheet.assign(order=sheet["order"].tolist()[::-1]).to_csv(path, index=False)
    assert run("threshold", *files, "--labels", path, "--out", path.parent) == 1
    assert "row 2 has the order 30 and question" in capsys.readouterr().err
    # Sorting the rows in a spreadsheet does not change the sample.
    sheet.sort_values("question_id").to_csv(path, index=False, sep=";", encoding="utf-16")
    assert run("threshold", *files, "--labels", path, "--out", path.parent) == 0
    assert capsys.readouterr().out.startswith("10 labels certify no threshold")


@pytest.mark.parametrize("command", ["compare", "threshold"])
def test_a_baseline_is_gated_only_without_other_estimators(versions, tmp_path, capsys, command):
    """The baseline is .7 and then .9 for all questions; it has no threshold."""
    file = tmp_path / "both.csv"
    options = ["--precision", 0.8, "--out", tmp_path / "out", "--fail-if"]
    options = [*(["--replicates", 200] if command == "compare" else []), *options]

    def gate(later, fail_if, *, estimators):
        frames = [
            pd.read_csv(versions[name]).assign(checkpoint=name, estimator="own")
            for name in ("v1", later)
        ]
        frames += [
            frame.assign(estimator="end_correct", confidence=stated)
            for frame, stated in zip(frames, (0.7, 0.9), strict=True)
        ]
        rows = pd.concat(frames)
        rows[rows["estimator"].isin(estimators)].to_csv(file, index=False)
        return run(command, file, *options, fail_if)

    for fail_if in ("broken", "undecided"):
        assert gate("kept", fail_if, estimators=["own", "end_correct"]) == 0
    assert gate("broken", "broken", estimators=["own", "end_correct"]) == 3
    capsys.readouterr()
    assert gate("kept", "undecided", estimators=["end_correct"]) == 4
    line = "Gate: undecided; undecided: threshold (no confidence that differs"
    assert line in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("column", "number"),
    [
        *(("n_labels", number) for number in (-1, 0, 999)),
        *((name, -1) for name in ("n_correct", "level", "threshold")),
        *(("error_so_far", 5), ("delta", 2), ("target", 0), ("coverage", 3)),
    ],
)
def test_impossible_numbers_in_the_file_of_looks_are_refused(tmp_path, column, number):
    row = dict.fromkeys(artifacts.LOOKS.schema.names, "x")
    row |= {"n_labels": 30, "planned": True, "level": 0.1, "n_correct": 29, "target": 0.9}
    row |= {"delta": 0.1, "error_so_far": 0.1, "n_answers": 300, "threshold": 0.5}
    second = row | {"drawn_from": "y", "coverage": None, "threshold": None}
    rows = pd.DataFrame([row | {"coverage": 0.8}, second])
    path = tmp_path / "looks.csv"
    artifacts.write_csv(rows, path, artifacts.LOOKS)
    assert len(read_looks(path)) == 2
    rows.loc[0, column] = number
    artifacts.write_csv(rows, path, artifacts.LOOKS)
    with pytest.raises(ValueError, match=rf"looks\.csv: row 2 has the {column} {number}, "):
        read_looks(path)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_gate_fails_if_a_dataset_has_no_verdict(versions, tmp_path, capsys):
    frames = [
        pd.read_csv(versions[name]).assign(checkpoint=name, dataset=dataset)
        for name, dataset in (("v1", "a"), ("kept", "a"), ("v1", "b"), ("kept", "b"))
    ]
    frames[3]["question_id"] += "x"
    file = tmp_path / "both.csv"
    gate = ["--precision", 0.8, "--out", tmp_path / "out", "--fail-if"]
    compare = ["compare", file, "--replicates", 200, *gate, "undecided"]
    models = [f.assign(model=m) for f, m in zip(frames, ("m1", "m1", "m2"), strict=False)]
    for chosen, line in (
        (frames, "undecided: b threshold of confidence (no question in common)"),
        (models, "undecided: m2 b threshold (only v1)"),
    ):
        pd.concat(chosen).to_csv(file, index=False)
        assert run(*compare) == 4
        assert line in " ".join(capsys.readouterr().out.split())
    for chosen, code in ((frames, 4), (frames[:2], 0), (frames[2:], 4)):
        pd.concat(chosen).to_csv(file, index=False)
        assert run("threshold", file, *gate, "broken") == 0
        capsys.readouterr()
        assert run("threshold", file, *gate, "undecided") == code
        output = capsys.readouterr()
        line = "threshold of confidence (no question in common)"
        assert (line in " ".join(output.out.split())) == (code == 4)
    rows = pd.read_csv(tmp_path / "out/thresholds.csv")
    assert rows[["n_questions", "dataset"]].to_numpy().tolist() == [[0, "b"]]
    assert "have no question in common, so no threshold was checked" in output.out


def test_a_gate_on_labels_fails_if_no_threshold_is_certified(unfilled_sheet, capsys):
    files, path = unfilled_sheet
    words = ["--labels", path, "--out", path.parent, "--fail-if"]
    fill(path, 30)
    for precision, code in ((0.6, 0), (0.99, 4)):
        assert run("threshold", *files, "--precision", precision, *words, "undecided") == code
        assert run("threshold", *files, "--precision", precision, *words, "broken") == 0
    assert pd.read_csv(path.parent / "looks.csv")["threshold"].isna().tolist() == [False, True]


def test_several_verdicts_have_the_expected_number_of_errors(versions, tmp_path, capsys):
    words = ["--precision", 0.8, "--out", tmp_path / "out"]
    three = versions["v1"], versions["kept"], versions["broken"]
    assert run("threshold", *three, *words) == 0
    verdicts = pd.read_csv(tmp_path / "out/thresholds.csv")["verdict"]
    assert verdicts.tolist() == ["kept", "broken", "broken"]
    output = capsys.readouterr().out
    assert "Each of these 3 verdicts is wrong with a probability of at most 5 %" in output
    assert "expect up to 0.15 wrong ones among them" in output  # 3 · .05


def test_a_constant_confidence_has_a_threshold_only_if_all_answers_reach_the_target(tmp_path):
    frames = []
    for name in ("v1", "v2"):
        rows = pd.DataFrame({"question_id": range(100), "confidence": 0.7, "checkpoint": name})
        frames.append(rows.assign(correct=[1] * 95 + [0] * 5, estimator="constant"))
    for target, verdict in ((0.8, "kept"), (0.99, "")):
        comparison = persistcal.threshold(pd.concat(frames), ["v1", "v2"], precision=target)
        assert comparison.tables["thresholds"]["verdict"].item() == verdict


def write_answers(tmp_path):
    """Write ten answers to 120 questions of two versions, which differ in 40 questions."""
    changed = np.random.default_rng(0).choice(120, 40, replace=False)
    files = [tmp_path / "v1.csv", tmp_path / "v2.csv"]
    for path, red in zip(files, ("red", "pink"), strict=True):
        rows = [
            {"question_id": n, "question": f"Which colour is number {n}?", "references": "red"}
            | {"answer": red if text == "red" and n in changed else text}
            for n in range(120)
            for text in (["red"] * 9 + ["blue"] if n % 4 else ["green", "blue"] * 5)
        ]
        pd.DataFrame(rows).to_csv(path, index=False)
    return files


def test_a_sheet_hides_the_labels_and_certifies_with_a_persons(tmp_path, capsys):
    files, out = write_answers(tmp_path), tmp_path / "out"
    words = ["--estimator", "self_consistency", "--precision", 0.35, "--out", out]
    assert run("threshold", *files, *words, "--sheet", 60) == 0
    sheet = pd.read_csv(out / "sheet.csv")
    assert len(sheet) == 60 and sheet["correct"].isna().all()
    assert set(sheet["earlier_answer"]) == {"red", "green"}
    sheet["correct"] = (sheet["later_answer"] == "red").astype(int)
    for column in ("later_answer", "question"):  # that alone was sorted
        moved = sheet.assign(**{column: sorted(sheet[column])})
        moved.to_csv(out / "filled.csv", index=False)
        assert run("threshold", *files, *words, "--labels", out / "filled.csv") == 1
        assert f"has the {column}" in capsys.readouterr().err
    sheet.to_csv(out / "filled.csv", index=False)
    assert run("threshold", *files, *words, "--labels", out / "filled.csv") == 0
    assert capsys.readouterr().out.startswith("60 labels certify 35 % precision on the 120")
    drawn = [pd.read_csv(file) for file in files]
    others = [drawn[0], drawn[1].replace("pink", "rose")]  # all confidences stay
    asked = [rows.assign(question="Not a " + rows["question"]) for rows in drawn]
    for versions in (others, asked):
        for file, rows in zip(files, versions, strict=True):
            rows.to_csv(file, index=False)
        assert run("threshold", *files, *words, "--labels", out / "filled.csv") == 1
        assert "was drawn from other data" in capsys.readouterr().err


def test_a_label_curve_shows_how_many_labels_are_needed(tmp_path, capsys):
    (tmp_path / "answers").mkdir()
    files, out = write_answers(tmp_path / "answers"), tmp_path / "out"
    words = ["--estimator", "self_consistency", "--precision", 0.5, "--out", out]
    assert run("label-curve", *files, *words) == 0
    curve = pd.read_csv(out / "label_curve.csv")
    assert curve["n_labels"].tolist() == [30, 60, 120]
    assert curve["certified"].iloc[-1] == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[2:5]] == ["30", "60", "120"]


@pytest.mark.parametrize("form", ["absent", "empty", "folder", "same confidences"])
def test_the_later_version_needs_no_labels_for_a_sheet(versions, tmp_path, form, capsys):
    later = pd.read_csv(versions["v1" if form == "same confidences" else "kept"])
    later = later.drop(columns="correct")
    later = later if form == "absent" else later.assign(correct="")
    (tmp_path / "v2").mkdir()
    later.to_csv(tmp_path / "v2/quiz.csv", index=False)
    texts = later[["question_id"]].assign(question="=1+1?", answer="four")
    texts.rename(columns={"question_id": "Question ID"}).to_csv(
        tmp_path / "texts.csv", index=False
    )
    files, out = (versions["v1"], tmp_path / "v2/quiz.csv"), tmp_path / "out"
    if form == "folder":
        (tmp_path / "first").mkdir()
        shutil.copy(versions["v1"], tmp_path / "first/quiz.csv")
        files = (tmp_path / "first", tmp_path / "v2")
    if form == "same confidences":  # as of an estimator that does not see the checkpoint
        files = (tmp_path / "both.csv",)
        parts = [later.assign(checkpoint=name) for name in ("v1", "v2")]
        pd.concat(parts).to_csv(files[0], index=False)
    assert run("threshold", *files, "--out", out) == 1
    words = ["--texts", tmp_path / "texts.csv", "--out", out]
    texts[:15].to_csv(tmp_path / "few.csv", index=False)
    assert run("threshold", *files, "--sheet", 20, "--texts", tmp_path / "few.csv") == 1
    assert "--texts has no row for " in capsys.readouterr().err
    assert run("threshold", *files, "--sheet", 20, *words) == 0
    sheet = fill(out / "sheet.csv", 20)
    assert set(sheet["question"]) == {"'=1+1?"} and set(sheet["later_answer"]) == {"four"}
    assert run("threshold", *files, "--labels", out / "sheet.csv", "--out", out) == 0


@pytest.mark.parametrize("label", [None, ""], ids=["absent", "empty"])
def test_later_answers_need_neither_labels_nor_references_for_a_sheet(tmp_path, label):
    files, out = write_answers(tmp_path), tmp_path / "out"
    later = pd.read_csv(files[1]).drop(columns="references")
    later = later if label is None else later.assign(correct=label)
    later.to_csv(files[1], index=False)
    words = ["--estimator", "self_consistency", "--out", out, "--sheet", 30]
    assert run("threshold", *files, *words) == 0
    assert len(pd.read_csv(out / "sheet.csv")) == 30


ROW = {"earlier": "p40", "later": "p100", "train_dataset": "d", "estimator": "oracle"}
ROW |= {"target": 0.8, "delta": 0.1, "n_questions": 800, "least_abstention": 0.4}
ROW |= {"later_precision_lower_2_5pct": 0.8, "later_precision_upper_97_5pct": 0.9}
ROW |= {"earlier_coverage": 0.5, "earlier_precision": 0.9, "labels_to_decide": 0.0}


@pytest.mark.parametrize("missing", ["", float("nan")])
def test_an_estimator_that_never_reaches_the_target_is_reported(missing):
    rows = pd.DataFrame([ROW | {"verdict": missing}])
    [text] = threshold_sentences(rows, {"oracle": "Oracle training"})
    assert text.startswith("Oracle training: no threshold reaches 80 % precision")
    assert "800 answers of p40 (90 % sure); it is observed, without a guarantee, if" in text


def test_seeds_are_summarised_in_one_sentence():
    names = ["threshold", "later_precision", "verdict", "confident_regressions"]
    seeds = [(0.7, 0.84, "kept", 3), (0.72, 0.86, "kept", 5), (0.8, 0.82, "undecided", 4)]
    rows = pd.DataFrame(seeds, columns=names).assign(**ROW)
    rows["later_coverage"] = rows["threshold"] / 2
    assert threshold_sentences(rows, {"oracle": "Oracle training"}) == [
        "Oracle training: the threshold .70 to .80 promised 80 % precision on p40 (90 % sure); "
        "on p100 it reaches 82 to 86 % at a coverage of .35 to .40 (before: .50): undecided "
        "with 1 of 3 seeds. 3 to 5 confident answers that were right are wrong now."
    ]
