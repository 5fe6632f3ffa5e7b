"""Baselines that know groups of questions only, on answers counted by hand."""

import pandas as pd
import pytest
from measure_confounds import measure_confounds

from persistcal.analyses import confounds
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store import artifacts

# Two checkpoints: of the train questions the first knows 3 of 4 about rivers and 1 of 4
# about lakes, the second 1 of 4 and 3 of 4.
TRAIN = {"river": ("1110", "1000"), "lake": ("0001", "1110")}
# Test questions: what was forgotten of rivers (2) and lakes (1), learnt of rivers (1) and
# lakes (4), and what did not change.
TEST = {"river": ("110" + "10", "001" + "10"), "lake": ("1" + "0000" + "1", "0" + "1111" + "1")}
ANSWERS = pd.DataFrame(
    [
        (checkpoint, f"{split}-{group}-{n}", split, outcome == "1")
        for split, by_group in (("train", TRAIN), ("test", TEST))
        for group, outcomes in by_group.items()
        for checkpoint, of_checkpoint in zip(("first", "second"), outcomes, strict=True)
        for n, outcome in enumerate(of_checkpoint)
    ],
    columns=["checkpoint", "question_id", "split", "correct"],
)
IDS = sorted(set(ANSWERS["question_id"]))
GROUPS = [name.split("-")[1] for name in IDS]
KNOWN = pd.DataFrame({"category": GROUPS, "length": "1"}, index=IDS)
BOOTSTRAP = {"min_direction": 1, "n_replicates": 50, "seed": 1}


def measured(answers=ANSWERS, known=KNOWN):
    how = {"min_contrast": 1, "pairs": "all", **BOOTSTRAP}
    rows = confounds.measure_confounds(
        answers, known, ["first", "second"], EvaluationSettings(**how)
    )
    return rows.set_index("attribute")


def question_table(ids, splits, texts, categories):
    columns = {"question_id": ids, "index": range(len(ids)), "split": splits, "question": texts}
    rest = {"references": [["x"]] * len(ids), "any_of": True, "category": categories}
    return pd.DataFrame({**columns, **rest, "excluded": False})


def test_the_category_tells_some_of_what_changed():
    # It trusts the first checkpoint on rivers (.75 to .25), the second on lakes. Of the three
    # regressions the two rivers are right: (2 - 1) / 3; of the five improvements the four
    # lakes: (4 - 1) / 5. The mean is (1/3 + 3/5) / 2.
    row = measured().loc["category"]
    assert row["delta0_balanced"] == pytest.approx((1 / 3 + 3 / 5) / 2)
    assert row["n_groups"] == 2
    assert row["lower_2_5pct"] <= row["delta0_balanced"] <= row["upper_97_5pct"]
    # Full AUC: at the first checkpoint rivers have .75 and 3 right, 2 wrong, lakes .25, 2 right
    # and 4 wrong; at the second rivers .25, 2 right and 3 wrong, lakes .75, 5 right and 1
    # wrong. So right answers are 8 at .75 and 4 at .25, wrong ones 3 and 7:
    # (8 * 7 + (8 * 3 + 4 * 7) / 2) / (12 * 10).
    assert row["full_auc"] == pytest.approx((56 + 26) / 120)


def test_what_all_questions_share_tells_nothing():
    # Both checkpoints know half of the train questions, so it is sure of neither.
    assert measured().loc["length", "delta0_balanced"] == 0
    # Trusting the second on everything is no knowledge either.
    of_second = (ANSWERS["checkpoint"] == "second") & (ANSWERS["split"] == "train")
    trained = ANSWERS.assign(correct=ANSWERS["correct"] | of_second)
    assert measured(trained).loc["length", "delta0_balanced"] == 0


def test_groups_without_train_questions_get_the_mean():
    train, test = (ANSWERS[ANSWERS["split"] == split] for split in ("train", "test"))
    rivers = train[train["question_id"].str.contains("river")]
    rated = confounds.group_means(rivers, test, KNOWN["category"])
    lakes = rated[rated["question_id"].str.contains("lake")]
    found = lakes.groupby("checkpoint")["confidence"].unique().map(list).to_dict()
    assert found == {"first": [0.75], "second": [0.25]}


def test_attributes():
    texts = ["Which country is Lyon in?", "Which country is Oslo in?", "Capital of Mali?"]
    splits, kinds = ["train", "test", "few_shot"], ["city", "city", "capital"]
    questions = question_table(list("abc"), splits, texts, kinds)
    facts = questions[["question_id"]].assign(
        relation=kinds, group=["Europe", "Europe", "Africa"], weight=[3.0, 1.0, 1.0]
    )
    # Category, continent and length are the same of both questions that are asked.
    assert confounds.attributes(questions, facts).to_dict("index") == {
        "a": {"popularity": "10", "first_letter": "L"},
        "b": {"popularity": "5", "first_letter": "O"},
    }
    assert list(confounds.attributes(questions)) == ["first_letter"]


LOST = ANSWERS[(ANSWERS["checkpoint"] == "first") | (ANSWERS["split"] == "test")]


@pytest.mark.parametrize(
    ("answers", "known", "message"),
    [
        (LOST, KNOWN, "'second' has no answer to a train question"),
        (ANSWERS, KNOWN[[]], "do not differ in any attribute"),
    ],
)
def test_what_cannot_be_measured_is_refused(answers, known, message):
    with pytest.raises(ValueError, match=message):
        measured(answers, known)


def test_script():
    splits = [name.split("-")[0] for name in IDS]
    questions = question_table(IDS, splits, "Name?", GROUPS)
    about = questions.assign(dataset="d"), artifacts.empty(artifacts.FACTS).assign(dataset=[])
    labels = {"models": {"m": "Model & Co"}, "datasets": {"d": "Quiz"}}
    settings = EvaluationSettings(min_contrast=1, **BOOTSTRAP)
    how = {"settings": {"d": settings}, "labels": labels}
    untold = ANSWERS.assign(model="m", dataset="d", answer=None)
    text, rows = measure_confounds(untold, *about, **how)
    assert list(rows) == artifacts.CONFOUNDS.schema.names
    assert rows["attribute"].tolist() == ["category"]
    assert rows["delta0_balanced"].tolist() == pytest.approx([(1 / 3 + 3 / 5) / 2])
    assert r"\textit{Model \& Co, Quiz}" in text and "Category & 2 & 0.467 & [" in text
    with pytest.raises(ValueError, match=r"m, d: .*take 'd' out of analyses.confounds"):
        measure_confounds(LOST.assign(model="m", dataset="d", answer=None), *about, **how)
    # The only reference of the 8 training questions is "x", so that right answers have a rarity
    # of 1 and wrong ones of 1 / (1 + 8): it rises with all that is gained
    texts = ANSWERS["correct"].map({True: "rare", False: "x"})
    told = untold.assign(answer=texts)
    text, rows = measure_confounds(told, *about, **how)
    scores = rows.set_index("attribute")[["n_groups", "delta0_balanced", "full_auc"]]
    assert scores.loc["answer_rarity"].tolist() == [2, 1, 1]
    assert rows["attribute"].tolist() == ["category", *confounds.ANSWER_BASELINES]
    assert "Answer: rarer among training references & 2 & 1.000" in text
