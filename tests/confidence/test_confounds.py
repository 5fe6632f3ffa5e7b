"""Baselines that see only the group of a question, on answers counted by hand."""

import pandas as pd
import pytest
from measure_confounds import measure_confounds

from persistcal.confidence import confounds
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store import artifacts

# Train accuracy: rivers 3/4 and lakes 1/4 at the first checkpoint, 1/4 and 3/4 at the second.
TRAIN = {"river": ("1110", "1000"), "lake": ("0001", "1110")}
# Test questions: regressions on rivers (2) and lakes (1), improvements on rivers (1) and lakes
# (4), and unchanged answers.
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
GROUP_TABLE = pd.DataFrame({"category": GROUPS, "length": "1"}, index=IDS)
BOOTSTRAP = {"min_direction": 1, "n_replicates": 50, "seed": 1}


def measured(answers=ANSWERS, groups=GROUP_TABLE):
    settings = {"min_contrast": 1, "pairs": "all", **BOOTSTRAP}
    rows = confounds.measure_confounds(
        answers, groups, ["first", "second"], EvaluationSettings(**settings)
    )
    return rows.set_index("attribute")


def question_table(ids, splits, texts, categories):
    columns = {"question_id": ids, "index": range(len(ids)), "split": splits, "question": texts}
    rest = {"references": [["x"]] * len(ids), "any_of": True, "category": categories}
    return pd.DataFrame({**columns, **rest, "excluded": False, "group": ""})


def test_a_category_predicts_changes_if_accuracy_moves_by_category():
    # The baseline prefers the first checkpoint on rivers (.75 to .25) and the second on lakes.
    # That is right for 2 of 3 regressions, (2 - 1) / 3, and 4 of 5 improvements, (4 - 1) / 5.
    row = measured().loc["category"]
    assert row["delta0_balanced"] == pytest.approx((1 / 3 + 3 / 5) / 2)
    assert row["n_groups"] == 2
    assert row["lower_2_5pct"] <= row["delta0_balanced"] <= row["upper_97_5pct"]
    # Full AUC: at the first checkpoint rivers have .75 and 3 right, 2 wrong, lakes .25, 2 right
    # and 4 wrong; at the second rivers .25, 2 right and 3 wrong, lakes .75, 5 right and 1
    # wrong. In total, right answers are 8 at .75 and 4 at .25, and wrong answers 3 and 7:
    # (8 * 7 + (8 * 3 + 4 * 7) / 2) / (12 * 10).
    assert row["full_auc"] == pytest.approx((56 + 26) / 120)


def test_an_attribute_that_all_questions_share_predicts_no_change():
    # Both checkpoints answer half of the train questions correctly.
    assert measured().loc["length", "delta0_balanced"] == 0
    # Always preferring the second checkpoint does not separate changes either.
    of_second = (ANSWERS["checkpoint"] == "second") & (ANSWERS["split"] == "train")
    trained = ANSWERS.assign(correct=ANSWERS["correct"] | of_second)
    assert measured(trained).loc["length", "delta0_balanced"] == 0


def test_a_group_without_train_questions_gets_the_checkpoints_accuracy():
    train, test = (ANSWERS[ANSWERS["split"] == split] for split in ("train", "test"))
    rivers = train[train["question_id"].str.contains("river")]
    rated = confounds.group_means(rivers, test, GROUP_TABLE["category"])
    lakes = rated[rated["question_id"].str.contains("lake")]
    confidences = lakes.groupby("checkpoint")["confidence"].unique().map(list).to_dict()
    assert confidences == {"first": [0.75], "second": [0.25]}


def test_attributes_that_all_questions_share_are_left_out():
    texts = ["Which country is Lyon in?", "Which country is Oslo in?", "Capital of Mali?"]
    splits, kinds = ["train", "test", "few_shot"], ["city", "city", "capital"]
    questions = question_table(list("abc"), splits, texts, kinds)
    facts = questions[["question_id"]].assign(
        relation=kinds, group=["Europe", "Europe", "Africa"], weight=[3.0, 1.0, 1.0]
    )
    # Both questions that are not few-shot examples share category, continent and length.
    assert confounds.attributes(questions, facts).to_dict("index") == {
        "a": {"popularity": "10", "first_letter": "L"},
        "b": {"popularity": "5", "first_letter": "O"},
    }
    assert list(confounds.attributes(questions)) == ["first_letter"]


UNTRAINED = ANSWERS[(ANSWERS["checkpoint"] == "first") | (ANSWERS["split"] == "test")]


@pytest.mark.parametrize(
    ("answers", "groups", "message"),
    [
        (UNTRAINED, GROUP_TABLE, "'second' has no answer to a train question"),
        (ANSWERS, GROUP_TABLE[[]], "do not differ in any attribute"),
    ],
)
def test_answers_without_train_questions_or_attributes_are_refused(answers, groups, message):
    with pytest.raises(ValueError, match=message):
        measured(answers, groups)


def table_of(answers, answer=None, group="", **changes):
    """Return the printed table and the rows of a model's answers with texts."""
    splits = [name.split("-")[0] for name in IDS]
    questions = question_table(IDS, splits, "Name?", GROUPS)
    return measure_confounds(
        answers.assign(model="m", dataset="d", answer=answer),
        questions.assign(dataset="d", group=group),
        artifacts.empty(artifacts.FACTS).assign(dataset=[]),
        settings={"d": EvaluationSettings(min_contrast=1, **BOOTSTRAP | changes)},
        labels={"models": {"m": "Model & Co"}, "datasets": {"d": "Quiz"}},
    )


def test_the_table_of_confounds_has_a_row_per_attribute():
    text, rows = table_of(ANSWERS)
    assert list(rows) == artifacts.CONFOUNDS.schema.names
    assert rows["attribute"].tolist() == ["category"]
    assert rows["delta0_balanced"].tolist() == pytest.approx([(1 / 3 + 3 / 5) / 2])
    assert r"\textit{Model \& Co, Quiz}" in text and "Category & 2 & 0.467 & [" in text
    with pytest.raises(ValueError, match=r"m, d: .*take 'd' out of analyses.confounds"):
        table_of(UNTRAINED)

    # The 8 train questions have the reference "x". The rarity of "rare" is 1, and of "x" it is
    # 1 / (1 + 8), so rarity separates all changes.
    text, rows = table_of(ANSWERS, ANSWERS["correct"].map({True: "rare", False: "x"}))
    scores = rows.set_index("attribute")[["n_groups", "delta0_balanced", "full_auc"]]
    assert scores.loc["answer_rarity"].tolist() == [2, 1, 1]
    assert rows["attribute"].tolist() == ["category", *confounds.ANSWER_BASELINES]
    assert "Answer: rarer among training references & 2 & 1.000" in text


@pytest.mark.parametrize(("group", "has_interval"), [("", True), ("one fact", False)])
def test_questions_about_one_fact_count_as_one_in_the_interval(group, has_interval):
    """There are 5 gained and 3 lost questions, and an interval needs 2 groups of each."""
    _, rows = table_of(ANSWERS, group=group, min_direction=2)
    assert rows["lower_2_5pct"].notna().tolist() == [has_interval]
