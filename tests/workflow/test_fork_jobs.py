"""Jobs forked from one Python: processes of their own that fail and are measured as ever."""

import subprocess
import sys

from workflow_runs import ROOT

SNAKEFILE = """
rule all:
    input: "a.txt", "b.txt"

rule report:
    output: "{name}.txt"
    benchmark: "{name}.tsv"
    threads: 2
    script: "report.py"
"""
REPORT = """
import os, sys
from pathlib import Path
print("torch" in sys.modules, os.getpid(), os.getppid(), os.environ["OMP_NUM_THREADS"],
      snakemake.threads, file=Path(snakemake.output[0]).open("w"))
"""
FAIL = """
import sys
sys.excepthook = lambda kind, error, trace: print(f"hooked: {error}", file=sys.stderr)
raise ValueError("no such city")
"""


def run(folder, script, snakefile=SNAKEFILE, cores=2):
    (folder / "Snakefile").write_text(snakefile)
    (folder / "report.py").write_text(script)
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "fork_jobs.py"), "--cores", str(cores)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_jobs_are_forks_of_one_python(tmp_path):
    done = run(tmp_path, REPORT)
    assert done.returncode == 0, done.stdout
    a, b = ((tmp_path / f"{name}.txt").read_text().split() for name in "ab")
    assert a[0] == b[0] == "True"
    assert a[1] != b[1]
    assert a[2] == b[2]
    assert a[3:] == b[3:] == ["2", "2"]
    header, measured = (tmp_path / "a.tsv").read_text().splitlines()
    assert header.startswith("s\th:m:s\tmax_rss")
    assert float(measured.split("\t")[0]) > 0


def test_a_job_that_ends_while_another_starts_has_not_failed(tmp_path):
    many = SNAKEFILE.replace('"a.txt", "b.txt"', 'expand("{n}.txt", n=range(20))')
    done = run(tmp_path, REPORT, many.replace("threads: 2", "threads: 1"), cores=4)
    assert done.returncode == 0, done.stdout[-3000:]


def test_failing_jobs_fail_the_run(tmp_path):
    """One by an exception, which the script's own hook reports, and one by its exit status."""
    fails = SNAKEFILE.replace("report.py", "{wildcards.name}.py").replace("a.txt", "raise.txt")
    (tmp_path / "raise.py").write_text(FAIL)
    (tmp_path / "b.py").write_text("import sys; sys.exit(3)")
    done = run(tmp_path, "", fails.replace("threads: 2", "threads: 1"))
    assert done.returncode == 1
    assert "hooked: no such city" in done.stdout
    for name in ("raise", "b"):
        assert f"{name}.py ended with exit status" in done.stdout
        assert not (tmp_path / f"{name}.txt").exists()
