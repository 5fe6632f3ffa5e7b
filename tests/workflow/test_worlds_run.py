"""Two seeds of a pre-training, from the facts to the tables of spread and of confounds."""

import pytest
import yaml
from workflow_runs import ATLAS, PRETRAINING, ROOT, snakemake

from persistcal.models.checkpoint import Checkpoint
from persistcal.store import artifacts
from tools.export_checkpoints import write_rounded

TINY = """
results: out
models:
  atlas:
    pretraining: {seed: [17, 18]}
study: {estimators: [end_correct, self_consistency], further: []}
datasets: {atlas: {n_train: 24, n_test: 24, min_contrast: 1}}
analyses: {gcm_headroom: {models: []}}
decoding: {n_beams: 2, max_new_tokens: 4}
evaluation: {replicates: 20}
"""
TABLES = [f"out/tables/{name}.csv" for name in ("worlds", "confounds")]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds")
    (folder / "tiny.yaml").write_text(TINY)
    configs = [*PRETRAINING, ROOT / "config" / "atlas_worlds.yaml", folder / "tiny.yaml"]
    snakemake(folder, *TABLES, "--cores", 2, configs=configs)
    return folder


def test_worlds(folder):
    spread = artifacts.read_csv(folder / TABLES[0], artifacts.WORLDS)
    assert set(spread["world_of"]) == {"atlas"}
    assert set(spread["estimator"]) == {"end_correct", "self_consistency"}
    assert set(spread["n"]) == {2}
    confounds = artifacts.read_csv(folder / TABLES[1], artifacts.CONFOUNDS)
    assert set(confounds["model"]) == {"atlas-17", "atlas-18"}
    assert set(confounds["attribute"]) == {
        "category",
        "group",
        "popularity",
        "first_letter",
        "length",
    }
    # Another seed is another training.
    weights = [
        (folder / f"out/pretrained/atlas-{seed}/p100/model.safetensors").read_bytes()
        for seed in (17, 18)
    ]
    assert weights[0] != weights[1]


def test_an_exported_checkpoint_answers_like_the_pretrained_one(folder, monkeypatch):
    """Same questions and answers; log-probabilities differ by the rounding to float16."""
    monkeypatch.chdir(folder)
    record = Checkpoint.read("out/checkpoints/atlas-17/p100.json")
    write_rounded(record, folder / "exported" / "p100")
    overlay = yaml.safe_load(TINY) | {"models": {"atlas": {"repo": "exported"}}}
    overlay["results"] = "read"
    (folder / "exported.yaml").write_text(yaml.safe_dump(overlay))
    target = "read/beams/atlas/p100/atlas.parquet"
    snakemake(folder, target, "--cores", 1, configs=[*ATLAS, folder / "exported.yaml"])
    questions = [folder / f"{results}/questions/atlas.parquet" for results in ("out", "read")]
    assert questions[0].read_bytes() == questions[1].read_bytes()
    made = "out/beams/atlas-17/p100/atlas.parquet"
    before, after = (artifacts.read(folder / path, artifacts.BEAMS) for path in (made, target))
    first = before[before["beam"] == 0].merge(after[after["beam"] == 0], on="question_id")
    assert len(first) == 48
    assert (first["text_x"] == first["text_y"]).mean() > 0.95
    assert (first["logprob_x"] - first["logprob_y"]).abs().max() < 0.02
