"""The notebook runs, and the documentation of the API lists every function."""

import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
from pandas.io.formats.style import Styler

import persistcal

DOCS = Path(__file__).parents[2] / "docs"


def test_the_notebook_runs_and_its_statements_are_true(monkeypatch):
    monkeypatch.chdir(DOCS)
    monkeypatch.setattr(plt, "show", lambda: None)
    cells = json.loads((DOCS / "predictions.ipynb").read_text(encoding="utf-8"))["cells"]
    shown, names = [], {}
    for cell in cells:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"]).removeprefix("%matplotlib inline\n")
            *lines, last = source.split("\n")
            exec("\n".join(lines), names)
            shown.append(eval(last, names))
    *_, table, figure, calibration = shown
    assert isinstance(table, Styler)
    aucs = table.data.droplevel([0, 1, 2])["contrast", "auc"]
    # The notebook claims chance for the estimator that does not see the checkpoint.
    assert abs(aucs["question_difficulty"] - 0.5) < 0.02 and aucs["self_consistency"] > 0.7
    assert len(figure.axes) == 1 and 0 < calibration < 0.5


def test_the_documentation_names_each_public_function():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert set(persistcal.__all__) <= set(re.findall(r"`(?:persistcal\.)?(\w+)`", text))
