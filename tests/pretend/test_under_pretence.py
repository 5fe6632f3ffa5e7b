"""Tests of models, answers, confidence and training pass on pretended GPUs.

This module runs one test for each path to a GPU; `make pretend` runs whole files.
"""

import re
from pathlib import Path

import pretended_cuda
import pytest
from programs import python

ROOT = Path(__file__).parents[2]
TESTS = [
    "tests/pretend",
    "tests/models/test_load.py",
    "tests/models/test_pretraining.py::test_the_rule_pretrains_in_segments_and_writes_a_record",
    "tests/answers/test_decode.py::test_beams_equal_those_of_generate[llama]",
    "tests/answers/test_sampling.py::test_measures_of_an_answer_equal_a_full_forward_pass",
    "tests/confidence/test_scoring.py::test_scores_equal_full_forward_passes",
    "tests/confidence/test_verbalised.py",
    "tests/confidence/test_verifier.py::test_word_probabilities_equal_single_prompts",
    "tests/confidence/test_probes.py::test_a_linear_probe_reads_states_after_the_answer",
    "tests/training/test_train.py::test_the_gradient_is_the_sum_over_the_checkpoints",
]


@pytest.mark.slow
@pytest.mark.skipif(bool(pretended_cuda.why_not()), reason=pretended_cuda.why_not())
def test_tests_pass_under_pretence():
    pretended_cuda.build()
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    pretend = {"PYTHONPATH": str(ROOT / "tests/pretend/site"), "PRETEND_GPUS": "2"}
    output = python(*words, folder=ROOT, **pretend)
    assert int(re.search(r"(\d+) passed", output)[1]) >= 2 * len(TESTS)
    assert "skipped" not in output.splitlines()[-1]
