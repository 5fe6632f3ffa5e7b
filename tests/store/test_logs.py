"""Contents of a rule's log."""

import subprocess
import sys

import pytest
from workflow_runs import ROOT

CONFIG = """
results: out
models: {m1: {label: Model 1, evaluation: [early, middle, late]}}
datasets: {quiz: {min_contrast: 2}}
study: {predictions: example.csv, models: [m1], datasets: [quiz]}
"""
SCRIPT = """
import logging
from persistcal.store.logs import log_to
log_to("folder/rule.log")
logging.getLogger("fontTools.subset").info("glyf pruned")
logging.getLogger("fontTools.subset").warning("no glyphs")
logging.getLogger("rule").info("42 rows")
raise ValueError("row 7")
"""
FULL = 'RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling x")'


def failed(folder, *command, **how):
    how = {"cwd": folder, "text": True, "check": False, "stdout": subprocess.PIPE, **how}
    done = subprocess.run([sys.executable, *command], **how)
    assert done.returncode == 1
    return done


def said_of(error, folder):
    program = SCRIPT.replace('ValueError("row 7")', error)
    how = {"env": {"PYTHONPATH": str(ROOT)}, "stderr": subprocess.PIPE}
    return failed(folder, "-c", program, **how).stderr


def test_records_and_the_traceback_but_no_chatter_of_packages(tmp_path):
    said = said_of('ValueError("row 7")', tmp_path)
    text = (tmp_path / "folder" / "rule.log").read_text()
    for shown in (text, said):
        assert "INFO 42 rows" in shown and "WARNING no glyphs" in shown
        assert "glyf" not in shown
    assert "CRITICAL row 7\nTraceback" in text
    assert said.endswith("\nValueError: row 7 (traceback in folder/rule.log)\n")
    assert "Traceback" not in said


def test_a_full_gpu_is_said_in_a_sentence(tmp_path):
    said = said_of(FULL, tmp_path)
    assert "RuntimeError: The GPU's memory holds the model, but not what is computed" in said
    assert said.endswith("ALLOC_FAILED when calling x). (traceback in folder/rule.log)\n")


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
