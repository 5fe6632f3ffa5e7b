"""Scores of adapters, and the scripts that train and score, on tables of a few rows."""

import json

import numpy as np
import pytest
import torch
from adapter_files import write_checkpoints
from answer_tables import questions_table
from jobs import NAMES, adapters_job, scores_job
from peft import PeftModel
from records import write_record
from tiny_models import TEMPLATE, logits_alone, tiny_model, tiny_tokenizer

from persistcal.confidence import verbalised
from persistcal.confidence.verbalised import digit_tokens, score_answers
from persistcal.models.prompts import confidence_prompt
from persistcal.store import artifacts
from persistcal.training import train as training

torch.set_num_threads(1)


@pytest.mark.parametrize("batch_size", [3, 100, "auto"])
def test_scores_equal_full_forward_passes(batch_size):
    model, tokenizer = tiny_model(), tiny_tokenizer()
    prompts = [
        tokenizer(confidence_prompt(TEMPLATE, question, answer))["input_ids"]
        for question in questions_table()["question"]
        for answer in ("Norway", "Peru, South America")
    ]
    digits = digit_tokens(tokenizer)
    exponents = np.exp(logits_alone(model, prompts)[:, digits].double().cpu().numpy())
    expected = exponents @ np.arange(10) / 9 / exponents.sum(1)
    scores = score_answers(model, prompts, digits, batch_size=batch_size)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert np.std(scores) > 0.01


def test_scores_are_never_zero_or_one():
    model, tokenizer = tiny_model(), tiny_tokenizer()
    digits = digit_tokens(tokenizer)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.weight[digits[9]] = 1e6
        model.lm_head.weight[digits[0]] = -1e6
    prompts = [[1, 2, 3], [4, 5, 6, 7], [200, 9], [77, 150]]
    assert set(score_answers(model, prompts, digits, batch_size=2)) <= {1e-6, 1 - 1e-6}


def weights(study, name):
    return [path.read_bytes() for path in sorted((study / name).glob("*/*.safetensors"))]


def train(study, name, **changes):
    """Train adapters on the files of `study`, and return their weights by seed."""
    settings = {"lr": 1e-2, "batch_size": 16, **changes}
    adapters_job(study, study / name / "seed17/adapter_model.safetensors", **settings)
    return weights(study, name)


def scores(study, **changes):
    scores_job(study, study / "scores.parquet", **changes)
    return artifacts.read(study / "scores.parquet", artifacts.SCORES)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two checkpoints with their tables, and the adapters that are trained on them."""
    folder = tmp_path_factory.mktemp("study")
    write_checkpoints(folder, NAMES)
    train(folder, "adapters")
    return folder


def test_adapters_trained_from_files_are_reproducible_and_score_like_a_peft_model(study):
    first = weights(study, "adapters")
    assert train(study, "again") == first and len(first) == 2
    [random] = train(study, "random", labels="random_later", seeds=[17])
    assert random != first[0]
    history = artifacts.read(study / "again/seed18/training.parquet", artifacts.TRAINING)
    assert history["step"].tolist() == list(range(4))  # 18 questions, 16 a step, 2 epochs
    config = json.loads((study / "again/seed17/adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(study / "b")

    table = scores(study)
    assert len(table) == 4 * 6
    # Expected: peft applies the adapter of the last seed to checkpoint a.
    tokenizer = tiny_tokenizer()
    model = PeftModel.from_pretrained(tiny_model(seed=0), study / "adapters/seed18")
    asked = questions_table().query("split == 'test'")
    prompts = [
        tokenizer(confidence_prompt(TEMPLATE, question, "Norway"))["input_ids"]
        for question in asked["question"]
    ]
    expected = score_answers(model, prompts, digit_tokens(tokenizer), batch_size=1)
    chosen = table[(table["answers_of"] == "a") & (table["seed"] == 18)]
    assert chosen["question_id"].tolist() == asked["question_id"].tolist()
    np.testing.assert_allclose(chosen["confidence"], expected, rtol=0, atol=1e-6)


def test_training_and_scoring_use_the_configured_head(study, monkeypatch):
    heads_of = {}

    def record_heads(module, name):
        """Record the head of each call. Checks of a model call the function without a head."""
        function, calls = getattr(module, name), heads_of.setdefault((module, name), [])

        def call(*arguments):
            calls.extend(arguments[3:])
            return function(*arguments)

        monkeypatch.setattr(module, name, call)

    record_heads(training, "digit_logits")
    record_heads(verbalised, "digit_logits")
    train(study, "with_head", labels="random_later", head="model", seeds=[17])
    scores(study, head="model")
    trained, scored = heads_of.values()
    assert set(trained) == set(scored) == {"model"}


def test_a_digit_of_two_tokens_is_refused_before_weights_are_read(tmp_path):
    write_checkpoints(tmp_path, NAMES)
    vocabulary = json.loads(tiny_tokenizer().backend_tokenizer.to_str())
    vocabulary["normalizer"] = {"type": "Replace", "pattern": {"String": "7"}, "content": "77"}
    (tmp_path / "b/tokenizer.json").write_text(json.dumps(vocabulary))
    write_record(tmp_path / "b", tmp_path / "b.json")
    (tmp_path / "b/model.safetensors").unlink()
    with pytest.raises(ValueError, match="b' splits the digit '7' into"):
        train(tmp_path, "own")
