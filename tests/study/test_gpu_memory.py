"""GPU memory of jobs, calculated by hand from the shapes of models."""

import pytest
import yaml
from configs import PAPER
from workflow_runs import ROOT

from persistcal.models.sizes import question_bytes
from study.config_files import over_defaults
from study.resources import JobResources, describe_copies, shape_of
from study.study import Study

ONE_GPU = over_defaults(
    yaml.safe_load((ROOT / "config/one_gpu.yaml").read_text(encoding="utf-8")), ROOT
)
MODELS = {**PAPER["models"], **ONE_GPU["models"]}
SMOLLM3 = {"model": "smollm3-3b", "dataset": "triviaqa"}
ORACLE = {
    **SMOLLM3,
    "recipe": "oracle",
    "trained_on": "step1920000+step2400000+step2880000+step3440000",
}
WEIGHTS_GB = 6.15  # 3.075 billion weights of two bytes


@pytest.fixture
def resources():
    return JobResources(Study(ONE_GPU))


@pytest.mark.parametrize("model", MODELS)
def test_the_shape_of_a_model_agrees_with_its_number_of_parameters(model):
    assert shape_of(MODELS[model]).weights == pytest.approx(
        MODELS[model]["parameters"], rel=5e-3
    )


def test_decoding_needs_the_weights_and_the_cache_of_a_batch(resources):
    job = {**SMOLLM3, "checkpoint": "step1920000"}
    memory = resources.memory("generate_beams", job)
    shape = shape_of(MODELS["smollm3-3b"])
    # Cache: 90 tokens of a long question and 10 beams x 30 tokens, each with 2 x 36 x 4 x 128
    # numbers of two bytes. Logits: 10 beams, five copies in float32.
    question = 390 * 2 * 36 * 4 * 128 * 2 + 10 * 5 * 4 * 128_256
    assert question == question_bytes(shape, 390, 10) == 54_405_120
    assert memory.least == pytest.approx(WEIGHTS_GB + 0.0544, abs=0.001)
    # 128 questions take 6.96 GB, less than decoding.memory_gb
    assert memory.full == pytest.approx(WEIGHTS_GB + 6.96, abs=0.01)


def test_training_needs_the_weights_the_activations_and_the_adapter(resources):
    memory = resources.memory("train_oracle", ORACLE)
    # 16 questions of 90 tokens and two candidates of 30: 2,400 tokens. Per layer and token
    # 48 x 2048 + 10 x 11008 bytes: 2,400 x 36 x 208,384 = 18.00 GB. 15.1 million weights of
    # the adapter of 16 bytes: 0.24 GB. Per layer: 2,400 x (16 x 2048 + 12 x 11008) = 0.40 GB
    assert memory.full == pytest.approx(WEIGHTS_GB + 18.00 + 0.24 + 0.40, abs=0.01)
    assert memory.least < memory.full - 16


def test_a_model_without_a_shape_gets_no_estimate():
    models = {**ONE_GPU["models"], "smollm3-3b": {**ONE_GPU["models"]["smollm3-3b"]}}
    del models["smollm3-3b"]["shape"]
    resources = JobResources(Study({**ONE_GPU, "models": models}))
    assert resources.memory("train_oracle", ORACLE) is None


def test_copies_of_a_model_share_a_gpu_if_they_fit_three_quarters_of_it():
    shape = shape_of(MODELS["smollm3-3b"])
    # 4 x 6.15 = 24.6 GB, which is three quarters of 32.8 GB
    assert "are on the GPU together" in describe_copies(4, shape, 33, "SmolLM3 3B")
    assert "one at a time is on the GPU" in describe_copies(4, shape, 32, "SmolLM3 3B")
