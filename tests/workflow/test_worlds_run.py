"""Two seeds of a pre-training, from the facts to the tables of spread and of confounds."""

import pytest
from workflow_runs import ATLAS, ROOT, snakemake

from persistcal.store import artifacts

TINY = """
results: out
models:
  atlas:
    pretraining: {seed: [17, 18], steps: 14, batch_size: 4}
    checkpoints:
      p10: {step: 2}
      p20: {step: 4}
      p30: {step: 6}
      p40: {step: 8}
      p50: {step: 10}
      p90: {step: 12}
      p100: {step: 14}
study: {estimators: [end_correct, self_consistency], further: []}
datasets: {atlas: {n_train: 24, n_test: 24, min_contrast: 1}}
analyses: {gcm_headroom: {models: []}}
decoding: {n_beams: 2, max_new_tokens: 4}
evaluation: {replicates: 20}
"""


@pytest.mark.slow
def test_worlds(tmp_path):
    overlay = tmp_path / "tiny.yaml"
    overlay.write_text(TINY)
    wanted = [f"out/tables/{name}.csv" for name in ("worlds", "confounds")]
    worlds = [*ATLAS, ROOT / "config" / "atlas_worlds.yaml", overlay]
    snakemake(tmp_path, *wanted, "--cores", 2, configs=worlds)
    spread = artifacts.read_csv(tmp_path / wanted[0], artifacts.WORLDS)
    assert set(spread["world_of"]) == {"atlas"}
    assert set(spread["estimator"]) == {"end_correct", "self_consistency"}
    assert set(spread["n"]) == {2}
    confounds = artifacts.read_csv(tmp_path / wanted[1], artifacts.CONFOUNDS)
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
        (tmp_path / f"out/pretrained/atlas-{seed}/p100/model.safetensors").read_bytes()
        for seed in (17, 18)
    ]
    assert weights[0] != weights[1]
