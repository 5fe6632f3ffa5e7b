"""Commands and Python code of the guides run as shown and print the shown output."""

import contextlib
import doctest
import io
import re
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from persistcal.api.command import app, main

ROOT = Path(__file__).parents[2]
PAGES = "api judge module reproduce thresholds tutorial your-data your-estimator your-models"
GUIDES = ["README.md", *(f"docs/{name}.md" for name in PAGES.split())]
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
BRACKETS = re.compile(r"\[[^]a-zA-Z]*\]")  # an interval, such as [.042, .343]
TOLERANCE = 0.1  # for ends of intervals, because 200 replicates replace 10,000


def blocks(page, wanted):
    """Return the code blocks of a language, except blocks that load a model."""
    code_blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [
        code for kind, code in code_blocks if kind == wanted and "persistcal.load(" not in code
    ]


def commands(code):
    """Return pairs of a command and the output shown below it."""
    parts = re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]
    return [part.replace("\\\n", " ").partition("\n")[::2] for part in parts]


def output_of(command):
    """Return the output of a command. `persistcal` runs in this process, fast."""
    words = command.split()
    if words[0] != "persistcal":
        return subprocess.check_output(command, shell=True, text=True)
    fast = ["--replicates", "200"] if words[1] in ("compare", "page") else []
    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.raises(SystemExit) as end:
        main([*words[1:], *fast])
    assert end.value.code in (0, 3, 4), command
    return output.getvalue()


def numbers(text):
    return [
        float(number) for group in BRACKETS.findall(text) for number in group[1:-1].split(",")
    ]


def check_output(shown, output):
    """Compare text exactly and intervals approximately. A line … omits any number of lines."""
    for part in re.split(r"^…\n", shown, flags=re.MULTILINE):
        expected = " ".join(BRACKETS.sub("[]", part).split())
        printed = " ".join(BRACKETS.sub("[]", output).split())
        assert expected in printed, f"{expected}\n--- is not in ---\n{output}"
        n_before = printed[: printed.index(expected)].count("[]")
        ends = numbers(part)
        assert ends == pytest.approx(
            numbers(output)[2 * n_before :][: len(ends)], abs=TOLERANCE
        )


@pytest.mark.parametrize("page", [page for page in GUIDES if blocks(page, "console")])
def test_commands_print_what_the_guide_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(ROOT / "config")
    for code in blocks(page, "console"):
        for command, shown in commands(code):
            check_output(shown, output_of(command))


def test_the_comparison_with_the_guides_notices_changed_numbers_and_text():
    check_output("a .5\n…\nAUC .50 [.40, .60]\n", "a .5\nb\nAUC .50 [.42, .58] c\n")
    for output in (
        "a .5 AUC .51 [.42, .58]",
        "a .5 AUC .50 [.10, .58]",
        "b AUC .50 [.42, .58]",
    ):
        with pytest.raises(AssertionError):
            check_output("a .5\n…\nAUC .50 [.40, .60]\n", output)


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
