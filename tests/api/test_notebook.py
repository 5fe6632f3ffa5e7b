"""The notebook and the page about the API say what there is."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from pandas.io.formats.style import Styler

from tools import api_docs

DOCS = Path(__file__).parents[2] / "docs"


def test_the_notebook_runs_from_predictions_to_table_and_figure(monkeypatch):
    monkeypatch.chdir(DOCS)
    monkeypatch.setattr(plt, "show", lambda: None)
    cells = json.loads((DOCS / "predictions.ipynb").read_text(encoding="utf-8"))["cells"]
    assert len(cells) == 10
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
    # As the notebook says: chance for the estimator that does not see the checkpoint.
    assert abs(aucs["fixed"] - 0.5) < 0.02 and aucs["following"] > 0.7
    assert len(figure.axes) == 1 and 0 < calibration < 0.5


def test_the_page_about_the_api_is_that_of_its_docstrings():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert text == api_docs.page(), "run `make api-docs`"
    for name in ("evaluate", "contrast_sets", "smooth_ece", "compare", "generate_beams"):
        assert f"### {name}\n" in text
    assert "### score_answers\n" in text and "### train_adapter\n" in text
