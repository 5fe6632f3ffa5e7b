"""Logs of rules: errors, messages and progress."""

import logging
import subprocess
import sys

import pytest
from workflow_runs import ROOT

from persistcal.store.progress import Pace
from persistcal.store.provenance import read_makers

CONFIG = """
results: out
models: {m1: {label: Model 1, evaluation: [early, middle, late]}}
datasets: {quiz: {min_contrast: 2}}
study: {predictions: example.csv, models: [m1], datasets: [quiz]}
"""
SCRIPT = """
import logging
from persistcal.store.jobs import log_to
from persistcal.store.provenance import log_maker
log_to("folder/rule.log")
log_maker()
logging.getLogger("fontTools.subset").info("glyf pruned")
logging.getLogger("fontTools.subset").warning("no glyphs")
logging.getLogger("rule").info("42 rows")
raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling x")
"""


def failed(folder, *command, **options):
    """Run a command of Python that must fail, and return the process."""
    options = {
        "cwd": folder,
        "text": True,
        "check": False,
        "stdout": subprocess.PIPE,
        **options,
    }
    process = subprocess.run([sys.executable, *command], **options)
    assert process.returncode == 1
    return process


def test_a_log_has_messages_and_the_traceback_without_chatter_of_packages(tmp_path):
    options = {"env": {"PYTHONPATH": str(ROOT)}, "stderr": subprocess.PIPE}
    printed = failed(tmp_path, "-c", SCRIPT, **options).stderr
    log = (tmp_path / "folder" / "rule.log").read_text()
    for text in (log, printed):
        assert "INFO 42 rows" in text and "WARNING no glyphs" in text
        assert "glyf" not in text
    assert "CRITICAL The GPU's memory holds the model" in log
    assert "when calling x).\nTraceback" in log
    assert (
        "\nRuntimeError: The GPU's memory holds the model, but not its computation" in printed
    )
    assert printed.endswith("ALLOC_FAILED when calling x). (traceback in folder/rule.log)\n")
    assert "Traceback" not in printed
    [maker] = read_makers(tmp_path / "folder")["rule"]
    assert maker["machine"] and "numpy" in maker and "numpy" not in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [("-m", "snakemake"), (str(ROOT / "tools" / "fork_jobs.py"),)]
)
def test_the_error_of_a_job_is_printed_once(tmp_path, program):
    example = (ROOT / "config" / "example_predictions.csv").read_text()
    (tmp_path / "example.csv").write_text(example.replace(",0,0.6", ",0,7", 1))
    (tmp_path / "mine.yaml").write_text(CONFIG)
    arguments = ["--snakefile", ROOT / "Snakefile", "--profile", ROOT / "profiles" / "laptop"]
    arguments += ["--cores", "1", "import_predictions", "--configfile", "mine.yaml"]
    process = failed(tmp_path, *program, *arguments, stderr=subprocess.STDOUT)
    assert process.stdout.count("example.csv: confidence is not valid (row ") == 1
    assert "Traceback" not in process.stdout
    log = (tmp_path / "out" / "logs" / "import_predictions.log").read_text()
    assert log.count("Traceback") == 2  # the first error, and the error with the file's name


def logged_lines(caplog, monkeypatch, *, seconds_a_step, n):
    """Return the log of `n` steps, by a clock that each step advances."""
    clock = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: clock[0])
    with caplog.at_level(logging.INFO):
        for _ in Pace(range(n), "training", unit=" steps"):
            clock[0] += seconds_a_step
    return [record.getMessage() for record in caplog.records]


def test_the_rate_of_a_fast_job_follows_a_space(caplog, monkeypatch):
    lines = logged_lines(caplog, monkeypatch, seconds_a_step=0.04, n=500)
    assert lines
    assert all(" %), 25.00 steps/s, 00:" in line for line in lines)


def test_a_long_job_logs_its_rate_and_time_left_every_ten_seconds(caplog, monkeypatch):
    lines = logged_lines(caplog, monkeypatch, seconds_a_step=2.0, n=20)
    # 0.5 steps per second: after 10 s 5 are done, and 15 are left, which take 30 s
    assert lines == [
        "training: 5 of 20 (25 %), 0.50 steps/s, 00:30 left",
        "training: 10 of 20 (50 %), 0.50 steps/s, 00:20 left",
        "training: 15 of 20 (75 %), 0.50 steps/s, 00:10 left",
        "training: 20 of 20 (100 %), 0.50 steps/s, 00:00 left",
    ]


def test_a_quick_job_logs_no_progress(caplog, monkeypatch):
    assert logged_lines(caplog, monkeypatch, seconds_a_step=0.01, n=20) == []
