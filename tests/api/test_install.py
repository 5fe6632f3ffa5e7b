"""What `pip install .` builds and installs: the library and its command, typed and whole."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def wheel_and_sdist(folder):
    """Build both as pip does, by the backend of pyproject.toml."""
    folder.mkdir()
    code = (
        "import sys, flit_core.buildapi as backend\n"
        "print(backend.build_wheel(sys.argv[1]), backend.build_sdist(sys.argv[1]))"
    )
    made = subprocess.check_output([sys.executable, "-c", code, folder], cwd=ROOT, text=True)
    return [folder / name for name in made.split()]


def needed(requirements):
    """Names of all distributions that the requirements ask for, as installed here."""
    found, waiting = set(), [Requirement(line) for line in requirements]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            assert one.specifier.contains(metadata.version(name)), one
            found.add(name)
            waiting += map(Requirement, metadata.requires(name) or [])
    return found


def bare_environment(folder, wheel):
    """A Python with a wheel and links to what its metadata ask for, and nothing else."""
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
        [about] = [name for name in packed.namelist() if name.endswith("/METADATA")]
        lines = packed.read(about).decode().splitlines()
    asked = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
    for name in needed([line for line in asked if "extra ==" not in line]):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or []} - {".."}:
            if not (site / top).exists() and top != "__pycache__":
                (site / top).symlink_to(distribution.locate_file(top))
    return folder / "bin" / "python"


@pytest.mark.slow
def test_the_command_runs_where_only_the_wheel_is_installed(tmp_path):
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
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}

    def run(code, *words):
        return subprocess.run(
            [python, "-c", code, *words],
            cwd=tmp_path,
            env={**environment, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    for absent in ("torch", "snakemake", "yaml", "study"):
        assert "ModuleNotFoundError" in run(f"import {absent}").stderr
    command = (
        "from importlib.metadata import entry_points as every\n"
        "[one] = every(group='console_scripts', name='persistcal'); one.load()()"
    )
    file = ROOT / "config/example_answers.csv"
    how = ("--min-contrast", "10", "--replicates", "200", "--out", "out")
    done = run(command, "compare", file, *how)
    assert done.returncode == 0, done.stderr
    assert "Self-consistency" in done.stdout and "Answers were grouped lexically" in done.stdout
    for made in ("metrics.csv", "significance.csv", "report/index.html"):
        assert (tmp_path / "out" / made).stat().st_size > 1000
