"""`persistcal plan`: the smallest difference that a planned study can detect."""

import pandas as pd
import pytest
from command_line import run

from persistcal.store.artifacts import SIGNIFICANCE, write_csv


def plan(words):
    return run("plan", *words.split())


def test_a_plan_from_guessed_rates_agrees_with_the_normal_approximation(capsys):
    guess = "--accuracy 0.6 --changed 200 200 --agreement 0.75 --difference 0.1"
    assert plan(f"--questions 2000 {guess}") == 0

    heading, accuracy, delta, auc, one, five, *needed = capsys.readouterr().out.splitlines()
    assert heading == "Found in 80 % of studies of 2,000 questions:"
    # 2.80 √(0.2 / 2000) = 0.028, by the normal approximation
    assert float(accuracy.split(": ")[1]) == pytest.approx(0.028, abs=0.001)
    # 2.80 √(0.25 (1/200 + 1/200)) = 0.140; pseudo-questions add 2 / 200 to each variance of 1
    assert float(delta.split(": ")[1]) == pytest.approx(0.141, abs=0.002)
    assert 0 < float(auc.split(": ")[1]) < 0.14
    # of one estimator: 3.08 standard errors (of two at once: 2.24 + 0.84); strata of 200, 600,
    # 200 and 1,000 questions with a variance of 1/12 have a mean with an error of 0.0168
    assert one.startswith("AUC above .5, for knew, moved or knows: ")
    assert float(one.split(": ")[1]) == pytest.approx(0.5 + 3.08 * 0.0168, abs=0.002)
    # two tests of 200 against 200 questions, of which both are passed in 80 %: .89 each
    assert five.startswith("AUC above .5 in all five tests, for followed: ")
    assert float(five.split(": ")[1]) == pytest.approx(0.5 + 3.47 * 0.0289, abs=0.003)

    # (2.8016 / 0.1)² (4 x 0.25 - 0.1²) / 4 (1 / 0.1 + 1 / 0.1) = 3,886
    name, number = needed[0].split(": ")
    assert name == "questions for a Δ₀ᵇ of 0.1"
    assert int(number.replace(",", "")) == pytest.approx(3886, rel=0.03)

    capsys.readouterr()
    assert plan(f"--questions 2000 --estimators 5 {guess}") == 0

    among_five = capsys.readouterr().out.splitlines()[2]
    # Five estimators need the quantile 2.81 instead of 1.96: (2.81 + 0.84) / (1.96 + 0.84)
    assert float(among_five.split(": ")[1]) == pytest.approx(0.141 * 3.65 / 2.80, abs=0.003)
    assert plan("--questions 2000 --changed 200 200 --agreement 0.96 --difference 0.1") == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == "questions for a Δ₀ᵇ of 0.1: impossible by this guess"


def test_a_plan_from_a_small_study_scales_its_simultaneous_interval(tmp_path, capsys):
    row = ("m", "d", "d", "x", "odds", "contrast", "auc", "a", "b", 0.1, 0.02, True, 0.0, 0.196)
    names = SIGNIFICANCE.schema.names
    together, seeds = (0.0, 0.2, 0.05, True), (0, 0.0, 0.2, 0.05)
    table = pd.DataFrame([(*row, 0.05, 0.05, *together, *seeds)], columns=names)
    write_csv(table, str(tmp_path / "significance.csv"), SIGNIFICANCE)
    assert plan(f"--questions 400 --results {tmp_path} 100 --difference 0.14") == 0
    # Standard error: 0.196 / 3.92 = 0.05 on 100 questions, 0.025 on 400. The half-width of the
    # simultaneous interval is 0.1 = 2 errors. Difference: (2 + 0.8416) x 0.025 = 0.071.
    # Questions for 0.14: 100 (2.8416 x 0.05 / 0.14)² = 103.
    line = capsys.readouterr().out.splitlines()[1]
    assert line == "m d contrast AUC, a − b: 0.071; questions for 0.14: 103"
    write_csv(table[:0], str(tmp_path / "significance.csv"), SIGNIFICANCE)
    assert plan(f"--questions 400 --results {tmp_path} 100") == 1
    assert "compares no two estimators; leave --results out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--questions 100 --accuracy 0.1 --changed 45 45", 1, "guess other changes"),
        ("--questions 100 --agreement 1.5", 1, "agreement is 1.5; give a number between 0"),
        ("--questions 100 --ties 1", 1, "ties is 1; give a number between 0 and 1"),
        ("--questions 100 --difference 0", 1, "difference is 0; give a number between"),
        ("--questions 100 --results nowhere 100", 1, "give the folder --out of compare"),
        ("--questions 100 --results nowhere -5", 1, "asked is -5; give a whole number"),
        ("--questions 100 --results here", 2, "2 arguments"),
        ("--questions 1", 2, "--questions"),
        ("--questions 100000000000", 2, "--questions is 100,000,000,000; give at most"),
    ],
)
def test_impossible_guesses_are_refused_with_the_option(words, code, message, capsys):
    assert plan(words) == code
    assert message in capsys.readouterr().err
