"""The digest of a script's code, which decides if a rule runs again."""

import os
from modulefinder import ModuleFinder
from pathlib import Path

import pytest

from persistcal.store import code as provenance
from persistcal.store.code import PACKAGES, code_digest, imported_files

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted([*ROOT.glob("workflow/scripts/*/*.py"), *ROOT.glob("reproduce/scripts/*.py")])

# Modules and their imports, in every form of the import statement.
MODULES = {
    **{"__init__": "", "deep": "X = 1", "near": "from persistcal.deep import X"},
    **{"lazy": "Y = 1", "other": "Z = 1", "room/__init__": ""},
    **{"room/by_name": "from . import beside", "room/beside": "from .below import V"},
    "room/below": "V = 1",
    "room/inner/__init__": "from persistcal.room.inner.listed import L",
    "room/inner/listed": "L = 1",
    "room/inner/upward": "from .. import cellar\nfrom ...attic import A",
    "room/cellar": "",
    "room/unused": "",
    "attic": "A = 1",
    "api/notebook": "N = 1",
    "dotted": "import persistcal.room.by_name as b",
    "tried": """
try:
    from persistcal.in_try import T
except ImportError:
    from persistcal.in_except import T
else:
    from persistcal.in_else import E
finally:
    from persistcal.in_finally import F
match T:
    case 1:
        from persistcal.in_case import C
""",
    **{f"in_{block}": "" for block in ("try", "except", "else", "finally", "case")},
}
STEP = """
\"\"\"Do it.\"\"\"
from persistcal import near
import persistcal.dotted
import persistcal.tried


def step() -> None:
    from persistcal.lazy import Y
    import persistcal.room.inner.upward
    print(Y, near.X)
"""
UNUSED = {"other", "room/unused"}


@pytest.fixture
def code(tmp_path):
    for name, text in MODULES.items():
        path = tmp_path / "persistcal" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    (tmp_path / "step.py").write_text(STEP)
    (tmp_path / "near_only.py").write_text("from persistcal.near import X\n")
    return tmp_path


def digest(code, script="step.py"):
    """Return the digest as a new process computes it."""
    for cached in (code_digest, provenance._read, provenance._files_of):
        cached.cache_clear()
    return code_digest(code / script, code)


@pytest.mark.parametrize("module", MODULES)
def test_an_edit_changes_the_digests_of_scripts_that_import_it_and_no_other(code, module):
    original, near_original = digest(code), digest(code, "near_only.py")
    path = code / "persistcal" / f"{module}.py"
    path.write_text(path.read_text() + "W = 2\n")
    assert (digest(code) != original) == (module not in UNUSED)
    assert (digest(code, "near_only.py") != near_original) == (module in {"near", "deep"})


def test_a_module_of_the_same_name_in_another_folder_changes_no_digest(code):
    original = digest(code)
    (code / "persistcal" / "room" / "deep.py").write_text("X = 2\n")
    assert digest(code) == original


def test_comments_layout_docstrings_and_times_change_no_digest(code):
    original = digest(code)
    path = code / "persistcal" / "deep.py"
    path.write_text('"""Deep."""\n\n# a reason\nX = (1)\n')
    os.utime(code / "step.py", (1, 1))
    assert digest(code) == original


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "persistcal" / "code"


def test_a_damaged_cache_of_digests_is_computed_again(code, cache):
    expected = digest(code)
    entries = {path: path.read_bytes() for path in cache.iterdir()}
    assert entries
    for path, content in entries.items():
        path.write_bytes(content.replace(b"0", b"1"))
    assert digest(code) == expected
    assert {path: path.read_bytes() for path in cache.iterdir()} == entries


def test_digests_are_read_from_the_cache(code, cache, monkeypatch):
    expected = digest(code)
    monkeypatch.setattr(provenance.ast, "dump", None)  # cannot be called
    assert digest(code) == expected


def test_digests_need_no_cache(code, monkeypatch):
    expected = digest(code)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert digest(code) == expected


def covering_scripts():
    """Return few scripts that together import all modules."""
    chosen, seen = [], set()
    for script in sorted(SCRIPTS, key=lambda path: -len(imported_files(path, ROOT))):
        if further := imported_files(script, ROOT) - seen:
            chosen.append(script)
            seen |= further
    return chosen


def test_imports_are_those_that_modulefinder_finds():
    """The standard library's modulefinder reads byte code, with imports inside functions."""
    folders = [ROOT / name for name in PACKAGES]
    for script in covering_scripts():
        # Neither the study's config nor the notebook API is part of a script's code.
        finder = ModuleFinder(path=[str(ROOT)], excludes=["study", "persistcal.api"])
        finder.run_script(str(script))
        modules = [m for m in finder.modules.values() if m.__name__ != "__main__"]
        files = {Path(module.__file__) for module in modules if module.__file__}
        expected = {path for path in files if any(map(path.is_relative_to, folders))}
        expected -= {ROOT / "persistcal" / "__init__.py"}
        assert expected
        assert imported_files(script, ROOT) == expected, script
