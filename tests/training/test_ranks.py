"""Training over several processes: the same adapters, and failures that end all of them."""

import logging
import multiprocessing
import os
import shutil
import socket
import time
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch
from adapter_files import adapter_paths, training_job, write_checkpoints
from faulty_rank import faulty_rank
from safetensors.torch import load_file
from train_adapters import train_adapters

from persistcal.store import artifacts
from persistcal.store.jobs import Job
from persistcal.store.progress import Progress, read_trained
from persistcal.training import ranks
from persistcal.training.launch import _free_port, execute_on_ranks, launch

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPT = str(ROOT / "workflow/scripts/adapters/train_adapters.py")
NAMES = ["a", "b", "c"]
FORK = multiprocessing.get_context("fork")
NOT_FINITE = "Step 2: the loss or its gradient at checkpoint 'b' is not finite (questions q"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Make three checkpoints and the adapters that one process trains on them."""
    folder = tmp_path_factory.mktemp("study")
    write_checkpoints(folder, ["other"], layers=4)
    write_checkpoints(folder, NAMES)
    job = training_job(folder, NAMES, folder / "alone")
    execute_on_ranks(train_adapters, SCRIPT, job, n_ranks=1, timeout_min=10)
    return folder


def assert_same_training(folder, expected_folder):
    for path, other_path in zip(
        adapter_paths(folder), adapter_paths(expected_folder), strict=True
    ):
        weights, expected_weights = load_file(path), load_file(other_path)
        # Micro-batches of another size build other trees, with other rounding errors.
        torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-4)
        losses, other_losses = (
            artifacts.read(Path(p).with_name("training.parquet"), artifacts.TRAINING)["loss"]
            for p in (path, other_path)
        )
        assert losses.tolist() == pytest.approx(other_losses.tolist(), rel=1e-5)


def fork_ranks(n_ranks, log, function, *arguments, timeout_min=10):
    """Call `function` in forked ranks, which need not import torch again.

    Return the exit status of each rank; their log is the file `log`.
    """

    def run(rank, port):
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": n_ranks, "MASTER_PORT": port}
        os.environ |= {name: str(value) for name, value in numbers.items()}
        os.environ |= {"LOCAL_WORLD_SIZE": str(n_ranks), "MASTER_ADDR": "127.0.0.1"}
        form = f"rank {rank} %(message)s"
        logging.basicConfig(filename=log, level=logging.INFO, format=form, force=True)
        ranks.join(timeout_min)
        try:
            function(*(ranks.own_part(a) if isinstance(a, Job) else a for a in arguments))
        except Exception:
            logging.exception("stops")
            os._exit(1)
        ranks.leave()

    port = _free_port()
    processes = [FORK.Process(target=run, args=(rank, port)) for rank in range(n_ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def train_in_forks(n_ranks, study, output, names=NAMES, fault=""):
    """Return the exit status of each rank and the lines of their log."""
    log, job = output.with_suffix(".log"), training_job(study, names, output)
    statuses = fork_ranks(n_ranks, log, partial(faulty_rank, fault=fault), job)
    return statuses, log.read_text().splitlines()


def test_any_number_of_processes_trains_the_same_adapters(study):
    """This test has three processes; other tests have two."""
    output = study / "ranks3"
    assert train_in_forks(3, study, output)[0] == [0] * 3
    assert_same_training(study / "alone", output)
    weights = load_file(adapter_paths(output)[0])
    assert max(w.abs().max() for n, w in weights.items() if "lora_B" in n) > 1e-3
    assert not list(output.rglob("*.progress"))


def test_one_more_seed_trains_one_adapter_which_equals_that_of_all_at_once(study):
    shutil.copytree(study / "alone" / "seed17", study / "more" / "seed17")
    statuses, lines = train_in_forks(2, study, study / "more")
    assert statuses == [0, 0] and "1 of 2 adapters were there already" in lines[-1]
    assert not any("Seed 17" in line for line in lines)
    kept, expected = (
        [Path(path).read_bytes() for path in adapter_paths(study / name)]
        for name in ("more", "alone")
    )
    assert kept[0] == expected[0]
    assert_same_training(study / "alone", study / "more")


def test_adapters_of_other_inputs_or_with_changes_are_trained_again(study):
    """So are all adapters if none is missing."""
    shutil.copytree(study / "alone", study / "kept")
    jobs = [
        training_job(study, NAMES, study / "kept", [17, 18, 19], **changes)
        for changes in ({}, {"lr": 2e-3}, {"code": "edited"})
    ]
    first, second = ([*read_trained(job, made_from(job))] for job in jobs[1:])
    assert first == second == []
    assert [*read_trained(jobs[0], made_from(jobs[0]))] == [17, 18]
    Path(adapter_paths(study / "kept")[0]).with_name("adapter_config.json").write_text("{}")
    assert [*read_trained(jobs[0], made_from(jobs[0]))] == [18]
    complete = training_job(study, NAMES, study / "alone")
    assert read_trained(complete, made_from(complete)) == {}


def made_from(job):
    with Progress.of_job(job) as progress:
        return progress.key


def test_all_ranks_halve_the_micro_batch_if_one_runs_out_of_memory(study):
    statuses, lines = train_in_forks(2, study, study / "halved", fault="too large")
    assert statuses == [0, 0]
    # Rank 1 fails until it gets two questions of two candidates: 32 -> 16 -> 8 -> 4.
    for n in (16, 8, 4):
        ranks_told = [line[:6] for line in lines if f"going on with {n} candidates" in line]
        # Each of two seeds begins with the configured micro-batch.
        assert sorted(ranks_told) == ["rank 0"] * 2 + ["rank 1"] * 2
    assert_same_training(study / "alone", study / "halved")


@pytest.mark.parametrize(
    ("names", "fault", "message"),
    [
        (NAMES, "not finite", NOT_FINITE),
        (NAMES, "much too large", "A single training question does not fit"),
        (["a", "other"], "", "or on checkpoints of one architecture."),
    ],
)
def test_all_ranks_stop_with_the_same_message(names, fault, message, study, tmp_path):
    statuses, lines = train_in_forks(2, study, tmp_path / "to", names, fault)
    assert statuses == [1, 1]
    assert len([line for line in lines if message in line]) == 2


KILLED_RANK = """
import os, signal, sys, time
if os.environ["RANK"] == "1":
    with open(sys.argv[1], "w"):
        os.kill(os.getpid(), signal.SIGKILL)
if os.environ["RANK"] == "2":
    time.sleep(600)
open(sys.argv[1]).read()  # returns when rank 1 is dead
sys.exit(1)
"""


def test_a_killed_rank_ends_all_ranks(tmp_path):
    """Rank 0 fails because of the killed rank 1, and rank 2 would wait for ten minutes."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "rank.py").write_text(KILLED_RANK)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="rank 1 was ended by SIGKILL; the others have"):
        launch([str(tmp_path / "rank.py"), str(tmp_path / "pipe")], n_ranks=3)
    assert time.monotonic() - start < 120


def test_the_rule_trains_on_launched_ranks_and_logs_their_messages(study, caplog):
    caplog.set_level(logging.INFO)
    job = training_job(study, NAMES, study / "launched")
    execute_on_ranks(train_adapters, SCRIPT, job, n_ranks=2, timeout_min=10)
    assert_same_training(study / "alone", study / "launched")
    message = next(m for m in caplog.messages if m.startswith("rank 0 ") and "Seed 18" in m)
    assert "8 of 8 steps" in message  # 18 questions, 5 a step, 2 epochs


def test_ranks_end_with_the_process_that_launched_them(tmp_path):
    rank = tmp_path / "rank.py"
    rank.write_text(
        "import os, sys, time\nfrom pathlib import Path\n"
        "from persistcal.training import launch\n"
        "launch.end_with_parent()\n"
        "Path(sys.argv[1], os.environ['RANK']).write_text(str(os.getpid()))\ntime.sleep(60)\n"
    )
    program = [str(rank), str(tmp_path)]
    parent = FORK.Process(target=launch, args=(program,), kwargs={"n_ranks": 2})
    parent.start()
    written = [tmp_path / "0", tmp_path / "1"]
    wait_until(lambda: all(path.exists() and path.read_text() for path in written))
    parent.kill()
    parent.join()
    wait_until(lambda: not any(is_running(int(path.read_text())) for path in written))


def is_running(pid):
    try:  # a zombie has ended, but its parent has not collected it yet
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


FAKE_SRUN = """#!/bin/bash
# Two "nodes" on this machine: runs its command once for each task, as srun does.
echo "$@" > "$(dirname "$0")/called"
while [[ $1 == --* ]]; do [[ $1 == --ntasks=* ]] && n=${1#*=}; shift; done
for ((i = 0; i < n; i++)); do
  SLURM_PROCID=$i SLURM_NTASKS=$n SLURM_LOCALID=$((i % 2)) "$@" < /dev/stdin &
done
wait
"""


def put_srun(folder, monkeypatch, text=FAKE_SRUN):
    (folder / "srun").write_text(text)
    (folder / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_srun_spreads_ranks_over_nodes(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    put_srun(tmp_path, monkeypatch)
    monkeypatch.setattr(socket, "gethostname", lambda: "127.0.0.1")
    rank = tmp_path / "rank.py"
    rank.write_text(
        "import sys\nfrom persistcal.training import launch\n"
        "launch.end_with_parent()\nlaunch.read_srun()\n"
        "import torch\nfrom persistcal.training import ranks\n"
        "ranks.join(10)\nx = torch.tensor([10.0**ranks.index()])\nranks.sum_over_ranks([x])\n"
        "sys.stdout.write(f'sum {x.item()}\\n')\nranks.leave()\n"
    )
    launch([str(rank)], n_ranks=2, n_nodes=2)
    assert caplog.messages.count("sum 11.0") == 2
    called = (tmp_path / "called").read_text()
    for option in ("--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1"):
        assert option in called


PRINT_GPUS = """
import os, sys
if "RANK" not in os.environ:
    from persistcal.training import launch
    launch.read_srun()
    assert "torch" not in sys.modules
gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
os.write(1, f"rank {os.environ['RANK']} has {gpus}\\n".encode())  # at once: others write, too
"""


@pytest.mark.parametrize(
    ("n_gpus", "visible", "n_ranks", "n_nodes", "expected"),
    [
        (2, None, 2, 1, ["0", "1"]),
        (5, "3,5,7,8,9", 2, 1, ["3,5", "7,8"]),
        # The driver accepts names up to the first unknown one.
        (2, "GPU-a,GPU-b,none", 2, 1, ["GPU-a", "GPU-b"]),
        (0, None, 2, 1, ["None", "None"]),
        (0, "", 2, 1, ["", ""]),
        (4, "3,5,7,8", 4, 2, ["3,5", "7,8", "3,5", "7,8"]),
    ],
)
def test_each_rank_starts_with_separate_gpus(
    n_gpus, visible, n_ranks, n_nodes, expected, tmp_path, monkeypatch, caplog
):
    """The nodes are simulated by a fake srun, so each node has the same GPUs."""
    caplog.set_level(logging.INFO)
    put_srun(tmp_path, monkeypatch)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    (tmp_path / "rank.py").write_text(PRINT_GPUS)
    launch([str(tmp_path / "rank.py")], n_ranks=n_ranks, n_nodes=n_nodes)
    expected_lines = [f"rank {rank} has {gpus}" for rank, gpus in enumerate(expected)]
    assert sorted(line.rstrip() for line in caplog.messages) == [
        line.rstrip() for line in expected_lines
    ]


def test_the_reason_of_srun_for_a_killed_rank_is_reported(tmp_path, monkeypatch):
    script = "#!/bin/bash\necho 'srun: error: node2: task 1: Killed' >&2\n"
    script += "echo 'srun: error: node1: task 0: Terminated' >&2\nexit 143\n"
    put_srun(tmp_path, monkeypatch, script)
    with pytest.raises(RuntimeError, match=r"^node2: task 1: Killed; the others have been"):
        launch(["rank.py"], n_ranks=2, n_nodes=2)


def join_late():
    if ranks.index() == 1:
        time.sleep(4)
    ranks.sum_over_ranks([torch.ones(1)])


@pytest.mark.parametrize(
    ("timeout_min", "statuses"),
    [(0.05, [1, 1]), (1, [0, 0])],  # 3 s, and a minute
)
def test_ranks_wait_for_the_slowest_up_to_the_time_limit(timeout_min, statuses, tmp_path):
    log = tmp_path / "log"
    assert fork_ranks(2, log, join_late, timeout_min=timeout_min) == statuses
    if 1 in statuses:
        assert "rank 0 stops" in log.read_text()


@pytest.mark.parametrize(
    ("n_nodes", "message"),
    [
        (2, "3 ranks cannot be spread equally over 2 nodes"),
        (1, "3 ranks on one machine need as many GPUs, and there are 2"),
    ],
)
def test_more_ranks_than_nodes_or_gpus_allow_are_refused(n_nodes, message, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=message):
        launch(["program.py"], n_ranks=3, n_nodes=n_nodes)
