"""The tables of categories and of example questions."""

import random
import re
import shutil
import subprocess

import pandas as pd
import pytest
from make_plain_table import make_plain_table
from workflow_runs import ROOT

from persistcal.report.question_tables import categories_table, category_rows
from persistcal.store import artifacts

QUESTIONS = [
    # index, split, question, references, any_of, category, excluded
    (0, "few_shot", "Ask?", ["x"], False, "shown only", False),
    (9, "test", "Third?", ["late"], False, "list", False),
    (7, "test", "What is 50% of A & B?", ["ETD_1", "β < 5"], True, "list", False),
    (1, "train", "Learn?", ["x"], False, "list", False),
    (2, "test", "Broken?", ["x"], False, "list", True),
    (3, "test", "Second?", ["one, or two"], False, "list", False),
    (4, "test", "Many?", list("abcdefg"), True, "R&D", False),
    (5, "train", "Learn more?", ["x"], False, "a thing", False),
    (6, "unused", "Unused?", ["x"], False, "of nothing", False),
]


@pytest.fixture
def questions(tmp_path):
    names = [name for name in artifacts.QUESTIONS.schema.names if name != "question_id"]
    frame = pd.DataFrame(QUESTIONS, columns=names)
    frame.insert(0, "question_id", "q" + frame["index"].astype(str))
    artifacts.write(frame, tmp_path / "questions.parquet", artifacts.QUESTIONS)
    return frame


def made(folder, function):
    labels = {"datasets": {"quiz": "Quiz #1"}}
    make_plain_table(
        [str(folder / "questions.parquet")],
        str(folder / "table.tex"),
        str(folder / "table.csv"),
        table={
            "function": function,
            "artifact": "QUESTIONS",
            "settings": {"dataset": "quiz", "labels": labels},
        },
    )
    return tuple((folder / f"table.{end}").read_text("utf-8") for end in ("tex", "csv"))


def test_categories(questions, tmp_path):
    tex, csv = made(tmp_path, "question_categories")
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


def test_categories_of_the_paper_in_its_order():
    names = (ROOT / "resources/paper/jeopardy_categories.txt").read_text("utf-8").splitlines()
    shuffled = random.Random(0).sample(names, len(names))
    rows = category_rows(
        pd.DataFrame({"category": shuffled, "split": "test", "excluded": False})
    )
    assert rows["category"].tolist() == names
    tex = categories_table(rows, dataset="Jeopardy", label="jeopardy-categories")
    printed = [row for row in tex.splitlines() if row.endswith(r"\\")]
    # The paper's table has 85 categories: 28 rows of three, and one.
    assert len(printed) == 29
    assert printed[0] == r"19th Century America & 3-Letter Words & 4-Letter Words \\"
    assert printed[6] == r"Books \& Authors & Business \& Industry & Classical Music \\"
    assert printed[-1] == r"Zoology &  &  \\"


def test_examples(questions, tmp_path):
    tex, csv = made(tmp_path, "question_examples")
    assert csv.splitlines() == [
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


def test_examples_that_accept_one_answer_say_nothing_of_several(questions, tmp_path):
    for changed in (questions[~questions["any_of"]], questions.assign(any_of=False)):
        artifacts.write(changed, tmp_path / "questions.parquet", artifacts.QUESTIONS)
        tex, _ = made(tmp_path, "question_examples")
        assert r"\caption{Quiz \#1: example questions.}" in tex


@pytest.mark.parametrize(
    ("make", "left", "message"),
    [
        ("question_categories", {"category": ""}, "no question has a category; take 'quiz'"),
        ("question_examples", {"split": "train"}, "no test question; take 'quiz' out"),
    ],
)
def test_empty_tables_are_refused(questions, tmp_path, make, left, message):
    changed = questions.assign(**left)
    artifacts.write(changed, tmp_path / "questions.parquet", artifacts.QUESTIONS)
    with pytest.raises(ValueError, match=message):
        made(tmp_path, make)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here")
def test_question_tables_compile(questions, tmp_path):
    texts = [made(tmp_path, make)[0] for make in ("question_categories", "question_examples")]
    packages = re.search(r"\\usepackage\{.*\}", texts[0])[0]
    lines = [r"\documentclass{article}", packages, r"\begin{document}", *texts]
    document = "\n".join([*lines, r"\end{document}"])
    (tmp_path / "all.tex").write_text(document, encoding="utf-8")
    result = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:]
