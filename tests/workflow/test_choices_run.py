"""Multiple choice that is asked of checkpoints, end to end on tiny models."""

import numpy as np
import pandas as pd
import pytest
from own_rows import write_rows
from own_study import lexical_study
from tiny_models import save_tiny
from workflow_runs import snakemake

from persistcal.store import artifacts

SPLITS = ["few_shot"] * 2 + ["train"] * 8 + ["test"] * 40
DIGITS = list("1468")  # each is one token
ESTIMATORS = ["option_probability", "option_margin", "self_consistency", "oracle"]
STATES = {name: {"revision": name} for name in ("first", "second")}
HOW = {
    "study": {"tables": ["all_estimators"]},
    "prompts": {"few_shot": 2},
    "training": {"seeds": [17], "rank": 2},
    "evaluation": {"replicates": 200},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choices")
    rng = np.random.default_rng(3)
    rows = [
        {"question": f"Where is {i}?", "options": DIGITS, "gold": int(gold), "split": split}
        for i, (gold, split) in enumerate(zip(rng.integers(4, size=50), SPLITS, strict=True))
    ]
    write_rows(folder / "quiz.jsonl", rows)
    model = {"repo": "models", "checkpoints": STATES, "evaluation": [*STATES]}
    asked = {"quiz": {"source": "file", "file": "quiz.jsonl"}}
    configs = lexical_study(folder, {"tiny": model}, ESTIMATORS, asked, **HOW)
    for seed, name in enumerate(STATES):
        save_tiny(folder / "models" / name, seed=seed)
    snakemake(folder, "out/metrics.csv", "--cores", "2", configs=configs)
    return folder


def test_the_likeliest_option_is_the_answer_and_the_gold_option_is_correct(folder):
    questions = pd.read_json(folder / "quiz.jsonl", lines=True)
    for checkpoint in STATES:
        place = f"tiny/{checkpoint}/quiz/test.parquet"
        beams = artifacts.read(folder / f"out/beams/{place}", artifacts.BEAMS)
        best = beams.loc[beams.groupby("question_id")["logprob"].idxmax()]
        answers = artifacts.read(folder / f"out/answers/{place}", artifacts.ANSWERS)
        rows = answers.merge(best, on="question_id").sort_values("question_id")
        assert len(rows) >= 40 and (rows["answer"] == rows["text"]).all()
        asked = artifacts.read(folder / "out/questions/quiz.parquet", artifacts.QUESTIONS)
        gold = asked.set_index("question_id")["gold"].reindex(rows["question_id"])
        assert (rows["correct"].to_numpy() == (rows["beam"].to_numpy() == gold)).all()
        assert sorted(asked["gold"]) == sorted(questions["gold"])


def test_every_estimator_rates_options(folder):
    assert set(pd.read_csv(folder / "out/metrics.csv")["estimator"]) == set(ESTIMATORS)
    path = folder / "out/predictions/tiny/quiz"
    probability, consistency = (
        artifacts.read(path / f"{name}.parquet", artifacts.PREDICTIONS)["confidence"]
        for name in ("option_probability", "self_consistency")
    )
    np.testing.assert_allclose(probability, consistency)  # each option is a cluster
    assert (probability > 0.25).all()
