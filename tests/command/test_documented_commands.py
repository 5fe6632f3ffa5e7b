"""Commands and Python code of the guides run as shown and print the shown output."""

import doctest
import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from persistcal.api.command import app
from tools.docs_output import GUIDES, blocks, commands, guide_folder, is_printed, output_of

ROOT = Path(__file__).parents[2]
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in GUIDES if blocks(page, "console")])
def test_commands_print_what_the_guide_shows(page):
    with guide_folder():
        for code in blocks(page, "console"):
            for command, shown in commands(code):
                output = output_of(command)
                assert is_printed(shown, output), f"run `make docs-output`\n{output}"


def options_of(line):
    return [word.partition("=")[0] for word in line.split() if word.startswith("--")]


def test_the_guides_use_only_options_that_exist():
    known_commands = app.commands
    lines = [
        line.partition("persistcal ")[2].partition("  #")[0]
        for page in GUIDES
        for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
        if re.match(r"(\$ |`)?persistcal [a-z]", line)
    ]
    assert lines
    for line in lines:
        name, *_ = line.split()
        options = {option for p in known_commands[name.strip("`")].params for option in p.opts}
        assert {*options_of(line.replace("`", " "))} <= {*options, "--help"}, line


@pytest.mark.parametrize("page", [page for page in GUIDES if blocks(page, "python")])
def test_python_code_of_the_guide_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    (tmp_path / "config").symlink_to(ROOT / "config")
    for command, _ in (pair for code in blocks(page, "console") for pair in commands(code)):
        if not command.startswith("persistcal"):  # it writes a file that the code reads
            output_of(command)
    names = {}
    for code in blocks(page, "python"):
        if ">>> " not in code:
            exec(code, names)
            continue
        example = doctest.DocTestParser().get_doctest(code, names, page, page, 0)
        report = io.StringIO()
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(
            example, out=report.write, clear_globs=False
        )
        assert not result.failed, report.getvalue()
        names = example.globs


def test_the_guide_names_every_option_in_the_task_that_it_is_for():
    rows = re.findall(r"^\| [a-z][^|]*\| (`--[^|]*) \|", API, flags=re.MULTILINE)
    documented = {option for row in rows for option in re.findall(r"--[a-z-]+", row)}
    expected = {
        option
        for command in app.commands.values()
        for param in command.params
        for option in [*param.opts, *param.secondary_opts]
        if option.startswith("--")
    }
    assert documented == expected
