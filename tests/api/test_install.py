"""The wheel contains the whole library and its command, and needs no more than it lists."""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pandas as pd
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def wheel_and_sdist(folder):
    """Build both with the backend of pyproject.toml, like pip."""
    folder.mkdir()
    code = (
        "import sys, flit_core.buildapi as backend\n"
        "print(backend.build_wheel(sys.argv[1]), backend.build_sdist(sys.argv[1]))"
    )
    made = subprocess.check_output([sys.executable, "-c", code, folder], cwd=ROOT, text=True)
    return [folder / name for name in made.split()]


def required_distributions(requirements):
    """Return the names of all distributions that the requirements install."""
    names, waiting = set(), [Requirement(line) for line in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in names and (
            requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ):
            assert requirement.specifier.contains(metadata.version(name)), requirement
            names.add(name)
            waiting += map(Requirement, metadata.requires(name) or [])
    return names


def bare_environment(folder, wheel):
    """Return a Python with only the wheel and links to its dependencies."""
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
        [metadata_name] = [name for name in packed.namelist() if name.endswith("/METADATA")]
        lines = packed.read(metadata_name).decode().splitlines()
    asked = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
    for name in required_distributions([line for line in asked if "extra ==" not in line]):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or []} - {".."}:
            if not (site / top).exists() and top != "__pycache__":
                (site / top).symlink_to(distribution.locate_file(top))
    return folder / "bin" / "python"


# The bare Python runs commands on each kind of file, and each public name.
BARE_RUN = """
import contextlib, importlib.util, inspect, io, json, sys

absent = ["torch", "transformers", "snakemake", "openai", "httpx2", "study"]
found = [name for name in absent if importlib.util.find_spec(name)]

from importlib.metadata import entry_points
[entry] = entry_points(group="console_scripts", name="persistcal")
command = entry.load()

def end_of(words):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            code = command(words)
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            code = repr(error)
    return [code, output.getvalue()]

import persistcal
from persistcal import *
calls = {
    "load": lambda: persistcal.load("."),
    "generate_beams": lambda: persistcal.generate_beams(None, {}, []),
    "score_answers": lambda: persistcal.score_answers(None, None, prompt=""),
    "train_adapter": lambda: persistcal.train_adapter({}, None, "out", prompt=""),
}
errors = {}
for name in persistcal.__all__:
    assert inspect.getdoc(getattr(persistcal, name)), name
    try:
        calls.get(name, lambda: None)()
    except ImportError as error:
        errors[name] = str(error)
ends = [[words, *end_of(words)] for words in json.load(sys.stdin)]
json.dump([found, errors, ends], sys.stdout)
"""


def shipped_files(folder):
    """Return a list of files for each kind of file that the repository contains."""
    answers = ROOT / "config/example_answers.csv"
    stated = folder / "stated.csv"
    rows = pd.read_csv(answers).query("checkpoint != 'middle'")
    rows["confidence"] = [round(0.05 + n % 19 / 20, 2) for n in range(len(rows))]
    rows.to_csv(stated, index=False)
    logs = ROOT / "tests/imports"
    return {
        "predictions": [ROOT / "config/example_predictions.csv"],
        "answers": [answers],
        "stated confidences": [stated],
        "scored options": [logs / f"lm_eval_choice_{n}.jsonl" for n in (1, 2)],
    }


@pytest.mark.slow
def test_every_command_and_public_name_works_with_only_the_wheel_installed(tmp_path):
    wheel, sdist = wheel_and_sdist(tmp_path / "dist")
    assert not (ROOT / "build").exists()
    expected = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "persistcal").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert expected <= names and "persistcal/py.typed" in expected
    assert not any(name.startswith(("study/", "tools/")) for name in names)
    with tarfile.open(sdist) as packed:
        assert any(name.endswith("/persistcal/api/command.py") for name in packed.getnames())

    python = bare_environment(tmp_path / "bare", wheel)
    fewest, fast = ["--min-contrast", "1"], ["--replicates", "200"]
    words = [["plan", "--questions", "1000"]]
    # Each kind of file has one of the commands that take seconds.
    commands = {"predictions": "compare", "answers": "page", "stated confidences": "compare"}
    commands["scored options"] = "threshold"
    for kind, files in shipped_files(tmp_path).items():
        options = ["--precision", "0.5"] if commands[kind] == "threshold" else fewest
        output = ["--out", f"{kind} {commands[kind]}"]
        words += [
            [commands[kind], *map(str, files), *options, *fast, *output],
            ["metrics", *map(str, files), *fewest],
        ]
    curve = ["label-curve", tmp_path / "stated.csv", "--estimator", "stated", "--out", "curve"]
    words.append([*map(str, curve), "--precision", "0.5"])
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    done = subprocess.run(
        [python, "-c", BARE_RUN],
        cwd=tmp_path,
        env={**environment, "OMP_NUM_THREADS": "1"},
        input=json.dumps(words),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    present, errors, ends = json.loads(done.stdout)
    assert not present
    assert set(errors) == {"load", "generate_beams", "score_answers", "train_adapter"}
    assert all("install the extra models" in message for message in errors.values())
    assert [end for end in ends if end[1] != 0] == []
    outputs = {" ".join(Path(word).name for word in given): text for given, _, text in ends}
    [text] = [text for given, text in outputs.items() if given.startswith("compare stated")]
    assert "Self-consistency" in text and "Answers were grouped lexically" in text
    for output in ("metrics.csv", "significance.csv", "report/index.html"):
        assert (tmp_path / "stated confidences compare" / output).stat().st_size > 1000
