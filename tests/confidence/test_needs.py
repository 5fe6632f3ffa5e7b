"""Answers that lack what an estimator needs are refused."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from snakemake.utils import update_config

from persistcal.confidence.column_needs import KNOWN, SEVERAL, declared_needs
from persistcal.confidence.estimate import find_estimator
from persistcal.confidence.evidence import check_needs
from persistcal.store import artifacts
from study.check import check_config
from study.needs import FUNCTIONS, needs_of
from study.schema import ConfigError

ROOT = Path(__file__).parents[2]
BEAMS = pd.DataFrame(
    {"checkpoint": list("aabb"), "question_id": "q1", "logprob": [-1.0, -2.0, None, -1.0]}
)


@pytest.mark.parametrize("path", sorted(FUNCTIONS.glob("[a-z]*.py")), ids=lambda p: p.stem)
def test_needs_are_read_as_they_are_without_running_the_file(path):
    assert needs_of(path.stem) == find_estimator(path.stem)[1]


def test_what_each_estimator_needs():
    """As docs/estimators.md has it: of a single answer each of `several` would be certain."""
    several = """degree_matrix eccentricity entropy_probe laplacian_eigenvalues
        lexical_similarity
        option_entropy option_margin self_consistency self_consistency_copy
        self_consistency_surrogate semantic_entropy semantic_sets"""
    needs = dict.fromkeys(several.split(), ("several_answers",))
    both = ("cocoa", "semantic_sequence_entropy", "sequence_entropy")
    needs |= dict.fromkeys(both, ("logprob", "several_answers"))
    needs["sequence_probability"] = ("logprob",)
    needs["perplexity"] = ("logprob", "n_tokens")
    needs["mean_token_entropy"] = ("logprob", "entropy")
    needs["min_token_probability"] = ("logprob", "min_logprob")
    needs["base_probability"] = ("logprob", "n_tokens")
    needs["self_certainty"] = ("logprob", "self_certainty")
    needs["probability_margin"] = ("logprob", "margin")
    found = {path.stem: needs_of(path.stem) for path in FUNCTIONS.glob("[a-z]*.py")}
    assert {name: each for name, each in found.items() if each} == needs


def test_needs_are_the_columns_that_may_be_empty():
    nullable = [field.name for field in artifacts.BEAMS.schema if field.nullable]
    assert KNOWN == (SEVERAL, *nullable)


def test_a_value_that_one_answer_lacks():
    check_needs("mine", ("logprob",), BEAMS[BEAMS["checkpoint"] == "a"])
    with pytest.raises(
        ValueError,
        match=r"mine needs the logprob of each answer, and 1 have none, the first at "
        r"checkpoint 'b', question_id 'q1'",
    ):
        check_needs("mine", ("logprob",), BEAMS)


def test_one_answer_where_several_are_needed():
    check_needs("mine", ("several_answers",), BEAMS)
    with pytest.raises(ValueError, match="mine needs several answers to each question"):
        check_needs("mine", ("several_answers",), BEAMS.drop_duplicates("checkpoint"))


@pytest.mark.parametrize("needs", ["('logprobs',)", "('logprob')", "needs()", "['logprob']"])
def test_needs_that_nobody_knows(needs):
    with pytest.raises(ValueError, match="may be a tuple of 'several_answers', 'logprob'"):
        declared_needs(f"NEEDS = {needs}")


def test_a_file_of_ones_own_with_wrong_needs_is_refused_with_the_config(tmp_path):
    function = tmp_path / "brevity.py"
    function.write_text("NEEDS = ('length',)\n\ndef brevity(answers, evidence):\n    ...\n")
    config = {}
    for name in ("config.yaml", "tables.yaml"):
        update_config(config, yaml.safe_load((ROOT / "config" / name).read_text()))
    config["estimators"]["brevity"] = {"function": str(function), "reads": ["evaluation"]}
    config["study"]["estimators"].append("brevity")
    with pytest.raises(
        ConfigError, match=r"estimators.brevity.function .*NEEDS is \('length',\)"
    ):
        check_config(config)
