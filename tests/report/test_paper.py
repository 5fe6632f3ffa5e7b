"""The paper's own numbers through the table maker, and beside a study's."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from compare_with_paper import compare_with_paper

from persistcal.report.grid import TIE, fill_cells
from persistcal.report.layout import block_name, expand_tables, members, sections
from persistcal.report.paper import CELL, TABLES, compare, paper_cells
from persistcal.store import artifacts
from persistcal.store.tables import TableFiles

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
    """The printed cells, with the config's keys in place of labels."""
    keys = {
        entry["label"]: key
        for kind in ("models", "datasets")
        for key, entry in config[kind].items()
    }
    labels = ["model", "train_dataset", "eval_dataset"]
    return printed.assign(**{column: printed[column].map(keys) for column in labels})


def test_every_cell_has_one_name(cells):
    assert len(cells) == 2042
    # In the transfer table self-consistency is printed below both training datasets,
    # although nothing is trained: 3 models x 10 metrics are there twice.
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
    ours = numbers.rename(columns={"paper": "value", "trained_on": "train_dataset"})
    ours["lower_2_5pct"], ours["upper_97_5pct"] = ours["value"] - 0.1, ours["value"] + 0.1
    names = [{name: name for name in cells[column]} for column in ("model", "dataset")]
    shown = cells.rename(columns={"paper_bold": "bold", "paper_underline": "underline"})
    shown = shown.assign(value=shown["paper"])
    # Of one column the mark of one cell is another, and one of the estimators has no value.
    column = shown["table"].eq("gcm") & shown["model"].eq("Marin 8B")
    column &= shown["dataset"].eq("Jeopardy") & shown["metric"].eq("delta")
    lacks = column & shown["scope"].eq("contrast") & shown["estimator"].eq("gcm")
    shown.loc[lacks, "value"] = float("nan")
    other = shown["table"].eq("domain_transfer") & shown["model"].eq("Olmo 3 7B")
    other &= shown["train_dataset"].eq("Jeopardy") & shown["metric"].eq("delta0")
    other &= shown["estimator"].eq("self_consistency")
    shown.loc[other, "underline"] = ~shown.loc[other, "underline"]
    labels = {"models": names[0], "datasets": names[1]}
    comparison = compare(cells, ours, shown, **labels, settings="a: 1")
    artifacts.write_csv(comparison, tmp_path / "comparison.csv", artifacts.PAPER_COMPARISON)
    comparison = artifacts.read_csv(tmp_path / "comparison.csv", artifacts.PAPER_COMPARISON)
    assert len(comparison) == 2042
    assert comparison["inside"].all() and set(comparison["settings"]) == {"a: 1"}
    unmarked = comparison["bold"].isna()
    assert (unmarked == comparison["underline"].isna()).all()
    assert unmarked.sum() == 3 == column.sum()  # all of that column of the table
    assert set(comparison.loc[unmarked, "table"]) == {"gcm"}
    marked = comparison[~unmarked]
    assert (marked["bold"] == marked["paper_bold"]).all()
    wrong = marked[marked["underline"] != marked["paper_underline"]]
    assert wrong[["table", "model", "train_dataset", "estimator"]].to_numpy().tolist() == [
        ["domain_transfer", "Olmo 3 7B", "Jeopardy", "self_consistency"]
    ]
    assert (comparison["paper_bold"] & comparison["paper_underline"]).sum() == 3


def test_unknown_method_is_refused(printed):
    with pytest.raises(ValueError, match=r"Voting.*has no name"):
        paper_cells(printed.head(3).assign(method=["Oracle training", "Voting", "GCM"]))


def as_study(cells, printed, table):
    """Return metrics and significance that a study with the paper's numbers would have.

    A bold cell gets the hair by which it is better than another of equal rounding.
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
                # of several best the test starts from the one that is not underlined
                bold = (column["bold"] == 1) & (column["underline"] == 0)
                best = column.loc[bold, "estimator"].iloc[0]
                name = block_name(compared, section.dataset)
                others = column[column["estimator"] != best]
                others = others.rename(columns={"estimator": "other"})
                others["significant"] = others["underline"] == 0
                place = {"model": section.model, "dataset": section.dataset}
                tests.append(others.assign(**place, block=name, best=best))
    return metrics, pd.concat(tests)


@pytest.mark.parametrize("name", TABLES.values())
def test_the_papers_numbers_give_the_papers_tables(name, keyed, config):
    table = expand_tables(config["tables"], DATASETS)[name]
    cells = paper_cells(keyed)
    cells = cells[cells["table"] == name]
    own = keyed.loc[cells.index].join(cells[["estimator", "conditioning"]])
    metrics, significance = as_study(cells, own, table)
    made = fill_cells(metrics, significance, table, models=MODELS, datasets=DATASETS)
    assert len(made) == len(cells)

    key = ["model", "dataset", "train_dataset", "estimator", "scope", "metric"]
    own = own.rename(columns={"eval_dataset": "dataset", "value": "printed"})
    both = made.merge(own, on=key, suffixes=("", "_printed"), validate="one_to_one")
    assert len(both) == len(made)
    assert (both["value"].round(3) == both["printed"]).all()
    assert (both["bold"] == both["bold_printed"]).all()
    assert (both["underline"] == both["underline_printed"]).all()


LABELS = {"models": {"olmo": "Olmo 3 7B"}, "datasets": {"trivia": "TriviaQA"}}
# The paper prints 0.795 for this cell, in 6 tables.
CELL_OF_OURS = {"model": "olmo", "dataset": "trivia", "train_dataset": "trivia"} | {
    "estimator": "oracle", "conditioning": "odds", "scope": "contrast", "metric": "auc"
}  # fmt: skip


def beside_the_paper(lower, upper, marks, labels=LABELS):
    """Our value of 0.8 with its interval, and `marks` by table and estimator."""
    ends = {"lower_2_5pct": lower, "upper_97_5pct": upper}
    ours = pd.DataFrame([{**CELL_OF_OURS, "value": 0.8, **ends}])
    tables = []
    for name, rows in marks.items():
        marked = [{"estimator": e, "bold": bold, "underline": near} for e, bold, near in rows]
        table = pd.concat(ours.assign(table=name, **mark) for mark in marked)
        tables.append(TableFiles(name, table.to_csv(index=False), ""))
    paper = TableFiles.read(str(PAPER))
    printed = [TableFiles.read(str(path)) for path in sorted(PAPER.parent.glob("*.csv"))]
    sets = "model,dataset,earlier,later,size,improvement\nolmo,trivia,a,b,642,300\n"
    names = {"olmo": {"a": "40%", "b": "50%"}}
    comparison, numbers = compare_with_paper(
        ours,
        tables,
        paper,
        printed,
        [TableFiles("contrast_sets", sets, "")],
        labels=labels,
        checkpoints=names,
        settings="a: false",
    )
    # 642 questions and 354 improvements are printed for TriviaQA.
    is_printed = labels["datasets"] == LABELS["datasets"]
    assert numbers["same"].tolist() == ([True, False] if is_printed else [])
    return comparison


@pytest.mark.parametrize(
    ("lower", "upper", "inside"),
    [
        (0.780, 0.810, True),
        (0.7954, 0.810, True),  # 0.795 may be a rounded 0.7954
        (0.7956, 0.810, False),
        (0.700, 0.7944, False),
        (float("nan"), 0.810, None),
    ],
)
def test_a_cell_beside_the_papers(lower, upper, inside):
    # without its other rows, and one of two that a table of somebody's own has twice
    others = [(name, True, False) for name in ("gcm", "gcm_posthoc", "oracle", "gcm")]
    marks = {"multi_vs_single_abridged": [("oracle", True, False)], "gcm": others}
    found = beside_the_paper(lower, upper, marks)
    assert found["bold"].isna().all() and set(found["settings"]) == {"a: false"}
    assert found["table"].tolist() == [
        "oracle_vs_methods_abridged",
        "multi_vs_single_abridged",
        "multi_checkpoint_ablations_triviaqa",
        "oracle_vs_methods",
        "checkpoints_and_answers_triviaqa",
        "gcm",
    ]
    assert (found["paper"] == 0.795).all()
    assert found["difference"].to_numpy() == pytest.approx([0.005] * 6)
    if inside is None:
        assert found["inside"].isna().all()
    else:
        assert (found["inside"] == inside).all()


def test_marks_are_those_of_the_studys_table():
    rows = [("gcm", True, False), ("oracle", True, True), ("gcm_posthoc", False, False)]
    found = beside_the_paper(0.79, 0.81, {"gcm": rows})
    marked = found.dropna(subset="bold")
    assert marked[["table", "estimator"]].to_numpy().tolist() == [["gcm", "oracle"]]
    assert marked["bold"].all() and marked["underline"].all()
    elsewhere = LABELS | {"datasets": {"trivia": "Another dataset"}}
    assert beside_the_paper(0.79, 0.81, {"gcm": rows}, elsewhere).empty
