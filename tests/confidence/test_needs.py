"""The registration of estimators: needed columns, required keys and defaults."""

import inspect
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from configs import overlaid

from persistcal.confidence.estimate import find_estimator
from persistcal.confidence.estimators import catalogue
from persistcal.confidence.evidence import check_needs
from persistcal.confidence.registry import KNOWN_NEEDS, SEVERAL, registrations
from persistcal.store import artifacts
from persistcal.store.code import imported_files
from study.check import check_config
from study.schema import ConfigError

ROOT = Path(__file__).parents[2]
BEAMS = pd.DataFrame(
    {"checkpoint": list("aabb"), "question_id": "q1", "logprob": [-1.0, -2.0, None, -1.0]}
)


def is_estimator(function):
    """Return whether a function can be called with answers and evidence only."""
    parameters = [*inspect.signature(function, follow_wrapped=False).parameters.values()]
    has_defaults = all(p.default is not p.empty for p in parameters[2:])
    return [p.name for p in parameters[:2]] == ["answers", "evidence"] and has_defaults


def test_the_catalogue_lists_exactly_the_estimators_of_all_modules():
    functions = {
        name
        for path in catalogue.FAMILIES.glob("[a-z]*.py")
        for name, function in vars(
            import_module(f"persistcal.confidence.estimators.{path.stem}")
        ).items()
        if inspect.isfunction(function)
        and not name.startswith("_")
        and function.__module__.endswith(path.stem)
        and is_estimator(function)
    }
    assert functions == set(catalogue.ESTIMATORS)
    for name, registration in catalogue.ESTIMATORS.items():
        function = find_estimator(name, registration.family)
        assert function.__module__.rpartition(".")[2] == registration.family
        assert registration.label


def test_a_new_estimator_reruns_no_other():
    """The catalogue is not among the imports of a job."""
    for script in ("estimate_confidences", "rate_at_checkpoint", "read_confidences"):
        path = ROOT / "workflow/scripts/confidences" / f"{script}.py"
        imported = imported_files(path, ROOT)
        assert ROOT / "persistcal/confidence/estimate.py" in imported
        assert not imported & set(catalogue.FAMILIES.glob("[a-z]*.py"))


def test_every_estimator_registers_the_columns_that_it_needs():
    """The estimators of `several` would be certain about any single answer."""
    several = """degree_matrix eccentricity entropy_probe laplacian_eigenvalues
        lexical_similarity option_entropy option_margin self_consistency self_consistency_copy
        self_consistency_surrogate semantic_entropy semantic_sets"""
    needs = dict.fromkeys(several.split(), ("several_answers",))
    both_needs = ("cocoa", "semantic_sequence_entropy", "sequence_entropy")
    needs |= dict.fromkeys(both_needs, ("logprob", "several_answers"))
    needs["sequence_probability"] = ("logprob",)
    needs["perplexity"] = ("logprob", "n_tokens")
    needs["mean_token_entropy"] = ("logprob", "entropy")
    needs["min_token_probability"] = ("logprob", "min_logprob")
    needs["base_probability"] = ("logprob", "n_tokens")
    needs["self_certainty"] = ("logprob", "self_certainty")
    needs["probability_margin"] = ("logprob", "margin")
    assert {name: catalogue.ESTIMATORS[name].needs for name in needs} == needs


def test_an_estimator_can_need_several_answers_or_a_nullable_column():
    nullable = [field.name for field in artifacts.BEAMS.schema if field.nullable]
    assert KNOWN_NEEDS == (SEVERAL, *nullable)


def test_answers_that_lack_what_an_estimator_needs_are_refused():
    check_needs("mine", ("logprob",), BEAMS[BEAMS["checkpoint"] == "a"])
    message = "mine needs the logprob of each answer, and 1 have none, the first at "
    with pytest.raises(ValueError, match=message + "checkpoint 'b', question_id 'q1'"):
        check_needs("mine", ("logprob",), BEAMS)
    check_needs("mine", ("several_answers",), BEAMS)
    with pytest.raises(ValueError, match="mine needs several answers to each question"):
        check_needs("mine", ("several_answers",), BEAMS.drop_duplicates("checkpoint"))


FUNCTION = "\n\ndef brevity(answers, evidence):\n    ...\n"


@pytest.mark.parametrize("needs", ["('logprobs',)", "'logprob'", "['logprob']"])
def test_a_need_that_does_not_exist_is_refused(needs):
    with pytest.raises(ValueError, match="give a tuple of 'several_answers', 'logprob'"):
        registrations(f"@estimator(needs={needs})" + FUNCTION)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("@estimator(needs=needs())", "has an argument that is no literal"),
        ("@estimator(needed=())", "unexpected keyword argument 'needed'"),
        ("@estimator(required=('layers',))", "required is .* a tuple of 'asks', 'prompt'"),
    ],
)
def test_a_wrong_decorator_is_refused_with_the_key_of_the_config(tmp_path, line, message):
    function = tmp_path / "brevity.py"
    function.write_text(line + FUNCTION)
    entry = {"function": str(function)}
    config = overlaid({"estimators": {"brevity": entry}})
    config["study"]["estimators"].append("brevity")
    with pytest.raises(ConfigError, match=rf"estimators.brevity.function .*{message}"):
        check_config(config)


def test_the_decorator_sets_the_defaults_of_a_users_estimator(tmp_path):
    function = tmp_path / "brevity.py"
    text = "from persistcal.confidence.registry import estimator\n\n\n"
    decorator = '@estimator("Brevity", needs=("logprob",), reads_weights=True, reads=())'
    function.write_text(text + decorator + FUNCTION)
    assert catalogue.registration_of(str(function)).needs == ("logprob",)
    entry = {"function": str(function), "reads": []}
    config = overlaid({"estimators": {"brevity": entry}})
    completed = {**entry, "label": "Brevity", "reads_weights": True}
    assert config["estimators"]["brevity"] == completed


def test_the_config_overrides_the_defaults_of_an_estimator():
    overlay = {"cocoa": {"label": "Mine"}, "verbalised": {"by_checkpoint": False}}
    changed = overlaid({"estimators": overlay})["estimators"]
    assert changed["cocoa"]["label"] == "Mine"
    assert changed["verbalised"]["by_checkpoint"] is False
    assert changed["verbalised"]["reads_weights"] is True
