"""Jobs run through any scheduler's submit command, which receives their resources."""

import json
import sys

import pytest
from own_study import write_study
from programs import python
from workflow_runs import ROOT

from persistcal.store import artifacts

# Records its arguments, and runs the job instead of queueing it.
SUBMIT = """
import json, subprocess, sys
*told, script = sys.argv[1:]
with open("told.jsonl", "a") as file:
    file.write(json.dumps(told) + "\\n")
done = subprocess.run(["sh", script], capture_output=True, text=True)
print("0")
"""
TOLD = "{rule} {threads} {resources.mem_mb} {resources.runtime} {resources.gpu}"


@pytest.mark.slow
def test_jobs_run_through_any_submit_command(tmp_path):
    folder = write_study(tmp_path / "own")
    (folder / "submit.py").write_text(SUBMIT)
    command = ["-m", "snakemake", "-s", ROOT / "Snakefile"]
    command += ["out/contrast_sets/m1/quiz.parquet", "--configfile", "config.yaml"]
    command += ["--executor", "cluster-generic", "--jobs", "1"]
    command += ["--seconds-between-status-checks", "1"]
    command += ["--cluster-generic-submit-cmd", f"{sys.executable} submit.py {TOLD}"]
    command += ["--default-resources", "mem_mb=4000", "runtime=60", "gpu=0"]
    python(*command, folder=folder)
    sets = artifacts.read(
        folder / "out" / "contrast_sets" / "m1" / "quiz.parquet", artifacts.CONTRAST_QUESTIONS
    )
    assert len(sets[["earlier", "later"]].drop_duplicates()) == 3  # pairs of three checkpoints
    told = [json.loads(line) for line in (folder / "told.jsonl").read_text().splitlines()]
    assert told[-1] == ["list_contrast_sets", "1", "4000", "60", "0"]
