"""A metric, table or estimator that is added as CONTRIBUTING says comes out everywhere."""

import io
import os
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from own_study import write_study
from programs import python
from workflow_runs import ROOT

FUNCTION = """

contrast_closeness = Mean(lambda run: abs(run.later - run.earlier))
"""
LINE = """    "closeness": Measure("Nähe", r"$N$", contrast_closeness, lower_is_better=True),
"""
STUDY = """
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
assert tables["columns"]["properties"]["contrast"]["items"]["enum"][0] == "closeness"
print(made.to_json(orient="records"))
"""


def test_a_metric_is_a_function_and_a_line(tmp_path):
    """Mean distance of the two confidences: computed, tested, marked and printed everywhere."""
    for folder in ("persistcal", "study", "workflow/schemas"):
        shutil.copytree(ROOT / folder, tmp_path / folder)  # and what numba has compiled
    metrics = tmp_path / "persistcal/evaluation/metrics.py"
    text = metrics.read_text(encoding="utf-8")
    text = text.replace("\n\ndef full_auc(", FUNCTION + "\n\ndef full_auc(")
    metrics.write_text(text.replace("MEASURES = {\n", "MEASURES = {\n" + LINE), "utf-8")
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
        "main.tex": r"$N$ $\scriptstyle\downarrow$",
        "index.html": "Nähe ↓",
        "summary.txt": "Nähe",
        "notebook.html": "closeness",
    }.items():
        assert text in (tmp_path / file).read_text(encoding="utf-8"), file


VIEWS = """
import pandas as pd
from matplotlib.figure import Figure

from persistcal.report.latex import Printed
from persistcal.report.layout import Names
from persistcal.report.registry import figure, table


@table("flips_{dataset}", artifact="contrast_sets", caption="Flips of {dataset}.")
def flips(sets: pd.DataFrame, *, dataset: str, datasets: Names) -> Printed:
    rows = sets.loc[sets["dataset"] == dataset, ["earlier", "later", "size"]]
    return Printed(f"% {datasets[dataset]}: {rows['size'].sum()}", rows)


@figure("sizes", artifact="contrast_sets", label="sizes", caption="Sizes of contrast sets.")
def sizes_figure(sets: pd.DataFrame, *, models: Names) -> Figure:
    drawn = Figure()
    axes = drawn.subplots()
    axes.bar(range(len(sets)), sets["size"])
    axes.set_title(", ".join(models.values()))
    return drawn
"""


@pytest.mark.slow
def test_a_table_and_a_figure_are_a_function_each(tmp_path):
    """The study plans and makes both without another edit."""
    project = tmp_path / "project"
    for folder in (
        "persistcal",
        "atlas",
        "study",
        "workflow",
        "tools",
        "config",
        "envs",
        "resources",
    ):
        shutil.copytree(ROOT / folder, project / folder)
    shutil.copy(ROOT / "Snakefile", project)
    (project / "persistcal/report/own_views.py").write_text(VIEWS, encoding="utf-8")
    study = write_study(tmp_path / "mine")

    def run(*words):
        command = ["-m", "snakemake", "--snakefile", project / "Snakefile"]
        command += ["--directory", study, "--profile", ROOT / "profiles/laptop", *words]
        return python(*command, "--configfile", study / "config.yaml")

    run("--cores", "2", "out/tables/flips_quiz.tex", "out/figures/sizes.png")
    sizes = pd.read_csv(study / "out/contrast_sets.csv")["size"].tolist()
    assert pd.read_csv(study / "out/tables/flips_quiz.csv")["size"].tolist() == sizes
    assert (study / "out/tables/flips_quiz.tex").read_text() == f"% Quiz: {sum(sizes)}"
    assert (study / "out/figures/sizes.png").exists()
