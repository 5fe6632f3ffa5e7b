"""A study of a user's predictions: the smallest study that runs through Snakemake."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warm_python
import workflow_runs
import yaml
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.store.files import sha256

ROOT = Path(__file__).parents[2]
FAST = {"replicates": 200, "conditioning": ["odds"]}
CONFIG = {
    "results": "out",
    "models": {"m1": {"label": "Model 1", "evaluation": CHECKPOINTS}},
    "datasets": {"quiz": {"label": "Quiz", "min_contrast": 5}},
    "study": {
        "predictions": "predictions.csv",
        "models": ["m1"],
        "datasets": ["quiz"],
        "tables": ["all_estimators"],
    },
    "evaluation": FAST,
}


def write_study(folder, predictions="predictions.csv", rename=None, results="out"):
    """Write config and predictions; `rename` gives columns other values."""
    rows = make_predictions(n=60).query("seed < 18")  # one seed of each estimator
    rows = rows.assign(model="m1", dataset="quiz", train_dataset="quiz")
    for column, change in (rename or {}).items():
        rows[column] = rows[column].map(change)
    folder.mkdir(exist_ok=True)
    rows.astype({"correct": int}).to_csv(folder / predictions, index=False)
    study = {**CONFIG["study"], "predictions": predictions}
    config = {**CONFIG, "study": study, "results": results}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def lexical_study(folder, models, estimators, /, datasets=None, study=None, **further):
    """Write the config of a study that groups and judges answers by their words."""
    datasets = {"quiz": {}} if datasets is None else datasets
    chosen = {"models": [*models], "datasets": [*datasets], "estimators": estimators}
    config = {
        "results": "out",
        "models": models,
        "datasets": {name: {"min_contrast": 1, **entry} for name, entry in datasets.items()},
        "equivalence": {"backend": "lexical"},
        "judge": {"backend": "lexical"},
        "evaluation": FAST,
        "study": {**chosen, **(study or {})},
        **further,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(config))
    return [folder / "study.yaml"]


class ColdProcess(subprocess.Popen):
    """A process with the interface of `Fork`."""

    def join(self, timeout=None):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(timeout)


@contextlib.contextmanager
def started(folder, *targets, cores=2, prefix=()):
    """Start Snakemake in a new process group, and kill it at the end if it still runs.

    `prefix` is a command that starts Snakemake in a new Python, which takes longer.
    """
    words = ["--snakefile", ROOT / "Snakefile", "--directory", folder]
    words += ["--profile", ROOT / "profiles" / "laptop"]
    words += ["--cores", cores, *targets, "--configfile", folder / "config.yaml"]
    log = folder / "run.log"
    log.unlink(missing_ok=True)
    log.touch()
    if prefix:
        with log.open("w") as file:
            process = ColdProcess(
                [*prefix, sys.executable, "-m", "snakemake", *map(str, words)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
    else:
        process = warm_python.start("snakemake", words, [log, log])
    try:
        yield process
    finally:
        warm_python.kill(process)


def run(folder, *targets, cores=2, timeout=300):
    """Run Snakemake to the end; return the exit status and the output."""
    configs = [folder / "config.yaml"]
    done = workflow_runs.run(
        folder, "--cores", cores, *targets, configs=configs, timeout=timeout
    )
    return done.returncode, done.stdout


def digests(results):
    """Return a digest for each file of results, without logs, which contain times.

    The record `study.yaml` counts without its comments, the times and commands of runs.
    """
    found = {
        str(path.relative_to(results)): sha256(path)
        for path in sorted(results.rglob("*"))
        if path.is_file() and path.relative_to(results).parts[0] != "logs"
    }
    if "study.yaml" in found:
        lines = (results / "study.yaml").read_text().splitlines()
        found["study.yaml"] = "\n".join(line for line in lines if not line.startswith("# "))
    return found


@contextlib.contextmanager
def mounted(folder, options):
    """Mount a new file system at `folder`; only root can."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
