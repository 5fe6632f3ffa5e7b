"""A figure or table that is added to the catalogue is planned, made and on the page."""

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
from workflow_runs import ROOT

from persistcal import report
from persistcal.report.catalogue import FIGURES, TABLES, View
from persistcal.store import artifacts
from persistcal.store.code import imported_files
from persistcal.store.tables import TableFiles
from reproduce import catalogue as paper_views
from reproduce.catalogue import PAPER_SETTINGS
from study.config_files import over_defaults
from study.study import Study
from study.views import plan_views

CATALOGUED = (*FIGURES, *TABLES, *paper_views.FIGURES, *paper_views.TABLES)
FUNCTIONS = """
import pandas as pd
from matplotlib.figure import Figure

from persistcal.report.latex import Printed
from persistcal.report.layout import Names


def flips(sets: pd.DataFrame, *, dataset: str, datasets: Names) -> Printed:
    rows = sets.loc[sets["dataset"] == dataset, ["earlier", "later", "size"]]
    return Printed(f"% {datasets[dataset]}: {rows['size'].sum()}", rows)


def sizes_figure(sets: pd.DataFrame, *, models: Names) -> Figure:
    '''Draw a bar per contrast set.

    Sizes of
    contrast sets.
    '''
    drawn = Figure()
    axes = drawn.subplots()
    axes.bar(range(len(sets)), sets["size"])
    axes.set_title(", ".join(models.values()))
    return drawn


def unplanned(sets: pd.DataFrame, *, sizes: Names) -> Printed: ...
"""
FLIPS = View(
    name="flips_{dataset}",
    function="own_views.flips",
    artifact="contrast_sets",
    caption="Flips of {dataset}.",
)
SIZES = View(
    name="sizes",
    function="own_views.sizes_figure",
    artifact="contrast_sets",
    label="sizes",
)
VIEWS = {"figure": [SIZES], "table": [FLIPS]}


@pytest.fixture
def own_module(tmp_path):
    """The module of an own figure and table, in a project."""
    (tmp_path / "persistcal/report").mkdir(parents=True)
    file = tmp_path / "persistcal/report/own_views.py"
    file.write_text(FUNCTIONS, encoding="utf-8")
    return file


def plan(project, sources, views=VIEWS):
    """Plan the figures and tables of a minimal study of predictions."""
    study = Study(over_defaults(CONFIG, ROOT))
    return plan_views(study, project, sources, views)


def test_a_table_or_figure_needs_a_function_and_an_entry(own_module, tmp_path, monkeypatch):
    rows = [
        ("m1", "quiz", "early", "late", 30, 20, 10, True, 4),
        ("m1", "exam", "early", "late", 8, 8, 0, True, 0),
    ]
    file = str(tmp_path / "contrast_sets.csv")
    sets = pd.DataFrame(rows, columns=artifacts.CONTRAST_SETS.schema.names)
    artifacts.write_csv(sets, file, artifacts.CONTRAST_SETS)
    monkeypatch.setattr(report, "__path__", [*report.__path__, str(own_module.parent)])

    jobs = plan(tmp_path, {"contrast_sets": [file], "states": []})
    assert [*jobs["table"]] == ["flips_quiz"] and [*jobs["figure"]] == ["sizes"]
    flips, sizes = jobs["table"]["flips_quiz"], jobs["figure"]["sizes"]
    assert flips["about"]["caption"] == "Flips of Quiz."
    assert sizes["about"]["caption"] == "Sizes of contrast sets."
    tex, csv = make_plain_table(flips["rows"], table=flips["about"])
    assert tex == "% Quiz: 30"
    assert csv == "earlier,later,size\nearly,late,30\n"
    [axes] = draw_figure(sizes["rows"], figure=sizes["about"]).axes
    assert [bar.get_height() for bar in axes.patches] == [30, 8]
    assert axes.get_title() == "Model 1"
    assert plan(tmp_path, {"contrast_sets": []})["table"] == {}  # a study without its rows

    invented = invent()
    invented["made"].tables.append(TableFiles("flips_quiz", csv, tex))
    page, _ = write_page(tmp_path, invented)
    assert 'data-table="flips_quiz"' in page


def test_an_edit_reruns_the_figures_and_tables_of_its_module(own_module, tmp_path):
    own_module.with_name("other.py").write_text(FUNCTIONS, encoding="utf-8")
    other_view = FLIPS._replace(name="other_{dataset}", function="other.flips")
    views = {"table": [FLIPS, other_view]}
    project = shutil.copytree(tmp_path, tmp_path / "edited")  # digests are cached by path
    edited = project / own_module.relative_to(tmp_path)
    edited.write_text(FUNCTIONS.replace("% {", "%% {"), encoding="utf-8")
    sources = {"contrast_sets": ["a.csv"]}
    original, changed = (plan(path, sources, views)["table"] for path in (tmp_path, project))
    assert changed["flips_quiz"]["code"] != original["flips_quiz"]["code"]
    assert changed["other_quiz"] == original["other_quiz"]


def test_a_new_figure_reruns_no_other():
    """The catalogue is not among the imports of a job."""
    for script in ("draw_figure", "make_plain_table"):
        imported = imported_files(ROOT / "workflow/scripts/report" / f"{script}.py", ROOT)
        assert ROOT / "persistcal/report/catalogue.py" not in imported


@pytest.mark.parametrize(
    ("changes", "files", "message"),
    [
        ([{}, {}], "contrast_sets", "two entries that make flips_quiz; rename one"),
        ([{}], "states", "flips_.* reads the files 'contrast_sets', .* add them there"),
        (
            [{"function": "own_views.unplanned"}],
            "contrast_sets",
            "unplanned, .* sizes, .* add it",
        ),
    ],
)
def test_a_wrong_entry_of_a_catalogue_is_refused(own_module, tmp_path, changes, files, message):
    views = {"table": [FLIPS._replace(**change) for change in changes]}
    with pytest.raises(ValueError, match=message):
        plan(tmp_path, {files: ["a.csv"]}, views)


@pytest.mark.parametrize("view", CATALOGUED, ids=lambda view: view.name)
def test_every_entry_names_an_existing_artifact_and_a_function_of_known_settings(view):
    assert hasattr(artifacts, view.artifact.upper())
    module, name = view.path.rsplit(".", 1)
    function = getattr(import_module(module), name)
    parameters = inspect.signature(function).parameters.values()
    names = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert names <= {"caption", *PAPER_SETTINGS}
    assert view.label or view in {*TABLES, *paper_views.TABLES}


@pytest.mark.slow
def test_a_dry_run_plans_a_new_table_and_figure(tmp_path):
    project = tmp_path / "project"
    folders = "persistcal atlas study reproduce workflow tools config envs resources"
    for folder in folders.split():
        shutil.copytree(ROOT / folder, project / folder)
    shutil.copy(ROOT / "Snakefile", project)
    (project / "persistcal/report/own_views.py").write_text(FUNCTIONS, encoding="utf-8")
    catalogue = project / "persistcal/report/catalogue.py"
    text = catalogue.read_text(encoding="utf-8")
    for name, view in (("FIGURES", SIZES), ("TABLES", FLIPS)):
        text = text.replace(f"{name} = (\n", f"{name} = (\n{view},\n")
    catalogue.write_text(text, encoding="utf-8")
    study = write_study(tmp_path / "mine")
    command = ["-m", "snakemake", "--snakefile", project / "Snakefile", "--directory", study]
    command += ["--profile", ROOT / "profiles/laptop", "--dry-run"]
    output = python(*command, "--configfile", study / "config.yaml")
    assert "tables/flips_quiz.tex" in output and "figures/sizes.png" in output
