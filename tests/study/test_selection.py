"""Selections of a study with checkpoints a < b (training) < c < d < e (evaluation)."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from study.confidences import Scores
from study.inputs import Inputs
from study.study import Evaluated, Study

CONFIG = {
    "results": "out",
    "models": {
        "m": {
            "label": "Model",
            "earlier": ["a", "b"],
            "evaluation": ["c", "d", "e"],
            "checkpoints": {name: {"step": 10 * n} for n, name in enumerate("abcde", 1)},
        },
        "backbone": {},
    },
    "datasets": {"quiz": {}, "exam": {"train_datasets": ["quiz"]}},
    "training": {"data": "own", "n_answers": 2, "seeds": [1, 2], "labels": "judged"},
    "recipes": {
        "single": {"train_on": "last_earlier"},
        "single_data": {"train_on": "evaluation", "data": "first"},
        "pooled": {"train_on": "each_evaluation", "data": "pooled"},
        "each": {"train_on": "each", "seeds": [1]},
        "pairs": {"train_on": "adjacent_pairs", "seeds": [1]},
        "mine": {"train_on": ["a", "d"]},
    },
    "verifiers": {},
    "decoding": {"strategy": "beams"},
    "estimators": {
        "sc": {"function": "sc", "reads": ["evaluation"]},
        "posthoc": {"function": "sc", "reads": ["evaluation"], "posthoc": "isotonic"},
        "non_oracle": {"recipe": {"train_on": "earlier"}},
        "calibrated": {"recipe": "non_oracle", "posthoc": "isotonic"},
        "joint": {"recipe": {"train_on": "evaluation"}},
        "respective": {"recipe": {"train_on": "each_evaluation"}},
        "surrogate": {"recipe": "non_oracle", "weights_of": "last_earlier"},
        "copy": {
            "recipe": "non_oracle",
            "weights_of": "last_earlier",
            "answers_of": "last_earlier",
        },
    },
    "tables": {
        "main": {"blocks": [{"rows": [{"estimator": "sc"}, {"estimator": "joint"}]}]},
        "ablations": {"blocks": [{"rows": [{"estimator": "sc"}, {"estimator": "copy"}]}]},
        "fitted": {"blocks": [{"rows": [{"estimator": "posthoc"}]}]},
        "elsewhere": {"transfer": True, "datasets": ["exam"], "blocks": [{}]},
        "of_others": {"models": ["n"], "blocks": [{}]},
    },
    "judge": {"backend": "lexical"},
    "study": {
        "models": ["m"],
        "datasets": ["quiz"],
        "estimators": ["sc", "joint"],
        "tables": ["main", "ablations", "fitted", "elsewhere", "of_others"],
        "complete_tables": True,
    },
}
STUDY = Study(CONFIG)
INPUTS = Inputs(STUDY, Path())


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
def test_a_recipe_trains_on_the_sets_of_checkpoints_that_it_names(recipe, sets):
    assert STUDY.training_sets("m", recipe) == sets


@pytest.mark.parametrize(
    ("recipe", "trained_on", "data"),
    [
        ("joint", "c+d+e", ["c", "d", "e"]),
        ("single_data", "c+d+e", ["c"]),
        ("respective", "d", ["d"]),
        ("pooled", "d", ["c", "d", "e"]),
    ],
)
def test_an_adapter_learns_answers_of_its_own_or_other_checkpoints(recipe, trained_on, data):
    assert STUDY.data_checkpoints("m", recipe, trained_on) == data


def test_each_checkpoint_uses_the_adapter_of_its_recipe():
    assert STUDY.adapter_used_at("m", "joint", "d") == "c+d+e"
    assert STUDY.adapter_used_at("m", "respective", "d") == "d"
    assert STUDY.adapter_used_at("m", "non_oracle", "d") == "a+b"


def scorings(checkpoint, recipe, answers, dataset="quiz"):
    rows = STUDY.scorings("m", checkpoint, dataset, recipe, answers)
    return [SimpleNamespace(**row) for row in rows]


def test_a_scoring_job_contains_the_adapters_seeds_and_answers_that_are_needed():
    assert [tuple(vars(s).values()) for s in scorings("d", "joint", "own")] == [
        ("d", "joint", "c+d+e", "quiz", 1),
        ("d", "joint", "c+d+e", "quiz", 2),
    ]
    assert [s.trained_on for s in scorings("d", "respective", "own")] == ["d", "d"]
    surrogate = scorings("b", "non_oracle", "evaluation")
    assert [(s.answers_of, s.seed) for s in surrogate] == [
        (name, seed) for name in "cde" for seed in (1, 2)
    ]
    assert {s.trained_on for s in surrogate} == {"a+b"}
    # Transfer: every adapter of one seed
    assert [s.trained_on for s in scorings("d", "each", "transfer")] == list("abcde")
    assert {s.answers_of for s in scorings("d", "each", "transfer")} == {"d"}
    assert {s.train_dataset for s in scorings("d", "joint", "own", "exam")} == {"quiz"}


def test_an_estimator_reads_scores_of_the_checkpoints_that_rate_its_answers():
    assert STUDY.scores_needed("m", "joint") == [Scores(c, "joint", "own") for c in "cde"]
    assert STUDY.scores_needed("m", "surrogate") == [Scores("b", "non_oracle", "evaluation")]
    assert STUDY.scores_needed("m", "copy") == [Scores("b", "non_oracle", "own")]
    assert STUDY.scores_needed("m", "calibrated") == [
        *(Scores(c, "non_oracle", "train") for c in "ab"),
        *(Scores(c, "non_oracle", "own") for c in "cde"),
    ]


def test_joint_surrogate_and_copied_confidences_use_the_right_weights_and_answers():
    def used(estimator):
        keys = ("checkpoint", "scored_at", "answers", "answers_of")
        return [
            "".join(use[key][0] for key in keys) for use in STUDY.score_sources("m", estimator)
        ]

    # Letters: checkpoint, source of the weights, [o]wn or [e]valuation, source of the answers
    assert used("joint") == ["ccoc", "ddod", "eeoe"]
    assert used("surrogate") == ["cbec", "dbed", "ebee"]
    assert used("copy") == ["cbob", "dbob", "ebob"]


def test_the_weights_of_a_rater_are_read_too():
    entry = {"function": "base_probability", "reads": ["evaluation"]}
    raters = {"last": {**entry, "rater": "last_earlier"}, "own": {**entry, "rater": "d"}}
    raters = {name: {**entry, "reads_weights": True} for name, entry in raters.items()}
    study = Study({**CONFIG, "estimators": raters, "results": "out"})
    inputs = Inputs(study, Path())

    def weights(*place):
        return [Path(p).stem for p in inputs.further_files("m", "quiz", *place)["checkpoints"]]

    assert weights("last") == ["c", "d", "e", "b"]
    assert weights("last", "c") == ["c", "b"]
    assert weights("own", "d") == ["d"]
    assert [study.needs_earlier(name) for name in raters] == [True, False]


def test_complete_tables_add_evaluations_to_those_of_the_study():
    quiz = [Evaluated("m", "quiz", name) for name in ("sc", "joint")]
    assert STUDY.shown("main") == quiz
    assert [row.estimator for row in STUDY.shown("ablations")] == ["sc", "copy"]
    # A transfer table adds its dataset. Estimators are trained on the study's dataset.
    on_exam = [Evaluated("m", "exam", name) for name in ("sc", "joint")]
    assert STUDY.shown("elsewhere") == on_exam
    added = [Evaluated("m", "quiz", name) for name in ("copy", "posthoc")]
    assert STUDY.evaluated == quiz + added + on_exam
    assert STUDY.model_datasets == [("m", "quiz"), ("m", "exam")]
    # Tables for models outside the study are left out.
    assert list(STUDY.tables) == ["main", "ablations", "fitted", "elsewhere"]
    assert STUDY.datasets == ["quiz", "exam"]


def test_other_tables_leave_out_estimators_that_the_study_lacks():
    study = Study({**CONFIG, "study": {**CONFIG["study"], "complete_tables": False}})
    assert study.evaluated == [Evaluated("m", "quiz", name) for name in ("sc", "joint")]
    assert study.model_datasets == [("m", "quiz")]
    assert [row.estimator for row in study.shown("ablations")] == ["sc"]
    assert study.datasets == ["quiz"]


def test_each_checkpoint_continues_pretraining_from_the_previous_one():
    assert STUDY.previous_checkpoint("m", "a") is None
    assert STUDY.step_before("m", "a") == 0
    assert STUDY.previous_checkpoint("m", "d") == "c"
    assert STUDY.step_before("m", "d") == 30


def test_a_verifier_rates_the_splits_that_its_estimators_read():
    plain = {"function": "verifier", "reads": ["evaluation"], "verifier": "gcm"}
    estimators = {"plain": plain, "fitted": {**plain, "posthoc": "isotonic"}}
    study = Study(
        {
            **CONFIG,
            "verifiers": {"gcm": {"model": "judge"}, "critic": {"model": "m"}},
            "estimators": {**CONFIG["estimators"], **estimators},
        }
    )
    test = {"c": "test", "d": "test", "e": "test"}
    train = {"a": "train", "b": "train"}
    assert study.splits_to_verify("gcm", "m", "quiz") == {**train, **test}
    # The dataset exam is only evaluated, so its train split is not rated.
    assert study.splits_to_verify("gcm", "m", "exam") == test
    assert study.splits_to_verify("critic", "m", "quiz") == {}
    assert study.models_made == ["m", "judge"]


def test_a_study_needs_questions_for_few_shot_examples_and_training():
    prompts = {"prompts": {"few_shot": 5}}
    inputs = Inputs(Study({**CONFIG, **prompts}), Path())
    assert inputs.study.least_questions("quiz") == {"few_shot": 5, "train": 1}
    chosen = {**CONFIG["study"], "estimators": ["sc"]}
    # An ablation of a complete table is trained.
    inputs = Inputs(Study({**CONFIG, **prompts, "study": chosen}), Path())
    assert inputs.study.least_questions("quiz") == {"few_shot": 5, "train": 1}
    chosen["complete_tables"] = False
    inputs = Inputs(Study({**CONFIG, **prompts, "study": chosen}), Path())
    assert inputs.study.least_questions("quiz") == {"few_shot": 5, "train": 0}
    # The third set of five examples needs 15 questions.
    later = {**CONFIG["models"]["m"], "checkpoints": {"d": {"examples": 2}}}
    models = {**CONFIG["models"], "m": later}
    inputs = Inputs(Study({**CONFIG, **prompts, "models": models}), Path())
    assert inputs.study.least_questions("quiz")["few_shot"] == 15


def test_only_a_paid_judge_can_skip_candidates_that_nothing_reads():
    def judged(backend, clusters, **changes):
        judge = {"backend": backend, "clusters": clusters}
        return Study({**CONFIG, "judge": judge, **changes}).judged_clusters

    assert judged("openai", "all") is judged("openai_batch", "all") is None
    assert judged("lexical", "needed") is None
    assert judged("openai", "needed") == 2
    answers = CONFIG["study"] | {"answers": "mine.csv"}
    assert judged("openai", "needed", study=answers) == 1


def test_a_verifiers_backbone_answers_test_questions_only():
    assert STUDY.splits_asked("m") == ["train", "test"]
    assert STUDY.splits_asked("backbone") == ["test"]
