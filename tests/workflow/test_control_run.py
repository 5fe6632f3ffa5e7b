"""A control: the same weights after other examples, and with other samples, end to end."""

import pandas as pd
import pytest
import yaml
from own_rows import write_rows
from tiny_models import save_tiny
from workflow_runs import planned, snakemake

from persistcal.store import artifacts

SPLITS = ["few_shot"] * 4 + ["test"] * 12
SAME = {"revision": "base"}
STATES = {"once": SAME, "again": {**SAME, "examples": 1}, "redrawn": {**SAME, "seed": 3}}
CONFIG = {
    "results": "out",
    "models": {"tiny": {"repo": "models", "checkpoints": STATES, "evaluation": list(STATES)}},
    "datasets": {"quiz": {"source": "file", "file": "quiz.jsonl", "min_contrast": 1}},
    "prompts": {"few_shot": 2},
    "decoding": {"strategy": "sample", "n_samples": 4, "max_new_tokens": 2},
    "judge": {"backend": "lexical"},
    "equivalence": {"backend": "lexical"},
    "evaluation": {"replicates": 200},
    "study": {
        "models": ["tiny"],
        "datasets": ["quiz"],
        "estimators": ["self_consistency"],
        "tables": [],
    },
}


def write_quiz(folder, answers):
    rows = [
        {
            "id": f"q{i}",
            "question": f"Where is {i}?",
            "answers": [answers.get(f"q{i}", str(i))],
            "split": split,
        }
        for i, split in enumerate(SPLITS)
    ]
    write_rows(folder / "quiz.jsonl", rows)


def read(folder, kind, table, state):
    return artifacts.read(folder / f"out/{kind}/tiny/{state}/quiz/test.parquet", table)


@pytest.mark.slow
def test_flips_between_states_of_the_same_weights_are_their_contrast_set(tmp_path):
    """The first state's answers are the references, so that changed answers are wrong."""
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    save_tiny(tmp_path / "models" / "base")
    options = {"configs": [tmp_path / "config.yaml"]}
    write_quiz(tmp_path, {})
    first = "out/clusters/tiny/once/quiz/test.parquet"
    snakemake(tmp_path, "--cores", "2", first, **options)
    answers = read(tmp_path, "clusters", artifacts.CLUSTERS, "once")
    answers = answers[answers["cluster"] == 0].set_index("question_id")["answer"].to_dict()
    write_quiz(tmp_path, {q: text for q, text in answers.items() if text.strip()})
    made = ["out/contrast_sets/tiny/quiz.parquet", "out/pairs.csv"]
    snakemake(tmp_path, "--cores", "2", *made, **options)
    correct = {
        state: read(tmp_path, "answers", artifacts.ANSWERS, state).set_index("question_id")
        for state in STATES
    }
    right = pd.DataFrame({state: table["correct"] for state, table in correct.items()})
    assert right["once"].any()
    listed = artifacts.read(tmp_path / made[0], artifacts.CONTRAST_QUESTIONS)
    flipped = listed.groupby(["earlier", "later"])["question_id"].agg(set)
    for pair in (("once", "again"), ("once", "redrawn")):
        flips = right[pair[0]] != right[pair[1]]
        assert flips.any() and flipped[pair] == set(right.index[flips])
    pairs = pd.read_csv(tmp_path / made[1])
    assert {("once", "again"), ("once", "redrawn")} <= set(
        zip(pairs["earlier"], pairs["later"], strict=True)
    )


@pytest.mark.slow
def test_beams_are_asked_again_after_other_examples(tmp_path):
    """A finished study answers nothing anew for it but the second ask."""
    decoding = {"strategy": "beams", "n_beams": 3, "max_new_tokens": 2}
    models = {"tiny": {**CONFIG["models"]["tiny"], "evaluation": ["once", "again"]}}
    models["tiny"]["checkpoints"] = {"once": SAME, "again": {"revision": "other"}}
    config = {**CONFIG, "models": models, "decoding": decoding, "prompts": {"few_shot": 2}}
    save_tiny(tmp_path / "models" / "base")
    save_tiny(tmp_path / "models" / "other", seed=1)
    write_quiz(tmp_path, {})
    path = tmp_path / "config.yaml"
    how = {"configs": [path]}
    path.write_text(yaml.safe_dump(config))
    snakemake(tmp_path, "--cores", "2", "out/claims.csv", **how)
    once = artifacts.read_csv(tmp_path / "out/claims.csv", artifacts.CLAIMS)
    assert set(once["asks"]) == {"one ask"}
    config["study"] = {**config["study"], "again": True}
    path.write_text(yaml.safe_dump(config))
    made = planned(snakemake(tmp_path, "--cores", "2", "out/claims.csv", **how))
    assert made["generate_beams"] == made["judge_answers"] == 2
    assert not made.keys() & {"prepare_questions", "fetch_checkpoint"}
    first, second = (
        artifacts.read(tmp_path / f"out/beams/tiny/once/quiz/{split}.parquet", artifacts.BEAMS)
        for split in ("test", "again")
    )
    assert set(first["question_id"]) == set(second["question_id"])
    assert first["logprob"].tolist() != second["logprob"].tolist()
    rated = artifacts.read(
        tmp_path / "out/predictions/tiny/quiz/self_consistency.parquet", artifacts.PREDICTIONS
    )
    assert set(rated["ask"]) == {0, 90}
    twice = artifacts.read_csv(tmp_path / "out/claims.csv", artifacts.CLAIMS)
    assert set(twice["asks"]) == {"one ask", "cross"}
    own = twice[twice["asks"] == "one ask"].reset_index(drop=True)
    # The word and the statistics of knowledge rest on both asks now
    words = ["basis", "word", "lacking"]
    usual = once[once["metric"].isin(own["metric"])].reset_index(drop=True)
    assert len(own) == 2 and own.drop(columns=words).equals(usual.drop(columns=words))
