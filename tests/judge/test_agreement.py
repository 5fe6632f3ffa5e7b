"""Agreement of an unlearned and a retrained model in the answers that they lost."""

import pandas as pd
import pytest
from measure_agreement import measure_agreement

# Correct at the reference, after unlearning, after retraining; q0 to q3 are in `forget`.
RIGHT = {
    "q0": (True, False, False),
    "q1": (True, False, False),
    "q2": (True, False, True),
    "q3": (True, True, True),
    "q4": (True, True, True),
    "q5": (False, True, True),  # wrong at the reference, so it cannot be lost
}
STATES = ["before", "npo", "retrained"]
ANSWERS = pd.DataFrame(
    [
        {"question_id": question, "checkpoint": state, "correct": right, "split": "test"}
        for question, rights in [*RIGHT.items(), ("seen", (True, False, False))]
        for state, right in zip(STATES, rights, strict=True)
    ]
).assign(model="m", dataset="d")
ANSWERS.loc[ANSWERS["question_id"] == "seen", "split"] = "train"
CATEGORIES = ["forget"] * 4 + ["retain"] * 2 + ["forget"]
QUESTIONS = pd.DataFrame({"question_id": [*RIGHT, "seen"], "category": CATEGORIES})
QUESTIONS["dataset"] = "d"


def test_lost_answers_are_counted_and_compared_by_category():
    text, rows = measure_agreement(
        ANSWERS,
        QUESTIONS,
        reference="before",
        pairs=[("npo", "retrained")],
        checkpoints={"m": {"before": "Before", "npo": "NPO", "retrained": "Retrained"}},
        labels={"models": {"m": "Model"}, "datasets": {"d": "Quiz"}},
    )
    counts = ["known", "gone_first", "gone_second", "gone_both"]
    assert rows.set_index("category")[counts].to_dict("index") == {
        "": {"known": 5, "gone_first": 3, "gone_second": 2, "gone_both": 2},
        "forget": {"known": 4, "gone_first": 3, "gone_second": 2, "gone_both": 2},
        "retain": {"known": 1, "gone_first": 0, "gone_second": 0, "gone_both": 0},
    }

    all_questions, forget, retain = rows["kappa"]
    # Observed agreement 4/5; by chance 3/5 2/5 + 2/5 3/5 = 12/25: (20 - 12) / (25 - 12) = 8/13.
    assert all_questions == pytest.approx(8 / 13)
    # Observed 3/4; by chance 3/4 1/2 + 1/4 1/2 = 1/2: (3/4 - 1/2) / (1 - 1/2) = 1/2.
    assert forget == pytest.approx(0.5)
    assert pd.isna(retain)
    assert "Model, Quiz: NPO, Retrained" in text
    assert "forget & 4 & 0.750 & 0.500 & 0.500 & 0.500" in text
