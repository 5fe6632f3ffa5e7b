"""Data of training: answers, weights, labels, order and learning rate."""

import math
from itertools import chain

import pandas as pd
import pytest

from persistcal.training.data import (
    TrainingQuestion,
    learning_rate,
    pool_sources,
    question_batches,
    recipe_data,
    training_ids,
    training_questions,
)

TEMPLATE = "{question} {answer}?"


def questions_table():
    rows = [
        ("q3", 3, "train", False),
        ("q0", 0, "train", False),
        ("q1", 1, "train", True),
        ("q2", 2, "test", False),
        ("q4", 4, "train", False),
    ]
    frame = pd.DataFrame(rows, columns=["question_id", "index", "split", "excluded"])
    return frame.assign(question=frame["question_id"].str.upper())


def clusters_table():
    rows = [("q0", 0, "a", 0.6), ("q0", 1, "b", 0.2), ("q0", 2, "c", 0.1)]
    rows += [(f"q{i}", 0, "x", 0.5) for i in (1, 2, 3)]  # q4 has no answer
    return pd.DataFrame(rows, columns=["question_id", "cluster", "answer", "probability"])


def labels_table():
    labels = ["correct", "not_attempted", "incorrect", *["correct"] * 3]
    return clusters_table()[["question_id", "cluster"]].assign(label=labels)


def source(n_answers=2):
    frames = questions_table(), clusters_table(), labels_table()
    return training_questions(*frames, template=TEMPLATE, n_answers=n_answers)


def test_candidates_of_a_question_have_normalised_weights_and_labels():
    questions = source()
    # q1 is excluded, q2 is a test question and q4 has no answer; the order is by index.
    assert list(questions) == ["q0", "q3"]
    assert questions["q0"].prompts == ("Q0 a?", "Q0 b?")
    assert questions["q0"].weights == pytest.approx((0.75, 0.25))  # 0.6 / 0.8, 0.2 / 0.8
    assert questions["q0"].labels == (1.0, 0.0)  # not attempted counts as incorrect
    assert questions["q3"] == TrainingQuestion(("Q3 x?",), (1.0,), (1.0,))
    assert source(3)["q0"].weights == pytest.approx((6 / 9, 2 / 9, 1 / 9))
    assert training_ids(questions_table()) == ["q0", "q3", "q4"]  # also without answers


@pytest.mark.parametrize(
    ("clusters", "labels", "message"),
    [
        (clusters_table(), labels_table().iloc[2:], r"'q0'.*no label"),
        (clusters_table().assign(probability=0.0), labels_table(), r"'q0'.*probability 0"),
    ],
)
def test_candidates_without_label_or_probability_are_refused(clusters, labels, message):
    with pytest.raises(ValueError, match=message):
        training_questions(questions_table(), clusters, labels, template=TEMPLATE, n_answers=2)


EARLY = {
    "q0": TrainingQuestion(("a", "b"), (0.75, 0.25), (1.0, 0.0)),
    "q1": TrainingQuestion(("d",), (1.0,), (0.0,)),
}
LATE = {"q0": TrainingQuestion(("b", "c"), (0.5, 0.5), (0.0, 0.0))}


def test_pooled_sources_share_the_candidates_of_a_question():
    third_source = {"q1": TrainingQuestion(("d",), (1.0,), (1.0,))}
    pooled = pool_sources([EARLY, LATE, third_source])
    assert pooled["q0"].prompts == ("a", "b", "c")
    # a: 0.75 / 3; b: 0.25 / 3 + 0.5 / 3; c: 0.5 / 3; the third source lacks q0
    assert pooled["q0"].weights == pytest.approx((0.25, 0.25, 1 / 6))
    assert pooled["q0"].labels == (1.0, 0.0, 0.0)
    # If sources disagree, both labels are kept.
    assert pooled["q1"] == TrainingQuestion(("d", "d"), (1 / 3, 1 / 3), (0.0, 1.0))


def test_a_recipe_selects_the_answers_of_each_checkpoint():
    sources = {"early": EARLY, "late": LATE}
    names = ["early", "late"]
    settings = {"labels": "judged", "seed": 17}
    assert recipe_data(sources, names, data="own", **settings) == sources
    assert recipe_data(sources, names, data="first", **settings) == {
        "early": EARLY,
        "late": EARLY,
    }
    pooled = recipe_data(sources, ["late"], data="pooled", **settings)
    assert pooled == {"late": pool_sources([EARLY, LATE])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "all"}, "own, first or pooled, not 'all'"),
        ({"labels": "true"}, "judged or random_later, not 'true'"),
        ({"checkpoints": ["early", "last"]}, "'last' has no answers"),
    ],
)
def test_unknown_recipes_are_refused(change, message):
    recipe = {"checkpoints": ["early"], "data": "own", "labels": "judged", "seed": 1} | change
    with pytest.raises(ValueError, match=message):
        recipe_data({"early": EARLY}, **recipe)


def test_random_labels_replace_those_of_the_later_checkpoint_by_fair_flips():
    questions = {f"q{i}": TrainingQuestion(("a", "b"), (0.5, 0.5), (1, 1)) for i in range(500)}

    def labels(seed, later="late"):
        sources = recipe_data(
            {"early": questions, later: questions},
            ["early", later],
            data="own",
            labels="random_later",
            seed=seed,
        )
        assert sources["early"] == questions
        assert all(q[:2] == questions[name][:2] for name, q in sources[later].items())
        return [label for q in sources[later].values() for label in q.labels]

    labels_17 = labels(17)
    assert set(labels_17) == {0.0, 1.0}
    # 1,000 fair flips: four standard deviations are 4 * sqrt(1000) / 2 = 63.
    assert abs(sum(labels_17) - 500) < 63
    agreement = sum(a == b for a, b in zip(labels_17[::2], labels_17[1::2], strict=True))
    assert abs(agreement - 250) < 45  # the two candidates' labels are independent
    assert labels(17) == labels_17
    assert labels(18) != labels_17
    assert labels(17, later="later") != labels_17


def test_the_learning_rate_is_constant_and_then_falls_by_a_cosine():
    rates = [learning_rate(step, 100, 2e-4) for step in range(100)]
    # The cosine starts from the peak at step 80.
    assert rates[:81] == [2e-4] * 81
    # Step 80 + k is k / 20 of half a cosine from 2e-4 to 2e-5:
    # 2e-5 + 1.8e-4 * (1 + cos(pi * k / 20)) / 2.
    assert rates[81] == pytest.approx(2e-5 + 1.8e-4 * (1 + math.cos(math.pi / 20)) / 2)
    assert rates[90] == pytest.approx(1.1e-4)  # half way: (2e-4 + 2e-5) / 2
    # At the last step cos(19 pi / 20) = -0.98769: 2e-5 + 1.8e-4 * 0.006156.
    assert rates[99] == pytest.approx(2.1108e-5, rel=1e-4)
    # Of 16 steps 13 are constant; 14 is a third of half a cosine: cos(pi / 3) = 1/2.
    assert learning_rate(14, 16, 2e-4) == pytest.approx(2e-5 + 1.8e-4 * (1 + 1 / 2) / 2)
    assert learning_rate(0, 1, 1.0) == 1.0


def test_each_epoch_has_every_question_once_in_a_new_order():
    ids = [f"q{i}" for i in range(37)]
    batches = question_batches(ids, ids, seed=17, epochs=2, batch_size=16)
    assert [len(batch) for batch in batches] == [16, 16, 5, 16, 16, 5]
    epochs = [list(chain(*batches[:3])), list(chain(*batches[3:]))]
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(ids)
    assert epochs[0] != epochs[1]
    # The shuffle depends on seed + epoch.
    assert question_batches(ids, ids, seed=18, epochs=1, batch_size=16) == batches[3:]
