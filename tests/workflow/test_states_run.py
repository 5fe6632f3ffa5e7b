"""Checkpoints that differ by a passage or by quantization, end to end on tiny models."""

import json

import pytest
import yaml
from own_rows import write_rows
from own_study import lexical_study
from tiny_models import save_tiny
from workflow_runs import PRETRAINING, planned, snakemake

from persistcal.store import artifacts

SPLITS = ["few_shot"] * 2 + ["train"] * 8 + ["test"] * 8
PASSAGES = {"file": "passages.jsonl", "prompt": "passage.txt"}
STATES = {
    "base": {"repo": "models", "revision": "base"},
    "open": {"repo": "models", "revision": "base", "context": PASSAGES},
}
ESTIMATORS = ["verbalised", "oracle"]
HOW = {
    "study": {"tables": ["all_estimators"]},
    "prompts": {"few_shot": 2},
    "decoding": {"n_beams": 3, "max_new_tokens": 3},
    "training": {"seeds": [17], "rank": 2},
}
TARGETS = [f"out/predictions/tiny/quiz/{name}.parquet" for name in ESTIMATORS]


def written(folder, **states):
    """Return a config of the folder with these states on top."""
    model = {"checkpoints": STATES | states, "evaluation": [*STATES, *states]}
    asked = {"quiz": {"source": "file", "file": "quiz.jsonl"}}
    return lexical_study(folder, {"tiny": model}, ESTIMATORS, asked, **HOW)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    rows = [
        {"id": f"q{i}", "question": f"Where is {i}?", "answers": [str(i)], "split": split}
        for i, split in enumerate(SPLITS)
    ]
    passages = [{"question_id": row["id"], "passage": f"See {row['id']}."} for row in rows]
    for name, content in (("quiz", rows), ("passages", passages)):
        write_rows(folder / f"{name}.jsonl", content)
    (folder / "passage.txt").write_text("{passage} {question}\n")
    save_tiny(folder / "models" / "base")
    snakemake(folder, "--cores", "2", *TARGETS, configs=written(folder))
    return folder


def beams(folder, state):
    return artifacts.read(folder / f"out/beams/tiny/{state}/quiz/test.parquet", artifacts.BEAMS)


def test_a_passage_changes_answers_and_confidences_of_the_same_weights(folder):
    closed, opened = beams(folder, "base"), beams(folder, "open")
    assert (closed["logprob"] != opened["logprob"]).any()
    for estimator in ESTIMATORS:
        path = folder / f"out/predictions/tiny/quiz/{estimator}.parquet"
        rated = artifacts.read(path, artifacts.PREDICTIONS)
        assert set(rated["checkpoint"]) == {"base", "open"}
        assert rated["confidence"].between(0, 1).all()


COARSE = {"repo": "models", "revision": "base", "quantization": "int8"}


def test_one_more_state_adds_its_answers_and_jobs_over_all_states(folder):
    """The oracle trains on all states; the other two states have no new answers."""
    configs = written(folder, coarse=COARSE)
    assert planned(snakemake(folder, "-n", *TARGETS, configs=configs)) == {
        "resolve_checkpoint": 1,
        "fetch_checkpoint": 1,
        # test answers, and train answers for the oracle
        **{"generate_beams": 2, "cluster_answers": 2, "judge_answers": 2},
        **{"rate_at_checkpoint": 1, "train_oracle": 1, "score_answers": 3},
        **{"gather_confidences": 2, "join_labels": 2},
    }
    written(folder)


def test_a_merge_with_rounded_weights_answers(folder):
    mixed = {"merge": {"base": 1}, "quantization": "int8", "context": PASSAGES}
    target = "out/beams/tiny/mixed/quiz/test.parquet"
    snakemake(folder, "--cores", "2", target, configs=written(folder, mixed=mixed))
    assert (beams(folder, "mixed")["logprob"] != beams(folder, "open")["logprob"]).any()
    record = json.loads((folder / "out/checkpoints/tiny/mixed.json").read_text())
    assert record["changes"]["quantization"] == "int8"
    written(folder)


def planned_answers(folder, states, *answering):
    """Return the jobs for answers of some of the further `states` of the atlas model."""
    model = {"checkpoints": states, "evaluation": ["p40", *answering]}
    (folder / "more.yaml").write_text(yaml.safe_dump({"models": {"atlas": model}}))
    targets = [f"out/beams/atlas/{state}/atlas/test.parquet" for state in answering]
    configs = [*PRETRAINING, folder / "more.yaml"]
    return planned(snakemake(folder, "-n", *targets, configs=configs))


def test_a_checkpoint_is_pretrained_before_checkpoints_that_derive_from_it(tmp_path):
    states = {"p40-int8": {"merge": {"p40": 1}, "quantization": "int8"}}
    assert planned_answers(tmp_path, states, "p40-int8") == {
        "prepare_atlas": 1,
        "prepare_elements": 1,
        "pretrain_checkpoint": 4,
        "merge_checkpoints": 1,
        "generate_beams": 1,
    }


def test_a_changed_state_is_made_after_the_state_that_it_changes(tmp_path):
    training = {"learning_rate": 0.001, "epochs": 1, "batch_size": 8}
    tuned = {"of": "p40", "method": "fine_tuning", "learn": ["city-country"], **training}
    states = {
        "tuned": {"change": tuned},
        "more": {"change": {**tuned, "of": "tuned", "rank": 2}},
        "more-int8": {"merge": {"more": 1}, "quantization": "int8"},
        "again": {"change": {"method": "retraining", "without": ["city-country"]}},
    }
    assert planned_answers(tmp_path, states, "more-int8", "again") == {
        **{"prepare_atlas": 1, "prepare_elements": 1, "pretrain_checkpoint": 4},
        **{"change_checkpoint": 2, "retrain_checkpoint": 1, "merge_checkpoints": 1},
        "generate_beams": 2,
    }
