"""Baselines that know groups of questions only, on answers counted by hand."""

import numpy as np
import pandas as pd
import pytest
from measure_confounds import measure_confounds

from persistcal.analyses import confounds
from persistcal.store import artifacts

# Two checkpoints, of whose train questions the first knows 3 of 4 about rivers and 1 of 4
# about lakes; the second 1 of 4 and 3 of 4.
TRAIN = {"river": ("1110", "1000"), "lake": ("0001", "1110")}
# Test questions: what was forgotten of rivers (2) and lakes (1), learnt of rivers (1) and
# lakes (4), and what did not change.
TEST = {"river": ("110" + "10", "001" + "10"), "lake": ("1" + "0000" + "1", "0" + "1111" + "1")}


def answers():
    rows = []
    for split, by_group in (("train", TRAIN), ("test", TEST)):
        for group, outcomes in by_group.items():
            for checkpoint, outcome in zip(("first", "second"), outcomes, strict=True):
                rows += [
                    (checkpoint, f"{split}-{group}-{n}", split, c == "1")
                    for n, c in enumerate(outcome)
                ]
    return pd.DataFrame(rows, columns=["checkpoint", "question_id", "split", "correct"])


def known():
    ids = sorted(set(answers()["question_id"]))
    water = [name.split("-")[1] for name in ids]
    return pd.DataFrame({"category": water, "length": ["1"] * len(ids)}, index=ids)


HOW = {"min_contrast": 1, "pairs": "all", "n_replicates": 50, "seed": 1}


def measured():
    rows = confounds.measure_confounds(answers(), known(), ["first", "second"], **HOW)
    return rows.set_index("attribute")


def test_the_category_tells_some_of_what_changed():
    # It trusts the first checkpoint on rivers (.75 to .25), the second on lakes. Of the three
    # regressions the two rivers are right: (2 - 1) / 3; of the five improvements the four
    # lakes: (4 - 1) / 5. The mean is (1/3 + 3/5) / 2.
    row = measured().loc["category"]
    assert row["delta0_balanced"] == pytest.approx((1 / 3 + 3 / 5) / 2)
    assert row["n_groups"] == 2
    assert row["lower_2_5pct"] <= row["delta0_balanced"] <= row["upper_97_5pct"]


def test_full_auc_of_the_category():
    # At the first checkpoint rivers have .75 and 3 right, 2 wrong, lakes .25, 2 right and 4
    # wrong; at the second rivers .25, 2 right and 3 wrong, lakes .75, 5 right and 1 wrong. So
    # right answers are 8 at .75 and 4 at .25, wrong ones 3 and 7:
    # (8 * 7 + (8 * 3 + 4 * 7) / 2) / (12 * 10).
    assert measured().loc["category", "full_auc"] == pytest.approx((56 + 26) / 120)


def test_what_all_questions_share_tells_nothing():
    # Both checkpoints know half of the train questions, so it is sure of neither.
    row = measured().loc["length"]
    assert row["delta0_balanced"] == 0
    # Trusting the second on everything is no knowledge either.
    trained = answers()
    trained.loc[
        (trained["checkpoint"] == "second") & (trained["split"] == "train"), "correct"
    ] = True
    rows = confounds.measure_confounds(trained, known(), ["first", "second"], **HOW)
    assert rows.set_index("attribute").loc["length", "delta0_balanced"] == 0


def test_groups_without_train_questions_get_the_mean():
    rest = answers()
    rest = rest[~((rest["split"] == "train") & rest["question_id"].str.contains("lake"))]
    train, test = (rest[rest["split"] == split] for split in ("train", "test"))
    rated = confounds.group_means(train, test, known()["category"])
    lakes = rated[rated["question_id"].str.contains("lake")]
    assert lakes.groupby("checkpoint")["confidence"].unique().map(list).to_dict() == {
        "first": [0.75],
        "second": [0.25],
    }


def questions():
    texts = [
        "Which country is Lyon in?",
        "Which country is Oslo in?",
        "What is the capital of Mali?",
    ]
    return pd.DataFrame(
        {
            "question_id": list("abc"),
            "index": range(3),
            "split": ["train", "test", "few_shot"],
            "question": texts,
            "references": [["France"], ["Norway"], ["Bamako"]],
            "any_of": True,
            "category": ["city", "city", "capital"],
            "excluded": False,
        }
    )


def facts():
    return pd.DataFrame(
        {
            "question_id": list("abc"),
            "relation": ["city", "city", "capital"],
            "question": questions()["question"],
            "answer": ["France", "Norway", "Bamako"],
            "group": ["Europe", "Europe", "Africa"],
            "weight": [3.0, 1.0, 1.0],
            "split": questions()["split"],
        }
    )


def test_attributes():
    table = confounds.attributes(questions(), facts())
    # Category, continent and length are the same of both questions that are asked.
    assert table.to_dict("index") == {
        "a": {"popularity": "10", "first_letter": "L"},
        "b": {"popularity": "5", "first_letter": "O"},
    }
    assert list(confounds.attributes(questions())) == ["first_letter"]


def test_no_train_answers():
    with pytest.raises(ValueError, match="'second' has no answer to a train question"):
        lost = answers()
        lost = lost[(lost["checkpoint"] == "first") | (lost["split"] == "test")]
        confounds.measure_confounds(lost, known(), ["first", "second"], **HOW)
    with pytest.raises(ValueError, match="do not differ in any attribute"):
        confounds.measure_confounds(answers(), known()[[]], ["first", "second"], **HOW)


def test_script():
    ids = known().index
    table = pd.DataFrame(
        {
            "question_id": ids,
            "index": range(len(ids)),
            "split": [name.split("-")[0] for name in ids],
            "question": "Name?",
            "references": [["x"]] * len(ids),
            "any_of": True,
            "category": known()["category"].to_numpy(),
            "excluded": False,
        }
    )
    given = answers().assign(model="m", dataset="d")
    about = table.assign(dataset="d"), artifacts.empty(artifacts.FACTS).assign(dataset=[])
    how = {
        "min_contrast": {"d": 1},
        "pairs": "all",
        "n_replicates": 20,
        "seed": 1,
        "labels": {"models": {"m": "Model & Co"}, "datasets": {"d": "Quiz"}},
    }
    text, rows = measure_confounds(given, *about, **how)
    assert rows["attribute"].tolist() == ["category"]
    assert rows["delta0_balanced"].tolist() == pytest.approx([(1 / 3 + 3 / 5) / 2])
    assert r"\textit{Model \& Co, Quiz}" in text and "Category & 2 & 0.467 & [" in text
    lost = given[(given["checkpoint"] == "second") | (given["split"] == "test")]
    with pytest.raises(ValueError, match=r"m, d: .*take 'd' out of analyses.confounds"):
        measure_confounds(lost, *about, **how)
    assert np.isfinite(rows["full_auc"]).all()
