"""A user's answers, from the file to metrics and page."""

from collections import Counter

import numpy as np
import pandas as pd
import yaml
from workflow_runs import snakemake

from persistcal import evaluate
from persistcal.store import artifacts


def test_the_answers_of_a_study_give_its_metrics_again(study, tmp_path):
    """A finished study's beams, written out as a user's answers and read in again."""
    out = study / "out"
    questions = artifacts.read(out / "questions" / "atlas.parquet", artifacts.QUESTIONS)
    asked = questions.loc[
        ~questions["excluded"], ["question_id", "split", "question", "references"]
    ]
    parts = []
    for path in sorted((out / "beams" / "atlas").glob("*/atlas.parquet")):
        beams = artifacts.read(path, artifacts.BEAMS).merge(asked, on="question_id")
        parts.append(beams.assign(checkpoint=path.parent.name, model="atlas", dataset="atlas"))
    rows = pd.concat(parts).rename(columns={"beam": "sample", "text": "answer"})
    rows = rows.merge(questions[["question_id", "index"]]).sort_values(["index", "sample"])
    names = ["model", "checkpoint", "dataset", "question_id", "question", "references"]
    names += ["answer", "sample", "logprob", "split"]
    rows[names].to_json(
        tmp_path / "answers.jsonl", orient="records", lines=True, double_precision=15
    )
    evaluation = ["p40", "p50", "p90", "p100"]
    mine = {
        "results": "out",
        "models": {
            "atlas": {"label": "A", "earlier": ["p10", "p20", "p30"], "evaluation": evaluation}
        },
        "datasets": {"atlas": {"label": "B", "min_contrast": 1}},
        "equivalence": {"backend": "lexical"},
        "judge": {"backend": "lexical"},
        "evaluation": {"replicates": 200},
        "study": {
            "answers": "answers.jsonl",
            "models": ["atlas"],
            "datasets": ["atlas"],
            "estimators": ["end_correct", "self_consistency", "self_consistency_posthoc"],
        },
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(mine))
    snakemake(tmp_path, "out/metrics.csv", "--cores", "2", configs=[tmp_path / "mine.yaml"])
    key = ["estimator", "seed", "conditioning", "scope", "metric"]
    theirs, ours = (
        artifacts.read_csv(path / "metrics.csv", artifacts.METRICS).set_index(key)["value"]
        for path in (out, tmp_path / "out")
    )
    assert len(ours) > 30
    pd.testing.assert_series_equal(
        ours.sort_index(), theirs.loc[ours.index].sort_index(), rtol=1e-12
    )


def test_several_models_and_datasets_are_kept_apart(tmp_path):
    """Metrics of self-consistency from its definition: the share of the most frequent text."""
    rng = np.random.default_rng(4)
    checkpoints = {"m1": ["a", "b", "c"], "m2": ["a", "b"]}
    rows, rated = [], []
    for model, dataset in [(m, d) for m in checkpoints for d in ("quiz", "other")]:
        knowledge = rng.normal(size=40)
        for checkpoint in checkpoints[model]:
            for number, known in enumerate(knowledge + rng.normal(size=40)):
                named = {"checkpoint": checkpoint, "question_id": f"q{number}"}
                named |= {"model": model, "dataset": dataset}
                right = rng.random(5) < 1 / (1 + np.exp(-2 * known))
                said = np.where(right, "red", rng.choice(["blue", "green", "grey"], 5))
                text = {"question": f"Colour {number} of {dataset}?", "references": "red"}
                rows += [{**named, **text, "answer": answer} for answer in said.tolist()]
                [(best, votes)] = Counter(said.tolist()).most_common(1)
                rated.append({**named, "confidence": votes / 5, "correct": best == "red"})
    pd.DataFrame(rows).to_csv(tmp_path / "answers.csv", index=False)
    mine = {
        "results": "out",
        "models": {m: {"label": m, "evaluation": of} for m, of in checkpoints.items()},
        "datasets": {d: {"label": d, "min_contrast": 1} for d in ("quiz", "other")},
        "decoding": {"strategy": "sample"},
        "equivalence": {"backend": "lexical"},
        "judge": {"backend": "lexical"},
        "evaluation": {"replicates": 50},
        "study": {
            "answers": "answers.csv",
            "models": [*checkpoints],
            "datasets": ["quiz", "other"],
            "estimators": ["self_consistency"],
        },
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(mine))
    snakemake(tmp_path, "out/metrics.csv", "--cores", "2", configs=[tmp_path / "mine.yaml"])
    key = ["model", "dataset", "conditioning", "scope", "metric", "seed"]
    found = artifacts.read_csv(tmp_path / "out" / "metrics.csv", artifacts.METRICS)
    rated = pd.DataFrame(rated).assign(estimator="self_consistency")
    expected = pd.concat(
        evaluate(rated[rated["model"] == model], of, min_contrast=1)
        for model, of in checkpoints.items()
    )
    expected = expected.assign(seed=expected["seed"].astype(str)).set_index(key)["value"]
    found = found.assign(seed=found["seed"].astype(str)).set_index(key)["value"]
    assert expected.notna().all()
    assert expected.xs("auc", level="metric").nunique() > 4
    pd.testing.assert_series_equal(
        found.sort_index(), expected.sort_index(), check_names=False, rtol=1e-12
    )
