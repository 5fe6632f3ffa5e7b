"""What is added as CONTRIBUTING says comes out everywhere."""

import io
import os
import shutil
import subprocess
import sys

import pandas as pd
from workflow_runs import ROOT

FUNCTION = """

contrast_closeness = Mean(lambda run: abs(run.later - run.earlier))
"""
LINE = """    "closeness": Measure("Nähe", r"$N$", ("contrast",), lower_is_better=True),
"""
STUDY = """
from pathlib import Path

import pandas as pd
from synthetic_study import TABLE, invent, write_page

import persistcal
from persistcal import artifacts
from persistcal.api.display import table
from persistcal.api.predictions import compare, evaluate
from study.check import load_schema

assert persistcal.__file__.startswith(str(Path.cwd()))
TABLE["columns"]["contrast"].append("closeness")
write_page(Path("."), invent(Path("out")))
made = pd.read_csv("out/tables/main.csv")
made = made[made["metric"] == "closeness"]
predictions = artifacts.read("out/predictions/m/quiz/every.parquet", artifacts.PREDICTIONS)
predictions = predictions.assign(model="m", dataset="quiz")
kept = {"checkpoints": ["c2", "c3", "c4"], "min_contrast": 5}
metrics = evaluate(predictions, **kept)
tests = compare(predictions, **kept, n_replicates=50).tests
table(metrics, tests).to_html("notebook.html")
tables = load_schema()["properties"]["tables"]["additionalProperties"]["properties"]
assert tables["columns"]["properties"]["contrast"]["items"]["enum"][0] == "closeness"
print(made.to_json(orient="records"))
"""


def test_a_metric_is_a_function_and_a_line(tmp_path):
    """Mean distance of the two confidences: computed, tested, marked and printed everywhere."""
    for folder in ("persistcal", "study"):
        shutil.copytree(ROOT / folder, tmp_path / folder)  # and what numba has compiled
    metrics = tmp_path / "persistcal/evaluation/metrics.py"
    text = metrics.read_text(encoding="utf-8")
    metrics.write_text(
        text.replace("\n\ndef full_auc(", FUNCTION + "\n\ndef full_auc("), "utf-8"
    )
    measures = tmp_path / "persistcal/evaluation/measures.py"
    text = measures.read_text(encoding="utf-8")
    measures.write_text(text.replace("MEASURES = {\n", "MEASURES = {\n" + LINE), "utf-8")
    folders = [tmp_path, ROOT / "tests/helpers", ROOT / "workflow/scripts/report"]
    done = subprocess.run(
        [sys.executable, "-c", STUDY],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = pd.read_json(io.StringIO(done.stdout))
    # As the tests' own predictions say it, of the odds of each pair
    assert len(found) == 5 and found["value"].between(0, 1).all()
    assert found.loc[found["bold"], "estimator"].tolist() == [
        found.loc[found["value"].idxmin(), "estimator"]
    ]
    for file, text in {
        "out/tables/main.tex": r"$N$ $\scriptstyle\downarrow$",
        "index.html": "Nähe ↓",
        "summary.txt": "Nähe",
        "notebook.html": "closeness",
    }.items():
        assert text in (tmp_path / file).read_text(encoding="utf-8"), file
