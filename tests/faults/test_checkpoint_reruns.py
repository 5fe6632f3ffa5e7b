"""Jobs that Snakemake reruns after a change of a checkpoint's files."""

import os
import time

import pytest
from own_study import lexical_study
from tiny_models import save_tiny
from workflow_runs import PRETRAINING, planned, snakemake

from persistcal.models.checkpoint import Checkpoint
from persistcal.models.load import open_tokenizer
from persistcal.store.files import DamagedFileError

pytestmark = pytest.mark.slow

MINE = {
    "repo": "mine",
    "checkpoints": {name: {"revision": name} for name in ("early", "late")},
    "evaluation": ["early", "late"],
}
RECORDS = [f"out/checkpoints/mine/{name}.json" for name in ("early", "late")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two local checkpoints with weights that are too large for Snakemake's digests."""
    folder = tmp_path_factory.mktemp("local")
    quiz = {"quiz": {"source": "file", "file": "quiz.jsonl"}}
    lexical_study(folder, {"mine": MINE}, ["end_correct"], quiz)
    (folder / "quiz.jsonl").write_text('{"question": "Q?", "answers": ["A"], "split": "test"}')
    for seed, name in enumerate(("early", "late")):
        save_tiny(folder / "mine" / name, seed=seed, hidden=192)
        assert (folder / "mine" / name / "model.safetensors").stat().st_size > 10**6
    snakemake(folder, "-c1", *RECORDS, configs=[folder / "study.yaml"])
    return folder


def dry_run(folder):
    return snakemake(folder, "-n", *RECORDS, configs=[folder / "study.yaml"])


def test_a_touch_reruns_nothing(folder):
    time.sleep(0.01)
    for path in (folder / "mine").rglob("*"):
        os.utime(path)
    assert "Nothing to be done" in dry_run(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])  # small, and large
def test_a_changed_file_of_a_checkpoint_reruns_its_jobs(folder, name):
    path = folder / "mine" / "late" / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    jobs = planned(dry_run(folder))
    path.write_bytes(content)
    assert jobs == {"resolve_checkpoint": 1, "fetch_checkpoint": 1}
    assert "Nothing to be done" in dry_run(folder)


def test_different_tokenizers_are_named_and_a_change_under_results_is_refused(folder):
    path = folder / "mine" / "late" / "tokenizer_config.json"
    content = path.read_text()
    path.write_text(content.replace("{", '{"model_max_length": 99,', 1))
    configs = [folder / "study.yaml"]
    output = snakemake(folder, "-c1", *RECORDS, configs=configs, check=False)
    assert "has changed tokenizer_config.json since results were made; put it back" in output
    (folder / RECORDS[1]).unlink()
    output = snakemake(folder, "-c1", *RECORDS, configs=configs)
    assert (
        "checkpoint late of mine does not have the tokenizer of early (tokenizer_config.json)"
        in output
    )
    path.write_text(content)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """Two checkpoints of the small atlas study."""
    folder = tmp_path_factory.mktemp("pretrained")
    snakemake(folder, "-c1", "out/checkpoints/atlas/p20.json", configs=PRETRAINING)
    return folder


BEAMS = "out/beams/atlas/p20/atlas/test.parquet"


def test_a_touch_of_pretrained_files_reruns_nothing(pretrained):
    for path in (pretrained / "out/pretrained").rglob("*"):
        os.utime(path)
    jobs = planned(snakemake(pretrained, "-n", BEAMS, configs=PRETRAINING))
    assert "pretrain_checkpoint" not in jobs and jobs["generate_beams"] == 1


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_a_deleted_file_of_a_pretrained_checkpoint_is_made_again(pretrained, name, monkeypatch):
    path = pretrained / "out/pretrained/atlas/p20" / name
    content = path.read_bytes()
    path.unlink()
    record = Checkpoint.read(pretrained / "out/checkpoints/atlas/p20.json")
    monkeypatch.chdir(pretrained)
    message = f"{name} is missing; run again, and the workflow makes it again"
    with pytest.raises(DamagedFileError, match=message):
        record.check(path.parent, record.files | record.weights)
    jobs = planned(snakemake(pretrained, "-n", BEAMS, configs=PRETRAINING))
    assert jobs["pretrain_checkpoint"] == 1
    path.write_bytes(content)


def test_pretraining_does_not_continue_from_a_damaged_optimizer(pretrained, monkeypatch):
    path = pretrained / "out/pretrained/atlas/p20/optimizer.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    target = "out/checkpoints/atlas/p30.json"
    output = snakemake(pretrained, "-c1", target, configs=PRETRAINING, check=False)
    assert "p20/optimizer.safetensors or the file next to it is damaged" in output
    path.unlink()  # the remedy of the message
    snakemake(pretrained, "-c1", target, configs=PRETRAINING)
    assert Checkpoint.read(pretrained / target).files["tokenizer.json"]
    monkeypatch.chdir(pretrained)
    assert open_tokenizer(Checkpoint.read(target)).encode("9")
