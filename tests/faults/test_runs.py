"""Whole runs at their worst: killed, without a disk to write to, two at once, odd names."""

import json
import os
import random
import shutil
import signal
import time

import pytest
from own_study import digests, lexical_study, mounted, remount, run, started, write_study
from soak_budget import count, rounds
from workflow_runs import snakemake

from persistcal.store import artifacts

pytestmark = pytest.mark.slow

METRICS = "out/metrics.csv"  # four jobs; two of them read and write tables


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A study with the metrics of an undisturbed run, and the run's duration."""
    folder = write_study(tmp_path_factory.mktemp("undisturbed") / "study")
    begin = time.monotonic()
    status, output = run(folder, METRICS)
    assert status == 0, output[-3000:]
    return folder, time.monotonic() - begin


@pytest.fixture(scope="module")
def expected(undisturbed):
    return digests(undisturbed[0] / "out")


def rerun(folder, *, killed=False):
    """Run again like a user, who first frees the lock of a run that was killed."""
    if killed:
        run(folder, METRICS, "--unlock")
    status, output = run(folder, METRICS)
    assert status == 0, output[-3000:]
    return digests(folder / "out")


# Killed ------------------------------------------------------------------------------


def test_a_run_killed_between_its_jobs_goes_on_to_the_same_bytes(expected, tmp_path):
    folder = write_study(tmp_path / "study")
    with started(folder, METRICS) as process:
        deadline = time.monotonic() + 600
        while not (folder / "out/predictions").exists() and time.monotonic() < deadline:
            assert process.join(0) is None
            time.sleep(0.01)
    assert not (folder / METRICS).exists()
    assert rerun(folder, killed=True) == expected


@pytest.mark.soak
def test_a_run_killed_at_random_goes_on_to_the_same_bytes(undisturbed, expected, tmp_path):
    """Each study is killed up to three times, at moments drawn from a seed."""
    _, duration = undisturbed
    draw = random.Random(17)
    for number in rounds("studies of killed runs", share=0.6):
        folder = write_study(tmp_path / f"study{number}")
        for _ in range(draw.randint(1, 3)):
            with started(folder, METRICS) as process:
                time.sleep(draw.uniform(0.05, 1) * duration)
                count("kills that met a run", process.join(0) is None)
            run(folder, METRICS, "--unlock")
        assert rerun(folder) == expected


@pytest.mark.soak
def test_the_whole_study_is_the_same_bytes_each_time(tmp_path):
    """Tables, figures and the page, with one core and with two."""
    folders = [write_study(tmp_path / name) for name in ("one", "two")]
    for cores, folder in enumerate(folders, start=1):
        status, output = run(folder, cores=cores)
        assert status == 0, output[-3000:]
    first, second = (digests(folder / "out") for folder in folders)
    page = "report/index.html"  # contains its date and the durations of jobs
    assert first.pop(page) and second.pop(page)
    assert first == second
    assert "figures/full_vs_contrast.png" in first
    pages = [(folder / "out" / page).read_text().splitlines() for folder in folders]
    changed = [a for a, b in zip(*pages, strict=True) if a != b]
    assert all("<dt>Page made</dt>" in a or 'data-v="evaluate_estimator"' in a for a in changed)
    count("files of a whole study compared", len(first) + 1)


# No disk to write to --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "remedy", "message"),
    [
        ("size=16k", "size=50m", "No space left on device"),
        ("ro", "rw", "Read-only file system"),
    ],
)
def test_a_disk_that_cannot_be_written_stops_with_its_name_and_another_goes_on(
    expected, tmp_path, options, remedy, message
):
    folder = write_study(tmp_path / "study")
    with mounted(folder / "out", options):
        status, output = run(folder, METRICS)
        assert status != 0 and message in output
        assert not (folder / METRICS).exists()
        remount(folder / "out", remedy)
        assert rerun(folder) == expected
        remount(folder / "out", "ro")
        status, output = run(folder, METRICS)
        assert status == 0 and "Nothing to be done" in output


def test_a_folder_of_another_user_is_refused_in_a_sentence(tmp_path):
    """Root without its privileges over files is a user without write permission."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can become another user, with setpriv")
    folder = write_study(tmp_path / "study")
    for path in (folder, *folder.iterdir()):
        os.chown(path, 12345, 12345)
    unprivileged = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    with started(folder, METRICS, prefix=unprivileged) as process:
        assert process.join(120) == 1
    output = (folder / "run.log").read_text()
    assert "study cannot be written by this user" in output and "Traceback" not in output
    assert not (folder / "out").exists()


# A clock that jumps ---------------------------------------------------------------------


@pytest.mark.parametrize(("jump", "stopped"), [("-2d", "first"), ("+2d", "second")])
def test_a_clock_that_jumps_is_noticed_and_changes_no_byte(expected, tmp_path, jump, stopped):
    """Snakemake refuses an output that is older than its input, which is a sign of this."""
    if not shutil.which("faketime"):
        pytest.skip("there is no faketime: make test-packages installs it (Debian)")
    folder = write_study(tmp_path / "study")
    with started(folder, METRICS, prefix=["faketime", "-f", jump]) as first:
        status = first.join(300)
    output = (folder / "run.log").read_text()
    if stopped == "second":
        assert status == 0, output[-3000:]
        (folder / METRICS).unlink()
        status, output = run(folder, METRICS)
    assert status == 1 and "could indicate a clock skew problem" in output
    for path in folder.rglob("*"):  # files must not be dated in the future
        os.utime(path)
    assert rerun(folder) == expected


# Two at once ----------------------------------------------------------------------------


def test_a_second_run_of_the_same_study_refuses_and_leaves_the_first_alone(expected, tmp_path):
    folder = write_study(tmp_path / "study")
    with started(folder, METRICS) as first:
        deadline = time.monotonic() + 600
        lock = folder / ".snakemake/locks/0.output.lock"
        while not (lock.exists() and lock.read_text()) and time.monotonic() < deadline:
            assert first.join(0) is None
            time.sleep(0.01)
        assert lock.read_text()
        os.killpg(first.pid, signal.SIGSTOP)  # it keeps its lock
        (folder / "run.log").rename(folder / "first.log")
        status, output = run(folder, METRICS)
        assert status != 0
        assert "Directory cannot be locked" in output
        os.killpg(first.pid, signal.SIGCONT)
        assert first.join(300) == 0, (folder / "first.log").read_text()[-3000:]
    assert digests(folder / "out") == expected


# Hostile names --------------------------------------------------------------------------

ODD = """a "b" 'c' $HOME `id` ü & ; #,"""


def test_odd_names_of_files_and_in_files_are_taken_as_they_are(tmp_path):
    names = {
        "estimator": lambda name: f"{name} {{x}} {ODD}",
        "question_id": lambda i: f"{{}}{ODD}{i}",
    }
    folder = write_study(tmp_path / "the study's $HOME {ü}", f"my {ODD}.csv", rename=names)
    status, output = run(folder, "out/tables/all_estimators.tex", METRICS)
    assert status == 0, output[-3000:]
    metrics = artifacts.read_csv(folder / METRICS, artifacts.METRICS)
    assert set(metrics["estimator"]) == {
        names["estimator"](name) for name in ("learnt", "own", "coarse", "end_correct")
    }


QUESTION = "Where is {x} of $HOME, `id`, %s and ü?"


def test_odd_names_of_a_question_file_and_in_it(tmp_path):
    name = f"my {ODD}.jsonl"
    splits = ["few_shot", "test", "test"]
    rows = [
        {"question": f"{QUESTION} {i}", "answers": ["{A}"], "split": split}
        for i, split in enumerate(splits)
    ]
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    checkpoints = {c: {"revision": c} for c in ("early", "late")}
    mine = {"repo": "mine", "checkpoints": checkpoints, "evaluation": ["early", "late"]}
    quiz = {"quiz": {"source": "file", "file": name}}
    prompts = {"few_shot": 1}
    configs = lexical_study(tmp_path, {"mine": mine}, ["end_correct"], quiz, prompts=prompts)
    snakemake(tmp_path, "-c1", "out/questions/quiz.parquet", configs=configs)
    table = artifacts.read(tmp_path / "out/questions/quiz.parquet", artifacts.QUESTIONS)
    assert sorted(table["question"]) == [row["question"] for row in rows]
