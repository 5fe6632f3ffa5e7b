"""The study through sbatch, on a cluster that the test itself starts.

The same run contains all accidents of a job: a submitted job costs seconds and a time limit
a whole minute for any size of the study. Jobs without a test are run without the cluster.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import slurm_cluster
import torch
import yaml
from safetensors.torch import load_file
from workflow_runs import ATLAS, ROOT, snakemake

# The study, and the small run of any study that is laid over it
SMALL = [*ATLAS, ROOT / "tests" / "config" / "atlas_slurm.yaml", ROOT / "config" / "smoke.yaml"]
CHECKPOINTS = ["p10", "p20", "p30", "p40"]
TOO_LITTLE_MB = 100  # a job starts Snakemake, which needs more
# What the adapter needs, except for the labels of a checkpoint
TRAINED_ON = [
    f"results/smoke/{made}/atlas/train.parquet"
    for made in ("clusters/atlas/p30", "labels/atlas/p40")
]
ADAPTER = "results/smoke/adapters/atlas/atlas/oracle/p30+p40/seed17/adapter_model.safetensors"
TRAINING_LOG = "results/smoke/logs/train_adapters/atlas/atlas/oracle/p30+p40.log"


def clusters(checkpoint):
    return f"results/smoke/clusters/atlas/{checkpoint}/atlas/test.parquet"


def command(folder, *arguments, profile):
    """Snakemake's command line for the small study in `folder`."""
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")),
        *("--directory", str(folder), "--profile", str(profile)),
        *(*arguments, "--configfile", *map(str, SMALL)),
    ]


def finish(running, seconds):
    """Wait for Snakemake and return its output; the cluster cancels jobs that still run."""
    try:
        return running.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        running.kill()
        pytest.fail(f"not done in {seconds} s:\n{running.communicate()[0][-6000:]}")


def start(*words):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def submitted(rule, checkpoint="", state="all"):
    """Return the ids of a rule's jobs at a checkpoint, which the jobs' comments name."""
    rows = slurm_cluster.ask("squeue", f"--states={state}", "--noheader", "--format=%A %k")
    jobs = [row.split() for row in rows.splitlines()]
    return [job for job, name in jobs if f"rule_{rule}_" in name and checkpoint in name]


def requested_resources(job):
    """Return a job's submitted settings, under SLURM's names such as Partition."""
    words = slurm_cluster.ask("scontrol", "show", "job", job).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def wait_for(rule, checkpoint, state, running):
    """Return the id of a job of `rule` once it is in `state`, while Snakemake is running."""
    deadline = time.monotonic() + 900
    while not (jobs := submitted(rule, checkpoint, state)):
        assert running.poll() is None, running.communicate()[0][-6000:]
        assert time.monotonic() < deadline, f"{rule} of {checkpoint} never was in state {state}"
        time.sleep(0.3)
    return jobs[0]


@pytest.fixture(scope="module")
def cluster():
    if reason := slurm_cluster.why_not():
        pytest.skip(reason)
    with slurm_cluster.cluster(nodes=["node1", "node2"], memory_mb=400_000):
        yield


def write_profile(folder, **site):
    """Write the shipped profile with the site's lines, for a cluster without a database."""
    shipped = ROOT / "profiles" / "slurm"
    settings = yaml.safe_load((shipped / "profile.yaml").read_text())
    del settings["default-resources"]["slurm_account"]
    settings |= {
        "slurm-status-command": "squeue",
        # After a check that finds no ended job, the next check is 10 s later than the last.
        "slurm-init-seconds-before-status-checks": 2,
        "latency-wait": 10,
    }
    settings["config"] |= site
    (folder / "profile.yaml").write_text(yaml.safe_dump(settings))
    (folder / "partitions.yaml").write_text((shipped / "partitions.yaml").read_text())
    return folder


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    return write_profile(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def profile_of_small_nodes(tmp_path_factory):
    return write_profile(tmp_path_factory.mktemp("small_nodes"), gpus_per_node=1)


@pytest.fixture(scope="module")
def accident(cluster, profile, tmp_path_factory):
    """A run with an accident at three of four checkpoints.

    Returns the folder, Snakemake's output, and the ids of the jobs by checkpoint.
    """
    folder = tmp_path_factory.mktemp("accident")
    answers = [clusters(name).replace("clusters", "beams") for name in CHECKPOINTS]
    snakemake(folder, "--cores", "2", *answers, *TRAINED_ON, configs=SMALL)
    limits = [
        "cluster_answers:runtime=1 if wildcards.checkpoint == 'p20' else 60",
        f"cluster_answers:mem_mb={TOO_LITTLE_MB} if wildcards.checkpoint == 'p30' else 2000",
    ]
    running = start(
        *command(folder, *map(clusters, CHECKPOINTS), "--retries", "0", profile=profile),
        *("--set-resources", *limits),
    )
    jobs = {"p20": wait_for("cluster_answers", "p20", "running", running)}
    # The job hangs, as with a hanging file system.
    slurm_cluster.ask("scancel", "--signal=STOP", "--full", jobs["p20"])
    jobs["p10"] = wait_for("cluster_answers", "p10", "running", running)
    slurm_cluster.ask("scancel", jobs["p10"])
    for name in ("p30", "p40"):
        jobs[name] = wait_for("cluster_answers", name, "all", running)
    output = finish(running, 1500)
    assert running.returncode == 1
    return folder, output, jobs


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
    folder, output, jobs = accident
    assert f"SLURM-job '{jobs[checkpoint]}' failed, SLURM status is: '{status}'" in output
    log = next((folder / ".snakemake" / "slurm_logs").rglob(f"{jobs[checkpoint]}.log"))
    assert str(log) in output
    assert reason in log.read_text()
    assert not (folder / clusters(checkpoint)).exists()


def test_jobs_that_were_not_killed_finish(accident):
    folder, _, _ = accident
    assert (folder / clusters("p40")).exists()


@pytest.fixture(scope="module")
def rerun(accident, profile):
    """The folder after a second run, with too little memory for the first attempt at p30."""
    folder, _, _ = accident
    made_at = (folder / clusters("p40")).stat().st_mtime_ns
    running = start(
        *command(folder, ADAPTER, *map(clusters, CHECKPOINTS), profile=profile),
        "--set-resources",
        "cluster_answers:mem_mb="
        f"{TOO_LITTLE_MB} if wildcards.checkpoint == 'p30' and attempt == 1 else 2000",
    )
    output = finish(running, 1500)
    assert running.returncode == 0, output[-6000:]
    assert (folder / clusters("p40")).stat().st_mtime_ns == made_at
    return folder


def test_a_rerun_completes_the_killed_jobs_and_a_retry_asks_for_more_memory(rerun):
    assert all((rerun / clusters(name)).exists() for name in CHECKPOINTS)
    assert (rerun / ADAPTER).exists()
    memory = [
        requested_resources(job)["MinMemoryNode"]
        for job in submitted("cluster_answers", "p30_atlas_test")
    ]
    assert sorted(memory) == [f"{TOO_LITTLE_MB}M", f"{TOO_LITTLE_MB}M", "2000M"]


def test_jobs_go_to_the_partition_of_their_gpus_with_a_rank_for_each(rerun):
    assert (rerun / TRAINING_LOG).read_text().count("is one of 2, on ") == 2
    training = requested_resources(submitted("train_oracle")[0])
    assert (training["Partition"], training["TresPerJob"]) == ("gpu", "gres:gpu:2")
    judging = requested_resources(submitted("judge_answers")[0])
    assert (judging["Partition"], judging.get("TresPerJob")) == ("cpu", None)


def copy_without_adapters(rerun, to):
    adapters = shutil.ignore_patterns("adapters", "train_adapters", ".snakemake")
    return shutil.copytree(rerun, to / "study", ignore=adapters)


def test_ranks_on_several_nodes_train_the_same_adapter(rerun, profile_of_small_nodes, tmp_path):
    """Each of two checkpoints needs a GPU, and the profile has one GPU per node."""
    folder = copy_without_adapters(rerun, tmp_path)
    running = start(*command(folder, ADAPTER, profile=profile_of_small_nodes))
    output = finish(running, 600)
    assert running.returncode == 0, output[-6000:]
    log = (folder / TRAINING_LOG).read_text()
    for rank, node in enumerate(("node1", "node2")):
        assert f"rank {rank} INFO is one of 2, on {node}" in log
    weights, expected = load_file(folder / ADAPTER), load_file(rerun / ADAPTER)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)
    training = requested_resources(submitted("train_oracle")[-1])
    assert (training["NumNodes"], training["NumTasks"]) == ("2", "2")
    assert (training["Partition"], training["TresPerNode"]) == ("gpu", "gres:gpu:1")


def running_ranks():
    """Return the process ids of running ranks by the rank's number."""
    ranks = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command_line = (process / "cmdline").read_bytes()
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue
        numbers = [v.split(b"=")[1] for v in variables if v.startswith(b"SLURM_PROCID=")]
        if b"run_rank.py" in command_line and not command_line.startswith(b"srun") and numbers:
            ranks[int(numbers[0])] = int(process.name)
    return ranks


def test_a_rank_that_dies_on_another_node_ends_the_job(rerun, profile_of_small_nodes, tmp_path):
    folder = copy_without_adapters(rerun, tmp_path)
    (tmp_path / "long.yaml").write_text("training: {epochs: 100000}")
    words = command(folder, ADAPTER, "--retries", "0", profile=profile_of_small_nodes)
    running = start(*words, tmp_path / "long.yaml")
    log, deadline = folder / TRAINING_LOG, time.monotonic() + 900
    while not (log.exists() and log.read_text().count("Models run on") == 2):
        assert running.poll() is None, running.communicate()[0][-6000:]
        assert time.monotonic() < deadline, "training did not begin"
        time.sleep(0.5)
    assert set(running_ranks()) == {0, 1}
    os.kill(running_ranks()[1], signal.SIGKILL)
    output = finish(running, 600)
    assert running.returncode == 1
    assert "Error in rule train_oracle" in output
    assert TRAINING_LOG in output
    assert "node2: task 1: Killed; the others have been ended." in log.read_text()
    assert not running_ranks()
    assert not submitted("train_oracle", state="running")
    assert not (folder / ADAPTER).exists()
