"""A user's answers, from the file to metrics and page."""

from collections import Counter

import numpy as np
import pandas as pd
from own_study import lexical_study
from workflow_runs import snakemake

from persistcal import evaluate
from persistcal.api.evaluate import compute_metrics
from persistcal.readers.inputs import make_settings
from persistcal.readers.reading import Reading
from persistcal.readers.study import read_study
from persistcal.store import artifacts


def values_by(key, table):
    """Return the values of a table of metrics, sorted by a key that ends with the seed."""
    table = table.assign(seed=table["seed"].astype(str))
    return table.set_index(key)["value"].sort_index()


def test_the_answers_of_a_study_give_its_metrics_again(study, tmp_path):
    """A finished study's beams, written out as a user's answers and read in again."""
    out = study / "out"
    questions = artifacts.read(out / "questions" / "atlas.parquet", artifacts.QUESTIONS)
    asked = questions.loc[
        ~questions["excluded"], ["question_id", "split", "question", "references"]
    ]
    parts = []
    for path in sorted((out / "beams" / "atlas").glob("*/atlas/*.parquet")):
        beams = artifacts.read(path, artifacts.BEAMS).merge(asked, on="question_id")
        parts.append(beams.assign(checkpoint=path.parts[-3], model="atlas", dataset="atlas"))
    rows = pd.concat(parts).rename(columns={"beam": "sample", "text": "answer"})
    rows = rows.merge(questions[["question_id", "index"]]).sort_values(["index", "sample"])
    names = ["model", "checkpoint", "dataset", "question_id", "question", "references"]
    names += ["answer", "sample", "logprob", "split"]
    rows[names].to_json(
        tmp_path / "answers.jsonl", orient="records", lines=True, double_precision=15
    )
    checkpoints = {"earlier": ["p20", "p30"], "evaluation": ["p40", "p90", "p100"]}
    estimators = ["end_correct", "self_consistency", "self_consistency_posthoc"]
    given = {"answers": "answers.jsonl"}
    mine = lexical_study(tmp_path, {"atlas": checkpoints}, estimators, {"atlas": {}}, given)
    snakemake(tmp_path, "out/metrics.csv", "--cores", "2", configs=mine)
    key = ["estimator", "seed", "conditioning", "scope", "metric"]
    expected, metrics = (
        artifacts.read_csv(path / "metrics.csv", artifacts.METRICS).set_index(key)["value"]
        for path in (out, tmp_path / "out")
    )
    assert len(metrics) > 30
    pd.testing.assert_series_equal(
        metrics.sort_index(), expected.loc[metrics.index].sort_index(), rtol=1e-12
    )


def test_several_models_and_datasets_are_kept_apart(tmp_path):
    """Metrics of self-consistency from its definition: the share of the most frequent text."""
    rng = np.random.default_rng(4)
    checkpoints = {"m1": ["a", "b"], "m2": ["a", "c"]}
    rows, rated = [], []
    for model, dataset in [(m, d) for m in checkpoints for d in ("quiz", "other")]:
        knowledge = rng.normal(size=40)
        for checkpoint in checkpoints[model]:
            for number, knowledge_of_question in enumerate(knowledge + rng.normal(size=40)):
                named = {"checkpoint": checkpoint, "question_id": f"q{number}"}
                named |= {"model": model, "dataset": dataset}
                right = rng.random(3) < 1 / (1 + np.exp(-2 * knowledge_of_question))
                answers = np.where(right, "red", rng.choice(["blue", "green", "grey"], 3))
                text = {"question": f"Colour {number} of {dataset}?", "references": "red"}
                rows += [{**named, **text, "answer": answer} for answer in answers.tolist()]
                [(best, votes)] = Counter(answers.tolist()).most_common(1)
                rated.append({**named, "confidence": votes / 3, "correct": best == "red"})
    pd.DataFrame(rows).to_csv(tmp_path / "answers.csv", index=False)
    models = {m: {"evaluation": evaluated} for m, evaluated in checkpoints.items()}
    datasets, given = {"quiz": {}, "other": {}}, {"answers": "answers.csv"}
    sampled = {"strategy": "sample"}
    mine = lexical_study(
        tmp_path, models, ["self_consistency"], datasets, given, decoding=sampled
    )
    snakemake(tmp_path, "out/metrics.csv", "--cores", "2", configs=mine)
    key = ["model", "dataset", "conditioning", "scope", "metric", "seed"]
    metrics = artifacts.read_csv(tmp_path / "out" / "metrics.csv", artifacts.METRICS)
    rated = pd.DataFrame(rated).assign(estimator="self_consistency")
    expected = pd.concat(
        evaluate(rated[rated["model"] == model], evaluated, min_contrast=1)
        for model, evaluated in checkpoints.items()
    )
    expected = values_by(key, expected)
    assert expected.notna().all()
    assert expected.xs("auc", level="metric").nunique() > 4
    pd.testing.assert_series_equal(values_by(key, metrics), expected, rtol=1e-12)


def test_scored_options_give_the_metrics_of_their_definition(tmp_path):
    """Softmax, margin and accuracy from the file itself, without a model or a judge."""
    rng = np.random.default_rng(5)
    checkpoints, rows, rated = ["z", "a", "b"], [], []
    names = ["option_probability", "option_margin", "option_entropy", "self_consistency"]
    knowledge = rng.normal(size=60)
    for checkpoint in checkpoints:
        for number, knowledge_of_question in enumerate(knowledge):
            scores = rng.normal(-30, 2, size=4)
            scores[number % 4] += knowledge_of_question + checkpoints.index(checkpoint)
            named = {"model": "m1", "checkpoint": checkpoint, "dataset": "quiz"}
            named["question_id"] = f"q{number}"
            options = ["red", "blue", "green", "grey"]
            question = {"question": f"Colour {number}?", "options": options}
            split = "train" if checkpoint == "z" or number < 10 else "test"
            scored = {"option_logprobs": scores.tolist(), "gold": number % 4}
            rows.append(
                {**named, **question, **scored, "split": "train" if number < 10 else "test"}
            )
            best, second, *_ = np.sort(shares := np.exp(scores) / np.exp(scores).sum())[::-1]
            entropy = 1 + (shares * np.log(shares)).sum() / np.log(4)
            for name, confidence in zip(
                names, [best, best - second, entropy, best], strict=True
            ):
                if split == "test":
                    label = {"correct": bool(scores.argmax() == number % 4), "estimator": name}
                    rated.append({**named, **label, "confidence": confidence})
    pd.DataFrame(rows).to_parquet(tmp_path / "options.parquet", index=False)
    models = {"m1": {"earlier": ["z"], "evaluation": ["a", "b"]}}
    platt = {"label": "P", "function": "option_probability", "reads": [], "posthoc": "platt"}
    further = {"decoding": {"strategy": "options"}, "estimators": {"option_platt": platt}}
    given = {"answers": "options.parquet"}
    mine = lexical_study(tmp_path, models, [*names, "option_platt"], study=given, **further)
    snakemake(tmp_path, "out/metrics.csv", "--cores", "2", configs=mine)
    # The command computes the same, to the last bit, from the evaluated checkpoints.
    by_command = pd.DataFrame(rows).query("checkpoint != 'z'")
    by_command.to_parquet(tmp_path / "by_command.parquet", index=False)
    study = read_study([str(tmp_path / "by_command.parquet")], Reading(estimators=names))
    commanded = compute_metrics(study, make_settings(min_contrast=1))
    key = ["estimator", "conditioning", "scope", "metric", "seed"]
    metrics = artifacts.read_csv(tmp_path / "out" / "metrics.csv", artifacts.METRICS)
    expected = evaluate(pd.DataFrame(rated), ["a", "b"], min_contrast=1)
    metrics = values_by(key, metrics)
    assert metrics.loc["option_platt"].notna().any()
    metrics = metrics.drop("option_platt")
    pd.testing.assert_series_equal(metrics, values_by(key, commanded), check_exact=True)
    pd.testing.assert_series_equal(metrics, values_by(key, expected), rtol=1e-9)
