"""Tables as LaTeX: what is printed, that it is balanced, and that it compiles."""

import re
import shutil
import subprocess

import pandas as pd
import pytest
import yaml
from compute_accuracies import compute_accuracies
from hypothesis import given, settings
from hypothesis import strategies as st
from make_plain_table import make_plain_table
from make_table import make_table
from workflow_runs import ROOT

from persistcal.report.latex import escape, line, number
from persistcal.store import artifacts

LABELS = {
    "models": {"m": "R&D_1", "n": "Model n"},
    "datasets": {"d": "100% quiz", "e": "Exam"},
    "estimators": {"b": "The b"},
}
TABLE = {
    "caption": "50% of R&D with α ≥ 0.05",
    "layout": "models_as_blocks",
    "columns": {"contrast": ["delta0_balanced", "auc"], "full": ["auc"]},
    "blocks": [
        {"title": "First", "rows": [{"estimator": "a"}, {"estimator": "b", "indent": True}]},
        {"rows": [{"estimator": "a", "label": "Again_a"}, {"estimator": "none"}]},
    ],
}


@pytest.fixture
def study(tmp_path):
    """Metrics of estimators a and b for two models and two datasets, and their tests."""
    columns = [("contrast", "delta0_balanced"), ("contrast", "auc"), ("full", "auc")]
    metrics, significance = [], []
    for model in "mn":
        for dataset in "de":
            owner = (model, dataset, dataset)
            for estimator, value in (("a", 0.81234), ("b", -0.25)):
                metrics += [
                    (*owner, estimator, "odds", *column, "mean", value, "")
                    for column in columns
                ]
            significance += [
                (*owner, "a+b", "odds", *column, "a", "b", 1.0, -0.1, column[0] == "full")
                for column in columns
            ]
    paths = tmp_path / "metrics.parquet", tmp_path / "significance.parquet"
    names = artifacts.METRICS.schema.names
    artifacts.write(pd.DataFrame(metrics, columns=names), paths[0], artifacts.METRICS)
    names = artifacts.SIGNIFICANCE.schema.names
    frame = pd.DataFrame(significance, columns=names[:12]).reindex(columns=names)
    artifacts.write(frame.astype({"p_holm": float}), paths[1], artifacts.SIGNIFICANCE)
    return tmp_path


def made(study, **changes):
    make_table(
        [str(study / "metrics.parquet")],
        str(study / "significance.parquet"),
        str(study / "table.tex"),
        str(study / "table.csv"),
        name="my_table",
        table={**TABLE, **changes},
        models=["m", "n"],
        datasets={"d": [], "e": []},
        labels=LABELS,
    )
    return (study / "table.tex").read_text(encoding="utf-8")


def body(tex):
    """Rows of the tabular below the last heading, without rules."""
    rows = [row for row in tex.split("Method", 1)[1].splitlines() if row.endswith(r"\\")]
    return [row.removesuffix(r" \\") for row in rows[1:]]


def test_models_as_blocks(study):
    tex = made(study)
    a = r"\textbf{0.812} & \textbf{0.812} & \textbf{0.812}"
    b = r"\underline{$-$0.250} & \underline{$-$0.250} & $-$0.250"
    assert body(tex)[:5] == [
        r"\multicolumn{1}{l}{\:\textit{First}} & \multicolumn{3}{c}{R\&D\_1, 100\% quiz}",
        f"a & {a}",
        rf"\,\raisebox{{0.5ex}}{{\(\llcorner\)}} The b & {b}",
        "Again\\_a & 0.812 & 0.812 & 0.812",  # alone in its block: not marked
        "none & -- & -- & --",
    ]
    assert len(body(tex)) == 4 * 5  # two models, two datasets
    assert r"\caption{50\% of R\&D with $\alpha$ $\geq$ 0.05}" in tex
    assert r"\label{tab:my-table}" in tex
    assert (
        r" & \multicolumn{2}{c}{Contrast} & \multicolumn{1}{c}{Full} \\" + "\n"
        r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}" in tex
    )


def test_models_as_columns(study):
    tex = made(study, layout="models_as_columns", blocks=TABLE["blocks"][:1])
    assert (
        r" & \multicolumn{3}{c}{R\&D\_1} & \multicolumn{3}{c}{Model n} \\" + "\n"
        r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}" in tex
    )
    rows = body(tex)
    assert rows[0].endswith(r"\multicolumn{6}{c}{100\% quiz}")
    assert rows[1] == "a & " + " & ".join([r"\textbf{0.812}"] * 6)
    assert len(rows) == 2 * 3


def test_one_model_and_one_dataset_need_no_heading(study):
    tex = made(study, models=["m"], datasets=["e"], blocks=TABLE["blocks"][1:])
    assert body(tex)[0].startswith("Again")


def test_csv_holds_the_same_cells(study):
    tex = made(study)
    cells = pd.read_csv(study / "table.csv", dtype={"value": str}, keep_default_na=False)
    printed = [
        cell for row in body(tex) for cell in row.split(" & ")[1:] if "multi" not in cell
    ]
    assert len(cells) == len(printed) == 4 * 4 * 3
    plain = sorted(re.sub(r"\\\w+\{|\}", "", cell).replace("$", "") for cell in printed)
    assert sorted(cells["value"].replace("", "--")) == plain
    assert cells["bold"].sum() == tex.count(r"\textbf")
    assert cells["underline"].sum() == tex.count(r"\underline")
    assert not (cells["bold"] & cells["underline"]).any()


@pytest.fixture
def others(study):
    """The tables of contrast sets and of checkpoints."""
    sets = pd.DataFrame(
        [
            ("m", "d", "x", "y", 30, 20, 10, True),
            ("m", "d", "x", "z", 50, 45, 5, True),
            ("m", "d", "y", "z", 9, 8, 1, False),
            ("m", "e", "x", "y", 7, 6, 1, True),
        ],
        columns=artifacts.CONTRAST_SETS.schema.names,
    )
    artifacts.write_csv(sets, study / "sets.csv", artifacts.CONTRAST_SETS)
    make_plain_table(
        [str(study / "sets.csv")],
        str(study / "sizes.tex"),
        str(study / "sizes.csv"),
        table={
            "function": "contrast_set_sizes",
            "artifact": "CONTRAST_SETS",
            "settings": {
                "dataset": "d",
                "checkpoints": {"m": {"x": "40%", "y": "50%", "z": "100%"}},
                "min_contrast": 10,
                "labels": LABELS,
            },
        },
    )
    accuracies = pd.DataFrame(
        [
            ("m", "x", "d", "train", 0.5126, 100),
            ("m", "y", "d", "test", 0.75, 100),
            ("m", "y", "e", "test", 1.0, 100),
        ],
        columns=artifacts.ACCURACIES.schema.names,
    )
    artifacts.write_csv(accuracies, study / "accuracies.csv", artifacts.ACCURACIES)
    known = {"x": {"revision": "step_1", "label": "40%", "tokens": 5.9e11}, "y": {}}
    make_plain_table(
        [str(study / "accuracies.csv")],
        str(study / "checkpoints.tex"),
        str(study / "checkpoints_table.csv"),
        table={
            "function": "checkpoints",
            "artifact": "ACCURACIES",
            "settings": {"checkpoints": {"m": known}, "labels": LABELS},
        },
    )
    return study


def test_contrast_table(others):
    tex = (others / "sizes.tex").read_text(encoding="utf-8")
    # Of x and y's 30 questions x has 20 wrong and y right, and 10 the other way.
    assert r"40\% & -- & 30 (20) & 50 (45) \\" in tex
    assert r"50\% & 30 (10) & -- & \textcolor{gray}{9 (8)} \\" in tex
    assert r"100\% & 50 (5) & \textcolor{gray}{9 (1)} & -- \\" in tex
    assert "smaller than 10" in tex
    grid = pd.read_csv(others / "sizes.csv")
    assert len(grid) == 6
    assert grid.query("row == 'z' and column == 'x'")["row_wrong_column_right"].item() == 5


def test_checkpoints_table(others):
    tex = (others / "checkpoints.tex").read_text(encoding="utf-8")
    assert r"40\% & \texttt{step\_1} & 590.00 & 51.3$^\dagger$ & -- \\" in tex
    assert r" & \texttt{y} & -- & 75.0 & 100.0 \\" in tex
    assert "billions of tokens" in tex
    assert r"$^\dagger$ on the training questions" in tex
    grid = pd.read_csv(others / "checkpoints_table.csv")
    assert grid["accuracy"].tolist() == [0.5126, 0.75, 1.0]


def test_tokens_are_printed_as_in_the_paper(tmp_path):
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text("utf-8"))
    checkpoints = {name: model["checkpoints"] for name, model in config["models"].items()}
    paper = pd.read_csv(ROOT / "resources" / "paper" / "checkpoints.csv", dtype=str)
    rows = [
        (model, checkpoint, "d", "test", 0.5, 10)
        for model, entries in checkpoints.items()
        for checkpoint, entry in entries.items()
        if "tokens" in entry
    ]
    accuracies = pd.DataFrame(rows, columns=artifacts.ACCURACIES.schema.names)
    artifacts.write_csv(accuracies, tmp_path / "accuracies.csv", artifacts.ACCURACIES)
    labels = {"models": {}, "datasets": {"d": "D"}}
    make_plain_table(
        [str(tmp_path / "accuracies.csv")],
        str(tmp_path / "table.tex"),
        str(tmp_path / "table.csv"),
        table={
            "function": "checkpoints",
            "artifact": "ACCURACIES",
            "settings": {"checkpoints": checkpoints, "labels": labels},
        },
    )
    tex = (tmp_path / "table.tex").read_text("utf-8")
    printed = re.findall(r"\\texttt\{([^}]*)\} & ([\d.]+) &", tex)
    assert set(printed) == set(
        zip(paper["revision"], paper["training_tokens_trillions"], strict=True)
    )
    assert pd.read_csv(tmp_path / "table.csv")["tokens"].min() == 0.55e12


def test_empty_contrast_table_is_refused(others):
    with pytest.raises(ValueError, match="no contrast set of dataset 'nowhere'"):
        settings = {"dataset": "nowhere", "checkpoints": {}, "min_contrast": 1}
        make_plain_table(
            [str(others / "sets.csv")],
            "",
            "",
            table={
                "function": "contrast_set_sizes",
                "artifact": "CONTRAST_SETS",
                "settings": {**settings, "labels": LABELS},
            },
        )


def test_compute_accuracies():
    questions = pd.DataFrame(
        {
            "question_id": list("abcdef"),
            "index": range(6),
            "split": ["train", "test", "test", "test", "test", "test"],
            "question": "?",
            "references": [["r"]] * 6,
            "any_of": True,
            "category": "",
            "excluded": [False] * 5 + [True],
            "dataset": "d",
        }
    )

    def label(checkpoint, rows):
        frame = pd.DataFrame(rows, columns=["question_id", "cluster", "label"])
        return frame.assign(model="m", checkpoint=checkpoint, dataset="d")

    tested = label(
        "x",
        [
            ("a", 0, "correct"),  # train
            ("b", 0, "correct"),
            ("c", 0, "incorrect"),
            ("c", 1, "correct"),  # not its most probable answer
            ("d", 0, "not_attempted"),
            ("f", 0, "correct"),  # excluded
        ],
    )
    trained = label("y", [("a", 0, "correct")])
    found = compute_accuracies(questions, pd.concat([tested, trained]))
    assert found["checkpoint"].tolist() == ["x", "y"]
    # b is right; c, d and e (which has no answer) are not: 1 of 4.
    assert found[["split", "accuracy", "n"]].to_numpy().tolist() == [
        ["test", 0.25, 4],
        ["train", 1.0, 1],
    ]
    with pytest.raises(ValueError, match="m z, d: no label belongs"):
        compute_accuracies(questions, label("z", [("f", 0, "correct")]))


def test_escape_covers_every_special_character():
    assert escape("&%$#_{}") == r"\&\%\$\#\_\{\}"
    assert escape("~^\\") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}"
    assert escape("β < μ > Δ") == r"$\beta$ \textless{} $\mu$ \textgreater{} $\Delta$"


def printed(tex):
    """What LaTeX makes of escaped text, for the commands that `escape` may use."""
    commands = {
        "textbackslash{}": "\\", "textasciitilde{}": "~", "textasciicircum{}": "^",
        "textless{}": "<", "textgreater{}": ">", **{c: c for c in "&%$#_{}"},
    }  # fmt: skip
    parts = re.split(r"\\(text\w+\{\}|[&%$#_{}])", tex)
    for plain in parts[::2]:
        # Nothing that means something to LaTeX, and no ligature of its fonts.
        assert not re.search(r"[\\~^&%$#_\n]|--|''|``|,,|[?!]`|[{](?![}])|(?<![{])[}]", plain)
    parts = [
        part.replace("{}", "") if i % 2 == 0 else commands[part] for i, part in enumerate(parts)
    ]
    return "".join(parts)


# Letters that become formulas have a test of their own.
@settings(deadline=None)
@given(st.text() | st.text("\\~^&%$#_{}<>-'`,?![]*\n\t\0\x85\u2028 a", max_size=30))
def test_escaped_text_is_printed_as_it_stands(text):
    text = re.sub("[→≥≤Δα-ω]", "", text)
    plain = re.sub(r"[\0-\x1f\x7f-\x9f\u2028\u2029]", " ", text)
    assert printed(escape(text)).replace("?", " ") == plain.replace("?", " ")


def test_what_cannot_be_printed_is_a_question_mark():
    assert escape("a\0b\x1b[31mc\ud800\x9f") == "a?b?[31mc??"
    assert escape("one\n\ntwo\r\tthree\u2028four") == "one  two  three four"


def test_a_row_does_not_begin_with_an_argument_of_the_line_break_before():
    # `\\\\ [SCIENCE]` asks for a space of the length SCIENCE, `\\\\*` forbids a page break.
    assert line(["[SCIENCE] Who?", "x"]) == r"{}[SCIENCE] Who? & x \\"
    assert line(["* starred"]) == r"{}* starred \\"


def test_number_rounds_to_the_printed_digits():
    assert [number(v) for v in (1, 0.0005001, -0.0004, -0.0005001, float("nan"))] == [
        "1.000",
        "0.001",
        "0.000",
        "$-$0.001",
        "--",
    ]


def problems(tex):
    """What is wrong with the nesting and the columns of `tex`, found without TeX."""
    plain = re.sub(r"\\[\\{}%&$#_]|%.*", lambda m: r"\\" * (m[0] == r"\\"), tex)
    found, depth, environments = [], 0, []
    for token in re.findall(r"\\begin\{\w+\}|\\end\{\w+\}|[{}]", plain):
        if token.startswith(r"\begin"):
            environments.append(token[7:-1])
        elif token.startswith(r"\end"):
            if not environments or environments.pop() != token[5:-1]:
                found.append(f"{token} closes nothing")
        else:
            depth += 1 if token == "{" else -1
            if depth < 0:
                found.append("a brace closes nothing")
    if depth or environments:
        found.append(f"{depth} braces and {environments} stay open")
    for columns, rows in re.findall(
        r"\\begin\{tabular\}\{([lrc]+)\}(.*?)\\end\{tabular\}", plain, re.S
    ):
        for row in rows.split("\\\\\n"):
            row = re.sub(r"\\shortstack\{[^}]*\}", "", row)
            cells = row.split("&")
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            if len(cells) > 1 and len(cells) + sum(spans) != len(columns):
                found.append(f"not {len(columns)} columns: {row}")
    return found


@pytest.mark.parametrize("layout", ["models_as_blocks", "models_as_columns"])
def test_tables_are_balanced(others, layout):
    assert problems(made(others, layout=layout)) == []
    for name in ("sizes", "checkpoints"):
        assert problems((others / f"{name}.tex").read_text(encoding="utf-8")) == []


def test_the_balance_check_sees_faults(others):
    tex = made(others)
    assert problems(tex.replace("0.812}", "0.812", 1))
    assert problems(tex.replace(" & $-$0.250", "", 1))
    assert problems(tex.replace(r"\end{tabular}", ""))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here")
def test_tables_compile(others):
    first = made(others)
    second = made(others, layout="models_as_columns")
    rest = [(others / f"{name}.tex").read_text("utf-8") for name in ("sizes", "checkpoints")]
    packages = re.search(r"\\usepackage\{.*\}", first)[0]
    document = "\n".join(
        [
            r"\documentclass{article}",
            packages,
            r"\begin{document}",
            first,
            second,
            *rest,
            r"\end{document}",
        ]
    )
    (others / "all.tex").write_text(document, encoding="utf-8")
    result = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=others,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:]
    assert (others / "all.pdf").stat().st_size > 10_000
