"""`pip install .`: the library alone, typed and whole, from a folder elsewhere."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_library_is_installed_with_all_that_it_reads(tmp_path):
    source, site = tmp_path / "source", tmp_path / "site"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "persistcal", source / "persistcal", ignore=ignored)
    for name in ("study", "tools"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    there = {path.name for path in source.iterdir()}
    install = f"{sys.executable} -m pip install -q --no-deps --no-build-isolation --target"
    subprocess.run([*install.split(), str(site), str(source)], check=True)
    assert {path.name for path in source.iterdir()} == there  # no build/ is left behind
    files = {str(p.relative_to(site)) for p in site.rglob("*")}
    expected = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "persistcal").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert expected <= files and "persistcal/py.typed" in expected
    assert not any(name.startswith(("study/", "tools/")) for name in files)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "import persistcal; persistcal.evaluate\n"
        f"assert persistcal.__file__.startswith({str(site)!r})\n"
        "from persistcal.report.page.render import _ASSETS\n"
        "assert 'page.html' in _ASSETS.list_templates()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
