"""Inputs of rules, for a model m with checkpoints a (training), b and c (evaluation)."""

from pathlib import Path

import pytest
from snakemake.exceptions import WorkflowError
from snakemake.iocontainers import Wildcards

from study.confidences import AnswerSet
from study.inputs import Inputs, existing
from study.paths import files_of_job, one_of, settings_of_job, without_rerun
from study.study import Study

ASKING = {"asks": {"n_samples": 2}, "reads": ["evaluation"], "prompt": "asked.txt"}
CONFIG = {
    "results": "out",
    "models": {
        "m": {
            "repo": "mine",
            "earlier": ["a"],
            "evaluation": ["b", "c"],
            "checkpoints": {
                "a": {"revision": "1"},
                "b": {"change": {"of": "a", "method": "npo", "datasets": ["exam"], "beta": 1}},
                "c": {"merge": {"a": 0.5, "b": 0.5}, "context": {"file": "c.jsonl"}, "seed": 5},
            },
        }
    },
    "datasets": {"quiz": {"source": "bioasq"}, "exam": {"source": "file"}},
    "recipes": {"joint": {"train_on": "all"}},
    "training": {"data": "own", "n_answers": 1, "seeds": [1], "labels": "judged"},
    "verifiers": {},
    "estimators": {
        "sc": {"function": "sc", "reads": ["evaluation"], "compares_answers": True},
        "rank": {"function": "r", "reads": ["evaluation"], "posthoc": "isotonic"},
        "probe": {"function": "p", "reads": ["evaluation"], "fitted": True},
        "probe_of_weights": {"function": "p", "reads": ["evaluation"], "reads_weights": True},
        "asked": ASKING,
        "verified": {"function": "v", "reads": ["evaluation"], "verifier": "other"},
        "adapters": {"recipe": "joint"},
        "copy": {"recipe": "joint", "weights_of": "earlier", "answers_of": "earlier"},
        "surrogate": {"function": "s", "reads": ["last_earlier", "evaluation"]},
        "fitted_surrogate": {
            **{"function": "s", "reads": ["last_earlier", "evaluation"]},
            "posthoc": "isotonic",
        },
        "at_each": {"function": "e", "reads": ["evaluation"], "fit_at": "each"},
    },
    "equivalence": {"backend": "nli"},
    "decoding": {
        **{"strategy": "sample", "n_samples": 4, "n_beams": 9, "temperature": 1, "top_p": 1},
        **{"seed": 17, "max_new_tokens": 8, "batch_size": 2, "memory_gb": 1},
        "backend": "transformers",
    },
    "prompts": {"confidence": "confidence.txt", "few_shot": 5},
    "analyses": {"confounds": {"models": []}},
    "study": {
        **{"models": ["m"], "datasets": ["quiz"], "estimators": ["sc", "rank"]},
        **{"predictions": None, "greedy": False, "tables": [], "complete_tables": False},
    },
}
BEAMS = {**CONFIG, "decoding": CONFIG["decoding"] | {"strategy": "beams"}}
INPUTS, SAMPLED = Inputs(Study(BEAMS), Path()), Inputs(Study(CONFIG), Path())
JOB = Wildcards(fromdict={"model": "m", "checkpoint": "c", "dataset": "quiz"})


def test_parameters_of_an_input_function_are_filled_with_wildcards():
    assert settings_of_job(lambda dataset, model: (model, dataset))(JOB) == ("m", "quiz")
    assert settings_of_job(lambda model, seed="none": seed)(JOB) == "none"
    with pytest.raises(TypeError, match="seed"):
        settings_of_job(lambda seed: seed)(JOB)
    answers = files_of_job(INPUTS.study.evaluation, "{model}-{checkpoint}-{dataset}")
    assert answers(JOB) == ["m-b-quiz", "m-c-quiz"]
    assert without_rerun([1])(JOB, None) == [1]
    assert without_rerun(INPUTS.questions_asked)(JOB, None) == "out/contexts/m/c/quiz.parquet"
    assert one_of(["a.b", "c"]) == r"a\.b|c" and one_of([]) == "(?!)"


def test_a_checkpoint_with_a_context_reads_questions_with_passages():
    assert INPUTS.questions_asked("m", "b", "quiz") == "out/questions/quiz.parquet"
    files = ["out/questions/quiz.parquet", "out/contexts/m/c/quiz.parquet"]
    assert INPUTS.questions_of_each("m", ["a", "b", "c"], "quiz") == files


def test_rules_depend_on_the_weights_that_the_study_makes():
    assert INPUTS.made_files("m", "a") == []
    changed = INPUTS.made_files("m", "b")
    assert changed[0] == "out/changed/m/b/model.safetensors" and len(changed) == 5
    assert INPUTS.made_files("m", "c") == changed  # c is a merge of a and b
    base = INPUTS.checkpoint_to_change("m", "b")
    assert base == {"before": "out/checkpoints/m/a.json", "beside_before": []}
    assert INPUTS.questions_of_change("m", "b") == ["out/questions/exam.parquet"]
    change = {"of": "a", "datasets": ["exam"], "method": "npo", "beta": 1}
    assert INPUTS.study.state("m", "b")["change"] == change
    assert INPUTS.made_by("change") == r"m(?=/(?:b)[./])" and INPUTS.made_by("api") == "(?!)"


def test_a_checkpoint_can_have_a_seed_of_its_own():
    assert SAMPLED.search("m", "b")["draw"] == {"temperature": 1, "top_p": 1, "seed": 17}
    assert SAMPLED.search("m", "c")["draw"]["seed"] == 5
    assert SAMPLED.search("m", "c")["n_beams"] == 4
    search = INPUTS.search("m", "b")
    assert search["draw"] is None and search["n_beams"] == 9


def test_only_bioasq_selects_few_shot_examples_by_type():
    assert INPUTS.few_shot("m", "b", "quiz")["by_category"]
    assert not INPUTS.few_shot("m", "b", "exam")["by_category"]


def test_an_estimator_reads_the_files_that_its_entry_declares():
    # Jobs per checkpoint: a fitted estimator reads the training checkpoints, too.
    assert INPUTS.study.checkpoints_read("m", "sc", "c") == ["c"]
    assert INPUTS.study.checkpoints_read("m", "probe", "c") == ["a", "c"]
    files = INPUTS.further_files("m", "quiz", "sc")
    assert files["entailment_model"] == "out/entailment/model.json"
    assert "checkpoints" not in files
    files = INPUTS.further_files("m", "quiz", "probe_of_weights", "c")
    assert files["checkpoints"] == ["out/checkpoints/m/c.json"]
    assert files["questions"][-1] == "out/contexts/m/c/quiz.parquet"
    assert INPUTS.replies_read("m", "quiz", "sc") == []
    replies = INPUTS.replies_read("m", "quiz", "asked")
    assert replies == [f"out/replies/m/{c}/quiz/test/asked.parquet" for c in "bc"]


@pytest.mark.parametrize(
    ("estimator", "read", "rated", "labelled"),
    [
        ("sc", "b/test c/test", "b/test c/test", ""),
        # fitted on labelled train answers of the training checkpoint a
        ("rank", "a/train b/test c/test", "a/train b/test c/test", "a/train"),
        ("surrogate", "a/test b/test c/test", "b/test c/test", ""),
        (
            "fitted_surrogate",
            "a/train a/test b/test c/test",
            "a/train b/test c/test",
            "a/train",
        ),
        # fitted on unlabelled train answers of each evaluation checkpoint
        ("at_each", "b/train b/test c/train c/test", "b/train b/test c/train c/test", ""),
    ],
)
def test_an_estimator_reads_only_the_splits_that_it_uses(estimator, read, rated, labelled):
    for rows, expected in (
        (INPUTS.study.answers_read("m", estimator), read),
        (INPUTS.study.answers_rated("m", estimator), rated),
        (INPUTS.study.answers_labelled("m", estimator), labelled),
    ):
        assert [f"{row.checkpoint}/{row.split}" for row in rows] == expected.split()


def test_a_job_of_one_checkpoint_reads_the_split_that_it_rates():
    assert INPUTS.study.answers_read("m", "sc", "c", "own") == [AnswerSet("c", "test")]
    assert INPUTS.study.answers_read("m", "sc", "a", "train") == [AnswerSet("a", "train")]
    fitted = [AnswerSet("a", "train"), AnswerSet("c", "test")]
    assert INPUTS.study.answers_read("m", "probe", "c", "own") == fitted
    assert INPUTS.study.answers_rated("m", "probe", "c", "own") == fitted
    assert INPUTS.study.answers_labelled("m", "probe", "c") == fitted[:1]
    assert INPUTS.study.answers_labelled("m", "rank", "c") == []
    two_splits = [AnswerSet("c", "train"), AnswerSet("c", "test")]
    assert INPUTS.study.answers_read("m", "at_each", "c", "own") == two_splits


OWN = "b/test b/half1 b/half2 c/test c/half1 c/half2"


@pytest.mark.parametrize(
    ("estimator", "read", "rated"),
    [
        ("sc", OWN, OWN),
        # The training checkpoint is asked once.
        ("fitted_surrogate", f"a/train a/test {OWN}", f"a/train {OWN}"),
        # A verifier rates each answer once.
        ("verified", "b/test c/test", "b/test c/test"),
    ],
)
def test_estimators_of_samples_read_both_halves_of_rated_checkpoints(estimator, read, rated):
    for rows, expected in (
        (SAMPLED.study.answers_read("m", estimator), read),
        (SAMPLED.study.answers_rated("m", estimator), rated),
    ):
        assert [f"{row.checkpoint}/{row.split}" for row in rows] == expected.split()


def test_adapters_score_both_halves_and_copied_confidences_none():
    scores = files_of_job(SAMPLED.study.scores_needed, SAMPLED.paths.scores)
    job = {"model": "m", "dataset": "quiz"}
    files = scores(Wildcards(fromdict={**job, "estimator": "adapters"}))
    assert files == [
        f"out/scores/m/{checkpoint}/quiz/joint/{answers}.parquet"
        for answers in ("own", "half1", "half2")
        for checkpoint in "bc"
    ]
    halves = [
        use for use in SAMPLED.study.score_sources("m", "adapters") if use["split"] == "half1"
    ]
    assert halves[0] == {
        "split": "half1",
        "checkpoint": "b",
        "answers": "half1",
        "scored_at": "b",
        "answers_of": "b",
    }
    copied = scores(Wildcards(fromdict={**job, "estimator": "copy"}))
    assert copied == ["out/scores/m/a/quiz/joint/own.parquet"]
    assert SAMPLED.clusters_to_score("m", "b", "quiz", "joint", "half2") == [
        "out/clusters/m/b/quiz/half2.parquet"
    ]


def test_a_second_ask_has_other_examples_than_every_checkpoint_at_first():
    models = {"m": {**CONFIG["models"]["m"]}}
    models["m"]["checkpoints"] = {**models["m"]["checkpoints"], "b": {"examples": 1}}
    again = {**BEAMS, "models": models, "study": {**CONFIG["study"], "again": True}}
    inputs = Inputs(Study(again), Path())
    example_sets = {
        (checkpoint, split): inputs.few_shot("m", checkpoint, "exam", split).get(
            "example_set", 0
        )
        for checkpoint in "bc"
        for split in ("train", "test", "again")
    }
    # b has the second set at first, so that a second ask has the third or the fourth one
    assert example_sets == {
        **{("b", "train"): 1, ("b", "test"): 1, ("b", "again"): 3},
        **{("c", "train"): 0, ("c", "test"): 0, ("c", "again"): 2},
    }
    assert inputs.study.examples_needed == 4 * 5
    read = inputs.study.answers_read("m", "sc")
    assert [f"{row.checkpoint}/{row.split}" for row in read] == [
        *("b/test", "b/again", "c/test", "c/again")
    ]


@pytest.mark.parametrize(
    "changes", [{"n_samples": 3}, {"temperature": 0}, {"strategy": "beams"}]
)
def test_three_samples_greedy_answers_and_beams_have_no_halves(changes):
    study = Study({**CONFIG, "decoding": CONFIG["decoding"] | changes})
    assert study.halves == () and SAMPLED.study.halves == ("half1", "half2")


def test_the_page_shows_training_checkpoints_only_on_training_datasets():
    transfer = {"blocks": [{}], "transfer": True, "datasets": ["exam"]}
    exam = {"source": "file", "train_datasets": ["quiz"]}
    study = {**CONFIG["study"], "tables": ["transfer"], "complete_tables": True}
    datasets = {**CONFIG["datasets"], "exam": exam}
    config = {**BEAMS, "datasets": datasets, "study": study, "tables": {"transfer": transfer}}
    names = Inputs(Study(config), Path()).shown_on_page("{checkpoint}-{dataset}")
    assert names == ["a-quiz", "b-quiz", "b-exam", "c-quiz", "c-exam"]


def test_a_missing_or_incomplete_prompt_is_refused_with_its_key(tmp_path):
    inputs = Inputs(Study(CONFIG), tmp_path)
    with pytest.raises(WorkflowError, match=r"prompts.confidence is confidence.txt, and there"):
        inputs.confidence_prompt()
    (tmp_path / "confidence.txt").write_text("{question}")
    with pytest.raises(WorkflowError, match=r"prompts.confidence .* lacks the field {answer}"):
        inputs.confidence_prompt()
    (tmp_path / "confidence.txt").write_text("{question} {answer}")
    assert inputs.confidence_prompt() == "{question} {answer}"
    with pytest.raises(WorkflowError, match=r"nowhere does not exist; correct it"):
        existing(str(tmp_path / "nowhere"), "correct it")
