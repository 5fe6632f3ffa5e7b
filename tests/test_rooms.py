"""The architecture: the direction of imports, and the names of scripts and of tables."""

import ast
import importlib
import os
import re
from collections import Counter
from pathlib import Path

import pytest

import persistcal
from persistcal.report.catalogue import FIGURES, TABLES
from persistcal.store.code import imported_files
from persistcal.store.tables import Table
from tools import pages

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "persistcal"
MODULES = sorted(
    path
    for folder in (PACKAGE, ROOT / "atlas")
    for path in folder.rglob("*.py")
    if path.name != "__init__.py"
)
FOLDERS = "persistcal atlas study reproduce workflow tools tests benchmarks".split()
# From the ground up: a package imports from those before it.
ORDER = ["store", "questions", "server", "evaluation", "models", "answers", "judge"]
ORDER += ["confidence", "readers", "report", "training", "api"]
SCRIPTS = sorted([*ROOT.glob("workflow/scripts/*/*.py"), *ROOT.glob("reproduce/scripts/*.py")])


def imports(path):
    """Top-level packages that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def test_a_package_has_only_a_docstring_so_that_its_import_runs_nothing():
    for init in {*PACKAGE.glob("*/**/__init__.py"), *ROOT.glob("[ar]*/__init__.py")}:
        nodes = ast.parse(init.read_text(encoding="utf-8")).body
        assert [type(node) for node in nodes] == [ast.Expr], init


def test_only_notebooks_use_the_names_for_notebooks():
    """Digests of code do not follow these names, so jobs must import from packages."""
    flat = rf"\bpersistcal\.({'|'.join(persistcal.__all__)})\b|from persistcal import"
    for path in [*SCRIPTS, *MODULES]:
        if path.parent.name != "api":
            assert not re.search(flat, path.read_text(encoding="utf-8")), path


def test_a_class_has_its_name_alone_and_a_function_few_parameters():
    classes, crowded = Counter(), []
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    classes[node.name] += 1
                elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    if sum(name.arg not in ("self", "cls") for name in given) > 8:
                        crowded.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert not [name for name, n in classes.items() if n > 1]
    assert not crowded


def imported_modules(path):
    """Yield the files of our modules that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        files = (ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names)
        yield from (file for file in files if file.is_file())


def test_packages_import_downwards():
    upward = []
    for path in MODULES:
        room = path.relative_to(ROOT).parts[1]
        for imported in imported_modules(path):
            beneath = imported.relative_to(ROOT).parts
            if path.is_relative_to(PACKAGE) and path.parent != PACKAGE:
                if beneath[0] != "persistcal" or ORDER.index(beneath[1]) > ORDER.index(room):
                    upward.append(f"{path.relative_to(ROOT)} imports {'/'.join(beneath)}")
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == {*ORDER}
    assert not upward


def test_imports_inside_functions_are_seen(tmp_path):
    module = tmp_path / "lazy.py"
    module.write_text("def load():\n    from persistcal.store import files\n")
    assert [*imported_modules(module)] == [PACKAGE / "store/files.py"]


def test_no_modules_import_each_other_in_a_circle():
    graph = {path: set(imported_modules(path)) for path in MODULES}
    while free := [path for path, others in graph.items() if not others & set(graph)]:
        for path in free:
            del graph[path]
    assert not graph


def test_the_science_knows_neither_snakemake_nor_the_config():
    for path in MODULES:
        assert not {"snakemake", "study", "tools", "reproduce"} & set(imports(path)), path


def test_every_module_serves_a_script_a_notebook_or_the_command():
    """Registries find families of estimators, figures and tables, and rules use two modules."""
    entries = {*SCRIPTS, *PACKAGE.glob("confidence/estimators/*.py"), PACKAGE / "__main__.py"}
    entries |= set(PACKAGE.glob("api/[a-z]*.py"))
    entries |= {PACKAGE / "store" / "code.py", PACKAGE / "report" / "layout.py"}
    entries |= {PACKAGE / "report" / "catalogue.py", PACKAGE / "questions" / "catalogue.py"}
    modules = {view.function.split(".")[0] for view in (*FIGURES, *TABLES)}
    entries |= {PACKAGE / "report" / f"{module}.py" for module in modules}
    served = entries | {path for entry in entries for path in imported_files(entry, ROOT)}
    assert {path for path in MODULES if path not in served} == set()


def test_scripts_are_named_like_their_functions_and_rules():
    rules = "\n".join(path.read_text() for path in ROOT.glob("*/rules/*.smk"))
    for path in SCRIPTS:
        functions = [
            node.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef)
        ]
        assert path.stem in functions, path
        assert f"{path.parent.name}/{path.name}" in rules or path.stem == "run_rank", path


def test_the_page_of_columns_is_that_of_the_schemas():
    page = (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8")
    assert page == pages.outputs_page(), "run `make outputs`"
    tables = pages.all_tables()
    columns = {name for t in tables for name in (*t.file_columns, *t.schema.names)}
    assert pages.meanings_of("shared").keys() <= columns
    assert pages.MEANINGS.keys() <= {"shared", *(t.name for t in tables)}


def test_a_column_without_a_meaning_and_a_meaning_without_a_column_are_refused(monkeypatch):
    monkeypatch.setattr(pages, "MEANINGS", {"rooms": {"door": "a door"}})
    with pytest.raises(KeyError, match=r"'width' of table 'rooms' has no meaning.*outputs"):
        pages.rows_of(Table.parse("rooms from build", "door! width:real"))
    with pytest.raises(KeyError, match=r"explains 'door' of table 'rooms', which it does not"):
        pages.rows_of(Table.parse("rooms from build", ""))


def test_columns_with_one_meaning_in_several_tables_are_explained_once(monkeypatch):
    shared, of_halls = (
        {"door": "a door", "width": "in m"},
        {"door": "a gate", "house": "a house"},
    )
    monkeypatch.setattr(pages, "MEANINGS", {"shared": shared, "halls": of_halls})
    rooms = Table.parse("rooms from build", "door! width?:real")
    halls = Table.parse("halls from build or tool extend-it", "house@ door! width?:real")
    shared = pages.shared_rows([rooms, halls])
    assert shared == [("width", "real", "in m")]
    heading, _, columns, *lines = pages.lines_of(halls, shared)
    assert heading == "## `halls`"
    assert columns == "From `build` or `tool extend-it`. Shared: `width`?. Metadata: `house`."
    assert lines == ["", "- `house` (text): a house", "- **`door`** (text): a gate", ""]
    assert pages.as_list([("low", "real", "an end"), ("high", "int", "an end")]) == [
        "- low, high (real or int): an end",
        "",
    ]


def test_a_date_of_builds_that_is_no_number_is_ignored(monkeypatch):
    for text in ("abc", "", "-1", "1700000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
        importlib.reload(persistcal)
        assert os.environ.get("SOURCE_DATE_EPOCH", "") == (text if text.isdecimal() else "")
