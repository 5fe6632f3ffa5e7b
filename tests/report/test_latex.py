"""Tables in LaTeX: printed cells, escaped texts, balanced braces, and compilation."""

import re
import shutil
import subprocess
from io import StringIO

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make_table import make_table
from printed_tables import LABELS, checkpoints_of_m, questions_of_quiz, sizes_of_d

from persistcal.report.latex import PlainColumn, escape, line, number, plain_table
from persistcal.store import artifacts

TABLE = {
    "caption": "50% of R&D with α ≥ 0.05",
    "layout": "models_as_blocks",
    "columns": {"contrast": ["delta0_balanced", "auc"], "full": ["auc"]},
    "blocks": [
        {"title": "First", "rows": [{"estimator": "a"}, {"estimator": "b", "indent": True}]},
        {"rows": [{"estimator": "a", "label": "Again_a"}, {"estimator": "none"}]},
    ],
}


def make_example(**changes):
    """Return LaTeX and CSV of estimators a and b for two models and two datasets."""
    columns = [("contrast", "delta0_balanced"), ("contrast", "auc"), ("full", "auc")]
    metrics, tests = [], []
    for owner in [(model, dataset, dataset) for model in "mn" for dataset in "de"]:
        metrics += [
            (*owner, estimator, "odds", *column, "mean", value, "")
            for estimator, value in (("a", 0.81234), ("b", -0.25))
            for column in columns
        ]
        tests += [
            (*owner, "a+b", "odds", *column, "a", "b", 1.0, -0.1, column[0] == "full")
            for column in columns
        ]
    return make_table(
        pd.DataFrame(metrics, columns=artifacts.METRICS.schema.names),
        pd.DataFrame(tests, columns=artifacts.SIGNIFICANCE.schema.names[:12]),
        table="my_table",
        description={**TABLE, **changes},
        labels=LABELS,
        missing_ok=False,
        models=["m", "n"],
        datasets={"d": [], "e": []},
    )


def body(tex):
    """Return the rows below the last heading, without rules."""
    rows = [row for row in tex.split("Method", 1)[1].splitlines() if row.endswith(r"\\")]
    return [row.removesuffix(r" \\") for row in rows[1:]]


def test_a_table_can_have_a_block_per_model():
    tex, _ = make_example()
    a = r"\textbf{0.812} & \textbf{0.812} & \textbf{0.812}"
    b = r"\underline{$-$0.250} & \underline{$-$0.250} & $-$0.250"
    assert body(tex)[:5] == [
        r"\multicolumn{1}{l}{\:\textit{First}} & \multicolumn{3}{c}{R\&D\_1, 100\% quiz}",
        f"a & {a}",
        rf"\,\raisebox{{0.5ex}}{{\(\llcorner\)}} The b & {b}",
        "Again\\_a & 0.812 & 0.812 & 0.812",  # not compared, so not marked
        "none & -- & -- & --",
    ]
    assert len(body(tex)) == 4 * 5  # two models, two datasets
    assert r"\caption{50\% of R\&D with $\alpha$ $\geq$ 0.05}" in tex
    assert r"\label{tab:my-table}" in tex
    assert (
        r" & \multicolumn{2}{c}{Contrast} & \multicolumn{1}{c}{Full} \\" + "\n"
        r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}" in tex
    )


def test_a_table_can_have_columns_per_model():
    tex, _ = make_example(layout="models_as_columns", blocks=TABLE["blocks"][:1])
    assert (
        r" & \multicolumn{3}{c}{R\&D\_1} & \multicolumn{3}{c}{Model n} \\" + "\n"
        r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}" in tex
    )
    rows = body(tex)
    assert rows[0].endswith(r"\multicolumn{6}{c}{100\% quiz}")
    assert rows[1] == "a & " + " & ".join([r"\textbf{0.812}"] * 6)
    assert len(rows) == 2 * 3


def test_a_table_of_one_model_and_dataset_has_no_heading():
    tex, _ = make_example(models=["m"], datasets=["e"], blocks=TABLE["blocks"][1:])
    assert body(tex)[0].startswith("Again")


def test_the_csv_contains_the_printed_cells_and_marks():
    tex, csv = make_example()
    cells = pd.read_csv(StringIO(csv), dtype={"value": str}, keep_default_na=False)
    print_escaped = [
        cell for row in body(tex) for cell in row.split(" & ")[1:] if "multi" not in cell
    ]
    assert len(cells) == len(print_escaped) == 4 * 4 * 3
    plain = sorted(re.sub(r"\\\w+\{|\}", "", cell).replace("$", "") for cell in print_escaped)
    assert sorted(cells["value"].replace("", "--")) == plain
    assert cells["bold"].sum() == tex.count(r"\textbf")
    assert cells["underline"].sum() == tex.count(r"\underline")
    assert not (cells["bold"] & cells["underline"]).any()


def print_escaped(tex):
    """Return escaped text in the way LaTeX prints it."""
    commands = {
        "textbackslash{}": "\\", "textasciitilde{}": "~", "textasciicircum{}": "^",
        "textless{}": "<", "textgreater{}": ">", **{c: c for c in "&%$#_{}"},
    }  # fmt: skip
    parts = re.split(r"\\(text\w+\{\}|[&%$#_{}])", tex)
    for plain in parts[::2]:
        # Text between commands has no special characters and no ligatures.
        assert not re.search(r"[\\~^&%$#_\n]|--|''|``|,,|[?!]`|[{](?![}])|(?<![{])[}]", plain)
    parts[::2] = [plain.replace("{}", "") for plain in parts[::2]]
    parts[1::2] = [commands[command] for command in parts[1::2]]
    return "".join(parts)


# Letters that become formulas are tested below.
@settings(deadline=None)
@given(st.text() | st.text("\\~^&%$#_{}<>-'`,?![]*\n\t\0\x85\u2028 a", max_size=30))
def test_escaped_text_is_printed_verbatim(text):
    text = re.sub("[→≥≤Δα-ω]", "", text)
    plain = re.sub(r"[\0-\x1f\x7f-\x9f\u2028\u2029]", " ", text)
    assert print_escaped(escape(text)).replace("?", " ") == plain.replace("?", " ")


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("R&D, 40% of step_1", r"R\&D, 40\% of step\_1"),
        ("β < μ > Δ", r"$\beta$ \textless{} $\mu$ \textgreater{} $\Delta$"),
        ("→ ≥ ≤", r"$\to$ $\geq$ $\leq$"),
        ("a\0b\x1b[31mc\ud800\x9f", "a?b?[31mc??"),  # cannot be printed
        ("one\n\ntwo\r\tthree\u2028four", "one  two  three four"),
    ],
)
def test_letters_that_latex_lacks_become_formulas_or_question_marks(text, latex):
    assert escape(text) == latex


def test_a_row_never_begins_with_an_argument_of_the_previous_line_break():
    # `\\\\ [SCIENCE]` is a space of length SCIENCE, and `\\\\*` forbids a page break.
    assert line(["[SCIENCE] Who?", "x"]) == r"{}[SCIENCE] Who? & x \\"
    assert line(["* starred"]) == r"{}* starred \\"


def test_rows_are_grouped_below_model_and_dataset():
    rows = pd.DataFrame({"model": ["m", "n", "m"], "dataset": "d", "value": [1, 2, 3]})
    labels = {"models": {"m": "Model"}, "datasets": {"d": "R&D"}}
    tex = plain_table(rows, [PlainColumn("Value", "value")], "Values.", "values", labels).tex
    assert tex.split("\\midrule\n")[1:] == [
        "\\multicolumn{1}{c}{\\textit{Model, R\\&D}} \\\\\n1 \\\\\n3 \\\\\n",
        "\\multicolumn{1}{c}{\\textit{n, R\\&D}} \\\\\n2 \\\\\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n",
    ]


def test_numbers_are_rounded_to_the_printed_digits():
    values = {1: "1.000", 0.0005001: "0.001", -0.0004: "0.000", -0.0005001: "$-$0.001"}
    assert {value: number(value) for value in values} == values
    assert (number(-0.25, 2), number(float("nan"))) == ("$-$0.25", "--")


def problems(tex):
    """Return faults in nesting and columns of `tex`, without TeX."""
    plain = re.sub(r"\\[\\{}%&$#_]|%.*", lambda m: r"\\" * (m[0] == r"\\"), tex)
    faults, depth, environments = [], 0, []
    for token in re.findall(r"\\begin\{\w+\}|\\end\{\w+\}|[{}]", plain):
        if token.startswith(r"\begin"):
            environments.append(token[7:-1])
        elif token.startswith(r"\end"):
            if not environments or environments.pop() != token[5:-1]:
                faults.append(f"{token} closes nothing")
        else:
            depth += 1 if token == "{" else -1
            if depth < 0:
                faults.append("a brace closes nothing")
    if depth or environments:
        faults.append(f"{depth} braces and {environments} stay open")
    for columns, rows in re.findall(
        r"\\begin\{tabular\}\{([lrc]+)\}(.*?)\\end\{tabular\}", plain, re.S
    ):
        for row in rows.split("\\\\\n"):
            row = re.sub(r"\\shortstack\{[^}]*\}", "", row)
            cells = row.split("&")
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            if len(cells) > 1 and len(cells) + sum(spans) != len(columns):
                faults.append(f"not {len(columns)} columns: {row}")
    return faults


def every_table():
    results = [
        make_example(layout=layout)[0] for layout in ("models_as_blocks", "models_as_columns")
    ]
    plain_tables = [sizes_of_d(), checkpoints_of_m()]
    plain_tables += [questions_of_quiz(f"question_{k}") for k in ("categories", "examples")]
    return results + [table.tex for table in plain_tables]


def test_braces_environments_and_columns_of_tables_are_balanced():
    assert [problems(tex) for tex in every_table()] == [[]] * 6
    tex, _ = make_example()  # the check notices faults
    assert problems(tex.replace("0.812}", "0.812", 1))
    assert problems(tex.replace(" & $-$0.250", "", 1))
    assert problems(tex.replace(r"\end{tabular}", ""))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here")
def test_tables_compile_in_latex(tmp_path):
    tables = every_table()
    packages = re.search(r"\\usepackage\{.*\}", tables[0])[0]
    lines = [r"\documentclass{article}", packages, r"\begin{document}", *tables]
    document = "\n".join([*lines, r"\end{document}"])
    (tmp_path / "all.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    result = subprocess.run(command, cwd=tmp_path, **options)
    assert result.returncode == 0, result.stdout[-2000:]
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
