"""The size of the project: numbers that can only fall.

A change that needs more lines pays with as many elsewhere, or raises a number here, where a
reader of the change sees it. A number that has fallen is entered.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("persistcal", "atlas", "study", "workflow", "tools")
LINES = {PRODUCT: 47_080, (*PRODUCT, "reproduce"): 50_290, ("tests",): 40_150}
FUNCTIONS, MODULES, SHARE = 560, 60, 0.98
ENTER = """
import cProfile, sys
from persistcal.api.command import app
profile = cProfile.Profile()
try:
    profile.runcall(app, sys.argv[1:], standalone_mode=False)
except SystemExit:
    pass
for entry in profile.getstats():
    code = entry.code
    is_function = not isinstance(code, str) and code.co_flags & 1 and code.co_name[0] != "<"
    if is_function and "/persistcal/" in code.co_filename:
        print(code.co_filename, code.co_qualname, entry.callcount)
"""


@pytest.mark.parametrize("folders", LINES, ids=", ".join)
def test_lines_of_code_only_fall(folders):
    files = subprocess.check_output(["git", "ls-files", *folders], cwd=ROOT, text=True).split()
    code = [ROOT / file for file in files if file.endswith((".py", ".smk"))]
    n_lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in code)
    assert SHARE * LINES[folders] < n_lines <= LINES[folders]


def test_the_readmes_comparison_enters_few_functions_and_aligns_once(tmp_path):
    words = ["compare", "config/example_predictions.csv", "--min-contrast", "50"]
    words += ["--precision", "0.8", "--replicates", "200", "--out", str(tmp_path)]
    command = [sys.executable, "-c", ENTER, *words]
    printed = subprocess.check_output(command, cwd=ROOT, text=True)
    rows = [line.split() for line in printed.splitlines() if line.startswith("/")]
    n_functions, n_modules = len(rows), len({file for file, *_ in rows})
    assert SHARE * FUNCTIONS < n_functions <= FUNCTIONS
    assert SHARE * MODULES < n_modules <= MODULES
    assert [int(n) for _, name, n in rows if name == "arrange"] == [1]
