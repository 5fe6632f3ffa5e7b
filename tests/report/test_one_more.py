"""A metric or estimator that is added by CONTRIBUTING's checklist is in every output."""

import json
import os
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from workflow_runs import ROOT

METRIC = '''

class Closeness(Mean):
    """Mean distance of the two confidences."""

    name, heading, latex = "closeness", "Nähe", "$N$"
    lower_is_better = True

    def contrast_values(self, run: OnContrastSet) -> Array:
        """Return the distances."""
        return abs(run.later - run.earlier)
'''
ESTIMATOR = '''

def brevity(answers: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Return one over the number of characters."""
    return 1 / answers["answer"].str.len()
'''
ENTRY = """    "brevity": Registration("meaning", "Kürze", needs=("several_answers",)),
"""
STUDY = """
import json
from pathlib import Path

from synthetic_study import TABLE, invent, write_page

import persistcal
from study.schema import load_schema

assert persistcal.__file__.startswith(str(Path.cwd()))
TABLE["columns"]["contrast"].append("closeness")
study = invent()
write_page(Path("."), study)
[files] = study["made"].tables
Path("main.tex").write_text(files.tex)
made = files.rows(missing=[""])
made = made[made["metric"] == "closeness"]
predictions = study["made"].predictions
kept = {"checkpoints": ["c2", "c3", "c4"], "min_contrast": 5}
found = persistcal.compare(predictions, **kept, n_replicates=200)
found.table().to_html("notebook.html")
tables = load_schema()["properties"]["tables"]["additionalProperties"]["properties"]
columns = tables["columns"]["properties"]["contrast"]["items"]["enum"]
assert columns[-2:] == ["smece", "closeness"]

from persistcal.api.evaluate import compare_inputs
from persistcal.readers.reading import Reading
from persistcal.readers.study import read_study
from persistcal.readers.inputs import make_settings
from study.check import check_config
from study.config_files import over_defaults

config = over_defaults({"study": {"estimators": ["brevity", "oracle"]}}, Path("."))
check_config(config)
answers = read_study(["config/example_answers.csv"], Reading(estimators=["brevity"]))
rated = compare_inputs(answers, make_settings(min_contrast=10, n_replicates=200))
Path("rated.html").write_text(rated.to_html())
rated.table().to_html("rated_table.html")
print(
    json.dumps(
        {
            "closeness": made.to_dict("records"),
            "entry": config["estimators"]["brevity"],
            "predictions": answers.all_predictions.to_dict("records"),
            "answers": answers.answers.to_dict("records"),
        },
        default=str,
    )
)
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """Return a copy of the project with an additional metric and estimator, and the results."""
    folder = tmp_path_factory.mktemp("extended")
    for name in ("persistcal", "study", "config", "workflow/schemas"):
        shutil.copytree(ROOT / name, folder / name)  # including numba's compiled loops
    with (folder / "persistcal/evaluation/metrics/registry.py").open("a") as file:
        file.write(METRIC)
    with (folder / "persistcal/confidence/estimators/meaning.py").open("a") as file:
        file.write(ESTIMATOR)
    catalogue = folder / "persistcal/confidence/estimators/catalogue.py"
    text = catalogue.read_text(encoding="utf-8")
    catalogue.write_text(text.replace("ESTIMATORS = {\n", "ESTIMATORS = {\n" + ENTRY), "utf-8")
    folders = [folder, ROOT / "tests/helpers", ROOT / "workflow/scripts/report"]
    done = subprocess.run(
        [sys.executable, "-c", STUDY],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def check_shown(folder, texts):
    for file, text in texts.items():
        assert text in (folder / file).read_text(encoding="utf-8"), file


def test_a_metric_of_ten_lines_is_in_notebook_command_workflow_and_page(extended):
    folder, rows = extended[0], pd.DataFrame(extended[1]["closeness"])
    assert len(rows) == 5 and rows["value"].between(0, 1).all()
    assert rows.index[rows["bold"]].tolist() == [rows["value"].idxmin()]
    texts = {"index.html": "Nähe ↓", "rated.html": "Nähe ↓", "summary.txt": "Nähe"}
    tex = r"$N$ $\scriptstyle\downarrow$"
    check_shown(folder, {**texts, "main.tex": tex, "notebook.html": "closeness"})


def test_an_added_estimator_is_in_catalogue_predictions_table_and_page(extended):
    folder, results = extended
    entry = {"function": "brevity", "label": "Kürze", "reads": ["evaluation"]}
    assert results["entry"] == entry
    answers = pd.DataFrame(results["answers"]).set_index(["checkpoint", "question_id"])[
        "answer"
    ]
    predictions = pd.DataFrame(results["predictions"])
    predictions = predictions[predictions["ask"] == 0]  # without halves
    predictions = predictions.set_index(["checkpoint", "question_id"])
    assert len(predictions) > 100 and set(predictions["estimator"]) == {"brevity"}
    expected = [1 / len(answers[place]) for place in predictions.index]
    assert predictions["confidence"].tolist() == pytest.approx(expected)
    assert len(set(expected)) > 2
    check_shown(folder, {"rated.html": "Kürze", "rated_table.html": "brevity"})
