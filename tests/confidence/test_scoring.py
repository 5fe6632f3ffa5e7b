"""Scoring, and the scripts that train and score, on tables of a few rows."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from adapter_files import training_job
from answer_tables import clusters_table, questions_table
from peft import PeftModel
from records import write_record
from score_answers import score_answers as script
from tiny_models import TEMPLATE, tiny_model, tiny_tokenizer
from train_adapters import train_adapters

from persistcal.answers.predictions import take_predictions
from persistcal.confidence import scoring
from persistcal.confidence.prompts import confidence_prompt
from persistcal.confidence.scoring import score_answers
from persistcal.confidence.verbalised import digit_logits, digit_tokens
from persistcal.store import artifacts
from persistcal.store.jobs import Job, execute
from persistcal.training import data, lora, loss, schedule

torch.set_num_threads(1)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_scores_equal_the_full_forward_pass_of_each_prompt(batch_size):
    model, tokenizer = tiny_model(), tiny_tokenizer()
    prompts = [
        tokenizer(confidence_prompt(TEMPLATE, question, answer))["input_ids"]
        for question in questions_table()["question"]
        for answer in ("Norway", "Peru, South America")
    ]
    digits = digit_tokens(tokenizer)
    expected = []
    for prompt in prompts:
        with torch.inference_mode():
            logits = model(torch.tensor([prompt], device=model.device)).logits[0, -1, digits]
            logits = logits.double().cpu().numpy()
        probabilities = np.exp(logits) / np.exp(logits).sum()
        expected.append(probabilities @ np.arange(10) / 9)
    scores = score_answers(model, prompts, digits, batch_size=batch_size)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert np.std(scores) > 0.01


def test_scores_stay_away_from_zero_and_one():
    model, tokenizer = tiny_model(), tiny_tokenizer()
    digits = digit_tokens(tokenizer)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.weight[digits[9]] = 1e6
        model.lm_head.weight[digits[0]] = -1e6
    prompts = [[1, 2, 3], [4, 5, 6, 7], [200, 9], [77, 150]]
    scores = score_answers(model, prompts, digits, batch_size=2)
    assert set(scores) <= {1e-6, 1 - 1e-6}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Two checkpoints with their tables, in the working directory."""
    monkeypatch.chdir(tmp_path)
    about = {"model": "tiny", "dataset": "atlas"}
    artifacts.write(questions_table(), "questions.parquet", artifacts.QUESTIONS, about=about)
    for seed, name in enumerate(("early", "late")):
        tiny_model(seed=seed).save_pretrained(name)
        tiny_tokenizer().save_pretrained(name)
        write_record(name, f"{name}.json")
        clusters, here = clusters_table(), {**about, "checkpoint": name}
        path = f"clusters/{name}.parquet"
        artifacts.write(clusters, path, artifacts.CLUSTERS, about=here)
        right = np.where(clusters["cluster"] == seed, "correct", "incorrect")
        labels = clusters[["question_id", "cluster"]].assign(label=right, source="lexical")
        artifacts.write(labels, f"labels/{name}.parquet", artifacts.LABELS, about=here)
    return tmp_path


def adapter_path(folder, seed):
    return f"{folder}/seed{seed}/adapter_model.safetensors"


def train(folder, **changes):
    names, how = ["early", "late"], {"lr": 1e-2, "batch_size": 16, **changes}
    execute(train_adapters, training_job(Path(), names, Path(folder), **how))


def score(folder, answers_of, seeds, **changes):
    """The scores of the weights of "early" with each adapter in `folder`."""
    key = {"recipe": folder, "trained_on": "both", "train_dataset": "atlas"}
    scorings = [{"answers_of": of, **key, "seed": n} for of in answers_of for n in seeds]
    how = {"split": "test", "prompt": TEMPLATE, "batch_size": 4, "head": "float32"}
    about = {"model": "tiny", "checkpoint": "early", "dataset": "atlas", "answers": "own"}
    inputs = {
        "checkpoint": "early.json",
        "questions": "questions.parquet",
        "clusters": [f"clusters/{name}.parquet" for name in answers_of],
        "adapters": [adapter_path(folder, each["seed"]) for each in scorings],
    }
    how = {**how, "precision": "stored", **changes}
    settings = {**about, "scorings": scorings, "how": how}
    execute(script, Job(inputs, {"scores": "scores.parquet"}, settings, threads=1))
    return artifacts.read("scores.parquet", artifacts.SCORES)


def test_training_and_scoring_from_files(study):
    train("own")
    train("again")
    train("random", labels="random_later")
    for seed in (17, 18):
        first, second, third = (
            (study / adapter_path(folder, seed)).read_bytes()
            for folder in ("own", "again", "random")
        )
        assert first == second != third
        history = artifacts.read(f"own/seed{seed}/training.parquet", artifacts.TRAINING)
        assert history["step"].tolist() == [0, 1, 2, 3]  # 18 questions, 16 a step, 2 epochs
    config = json.loads((study / "own/seed17/adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "late"

    scores = score("own", ["late", "early"], (17, 18))
    assert len(scores) == 4 * 5
    # The last adapter alone, on the checkpoint's own weights.
    tokenizer = tiny_tokenizer()
    model = PeftModel.from_pretrained(tiny_model(seed=0), "own/seed18")
    answers = take_predictions(questions_table(), clusters_table())
    prompts = [
        tokenizer(confidence_prompt(TEMPLATE, row.question, row.answer))["input_ids"]
        for row in answers.itertuples()
    ]
    expected = score_answers(model, prompts, digit_tokens(tokenizer), batch_size=1)
    chosen = scores[(scores["answers_of"] == "early") & (scores["seed"] == 18)]
    assert chosen["question_id"].tolist() == answers["question_id"].tolist()
    np.testing.assert_allclose(chosen["confidence"], expected, rtol=0, atol=1e-6)


def test_the_head_reaches_every_forward_pass(study, monkeypatch):
    """In float32, the dtype of the checkpoints here, both heads give the same bits."""
    asked = []

    def noted(model, prompts, digits, head="none"):
        asked.append(head)
        return digit_logits(model, prompts, digits, head)

    train("own")
    monkeypatch.setattr(loss, "digit_logits", noted)
    train("model", head="model")
    assert asked and set(asked) == {"model"}
    for seed in (17, 18):
        both = [(study / adapter_path(f, seed)).read_bytes() for f in ("own", "model")]
        assert both[0] == both[1]
    monkeypatch.setattr(scoring, "digit_logits", noted)
    del asked[:]
    score("own", ["early"], [17], head="model")
    assert asked and set(asked) == {"model"}


def test_released_streams_reach_all_that_is_drawn(study, monkeypatch):
    drawn = {}
    for module, name in ((lora, "_initialise_like_peft"), (schedule, "question_order")):
        monkeypatch.setattr(module, name, noted(drawn, name, getattr(module, name)))
    monkeypatch.setattr(data, "random_labels", noted(drawn, "labels", data.random_labels))
    train("own", labels="random_later")
    assert set(drawn["labels"] + drawn["question_order"]) == {"own"} and len(drawn) == 2
    drawn.clear()
    train("released", labels="random_later", streams="released")
    assert drawn["_initialise_like_peft"] == [17, 18]
    assert drawn["question_order"] == ["released"] * 4  # two seeds, two epochs
    assert drawn["labels"] == ["released"] * 2


def noted(calls, name, function):
    """`function`, which notes the last argument of each call."""

    def call(*arguments):
        calls.setdefault(name, []).append(arguments[-1])
        return function(*arguments)

    return call


def test_digits_are_checked_before_anything_is_loaded(study):
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.normalizer = None
    vocabulary = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary["normalizer"] = {"type": "Replace", "pattern": {"String": "7"}, "content": "77"}
    for name in ("early", "late"):
        (study / name / "tokenizer.json").write_text(json.dumps(vocabulary))
        write_record(name, f"{name}.json")
        (study / name / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="'late' splits the digit '7'"):
        train("own")
