"""The laboratory's rules: change a checkpoint, or retrain it without some facts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from answer_tables import questions_table
from change_checkpoint import change_checkpoint
from configs import pretraining
from pretrain_checkpoint import pretrain_checkpoint
from retrain_checkpoint import retrain_checkpoint
from small_corpus import TEMPLATE, make_facts, settings
from tiny_models import tiny_model, tiny_tokenizer

from persistcal.models.checkpoint import Checkpoint, save_checkpoint
from persistcal.models.load import open_model, open_tokenizer
from persistcal.store import artifacts
from persistcal.store.jobs import Job, execute
from persistcal.training.changes import answer_logprobs, write_documents
from persistcal.training.methods import METHODS, Tuning
from study.check import check_config
from study.schema import ConfigError, load_schema
from study.study import Study

TUNING = {"learning_rate": 1e-2, "epochs": 20, "batch_size": 4}
QUESTIONS = questions_table(0, 3).assign(
    split=["train", "test", "unused"],
    question=["Where is Oslo?", "Where is Lyon?", "Where is Lima?"],
    references=[["Norway"], ["France"], ["Peru"]],
    category=["new", "edited", "retain"],
    truths=[None, '{"edit": ["Mali"]}', None],
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    save_checkpoint(tiny_model(), tiny_tokenizer(), "base", dtype=None).write("base.json")
    artifacts.write(QUESTIONS, "quiz.parquet", artifacts.QUESTIONS, values={"dataset": "quiz"})
    return tmp_path


def changed(base, name, **keys):
    """Change a checkpoint by the rule's function and return the new record."""
    inputs = {"before": f"{base}.json", "questions": ["quiz.parquet"]}
    outputs = {"weights": f"{name}/model.safetensors", "checkpoint": f"{name}.json"}
    settings = {"change": {"of": base, **keys}, "model": "m", "checkpoint": name}
    execute(change_checkpoint, Job(inputs, outputs, settings, threads=1))
    return Checkpoint.read(f"{name}.json")


def answer_probability(checkpoint, row, answer):
    """Return how probable an answer to a question of QUESTIONS is at a checkpoint."""
    question = QUESTIONS.iloc[[row]].assign(references=[[answer]])
    documents = write_documents(open_tokenizer(checkpoint), question)
    with torch.no_grad():
        return answer_logprobs(open_model(checkpoint), documents).exp().item()


def test_each_checkpoint_of_a_sequence_learns_the_answers_that_are_true_there(folder):
    new = changed("base", "new", method="fine_tuning", learn=["new"], **TUNING)
    edited = changed("new", "edit", method="fine_tuning", learn=["edited"], **TUNING)

    assert (new.repo, new.revision, new.dtype) == ("new", None, None)
    assert answer_probability(new, 0, "Norway") > 0.9
    assert answer_probability(edited, 1, "Mali") > 0.9
    assert answer_probability(edited, 1, "France") < 0.1


@dataclass(frozen=True, kw_only=True)
class Swapping(Tuning):
    """Unlearn some answers and learn others."""

    forget: Sequence[str]
    learn: Sequence[str]
    share: float = 0.5

    def loss(self, logprobs, before):
        """Return the loss of a step; unlearning ends at a probability of e⁻¹⁰."""
        return self.share * logprobs["forget"].clamp(min=-10).mean() - logprobs["learn"].mean()


def test_a_new_method_is_one_class_of_its_keys_and_its_training(folder, monkeypatch, request):
    monkeypatch.setitem(METHODS, "swapping", Swapping)
    request.addfinalizer(load_schema.cache_clear)
    load_schema.cache_clear()
    config, swapping = pretraining(), {"method": "swapping", "of": "p100", **TUNING}
    checkpoints = config["models"]["atlas"]["checkpoints"]
    checkpoints["swapped"] = {"change": {**swapping, "forget": ["edited"], "learn": ["new"]}}
    config["models"]["atlas"]["evaluation"] = ["p100", "swapped"]
    check_config(config)
    study = Study(config)
    assert study.made_by("atlas", "swapped") == "change"
    change = study.state("atlas", "swapped")["change"]
    # A checkpoint that `truths` does not list is taught the plain references.
    taught = changed("base", "taught", method="fine_tuning", learn=["edited"], **TUNING)
    swapped = changed("taught", "swapped", **{k: v for k, v in change.items() if k != "of"})

    assert answer_probability(swapped, 0, "Norway") > 0.9
    assert answer_probability(taught, 1, "France") > 0.9
    assert answer_probability(swapped, 1, "France") < 0.01

    del checkpoints["swapped"]["change"]["learn"]
    with pytest.raises(ConfigError, match="lacks the key learn, which method swapping needs"):
        check_config(config)
    checkpoints["swapped"]["change"] |= {"learn": ["new"], "keep": ["old"]}
    with pytest.raises(ConfigError, match="keep is set, but swapping has no such key"):
        check_config(config)


def test_a_category_without_questions_is_refused_before_weights_are_read(folder):
    (folder / "base" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"models.m.checkpoints.x.change.keep names 'old', "):
        changed("base", "x", method="npo", forget=["new"], keep=["old"], beta=1.0, **TUNING)


def test_retraining_repeats_the_pretraining_without_the_facts_that_it_leaves_out(folder):
    facts = make_facts().assign(category=["retain", "retain", "forget", "retain", "retain"])
    artifacts.write(facts, "facts.parquet", artifacts.FACTS, values={"dataset": "atlas"})

    def train(function, name, inputs, left_out=(), **start):
        outputs = {"weights": f"{name}/model.safetensors", "checkpoint": f"{name}.json"}
        inputs = {"facts": ["facts.parquet"], **inputs}
        params = {"settings": settings(steps=4, without=left_out), **start}
        params |= {"end_step": 4, "confidence_prompt": TEMPLATE}
        execute(function, Job(inputs, outputs, params, threads=1))
        return json.loads((folder / f"{name}.json").read_text())

    pretrained = train(pretrain_checkpoint, "pretrained", {}, start_step=0)
    tokenizer = {"tokenizer": "pretrained/tokenizer.json"}
    repeated = train(retrain_checkpoint, "repeated", tokenizer)
    reduced = train(retrain_checkpoint, "reduced", tokenizer, ["forget"])

    assert repeated["weights"] == pretrained["weights"] != reduced["weights"]
    assert repeated["files"]["tokenizer.json"] == pretrained["files"]["tokenizer.json"]
