"""A figure or table that is added as CONTRIBUTING says is planned, made and on the page."""

import inspect
import shutil
from importlib import import_module

import pandas as pd
import pytest
from draw_figure import draw_figure
from make_plain_table import make_plain_table
from own_study import CONFIG, write_study
from programs import python
from synthetic_study import invent, write_page
from workflow_runs import ROOT, planned

from persistcal import report
from persistcal.report.registry import FIGURES, TABLES, declared_views
from persistcal.store import artifacts
from persistcal.store.tables import TableFiles
from study.config_files import over_defaults
from study.inputs import Inputs
from study.study import Study
from study.views import SCRIPTS, ViewSettings, plan_views

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


@pytest.fixture
def own(tmp_path):
    """The file of an own figure and table, in a project with the scripts that make them."""
    for folder in ("persistcal/report", SCRIPTS):
        (tmp_path / folder).mkdir(parents=True)
    for script in ("draw_figure", "make_plain_table"):
        shutil.copy(ROOT / SCRIPTS / f"{script}.py", tmp_path / SCRIPTS)
    file = tmp_path / "persistcal/report/own_views.py"
    file.write_text(VIEWS, encoding="utf-8")
    return file


def plan(project, **sources):
    """Plan the figures and tables of the smallest study of predictions."""
    study = Study(over_defaults(CONFIG, ROOT))
    return plan_views(ViewSettings(study, Inputs(study, ROOT)), sources, project)


def test_a_table_and_a_figure_are_a_function_each(own, tmp_path, monkeypatch):
    rows = [
        ("m1", "quiz", "early", "late", 30, 20, 10, True, 4),
        ("m1", "exam", "early", "late", 8, 8, 0, True, 0),
    ]
    file = str(tmp_path / "contrast_sets.csv")
    sets = pd.DataFrame(rows, columns=artifacts.CONTRAST_SETS.schema.names)
    artifacts.write_csv(sets, file, artifacts.CONTRAST_SETS)
    monkeypatch.setattr(report, "__path__", [*report.__path__, str(own.parent)])

    made = plan(tmp_path, contrast_sets=[file], states=[])
    assert [*made["table"]] == ["flips_quiz"] and [*made["figure"]] == ["sizes"]
    flips, sizes = made["table"]["flips_quiz"], made["figure"]["sizes"]
    assert flips["about"]["caption"] == "Flips of Quiz."
    tex, csv = make_plain_table(flips["rows"], table=flips["about"])
    assert tex == "% Quiz: 30"
    assert csv == "earlier,later,size\nearly,late,30\n"
    [axes] = draw_figure(sizes["rows"], figure=sizes["about"]).axes
    assert [bar.get_height() for bar in axes.patches] == [30, 8]
    assert axes.get_title() == "Model 1"
    assert plan(tmp_path, contrast_sets=[])["table"] == {}  # a study without its rows

    invented = invent()
    invented["made"].tables.append(TableFiles("flips_quiz", csv, tex))
    page, _ = write_page(tmp_path, invented)
    assert 'data-table="flips_quiz"' in page


def test_an_edit_reruns_the_figures_and_tables_of_its_file(own, tmp_path):
    other = VIEWS.replace("flips_", "other_").replace('"sizes"', '"other"')
    own.with_name("other.py").write_text(other, encoding="utf-8")
    project = shutil.copytree(tmp_path, tmp_path / "edited")  # digests are cached by path
    edited = project / own.relative_to(tmp_path)
    edited.write_text(VIEWS.replace("Flips of", "Changes of"), encoding="utf-8")
    before, after = (plan(p, contrast_sets=["a.csv"])["table"] for p in (tmp_path, project))
    assert after["flips_quiz"]["code"] != before["flips_quiz"]["code"]
    assert after["other_quiz"] == before["other_quiz"]


def test_what_the_rules_cannot_plan_is_refused(own, tmp_path):
    own.with_name("other.py").write_text(VIEWS, encoding="utf-8")
    with pytest.raises(ValueError, match=r"own_views.py makes flips_quiz, and so does other"):
        plan(tmp_path, contrast_sets=["a.csv"])
    with pytest.raises(ValueError, match=r"table flips_.* reads the files 'contrast_sets'"):
        plan(tmp_path, states=["a.csv"])
    own.with_name("other.py").unlink()
    own.write_text(VIEWS.replace("datasets: Names", "sizes: Names"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"table flips_.*own_views.py has the parameter sizes"):
        plan(tmp_path, contrast_sets=["a.csv"])
    for argument in ("label=NAME", 'label="s", target="al"', 'text="s"'):
        own.write_text(VIEWS.replace('label="sizes"', argument), encoding="utf-8")
        with pytest.raises(ValueError, match=r"own_views.py: the decorator of sizes_figure"):
            plan(tmp_path, contrast_sets=["a.csv"])


def test_decorators_are_read_as_they_are_run():
    """The Snakefile reads the settings that the functions have when they are imported."""
    for view in declared_views(ROOT / "persistcal/report"):
        import_module(f"persistcal.report.{view.module}")
        function = {"figure": FIGURES, "table": TABLES}[view.kind][view.name]
        assert hasattr(artifacts, view.artifact.upper()), view.name
        keywords = inspect.signature(function).parameters.values()
        assert view.settings == tuple(p.name for p in keywords if p.kind is p.KEYWORD_ONLY)


@pytest.mark.slow
def test_the_rules_find_a_new_function(tmp_path):
    project = tmp_path / "project"
    folders = "persistcal atlas study workflow tools config envs resources"
    for folder in folders.split():
        shutil.copytree(ROOT / folder, project / folder)
    shutil.copy(ROOT / "Snakefile", project)
    (project / "persistcal/report/own_views.py").write_text(VIEWS, encoding="utf-8")
    study = write_study(tmp_path / "mine")
    command = ["-m", "snakemake", "--snakefile", project / "Snakefile", "--directory", study]
    command += ["--profile", ROOT / "profiles/laptop", "--dry-run"]
    jobs = planned(python(*command, "--configfile", study / "config.yaml"))
    # contrast sets, calibration, states, thresholds, pairs, min_contrast, and flips
    assert jobs["make_plain_table"] == 7
    # the full set against contrast sets, states, risk and coverage, and sizes
    assert jobs["draw_figure"] == 4
