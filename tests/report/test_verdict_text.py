"""A verdict in the terminal: four lines or a table, and the next step."""

import json

import numpy as np
import pytest

from persistcal.evaluation.findings import Finding, threshold_finding
from persistcal.report.page.contents import Update
from persistcal.report.page.verdict import (
    WIDTH,
    CommandWords,
    Rated,
    Verdict,
    next_step,
    verdict_record,
    verdict_text,
)
from persistcal.store import artifacts

MOVED = {"statistics": {"moved": [0.854, 0.781, 0.894]}, "lacking": ""}
FOLLOWS = Finding("following", "yes", "followed", *[0.0] * 3, "cross", "", MOVED)
GAP = [0.74, 0.64, 0.046, 0.157]
ERROR = {"margin": 0.02, "gaps": [GAP], "p_adjusted": 0.01, "value": 0.1, "noise_floor": 0.03}
CALIBRATED = Finding("calibration", "no", "over-confident", 0.1, evidence=ERROR)


def seed_of_threshold(verdict="kept", **more):
    """Return a row of THRESHOLDS: precision .94, coverage rises from 26 % to 36 %."""
    return {
        **dict.fromkeys(artifacts.THRESHOLDS.schema.names, 0.6),
        **{"verdict": verdict, "seed": 0, "confident_regressions": 2, "target": 0.8},
        **{"later_precision": 0.94, "earlier_coverage": 0.26, "later_coverage": 0.36},
        **{"later_precision_lower_2_5pct": 0.91, "later_precision_upper_97_5pct": 0.97},
        **more,
    }


KEPT = threshold_finding([seed_of_threshold()])


def rated(label, threshold=KEPT):
    return Rated(("quiz", label), label, FOLLOWS, CALIBRATED, threshold)


def verdict(*rows):
    numbers = {"n_questions": 300, "gained": 77, "lost": 35, "earlier": 0.5, "later": 0.64}
    accuracy = Finding("accuracy", "yes", "rises", 0.14, 0.072, 0.206, evidence=numbers)
    return Verdict("m · quiz", Update(0, 1, "v1", "v2"), accuracy, [*rows], 0.8, "")


def test_the_verdict_on_one_estimator_has_a_line_for_each_question():
    lines = verdict_text(verdict(rated("A")), CommandWords("v1 v2")).splitlines()
    assert lines == [
        "m · quiz: v1 → v2, 300 questions, 77 gained, 35 lost",
        "",
        "accuracy     ✓ rises: .500 → .640, by .140 [.072, .206]",
        "confidence   ✓ followed: moved .854 [.781, .894]; .5 is chance",
        "calibration  ✗ over-confident at v2: says .740, right .640, off by .100 [.046, .157] "
        "(SmoothECE",
        "             .100, noise floor .030)",
        "threshold    ✓ kept: 94 % right [91, 97]; answers 26 → 36 % of questions; 2 confident "
        "answers broke",
        "",
        "Next: nothing to label: the threshold .600 of A can stay.",
    ]


def test_several_estimators_are_rows_and_a_baseline_has_no_marks():
    rows = [rated("A"), rated("Long name"), Rated(("quiz", "end"), "End")]
    text = verdict_text(verdict(*rows), CommandWords("v1 v2"))
    table = text.split("\n\n")[2].splitlines()
    assert [line.split("  ")[0] for line in table[2:]] == ["A", "Long name", "End"]
    assert len({line.index("✓") for line in table[2:4]}) == 1
    assert (
        "✓ moved .854 [.781, .894]  ✗ says .740, right .640  ✓ 94 % right, 26 → 36 %"
        in table[2]
    )
    assert not set("✓✗?") & set(table[4])
    assert "Did confidence follow? Yes for A and Long name." in text


def test_a_table_fits_a_terminal_and_names_keep_all_their_words():
    name = "verbalised confidence after a chain of thought, calibrated"
    lines = verdict_text(verdict(rated(name), rated("x" * 50)), CommandWords()).splitlines()
    assert max(map(len, lines)) <= WIDTH
    table = [line.split("  ")[0] for line in lines[6:12]]  # the names, in three lines each
    assert " ".join(table[:3]) == name
    assert "".join(table[3:]) == "x" * 50


@pytest.mark.parametrize(
    ("word", "labels_to_decide", "step"),
    [
        ("broken", 0.0, "let v2 select a threshold, as the old one is broken"),
        ("undecided", 2416.0, "2,416 labelled answers of v2 above the threshold .600"),
        ("undecided", np.inf, "let v2 select a threshold, as no number of labels decides"),
        ("", np.nan, "let v2 select a threshold, as no old one is sure"),
    ],
)
def test_the_next_step_after_a_threshold_is_lost_decides_on_one(word, labels_to_decide, step):
    seed = seed_of_threshold(word, labels_to_decide=labels_to_decide)
    row = rated("A", threshold_finding([seed]))
    advice, lock, *check = next_step(
        verdict(row), CommandWords("v1.csv --columns a=b", " --columns a=b")
    )
    assert advice.startswith(step)
    assert lock == (
        "persistcal threshold v1.csv --columns a=b --precision 0.8 --lock thresholds.json"
    )
    text = "persistcal threshold --columns a=b --check thresholds.json new.csv"
    assert check == ([text] if "2,416" in step else [])


def test_the_next_step_is_another_estimator_if_its_threshold_is_kept():
    best = rated("A", threshold_finding([seed_of_threshold("broken")]))
    seeds = [seed_of_threshold(seed=n, threshold=cut) for n, cut in ((1, 0.7), (2, 0.75))]
    [advice] = next_step(verdict(best, rated("B", threshold_finding(seeds))), CommandWords())
    assert advice.startswith("choose B; nothing to label: the threshold .700 to .750 of B")


def test_a_verdict_in_json_has_null_for_missing_numbers():
    record = verdict_record(verdict(rated("A"), Rated(("quiz", "end"), "End")), CommandWords())
    first, last = json.loads(json.dumps(record, allow_nan=False))["estimators"]
    assert first["calibration"]["lower"] is None
    assert (first["confidence"]["answer"], first["calibration"]["answer"]) == ("yes", "no")
    assert record["next"].startswith("nothing to label")
    assert last["baseline"] and last["confidence"] is None
