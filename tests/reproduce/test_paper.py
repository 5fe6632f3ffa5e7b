"""The paper's numbers in the study's tables, and compared with a study."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from compare_with_paper import compare_with_paper

from persistcal.evaluation.settings import block_name
from persistcal.report.grid import TIE, fill_cells
from persistcal.report.layout import expand_tables, members, sections
from persistcal.store import artifacts
from persistcal.store.tables import TableFiles
from reproduce.paper import CELL, TABLES, compare, paper_cells

PAPER = Path("resources/paper/results.csv")
MODELS = ["olmo3-7b", "marin-8b", "olmo3-32b"]
DATASETS = {"triviaqa": [], "jeopardy": [], "bioasq": ["triviaqa", "jeopardy"]}
STORED = [name if name != "train_dataset" else "trained_on" for name in CELL]


@pytest.fixture(scope="module")
def printed():
    return pd.read_csv(PAPER, keep_default_na=False)


@pytest.fixture(scope="module")
def cells(printed):
    return paper_cells(printed)


@pytest.fixture(scope="module")
def config():
    files = [Path("config") / name for name in ("config.yaml", "tables.yaml")]
    first, second = (yaml.safe_load(file.read_text(encoding="utf-8")) for file in files)
    return first | second


@pytest.fixture(scope="module")
def keyed(printed, config):
    """Return the printed cells with keys of the config instead of labels."""
    keys = {
        entry["label"]: key
        for kind in ("models", "datasets")
        for key, entry in config[kind].items()
    }
    labels = ["model", "train_dataset", "eval_dataset"]
    return printed.assign(**{column: printed[column].map(keys) for column in labels})


def test_every_printed_cell_is_identified_by_its_key(cells):
    assert len(cells) == 2042
    # The transfer table prints self-consistency below both training datasets, although it is
    # not trained: 3 models x 10 metrics are printed twice.
    assert not cells.duplicated(CELL).any()
    twice = cells[cells.duplicated(STORED)]
    assert len(twice) == 30
    assert set(twice["table"]) == {"domain_transfer"}
    assert set(twice["estimator"]) == {"self_consistency"}
    assert set(cells["conditioning"]) == {"odds", "fitted"}
    # The same quantity is the same number in every table.
    numbers = cells.groupby(STORED[1:])["paper"]
    assert len(numbers) == 1420
    assert (numbers.nunique() == 1).all()


def test_the_whole_paper_is_compared_cell_by_cell(cells, tmp_path):
    numbers = cells.drop_duplicates(STORED[1:])[[*STORED[1:], "paper"]]
    study = numbers.rename(columns={"paper": "value", "trained_on": "train_dataset"})
    study["lower_2_5pct"], study["upper_97_5pct"] = (study["value"] - 0.1, study["value"] + 0.1)
    names = [{name: name for name in cells[column]} for column in ("model", "dataset")]
    shown = cells.rename(columns={"paper_bold": "bold", "paper_underline": "underline"})
    shown = shown.assign(value=shown["paper"])
    # A column lacks a value of an estimator. In another column a mark differs.
    column = shown["table"].eq("gcm") & shown["model"].eq("Marin 8B")
    column &= shown["dataset"].eq("Jeopardy") & shown["metric"].eq("delta")
    lacks = column & shown["scope"].eq("contrast") & shown["estimator"].eq("gcm")
    shown.loc[lacks, "value"] = float("nan")
    is_changed = shown["table"].eq("domain_transfer") & shown["model"].eq("Olmo 3 7B")
    is_changed &= shown["train_dataset"].eq("Jeopardy") & shown["metric"].eq("delta0")
    is_changed &= shown["estimator"].eq("self_consistency")
    shown.loc[is_changed, "underline"] = ~shown.loc[is_changed, "underline"]
    labels = {"models": names[0], "datasets": names[1]}
    comparison = compare(cells, study, shown, **labels, settings="a: 1")
    artifacts.write_csv(comparison, tmp_path / "comparison.csv", artifacts.PAPER_COMPARISON)
    comparison = artifacts.read_csv(tmp_path / "comparison.csv", artifacts.PAPER_COMPARISON)
    assert len(comparison) == 2042
    assert comparison["inside"].all() and set(comparison["settings"]) == {"a: 1"}

    unmarked = comparison["bold"].isna()
    assert (unmarked == comparison["underline"].isna()).all()
    assert unmarked.sum() == 3 == column.sum()  # the whole column
    assert set(comparison.loc[unmarked, "table"]) == {"gcm"}

    marked = comparison[~unmarked]
    assert (marked["bold"] == marked["paper_bold"]).all()

    wrong = marked[marked["underline"] != marked["paper_underline"]]
    assert wrong[["table", "model", "train_dataset", "estimator"]].to_numpy().tolist() == [
        ["domain_transfer", "Olmo 3 7B", "Jeopardy", "self_consistency"]
    ]
    assert (comparison["paper_bold"] & comparison["paper_underline"]).sum() == 3


def test_an_unknown_method_of_the_paper_is_refused(printed):
    with pytest.raises(ValueError, match=r"Voting.*has no name"):
        paper_cells(printed.head(3).assign(method=["Oracle training", "Voting", "GCM"]))


def as_study(cells, printed, table):
    """Return the metrics and tests of a study with the paper's numbers.

    Bold cells are improved by a tiny amount, so that they beat cells of equal rounding.
    """
    sign = cells["metric"].map({"brier": -1, "smece": -1}).fillna(1)
    hair = 2 * TIE * cells["paper_bold"] * sign
    metrics = cells.assign(value=cells["paper"] + hair, seed="mean")
    metrics = metrics.drop_duplicates(STORED[1:])[[*STORED[1:], "value", "seed"]]
    metrics = metrics.rename(columns={"trained_on": "train_dataset"})

    tests = []
    for section in sections(table, MODELS, DATASETS):
        columns = ["model", "eval_dataset", "train_dataset"]
        of_section = printed[(printed[columns] == list(section)).all(axis=1)]
        for block in table["blocks"]:
            compared = members(block, section)
            rows = of_section[of_section["estimator"].isin([e for _, e in compared])]
            for _, column in rows.groupby(["scope", "metric"]):
                # If several are bold, the best estimator is not underlined.
                bold = (column["bold"] == 1) & (column["underline"] == 0)
                best = column.loc[bold, "estimator"].iloc[0]
                name = block_name(compared, section.dataset)
                rivals = column[column["estimator"] != best]
                rivals = rivals.rename(columns={"estimator": "other"})
                rivals["significant"] = rivals["underline"] == 0
                place = {"model": section.model, "dataset": section.dataset}
                tests.append(rivals.assign(**place, block=name, best=best))
    return metrics, pd.concat(tests)


@pytest.mark.parametrize("name", TABLES.values())
def test_a_study_with_the_papers_numbers_prints_the_papers_tables(name, keyed, config):
    table = expand_tables(config["tables"], DATASETS)[name]
    cells = paper_cells(keyed)
    cells = cells[cells["table"] == name]
    printed_cells = keyed.loc[cells.index].join(cells[["estimator", "conditioning"]])
    metrics, significance = as_study(cells, printed_cells, table)
    made = fill_cells(metrics, significance, table, models=MODELS, datasets=DATASETS)
    assert len(made) == len(cells)

    key = ["model", "dataset", "train_dataset", "estimator", "scope", "metric"]
    printed_cells = printed_cells.rename(
        columns={"eval_dataset": "dataset", "value": "printed"}
    )
    merged = made.merge(printed_cells, on=key, suffixes=("", "_printed"), validate="one_to_one")
    assert len(merged) == len(made)
    assert (merged["value"].round(3) == merged["printed"]).all()
    assert (merged["bold"] == merged["bold_printed"]).all()
    assert (merged["underline"] == merged["underline_printed"]).all()


LABELS = {"models": {"olmo": "Olmo 3 7B"}, "datasets": {"trivia": "TriviaQA"}}
# The paper prints 0.795 for this cell, in 6 tables.
CELL_OF_OURS = {"model": "olmo", "dataset": "trivia", "train_dataset": "trivia"} | {
    "estimator": "oracle", "conditioning": "odds", "scope": "contrast", "metric": "auc"
}  # fmt: skip


def compare_one_cell(lower, upper, marks, labels=LABELS):
    """Compare a value of 0.8 with its interval, and `marks` by table and estimator."""
    ends = {"lower_2_5pct": lower, "upper_97_5pct": upper}
    measured = pd.DataFrame([{**CELL_OF_OURS, "value": 0.8, **ends}])
    tables = []
    for name, rows in marks.items():
        marked = [{"estimator": e, "bold": bold, "underline": near} for e, bold, near in rows]
        table = pd.concat(measured.assign(table=name, **mark) for mark in marked)
        tables.append(TableFiles(name, table.to_csv(index=False), ""))
    paper = TableFiles.read(str(PAPER))
    printed = [TableFiles.read(str(path)) for path in sorted(PAPER.parent.glob("*.csv"))]
    sets = "model,dataset,earlier,later,size,improvement\nolmo,trivia,a,b,642,300\n"
    names = {"olmo": {"a": "40%", "b": "50%"}}
    comparison, numbers = compare_with_paper(
        measured,
        tables,
        paper,
        printed,
        [TableFiles("contrast_sets", sets, "")],
        labels=labels,
        checkpoints=names,
        settings="a: false",
    )
    # The paper prints 642 questions and 354 improvements.
    is_printed = labels["datasets"] == LABELS["datasets"]
    assert numbers["same"].tolist() == ([True, False] if is_printed else [])
    return comparison


@pytest.mark.parametrize(
    ("lower", "upper", "inside"),
    [
        (0.780, 0.810, True),
        (0.7954, 0.810, True),  # 0.795 can be a rounded 0.7954
        (0.7956, 0.810, False),
        (0.700, 0.7944, False),
        (float("nan"), 0.810, None),
    ],
)
def test_a_cell_is_inside_if_its_interval_contains_the_rounded_number(lower, upper, inside):
    # Incomplete tables and rows that a user's table repeats are not compared by marks.
    users_rows = [(name, True, False) for name in ("gcm", "gcm_posthoc", "oracle", "gcm")]
    marks = {"multi_vs_single_abridged": [("oracle", True, False)], "gcm": users_rows}
    comparison = compare_one_cell(lower, upper, marks)
    assert comparison["bold"].isna().all() and set(comparison["settings"]) == {"a: false"}
    assert comparison["table"].tolist() == [
        "oracle_vs_methods_abridged",
        "multi_vs_single_abridged",
        "multi_checkpoint_ablations_triviaqa",
        "oracle_vs_methods",
        "checkpoints_and_answers_triviaqa",
        "gcm",
    ]
    assert (comparison["paper"] == 0.795).all()
    assert comparison["difference"].to_numpy() == pytest.approx([0.005] * 6)
    if inside is None:
        assert comparison["inside"].isna().all()
    else:
        assert (comparison["inside"] == inside).all()


def test_marks_are_compared_for_tables_with_all_rows():
    rows = [("gcm", True, False), ("oracle", True, True), ("gcm_posthoc", False, False)]
    comparison = compare_one_cell(0.79, 0.81, {"gcm": rows})
    marked = comparison.dropna(subset="bold")
    assert marked[["table", "estimator"]].to_numpy().tolist() == [["gcm", "oracle"]]
    assert marked["bold"].all() and marked["underline"].all()
    elsewhere = LABELS | {"datasets": {"trivia": "Another dataset"}}
    assert compare_one_cell(0.79, 0.81, {"gcm": rows}, elsewhere).empty
