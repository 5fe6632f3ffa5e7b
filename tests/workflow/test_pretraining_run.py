"""A pre-training, from the facts to the table of confounds, and its checkpoints exported."""

import pytest
import yaml
from workflow_runs import ATLAS, PRETRAINING, snakemake

from persistcal.models.checkpoint import Checkpoint
from persistcal.store import artifacts
from tools.export_checkpoints import write_rounded

TINY = """
results: out
study: {estimators: [end_correct, self_consistency]}
datasets: {atlas: {n_train: 24, n_test: 24, min_contrast: 1}}
analyses: {gcm_headroom: {models: []}}
decoding: {n_beams: 2, max_new_tokens: 4}
evaluation: {replicates: 200}
"""
CONFOUNDS = "out/tables/confounds.csv"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretraining")
    (folder / "tiny.yaml").write_text(TINY)
    snakemake(folder, CONFOUNDS, "--cores", 2, configs=[*PRETRAINING, folder / "tiny.yaml"])
    return folder


def test_the_table_of_confounds_has_every_attribute(folder):
    confounds = artifacts.read_csv(folder / CONFOUNDS, artifacts.CONFOUNDS)
    expected = {"category", "group", "popularity", "first_letter", "length"}
    expected |= {"answer_length", "answer_popularity", "answer_rarity"}
    assert set(confounds["attribute"]) == expected


def test_an_exported_checkpoint_answers_like_the_pretrained_one(folder, monkeypatch):
    """Same questions and answers; log-probabilities differ by the rounding to float16."""
    monkeypatch.chdir(folder)
    record = Checkpoint.read("out/checkpoints/atlas/p100.json")
    write_rounded(record, folder / "exported" / "p100")
    overlay = yaml.safe_load(TINY) | {"models": {"atlas": {"repo": "exported"}}}
    overlay["results"] = "read"
    (folder / "exported.yaml").write_text(yaml.safe_dump(overlay))
    target = "read/beams/atlas/p100/atlas/test.parquet"
    snakemake(folder, target, "--cores", 1, configs=[*ATLAS, folder / "exported.yaml"])
    questions = [folder / f"{results}/questions/atlas.parquet" for results in ("out", "read")]
    assert questions[0].read_bytes() == questions[1].read_bytes()
    made = "out/beams/atlas/p100/atlas/test.parquet"
    pretrained, exported = (
        artifacts.read(folder / path, artifacts.BEAMS) for path in (made, target)
    )
    first = pretrained[pretrained["beam"] == 0].merge(
        exported[exported["beam"] == 0], on="question_id"
    )
    assert len(first) == 24  # the test questions
    assert (first["text_x"] == first["text_y"]).mean() > 0.95
    assert (first["logprob_x"] - first["logprob_y"]).abs().max() < 0.02
