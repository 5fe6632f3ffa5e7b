"""Jobs forked from one Python are separate processes; failures and benchmarks work."""

import pytest
from programs import python
from workflow_runs import ROOT

N_JOBS = 20
SNAKEFILE = f"""
rule all:
    input: expand("{{name}}.txt", name=[*range({N_JOBS}), "raises", "exits"])

rule report:
    output: "{{name}}.txt"
    wildcard_constraints: name="[0-9]+"
    benchmark: "{{name}}.tsv"
    threads: 2
    script: "report.py"

rule fail:
    output: "{{name}}.txt"
    wildcard_constraints: name="raises|exits"
    script: "{{wildcards.name}}.py"
"""
REPORT = """
import os, sys
from pathlib import Path
print("torch" in sys.modules, os.getpid(), os.getppid(), os.environ["OMP_NUM_THREADS"],
      snakemake.threads, file=Path(snakemake.output[0]).open("w"))
"""
RAISES = """
import sys
sys.excepthook = lambda kind, error, trace: print(f"hooked: {error}", file=sys.stderr)
raise ValueError("no such city")
"""


# Snakemake looks for a job late, as on a busy machine.
BUSY = """
import runpy, sys, time
from snakemake.benchmark import BenchmarkTimer
look = BenchmarkTimer.__init__
BenchmarkTimer.__init__ = lambda *arguments: time.sleep(0.3) or look(*arguments)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder after a run with short jobs, and Snakemake's output."""
    folder = tmp_path_factory.mktemp("run")
    scripts = {"report": REPORT, "raises": RAISES, "exits": "import sys; sys.exit(3)"}
    for name, text in {**scripts, "busy": BUSY}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "Snakefile").write_text(SNAKEFILE)
    words = ["busy.py", ROOT / "tools" / "fork_jobs.py", "--cores", "8", "--keep-going"]
    return folder, python(*words, folder=folder, status=1)


def test_jobs_are_forks_of_one_python(run):
    folder, _ = run
    lines = [(folder / f"{n}.txt").read_text().split() for n in range(N_JOBS)]
    has_torch, pids, parent, *threads = (set(column) for column in zip(*lines, strict=True))
    assert has_torch == {"True"}
    assert len(pids) == N_JOBS
    assert len(parent) == 1
    assert threads == [{"2"}, {"2"}]
    header, measured = (folder / "0.tsv").read_text().splitlines()
    assert header.startswith("s\th:m:s\tmax_rss")
    assert float(measured.split("\t")[0]) > 0


def test_failing_jobs_fail_the_run(run):
    """A job raises an exception, which the script's hook reports; another job exits with 3."""
    folder, output = run
    assert "hooked: no such city" in output
    for name in ("raises", "exits"):
        assert f"{name}.py ended with exit status" in output
        assert not (folder / f"{name}.txt").exists()


def test_jobs_that_end_at_once_or_while_others_start_have_not_failed(run):
    assert run[1].count("ended with exit status") == 2
