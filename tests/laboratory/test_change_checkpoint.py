"""The rules' scripts: a checkpoint changed, and a pre-training again without some facts."""

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

HOW = {"learning_rate": 1e-2, "epochs": 20, "batch_size": 4}
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


def changed(of, name, **change):
    inputs = {"before": f"{of}.json", "questions": ["quiz.parquet"]}
    outputs = {"weights": f"{name}/model.safetensors", "checkpoint": f"{name}.json"}
    settings = {"change": {"of": of, **change}, "model": "m", "checkpoint": name}
    execute(change_checkpoint, Job(inputs, outputs, settings, threads=1))
    return Checkpoint.read(f"{name}.json")


def known(record, rows, answers):
    asked = QUESTIONS.iloc[rows].assign(references=[[answer] for answer in answers])
    documents = write_documents(open_tokenizer(record), asked)
    with torch.no_grad():
        return answer_logprobs(open_model(record), documents).exp().tolist()


def test_states_in_sequence_know_what_is_true_there(folder):
    new = changed("base", "new", method="fine_tuning", learn=["new"], **HOW)
    assert (new.repo, new.revision, new.dtype) == ("new", None, None)
    assert known(new, [0], ["Norway"])[0] > 0.9
    edit = changed("new", "edit", method="fine_tuning", learn=["edited"], **HOW)
    assert known(edit, [1], ["Mali"])[0] > 0.9
    assert known(edit, [1], ["France"])[0] < 0.1


@dataclass(frozen=True, kw_only=True)
class Swapping(Tuning):
    """Unlearning of some answers while others are learnt."""

    forget: Sequence[str]
    learn: Sequence[str]
    share: float = 0.5

    def loss(self, logprobs, before):
        """Return the loss of a step; answers to forget are unlearned down to e⁻¹⁰."""
        return self.share * logprobs["forget"].clamp(min=-10).mean() - logprobs["learn"].mean()


def test_a_method_is_one_class(folder, monkeypatch, request):
    """A check of the config, the params of the rule and the training know it by its name."""
    monkeypatch.setitem(METHODS, "swapping", Swapping)
    request.addfinalizer(load_schema.cache_clear)
    load_schema.cache_clear()
    config, swapping = pretraining(), {"method": "swapping", "of": "p100", **HOW}
    states = config["models"]["atlas"]["checkpoints"]
    states["swapped"] = {"change": {**swapping, "forget": ["edited"], "learn": ["new"]}}
    config["models"]["atlas"]["evaluation"] = ["p100", "swapped"]
    check_config(config)
    study = Study(config)
    assert study.made_by("atlas", "swapped") == "change"
    change = study.state("atlas", "swapped")["change"]
    base = changed("base", "taught", method="fine_tuning", learn=["edited"], **HOW)
    taught = known(base, [1], ["France"])[0]
    record = changed("taught", "swapped", **{k: v for k, v in change.items() if k != "of"})
    assert known(record, [0], ["Norway"])[0] > 0.9
    # What is true at a checkpoint without a truth of its own is the plain reference.
    assert known(record, [1], ["France"])[0] < 0.01 < 0.9 < taught
    del states["swapped"]["change"]["learn"]
    with pytest.raises(ConfigError, match="lacks the key learn, which method swapping needs"):
        check_config(config)
    states["swapped"]["change"] |= {"learn": ["new"], "keep": ["old"]}
    with pytest.raises(ConfigError, match="keep is set, but swapping has no such key"):
        check_config(config)


def test_a_category_that_is_nowhere_is_refused_before_weights_are_read(folder):
    (folder / "base" / "model.safetensors").unlink()
    said = r"models.m.checkpoints.x.change.keep names 'old', but"
    with pytest.raises(ValueError, match=said):
        changed("base", "x", method="npo", forget=["new"], keep=["old"], beta=1.0, **HOW)


def test_a_retraining_is_the_ordinary_one_but_for_what_it_leaves_out(folder):
    facts = make_facts().assign(category=["retain", "retain", "forget", "retain", "retain"])
    artifacts.write(facts, "facts.parquet", artifacts.FACTS, values={"dataset": "atlas"})

    def made(function, name, inputs, without=(), **start):
        outputs = {"weights": f"{name}/model.safetensors", "checkpoint": f"{name}.json"}
        inputs = {"facts": ["facts.parquet"], **inputs}
        how = {"settings": settings(steps=4, without=without), **start}
        how |= {"end_step": 4, "confidence_prompt": TEMPLATE}
        execute(function, Job(inputs, outputs, how, threads=1))
        return json.loads((folder / f"{name}.json").read_text())

    once = made(pretrain_checkpoint, "once", {}, start_step=0)
    tokenizer = {"tokenizer": "once/tokenizer.json"}
    same = made(retrain_checkpoint, "same", tokenizer)
    less = made(retrain_checkpoint, "less", tokenizer, ["forget"])
    assert same["weights"] == once["weights"] != less["weights"]
    assert same["files"]["tokenizer.json"] == once["files"]["tokenizer.json"]
