"""Contents of a rule's log."""

import logging
import subprocess
import sys

import pytest
from workflow_runs import ROOT

from persistcal.store.progress import Pace

CONFIG = """
results: out
models: {m1: {label: Model 1, evaluation: [early, middle, late]}}
datasets: {quiz: {min_contrast: 2}}
study: {predictions: example.csv, models: [m1], datasets: [quiz]}
"""
SCRIPT = """
import logging
from persistcal.store.jobs import log_to
log_to("folder/rule.log")
logging.getLogger("fontTools.subset").info("glyf pruned")
logging.getLogger("fontTools.subset").warning("no glyphs")
logging.getLogger("rule").info("42 rows")
raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling x")
"""


def failed(folder, *command, **how):
    how = {"cwd": folder, "text": True, "check": False, "stdout": subprocess.PIPE, **how}
    done = subprocess.run([sys.executable, *command], **how)
    assert done.returncode == 1
    return done


def test_records_and_the_traceback_but_no_chatter_of_packages(tmp_path):
    how = {"env": {"PYTHONPATH": str(ROOT)}, "stderr": subprocess.PIPE}
    said = failed(tmp_path, "-c", SCRIPT, **how).stderr
    text = (tmp_path / "folder" / "rule.log").read_text()
    for shown in (text, said):
        assert "INFO 42 rows" in shown and "WARNING no glyphs" in shown
        assert "glyf" not in shown
    assert "CRITICAL The GPU's memory holds the model" in text
    assert "when calling x).\nTraceback" in text
    assert "\nRuntimeError: The GPU's memory holds the model, but not its computation" in said
    assert said.endswith("ALLOC_FAILED when calling x). (traceback in folder/rule.log)\n")
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [("-m", "snakemake"), (str(ROOT / "tools" / "fork_jobs.py"),)]
)
def test_the_error_of_a_job_is_printed_once(tmp_path, program):
    example = (ROOT / "config" / "example_predictions.csv").read_text()
    (tmp_path / "example.csv").write_text(example.replace(",0,0.6", ",0,7", 1))
    (tmp_path / "mine.yaml").write_text(CONFIG)
    how = ["--snakefile", ROOT / "Snakefile", "--profile", ROOT / "profiles" / "laptop"]
    how += ["--cores", "1", "import_predictions", "--configfile", "mine.yaml"]
    done = failed(tmp_path, *program, *how, stderr=subprocess.STDOUT)
    assert done.stdout.count("example.csv: confidence is not valid (row ") == 1
    assert "Traceback" not in done.stdout
    log = (tmp_path / "out" / "logs" / "import_predictions.log").read_text()
    assert log.count("Traceback") == 2  # where it was raised, and where the file was named


def lines_of(caplog, monkeypatch, *, seconds_a_step, n):
    """Return what is logged over `n` steps, by a clock that each step moves on."""
    now = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    with caplog.at_level(logging.INFO):
        for _ in Pace(range(n), "training", unit=" steps"):
            now[0] += seconds_a_step
    return [record.getMessage() for record in caplog.records]


def test_a_line_every_ten_seconds_with_rate_and_time_left(caplog, monkeypatch):
    lines = lines_of(caplog, monkeypatch, seconds_a_step=2.0, n=20)
    # half a step a second: 5 are done after 10 s, and 15 are left for 30 s
    assert lines == [
        "training: 5 of 20 (25 %), 0.50 steps/s, 00:30 left",
        "training: 10 of 20 (50 %), 0.50 steps/s, 00:20 left",
        "training: 15 of 20 (75 %), 0.50 steps/s, 00:10 left",
        "training: 20 of 20 (100 %), 0.50 steps/s, 00:00 left",
    ]


def test_a_quick_job_says_nothing(caplog, monkeypatch):
    assert lines_of(caplog, monkeypatch, seconds_a_step=0.01, n=20) == []
