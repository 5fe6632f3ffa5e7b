"""A study of checkpoints behind an API, and a study that reads the same answers as a file."""

import pandas as pd
import yaml
from own_rows import write_rows
from workflow_runs import snakemake

from persistcal.store import artifacts

STUDY = {
    "results": "out",
    "datasets": {"quiz": {"min_contrast": 1}},
    "equivalence": {"backend": "lexical"},
    "judge": {"backend": "lexical"},
    "evaluation": {"replicates": 200, "conditioning": ["odds"]},
}
METRICS = ["out/metrics.csv", "--cores", "1"]
ESTIMATORS = ["self_consistency", "perplexity"]
CHOSEN = {"models": ["served"], "datasets": ["quiz"], "estimators": ESTIMATORS}
CHOSEN |= {"tables": ["all_estimators"]}


def write(folder, name, *parts):
    config = {key: value for part in (STUDY, *parts) for key, value in part.items()}
    (folder / name).write_text(yaml.safe_dump(config))
    return [folder / name]


def served_study(folder, apis, asked, **api):
    """Write questions with their answers; return the config of a study that asks them."""
    rows = [{"id": "shown", "question": "Shown?", "answers": ["x"], "split": "few_shot"}]
    rows += [
        {"id": f"q{i}", "question": question, "answers": [answer], "split": "test"}
        for i, (question, answer) in enumerate(asked.items())
    ]
    write_rows(folder / "quiz.jsonl", rows)
    checkpoints = {name: {"api": api_entry} for name, api_entry in apis.items()}
    return {
        "models": {"served": {"checkpoints": checkpoints, "evaluation": list(apis)}},
        "datasets": {"quiz": {"min_contrast": 1, "source": "file", "file": "quiz.jsonl"}},
        "study": CHOSEN,
        "prompts": {"few_shot": 1},
        "decoding": {"strategy": "sample", "n_samples": 4, "max_new_tokens": 12},
        "api": {"concurrency": 4, "retries": 1, **api},
    }


def compare_with_file(folder, checkpoints):
    """Compare with a study of the same answers, as a file of the user's; return them."""
    out = folder / "out"
    questions = artifacts.read(out / "questions" / "quiz.parquet", artifacts.QUESTIONS)
    parts = []
    for checkpoint in checkpoints:
        beams = artifacts.read(
            out / f"beams/served/{checkpoint}/quiz/test.parquet", artifacts.BEAMS
        )
        parts.append(beams.assign(model="served", checkpoint=checkpoint, dataset="quiz"))
    beams = pd.concat(parts)
    rows = beams.merge(questions[["question_id", "question", "references"]])
    rows = rows.rename(columns={"beam": "sample", "text": "answer"})
    rows["token_logprobs"] = [
        [logprob / n] * n for logprob, n in zip(rows["logprob"], rows["n_tokens"], strict=True)
    ]
    names = ["model", "checkpoint", "dataset", "question_id", "question", "references"]
    rows = rows[[*names, "answer", "sample", "token_logprobs"]]
    rows.to_json(folder / "answers.jsonl", orient="records", lines=True, double_precision=15)
    models = {"served": {"evaluation": list(checkpoints)}}
    file_study = {"models": models, "study": {**CHOSEN, "answers": "answers.jsonl"}}
    file_study |= {"results": "theirs", "decoding": {"strategy": "sample"}}
    configs = write(folder, "theirs.yaml", file_study)
    snakemake(folder, "theirs/metrics.csv", "--cores", "1", configs=configs)
    served, from_file = (
        artifacts.read_csv(folder / name / "metrics.csv", artifacts.METRICS)
        for name in ("out", "theirs")
    )
    served = served[served["estimator"].isin(ESTIMATORS)]
    assert set(served["estimator"]) == set(ESTIMATORS) and len(served) > 10
    key = [name for name in served if name != "value"]
    pd.testing.assert_frame_equal(
        served.sort_values(key), from_file.sort_values(key), rtol=1e-12
    )
    return beams
