"""Tables of contrast sets, checkpoints, accuracies, categories, examples and calibration."""

import random
import re

import pandas as pd
import pytest
import yaml
from compute_accuracies import compute_accuracies
from make_plain_table import make_plain_table
from printed_tables import checkpoints_of_m, frame, questions_of_quiz, sizes_of_d
from workflow_runs import ROOT

from persistcal.report import tables
from persistcal.store import artifacts


def test_the_table_of_contrast_sets_shows_sizes_and_directions():
    tex, rows = sizes_of_d()
    # x and y differ on 30 questions: y is right on 20 and x on 10.
    assert r"40\% & -- & 30 (20) & 50 (45) \\" in tex
    assert r"50\% & 30 (10) & -- & \textcolor{gray}{9 (8)} \\" in tex
    assert r"100\% & 50 (5) & \textcolor{gray}{9 (1)} & -- \\" in tex
    assert "smaller than 10" in tex
    assert "5 of 89 questions have the same answer twice" in tex  # 4 + 0 + 1 of 30 + 50 + 9
    assert len(rows) == 6
    assert rows.query("row == 'z' and column == 'x'")["row_wrong_column_right"].item() == 5


def test_the_table_of_checkpoints_shows_accuracies_with_intervals():
    tex, rows = checkpoints_of_m()
    trained = r"51.3$^\dagger$ {\scriptsize [41.6, 60.8]}"
    assert r"40\% & \texttt{step\_1} & 590.00 & " + trained + r" & -- \\" in tex
    # Wilson: (.75 + 1.92/100 ± 1.96 √(.1875/100 + .96/100²)) / (1 + 3.84/100)
    cells = r"75.0 {\scriptsize [65.7, 82.5]} & 100.0 {\scriptsize [96.3, 100.0]} \\"
    assert r" & \texttt{y} & -- & " + cells in tex
    assert "billions of tokens" in tex
    assert r"$^\dagger$ on the training questions" in tex
    assert rows["accuracy"].tolist() == [0.5126, 0.75, 1.0]


def test_training_tokens_are_printed_like_in_the_paper():
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text("utf-8"))
    checkpoints = {name: model["checkpoints"] for name, model in config["models"].items()}
    paper = pd.read_csv(ROOT / "resources" / "paper" / "checkpoints.csv", dtype=str)
    rows = [
        (model, checkpoint, "d", "test", 0.5, 10)
        for model, entries in checkpoints.items()
        for checkpoint, entry in entries.items()
        if "tokens" in entry
    ]
    accuracies = frame(artifacts.ACCURACIES, rows)
    labels = {"models": {}, "datasets": {"d": "D"}}
    tex, made = tables.checkpoints(accuracies, described=checkpoints, **labels)
    printed = re.findall(r"\\texttt\{([^}]*)\} & ([\d.]+) &", tex)
    revisions = zip(paper["revision"], paper["training_tokens_trillions"], strict=True)
    assert set(printed) == set(revisions)
    assert made["tokens"].min() == 0.55e12


def test_accuracies_are_shares_of_all_questions_that_were_asked():
    """x: b is right; c, d and the unanswered e are wrong: 1 of 4."""
    splits = ["train", *["test"] * 5]
    asked = {"question_id": list("abcdef"), "split": splits, "excluded": [*[False] * 5, True]}
    questions = pd.DataFrame(asked).assign(dataset="d")

    def label(checkpoint, rows):
        frame = pd.DataFrame(rows, columns=["question_id", "cluster", "label"])
        return frame.assign(model="m", checkpoint=checkpoint, dataset="d")

    rows = [(question, 0, "correct") for question in "abf"]  # a trains, f is excluded
    rows += [("c", 0, "incorrect"), ("c", 1, "correct"), ("d", 0, "not_attempted")]
    labels = pd.concat([label("x", rows), label("y", [("a", 0, "correct")])])
    accuracies = compute_accuracies(questions, labels)
    shown = accuracies[["checkpoint", "split", "accuracy", "n"]].to_numpy().tolist()
    assert shown == [["x", "test", 0.25, 4], ["y", "train", 1.0, 1]]
    with pytest.raises(ValueError, match="m z, d: no label belongs"):
        compute_accuracies(questions, label("z", [("f", 0, "correct")]))


def test_the_table_of_categories_lists_the_categories_of_included_questions():
    tex, rows = questions_of_quiz("question_categories")
    csv = rows.to_csv(index=False)
    assert csv == "category,n_train,n_test\na thing,1,0\nlist,1,3\nR&D,0,1\n"
    assert tex.endswith(
        r"""\begin{tabular}{lll}
\toprule
a thing & list & R\&D \\
\bottomrule
\end{tabular}
\end{table}
"""
    )
    assert r"\caption{Quiz \#1: categories of the questions included in the eval" in tex
    assert r"\label{tab:quiz-categories}" in tex


def test_categories_are_sorted_like_in_the_paper():
    names = (ROOT / "resources/paper/jeopardy_categories.txt").read_text("utf-8").splitlines()
    shuffled = random.Random(0).sample(names, len(names))
    asked = pd.DataFrame({"category": shuffled, "split": "test", "excluded": False})
    tex, rows = tables.question_categories(asked, dataset="j", datasets={})
    assert rows["category"].tolist() == names
    printed = [row for row in tex.splitlines() if row.endswith(r"\\")]
    # 85 categories are 28 rows of three, and a last row of one.
    assert len(printed) == 29
    assert printed[0] == r"19th Century America & 3-Letter Words & 4-Letter Words \\"
    assert printed[6] == r"Books \& Authors & Business \& Industry & Classical Music \\"
    assert printed[-1] == r"Zoology &  &  \\"


def test_the_table_of_examples_shows_questions_with_their_references():
    tex, rows = questions_of_quiz("question_examples")
    assert rows.to_csv(index=False).splitlines() == [
        "type,question,references",
        "R&D,Many?,a; b; c; d; e; f; g",
        'List,Second?,"one, or two"',
        "List,What is 50% of A & B?,ETD_1; β < 5",
    ]
    assert tex.endswith(
        r"""\begin{tabular}{lp{0.42\linewidth}p{0.25\linewidth}}
\toprule
Type & Question & Reference answer(s) \\
\midrule
R\&D & Many? & a; b; c; d; e; and 2 more \\
List & Second? & one, or two \\
List & What is 50\% of A \& B? & ETD\_1; $\beta$ \textless{} 5 \\
\bottomrule
\end{tabular}
\end{table}
"""
    )
    assert r"\label{tab:quiz-examples}" in tex
    assert "an answer that matches any of them is accepted.}" in tex


@pytest.mark.parametrize(
    "change", [{"keep": lambda rows: rows[~rows["any_of"]]}, {"any_of": False}]
)
def test_the_caption_of_examples_mentions_several_references_only_if_needed(change):
    tex, _ = questions_of_quiz("question_examples", **change)
    assert r"\caption{Quiz \#1: example questions.}" in tex


def test_tables_without_rows_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no contrast set of dataset 'nowhere'"):
        sizes_of_d("nowhere")
    with pytest.raises(ValueError, match="no question has a category; take 'quiz'"):
        questions_of_quiz("question_categories", category="")
    with pytest.raises(ValueError, match="no test question; take 'quiz' out"):
        questions_of_quiz("question_examples", split="train")
    path = str(tmp_path / "accuracies.csv")
    artifacts.write_csv(artifacts.empty(artifacts.ACCURACIES), path, artifacts.ACCURACIES)
    table = {"function": "persistcal.report.tables.checkpoints", "artifact": "accuracies"}
    table["settings"] = {"described": {"m": {"x": {}}}, "models": {}, "datasets": {}}
    with pytest.raises(ValueError, match=r"accuracies.csv: no accuracy of a checkpoint"):
        make_plain_table([path], table=table)


def test_the_table_of_calibration_shows_both_scopes_and_noise_floors():
    rows = [
        ("m", "d", "d", "own", "odds", "full", 0.125, 0.0625, 0.004),
        ("m", "d", "d", "own", "odds", "contrast", 0.25, 0.125, 0.5),
        ("m", "d", "d", "own", "fitted", "contrast", 0.75, 0.125, 0.5),
        ("m", "d", "e", "own", "odds", "full", 0.5, 0.25, 0.375),
    ]
    names = ["model", "dataset", "train_dataset", "estimator", "conditioning", "scope"]
    names += ["value", "noise_floor", "p_calibrated"]
    table = pd.DataFrame(rows, columns=names).assign(metric="smece")
    labels = {"models": {}, "datasets": {}, "estimators": {"own": "Own"}}
    printed = tables.calibration(table, labels=labels)
    assert r"Own & 0.125 & 0.062 & 0.004 & 0.250 & 0.125 & 0.500 \\" in printed.tex
    assert r"Own (trained on e) & 0.500 & 0.250 & 0.375 & -- & -- & -- \\" in printed.tex
    assert printed.rows["contrast_noise_floor"].iloc[0] == 0.125
