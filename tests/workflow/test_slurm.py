"""The study through sbatch, on a cluster that the test itself starts.

All that can happen to a job happens in one run: a submitted job costs seconds and
a time limit a whole minute, whatever the size of the study.
"""

import subprocess
import sys
import time

import pytest
import slurm_cluster
import yaml
from workflow_runs import ATLAS, ROOT, snakemake

SMALL = [*ATLAS, ROOT / "tests" / "config" / "atlas_slurm.yaml"]
CHECKPOINTS = ["p10", "p20", "p30", "p40"]
TOO_LITTLE_MB = 400  # for Snakemake enough, for torch not
TABLE = "out/tables/oracle_vs_methods.tex"


def clusters(checkpoint):
    return f"out/clusters/atlas/{checkpoint}/atlas.parquet"


def command(folder, *arguments, profile):
    """Snakemake's command line for the small study in `folder`."""
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")),
        *("--directory", str(folder), "--profile", str(profile)),
        *(*arguments, "--configfile", *map(str, SMALL)),
    ]


def finish(running, seconds):
    """Wait for Snakemake; what it leaves running is cancelled with the cluster."""
    try:
        return running.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        running.kill()
        pytest.fail(f"not done in {seconds} s:\n{running.communicate()[0][-6000:]}")


def start(*words):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def submitted(rule, checkpoint="", state="all"):
    """Ids of the submitted jobs of a rule at a checkpoint, which the jobs' comments name."""
    rows = slurm_cluster.ask("squeue", f"--states={state}", "--noheader", "--format=%A %k")
    jobs = [row.split() for row in rows.splitlines()]
    return [job for job, what in jobs if f"rule_{rule}_" in what and checkpoint in what]


def asked_for(job):
    """What a job was submitted with, under SLURM's names such as Partition."""
    words = slurm_cluster.ask("scontrol", "show", "job", job).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def wait_for(rule, checkpoint, state):
    """Return the id of a job of `rule` as soon as it is in `state`."""
    deadline = time.monotonic() + 120
    while not (jobs := submitted(rule, checkpoint, state)):
        assert time.monotonic() < deadline, f"{rule} of {checkpoint} never was in state {state}"
        time.sleep(0.3)
    return jobs[0]


@pytest.fixture(scope="module")
def cluster():
    if reason := slurm_cluster.why_not():
        pytest.skip(reason)
    with slurm_cluster.cluster():
        yield


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """The shipped profile with the site's lines and what a cluster without a database needs."""
    shipped = ROOT / "profiles" / "slurm"
    settings = yaml.safe_load((shipped / "profile.yaml").read_text())
    del settings["default-resources"]["slurm_account"]
    settings |= {
        "slurm-status-command": "squeue",
        "slurm-init-seconds-before-status-checks": 6,
        "latency-wait": 10,
    }
    folder = tmp_path_factory.mktemp("profile")
    (folder / "profile.yaml").write_text(yaml.safe_dump(settings))
    (folder / "partitions.yaml").write_text((shipped / "partitions.yaml").read_text())
    return folder


@pytest.fixture(scope="module")
def accident(cluster, profile, tmp_path_factory):
    """A study whose answers to four checkpoints met with every kind of accident but one.

    Returns its folder, what Snakemake said and the ids of the jobs by checkpoint.
    """
    folder = tmp_path_factory.mktemp("accident")
    snakemake(folder, "--cores", "2", "out/checkpoints/atlas/p40.json", configs=SMALL)
    limits = [
        "generate_beams:runtime=1 if wildcards.checkpoint == 'p20' else 60",
        f"generate_beams:mem_mb={TOO_LITTLE_MB} if wildcards.checkpoint == 'p30' else 2000",
    ]
    running = start(
        *command(folder, *map(clusters, CHECKPOINTS), "--retries", "0", profile=profile),
        *("--set-resources", *limits),
    )
    jobs = {name: wait_for("generate_beams", name, "running") for name in ("p10", "p20")}
    slurm_cluster.ask("scancel", jobs["p10"])
    # It hangs, as when a file system does.
    slurm_cluster.ask("scancel", "--signal=STOP", "--full", jobs["p20"])
    jobs |= {name: wait_for("generate_beams", name, "all") for name in ("p30", "p40")}
    said = finish(running, 600)
    assert running.returncode == 1
    return folder, said, jobs


@pytest.mark.parametrize(
    ("checkpoint", "status", "reason"),
    [
        ("p10", "CANCELLED", "CANCELLED AT"),
        ("p20", "TIMEOUT", "DUE TO TIME LIMIT"),
        # OUT_OF_MEMORY where the cluster uses cgroups.
        ("p30", "FAILED", "exceeded memory limit"),
    ],
)
def test_a_killed_job_is_named_with_the_reason(accident, checkpoint, status, reason):
    folder, said, jobs = accident
    assert f"SLURM-job '{jobs[checkpoint]}' failed, SLURM status is: '{status}'" in said
    log = next((folder / ".snakemake" / "slurm_logs").rglob(f"{jobs[checkpoint]}.log"))
    assert str(log) in said
    assert reason in log.read_text()
    assert not (folder / "out" / "beams" / "atlas" / checkpoint / "atlas.parquet").exists()


def test_what_was_not_killed_goes_on(accident):
    folder, _, _ = accident
    assert (folder / clusters("p40")).exists()


def test_a_rerun_completes_the_study(accident, profile):
    """Too little memory once more: the second attempt asks for more."""
    folder, _, _ = accident
    kept = folder / clusters("p40")
    before = kept.stat().st_mtime_ns
    running = start(
        *command(folder, TABLE, profile=profile),
        "--set-resources",
        "generate_beams:mem_mb="
        f"{TOO_LITTLE_MB} if wildcards.checkpoint == 'p30' and attempt == 1 else 2000",
    )
    said = finish(running, 600)
    assert running.returncode == 0, said[-6000:]
    assert "Oracle training" in (folder / TABLE).read_text()
    assert kept.stat().st_mtime_ns == before
    memory = [asked_for(job)["MinMemoryNode"] for job in submitted("generate_beams", "p30")]
    assert sorted(memory) == ["2000M", f"{TOO_LITTLE_MB}M", f"{TOO_LITTLE_MB}M"]
    trained = asked_for(submitted("train_oracle")[0])
    assert (trained["Partition"], trained["TresPerJob"]) == ("gpu", "gres:gpu:2")
    evaluated = asked_for(submitted("compute_metrics")[0])
    assert (evaluated["Partition"], evaluated.get("TresPerJob")) == ("cpu", None)
