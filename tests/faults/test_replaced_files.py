"""Jobs that read a user's file rerun if an older file of the same size replaces it."""

import os
import re
import shutil
from functools import partial

import pandas as pd
import pytest
from own_study import lexical_study, write_study
from workflow_runs import ROOT, planned, snakemake

pytestmark = pytest.mark.slow


def replace_by_older(path):
    """Replace a file by an older file of the same size with another content."""
    content, modified = path.read_bytes(), path.stat().st_mtime
    replacement = path.with_name("replacement")
    replacement.write_bytes(content.swapcase())
    os.utime(replacement, (modified - 1000, modified - 1000))
    replacement.replace(path)


def replanned(folder, configs, target, file):
    """Return the jobs that are planned for the finished `target` after `file` is replaced."""
    run = partial(snakemake, folder, target, "--cores", "1", configs=configs)
    run()
    assert planned(run("--dry-run")) == {}
    replace_by_older(folder / file)
    return planned(run("--dry-run"))


def test_replaced_predictions_are_imported_again(tmp_path):
    configs = [write_study(tmp_path) / "config.yaml"]
    target = "out/predictions/m1/quiz/imported.parquet"
    assert replanned(tmp_path, configs, target, "predictions.csv") == {"import_predictions": 1}


def test_a_replaced_file_of_answers_or_audit_sheet_is_read_again(tmp_path):
    def write(**audit):
        shutil.copyfile(ROOT / "config/example_answers.csv", tmp_path / "answers.csv")
        sizes = {"n_contrast": 24, "n_correct": 12, "n_incorrect": 12}
        audit = {"models": ["m1"], "datasets": ["quiz"], **sizes, **audit}
        return lexical_study(
            tmp_path,
            {"m1": {"evaluation": ["early", "middle", "late"]}},
            ["end_correct"],
            study={"answers": "answers.csv"},
            decoding={"strategy": "sample"},
            analyses={"audit": audit},
        )

    target = "out/beams/m1/late/quiz/test.parquet"
    assert replanned(tmp_path, write(), target, "answers.csv") == {"import_answers": 1}
    snakemake(tmp_path, "out/audit/m1/quiz.csv", "--cores", "1", configs=write())
    sheet = pd.read_csv(tmp_path / "out/audit/m1/quiz.csv", dtype=str)
    sheet[["earlier_correct", "later_correct"]] = "yes"
    sheet.assign(note="A").to_csv(tmp_path / "filled.csv", index=False)
    configs = write(filled="filled.csv")
    target = "out/audit_agreements/m1/quiz.csv"
    assert replanned(tmp_path, configs, target, "filled.csv") == {"summarise_audit": 1}
    replace_by_older(tmp_path / "filled.csv")  # swaps the case back
    table = "out/tables/corrections.csv"
    plan = {"correct_results": 1, "make_plain_table": 1}
    assert replanned(tmp_path, configs, table, "filled.csv") == plan
    rows = pd.read_csv(tmp_path / table).set_index(["estimator", "metric"])
    # the sheet labels all answers correct
    assert rows["corrected"].dropna().tolist() == [1, 1, 0, 0, 0]


def test_replaced_questions_are_prepared_again(tmp_path):
    checkpoints = {name: {"revision": name} for name in ("early", "late")}
    mine = {"repo": "mine", "checkpoints": checkpoints, "evaluation": ["early", "late"]}
    dataset = {"source": "file", "file": "quiz.csv"}
    configs = lexical_study(tmp_path, {"m1": mine}, ["end_correct"], datasets={"quiz": dataset})
    rows = "".join(f"Q{i}?,A,{split}\n" for i, split in enumerate(["few_shot"] * 5 + ["test"]))
    (tmp_path / "quiz.csv").write_text("question,answers,split\n" + rows)
    plan = replanned(tmp_path, configs, "out/questions/quiz.parquet", "quiz.csv")
    assert plan == {"prepare_questions": 1}


def test_a_replaced_archive_of_the_release_is_imported_again(tmp_path):
    """The archive is not unpacked here: results are touched, as if the import had run."""
    mine = {"repo": "org/m", "checkpoints": {name: {"revision": name} for name in "ab"}}
    configs = lexical_study(
        tmp_path,
        {"m1": {**mine, "evaluation": ["a", "b"]}},
        ["end_correct"],
        datasets={"quiz": {"train": [0, 1], "test": [1, 2]}},
        study={"source": "release", "archive": "release.tar.zst"},
    )
    for name in ("release.tar.zst", "release.tar.zst.sha256"):
        (tmp_path / name).write_text("archive")
    target = "out/questions/quiz.parquet"
    run = partial(snakemake, tmp_path, target, "--cores", "1", configs=configs)
    [outputs] = re.findall(r"output: (.*)", run("--dry-run"))
    for path in outputs.split(", "):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    run("--touch", "--forceall")
    assert planned(run("--dry-run")) == {}
    replace_by_older(tmp_path / "release.tar.zst")
    assert planned(run("--dry-run")) == {"import_release": 1}
