"""The step that a comparison prints next can be taken literally and leads to a decision."""

import re
import shlex

import pandas as pd
import pytest
from command_line import run

from persistcal.api.display import Comparison

# Right answers of 36 at .95 and of 36 at .9, at v1 and at v2; 20 answers at .4 are wrong
WORLDS = {
    "kept": ((36, 36), (36, 35), "nothing to label: the threshold .900"),
    "broken": ((36, 36), (36, 8), ".95 of v2 (selected on v2)"),
    "lost": ((36, 36), (9, 9), "no threshold is sure on v2"),
    "new": ((20, 20), (36, 36), ".90 of v2 (selected on v2)"),
    "near": ((36, 36), (36, 24), ".90 of v1 (undecided on v2)"),
    "constant": None,
}
FORMS = {  # a column and its values, options, and the words that both commands have
    "plain": ("confidence", 1, ""),
    "renamed": ("conf", 1, "--columns confidence=conf"),
    "of 100": ("confidence", 100, "--scale 100"),
    "uncertainty": ("doubt", -1, "--uncertainty doubt"),
    "estimators": ("confidence", 1, ""),
}


def rows_of(world, counts, n=36):
    top, second = counts
    right = [1] * top + [0] * (n - top) + [1] * second + [0] * (n - second) + [0] * 20
    stated = [0.5] * len(right) if world == "constant" else [0.95] * n + [0.9] * n + [0.4] * 20
    ids = [f"{world}{n}-{number}" for number in range(len(right))]
    return pd.DataFrame(
        {"dataset": world, "question_id": ids, "confidence": stated, "correct": right}
    )


def write(name, rows, form):
    column, scale, _ = FORMS[form]
    values = 1 - rows["confidence"] if scale < 0 else rows["confidence"] * scale
    written = rows.assign(confidence=values.round(3)).rename(columns={"confidence": column})
    if form == "estimators":
        rough = written.assign(estimator="rough", confidence=written["confidence"].round(1))
        written = pd.concat([written.assign(estimator="fine"), rough])
    written.to_csv(name, index=False)


@pytest.mark.parametrize("form", FORMS)
def test_each_printed_step_runs_as_printed_and_decides(form, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Comparison, "to_html", lambda *_: "<html>")
    for version in (0, 1):
        parts = [
            rows_of(name, world[version] if world else (30 + version, 30))
            for name, world in WORLDS.items()
        ]
        write(f"v{version + 1}.csv", pd.concat(parts), form)
    options = shlex.split(FORMS[form][2])
    words = ["v1.csv", "v2.csv", *options, "--precision", 0.8, "--replicates", 200]
    assert run("compare", *words, "--seed", 3, "--out", "compared") == 0
    verdicts, outputs = capsys.readouterr().out.split("model · ")[1:], {}
    assert len(verdicts) == len(WORLDS)
    for verdict in verdicts:
        name = verdict.split(":")[0]
        expected = (WORLDS[name] or ["give a"])[-1]
        step, *commands = verdict.split("Next: ")[1].split("\n  persistcal ")
        commands = [shlex.split(line.split("\n")[0]) for line in commands]
        assert all({*options} <= {*line} for line in commands)
        if not commands:
            assert step.startswith(expected)
            continue
        if (lock := tuple(commands[0])) not in outputs:
            assert run(*lock) == 0
            outputs[lock] = capsys.readouterr().out.split("Locked in thresholds.json for ")[1]
        locked = " ".join(outputs[lock].split()).split("; ")
        [line] = {text for text in locked if f"· {name}:" in text}
        assert expected in line
        if len(commands) > 1:
            needed, *_, present, _ = map(int, re.findall(r"\b\d+\b", step.replace(",", "")))
            assert needed > present
            write("new.csv", rows_of(name, (needed, needed - 10), needed), form)
            assert run(*commands[1]) == 0
            assert capsys.readouterr().out.startswith("Gate: pass")
