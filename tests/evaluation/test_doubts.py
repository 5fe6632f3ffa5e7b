"""Predictions that are valid row by row, but turned, swapped or of other questions."""

import numpy as np
import pandas as pd
import pytest

from persistcal.evaluation.aligned import align
from persistcal.evaluation.predictions import PredictionsError

N = 1_500


def ask(knowledge, rng, *, ask=0):
    """Answer N questions once; right answers have a high confidence."""
    chance = np.where(knowledge, 0.85, 0.15)
    rows = {"question_id": [f"q{i}" for i in range(N)], "ask": ask, "seed": 0}
    confidence = np.clip(chance + rng.normal(0, 0.1, N), 0, 1)
    labels = (rng.random(N) < chance).astype(int)
    rows |= {"confidence": confidence, "correct": labels}
    return pd.DataFrame(rows).assign(train_dataset="d", estimator="e")


def doubts_of(rows, names=("v1", "v2")):
    """Return the sentences of doubt about predictions as one text."""
    return " ".join(align(rows, names).doubts)


def two_versions(rng, asks=(0,)):
    """Ask two versions; the later one has other answers in a quarter of the questions."""
    knowledge = rng.random(N) < 0.5
    later = knowledge ^ (rng.random(N) < 0.25)
    return [
        ask(state, rng, ask=number).assign(checkpoint=name)
        for number in asks
        for name, state in (("v1", knowledge), ("v2", later))
    ]


@pytest.mark.parametrize("turned", [None, "v1", "v2"])
def test_a_confidence_that_is_lower_in_right_answers_is_named(turned):
    rows = pd.concat(two_versions(np.random.default_rng(1)))
    is_turned = rows["checkpoint"] == turned
    rows["confidence"] = rows["confidence"].where(~is_turned, 1 - rows["confidence"])
    sentence = f"e is lower in right answers than in wrong ones at {turned}"
    assert (sentence in doubts_of(rows)) == (turned is not None)


@pytest.mark.parametrize("spread", [0, 0.4])
def test_a_grade_in_place_of_a_confidence_is_named(spread):
    rows = pd.concat(two_versions(rng := np.random.default_rng(6)))
    rows["confidence"] = np.abs(rows["correct"] - spread * rng.random(2 * N))
    assert "it looks like a grade of the answers" in doubts_of(rows)


@pytest.mark.parametrize("shift", [0, 1])
def test_ids_that_are_numbered_in_two_ways_are_named(shift):
    first, second = two_versions(np.random.default_rng(2))
    second["question_id"] = np.roll(second["question_id"], shift)
    doubts = doubts_of(pd.concat([first, second]))
    assert ("as if equal ids named different questions" in doubts) == (shift > 0)


def test_accuracies_far_apart_raise_no_doubt():
    rng = np.random.default_rng(3)
    knowledge = rng.random(N) < 0.3
    first, second = ask(knowledge, rng), ask(knowledge | (rng.random(N) < 0.85), rng)
    rows = pd.concat([first.assign(checkpoint="v1"), second.assign(checkpoint="v2")])
    assert not doubts_of(rows)


def test_few_right_answers_show_no_turned_scale():
    rng = np.random.default_rng(8)
    rows = pd.concat(two_versions(rng)).groupby("checkpoint").head(40)
    sentences = []
    for _ in range(200):
        right = np.tile(rng.permutation(40) < 2, 2)
        sentences.append(doubts_of(rows.assign(confidence=rng.random(80), correct=right)))
    assert " ".join(sentences).count("is lower in right answers") <= 4


@pytest.mark.parametrize(
    ("names", "is_named"),
    [(["s1", "s10", "s2"], True), (["s1", "s2", "s10"], False), (["s10", "s2", "s1"], False)],
)
def test_checkpoints_in_alphabetical_order_are_named(names, is_named):
    rng = np.random.default_rng(7)
    knowledge = rng.random(N) < 0.5
    rows = pd.concat([ask(knowledge, rng).assign(checkpoint=name) for name in names])
    assert ("in the order of time (perhaps s1, s2, s10)" in doubts_of(rows, names)) == is_named


@pytest.mark.parametrize(("share", "has_groups"), [(0, False), (0.2, False), (0.2, True)])
def test_questions_that_are_there_under_two_ids_are_named(share, has_groups):
    rows = pd.concat(two_versions(np.random.default_rng(9)))
    rows = rows.assign(group=rows["question_id"])
    copies = rows[rows["question_id"].str[1:].astype(int) < share * N]
    copies = copies.assign(question_id="again " + copies["question_id"])
    table = pd.concat([rows, copies])
    doubts = doubts_of(table if has_groups else table.drop(columns="group"))
    said = "300 of 1,800 questions have the confidences and labels of another one"
    assert (said in doubts) == (share > 0 and not has_groups)


@pytest.mark.parametrize("labels", ["equal", "new"])
def test_equal_confidences_are_copies_only_with_equal_labels(labels):
    rng = np.random.default_rng(10)
    of_three = np.tile(rng.permutation(N) // 3 / N, 2)
    rows = pd.concat(two_versions(rng)).assign(confidence=of_three)
    if labels == "equal":
        of_equal = rows.groupby(["checkpoint", "confidence"])["correct"]
        rows["correct"] = of_equal.transform("first")
    doubts = doubts_of(rows)
    assert ("1,000 of 1,500 questions" in doubts) == (labels == "equal")


@pytest.mark.parametrize("spread", [0, 0.01])
def test_a_seed_that_is_there_twice_is_named(spread):
    rng = np.random.default_rng(11)
    rows = pd.concat(two_versions(rng))
    other = rows["confidence"] * (1 - spread * rng.random(2 * N))
    doubts = doubts_of(pd.concat([rows, rows.assign(seed=1, confidence=other)]))
    assert ("two seeds of e have equal confidences" in doubts) == (spread == 0)


def test_a_second_ask_in_the_reverse_order_is_refused():
    parts = two_versions(np.random.default_rng(4), asks=(0, 1))
    assert align(pd.concat(parts), ["v1", "v2"]).crossed
    parts[2:] = [parts[2].assign(checkpoint="v2"), parts[3].assign(checkpoint="v1")]
    with pytest.raises(PredictionsError, match=r"v1 and v2 in the reverse order: of \d+"):
        align(pd.concat(parts), ["v1", "v2"])


def test_chance_flips_of_equal_versions_have_no_order():
    rng = np.random.default_rng(5)
    chances, versions = rng.random(N), [(n, v) for n in (0, 1) for v in ("v1", "v2")]
    for _ in range(50):
        parts = [ask(chances > 0.5, rng, ask=n).assign(checkpoint=v) for n, v in versions]
        labels = [(rng.random(N) < chances).astype(int) for _ in versions]
        align(pd.concat(parts).assign(correct=np.concatenate(labels)), ["v1", "v2"])
