"""Tables that compare no estimators, of a few made-up rows."""

import pandas as pd

from persistcal.report import tables
from persistcal.store import artifacts

LABELS = {
    "models": {"m": "R&D_1", "n": "Model n"},
    "datasets": {"d": "100% quiz", "e": "Exam"},
    "estimators": {"b": "The b"},
}
SETS = [
    ("m", "d", "x", "y", 30, 20, 10, True, 4),
    ("m", "d", "x", "z", 50, 45, 5, True, 0),
    ("m", "d", "y", "z", 9, 8, 1, False, 1),
    ("m", "e", "x", "y", 7, 6, 1, True, 0),
]
ACCURACIES = [
    ("m", "x", "d", "train", 0.5126, 100),
    ("m", "y", "d", "test", 0.75, 100),
    ("m", "y", "e", "test", 1.0, 100),
]
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


def frame(table, rows):
    return pd.DataFrame(rows, columns=table.schema.names)


def sizes_of_d(dataset="d"):
    """The table of contrast sets."""
    return tables.contrast_set_sizes(
        frame(artifacts.CONTRAST_SETS, SETS),
        dataset=dataset,
        checkpoints={"m": {"x": "40%", "y": "50%", "z": "100%"}},
        min_contrast=10,
        models=LABELS["models"],
        datasets=LABELS["datasets"],
    )


def checkpoints_of_m():
    """The table of checkpoints, where y is not described."""
    described = {"x": {"revision": "step_1", "label": "40%", "tokens": 5.9e11}, "y": {}}
    accuracies = frame(artifacts.ACCURACIES, ACCURACIES)
    names = {kind: LABELS[kind] for kind in ("models", "datasets")}
    return tables.checkpoints(accuracies, described={"m": described}, **names)


def questions_of_quiz(function, keep=lambda rows: rows, **changes):
    """A table of questions, of the rows to `keep` with some columns changed."""
    rows = frame(
        artifacts.QUESTIONS, [(f"q{row[0]}", *row, None, None, None, "") for row in QUESTIONS]
    )
    rows = keep(rows).assign(**changes)
    return getattr(tables, function)(rows, dataset="quiz", datasets={"quiz": "Quiz #1"})
