"""What recipes mean, on a model with checkpoints a < b (earlier) < c < d < e (evaluation)."""

import pytest

from study import selection

CHOSEN = ["sc", "posthoc", "joint", "respective", "surrogate", "copy"]
CONFIG = {
    "models": {
        "m": {
            "earlier": ["a", "b"],
            "evaluation": ["c", "d", "e"],
            "checkpoints": {name: {"step": 10 * n} for n, name in enumerate("abcde", 1)},
        }
    },
    "datasets": {"quiz": {}, "exam": {"train_datasets": ["quiz"]}},
    "training": {"data": "own", "answers": 2, "seeds": [1, 2], "labels": "judged"},
    "recipes": {
        "non_oracle": {"train_on": "earlier"},
        "single": {"train_on": "last_earlier"},
        "joint": {"train_on": "evaluation"},
        "respective": {"train_on": "each_evaluation"},
        "single_data": {"train_on": "evaluation", "data": "first"},
        "pooled": {"train_on": "each_evaluation", "data": "pooled"},
        "each": {"train_on": "each", "seeds": [1]},
        "pairs": {"train_on": "adjacent_pairs", "seeds": [1]},
        "mine": {"train_on": ["a", "d"]},
    },
    "estimators": {
        "sc": {"script": "sc.py", "reads": ["evaluation"]},
        "posthoc": {"script": "ph.py", "reads": ["earlier", "evaluation"], "fitted": True},
        "joint": {"recipe": "joint"},
        "respective": {"recipe": "respective"},
        "surrogate": {"recipe": "non_oracle", "weights_of": "last_earlier"},
        "copy": {
            "recipe": "non_oracle",
            "weights_of": "last_earlier",
            "answers_of": "last_earlier",
        },
    },
}


@pytest.mark.parametrize(
    ("recipe", "sets"),
    [
        ("non_oracle", {"a+b": ["a", "b"]}),
        ("single", {"b": ["b"]}),
        ("joint", {"c+d+e": ["c", "d", "e"]}),
        ("respective", {"c": ["c"], "d": ["d"], "e": ["e"]}),
        ("each", {name: [name] for name in "abcde"}),
        ("pairs", {"a+b": ["a", "b"], "b+c": ["b", "c"], "c+d": ["c", "d"], "d+e": ["d", "e"]}),
        ("mine", {"a+d": ["a", "d"]}),
    ],
)
def test_checkpoints_trained_on(recipe, sets):
    assert selection.training_sets(CONFIG, "m", recipe) == sets


@pytest.mark.parametrize(
    ("recipe", "trained_on", "data"),
    [
        ("joint", "c+d+e", ["c", "d", "e"]),
        ("single_data", "c+d+e", ["c"]),
        ("respective", "d", ["d"]),
        ("pooled", "d", ["c", "d", "e"]),
    ],
)
def test_data_learnt_from(recipe, trained_on, data):
    assert selection.data_checkpoints(CONFIG, "m", recipe, trained_on) == data


def test_adapter_used_at_a_checkpoint():
    assert selection.adapter_used_at(CONFIG, "m", "joint", "d") == "c+d+e"
    assert selection.adapter_used_at(CONFIG, "m", "respective", "d") == "d"
    assert selection.adapter_used_at(CONFIG, "m", "non_oracle", "d") == "a+b"


def test_scorings_at_an_evaluation_checkpoint():
    # joint and respective, two seeds each; the ablations score at b
    assert selection.scorings_at(CONFIG, CHOSEN, "m", "d", "quiz") == [
        ("d", "joint", "c+d+e", "quiz", 1),
        ("d", "joint", "c+d+e", "quiz", 2),
        ("d", "respective", "d", "quiz", 1),
        ("d", "respective", "d", "quiz", 2),
    ]


def test_scorings_of_the_ablations_at_the_last_earlier_checkpoint():
    # surrogate: answers of c, d and e; copy: answers of b, once for all; two seeds
    found = selection.scorings_at(CONFIG, CHOSEN, "m", "b", "quiz")
    assert [(s.answers_of, s.seed) for s in found] == [
        (name, seed) for name in "bcde" for seed in (1, 2)
    ]
    assert {s.trained_on for s in found} == {"a+b"}
    assert selection.scorings_at(CONFIG, CHOSEN, "m", "a", "quiz") == []
    assert selection.checkpoints_that_score(CONFIG, CHOSEN, "m", "quiz") == ["b", "c", "d", "e"]


def test_copies_are_found_at_the_last_earlier_checkpoint():
    rows = [
        r
        for r in selection.scored_predictions(CONFIG, CHOSEN, "m", "quiz")
        if r["estimator"] == "copy"
    ]
    assert len(rows) == 3 * 2
    assert {r["checkpoint"] for r in rows} == {"c", "d", "e"}
    assert {(r["scored_at"], r["answers_of"]) for r in rows} == {("b", "b")}


def test_a_dataset_that_only_evaluates_borrows_adapters_and_fits_nothing():
    assert {
        s.train_dataset for s in selection.scorings_at(CONFIG, CHOSEN, "m", "d", "exam")
    } == {"quiz"}
    assert selection.estimators(CONFIG, CHOSEN, "exam", kind="script") == ["sc"]
    assert selection.estimators(CONFIG, CHOSEN, "quiz", kind="script") == ["sc", "posthoc"]


def test_checkpoints_read():
    assert selection.checkpoints_read(CONFIG, "m", "sc") == ["c", "d", "e"]
    assert selection.checkpoints_read(CONFIG, "m", "posthoc") == ["a", "b", "c", "d", "e"]


def test_segments_of_pretraining():
    assert selection.previous_checkpoint(CONFIG, "m", "a") is None
    assert selection.step_before(CONFIG, "m", "a") == 0
    assert selection.previous_checkpoint(CONFIG, "m", "d") == "c"
    assert selection.step_before(CONFIG, "m", "d") == 30


def test_a_verifier_judges_what_its_estimators_read():
    verified = {
        "plain": {"script": "v.py", "reads": ["evaluation"], "verifier": "gcm"},
        "fitted": {
            "script": "p.py",
            "reads": ["earlier", "evaluation"],
            "verifier": "gcm",
            "fitted": True,
        },
    }
    config = {
        **CONFIG,
        "study": {"models": ["m"]},
        "verifiers": {"gcm": {"model": "judge"}, "critic": {"model": "m"}},
        "estimators": {**CONFIG["estimators"], **verified},
    }
    test = {"c": "test", "d": "test", "e": "test"}
    train = {"a": "train", "b": "train"}
    assert selection.splits_to_verify(config, "gcm", "m", "quiz") == {**train, **test}
    # Nothing can be fitted on a dataset that only evaluates, so no train split is judged.
    assert selection.splits_to_verify(config, "gcm", "m", "exam") == test
    assert selection.splits_to_verify(config, "critic", "m", "quiz") == {}
    assert selection.models(config) == ["m", "judge"]
