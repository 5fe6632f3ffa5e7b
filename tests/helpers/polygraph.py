"""The estimators of lm-polygraph and uqlm, without the other modules and their imports."""

import importlib
import importlib.util
import sys
from types import ModuleType

import pytest


def estimator(module, name):
    """Return a class of ``lm_polygraph.estimators``, or skip the test if it is missing."""
    return part(f"estimators.{module}", name)


def p_true(model, tokenizer, question, answer, word):
    """lm-polygraph's PTrue of an answer, with another word than "True"."""
    whitebox = ModuleType("lm_polygraph.utils.model")
    whitebox.Model = whitebox.WhiteboxModel = object  # it needs no more of it than below
    sys.modules.setdefault(whitebox.__name__, whitebox)
    calculator = part("stat_calculators.prompt", "PromptCalculator")()

    calculator.expected = word

    class Asked:
        model_type = "CausalLM"

        def device(self):
            return model.device

        def tokenize(self, texts):
            return tokenizer(texts, return_tensors="pt")

        def generate(self, **options):
            # as in WhiteboxModel, scores are normalised after all other processors
            def normalised(_, scores):
                return scores.log_softmax(-1)

            return model.generate(**options, do_sample=False, logits_processor=[normalised])

    asked = Asked()
    asked.tokenizer = tokenizer
    stats = calculator({"greedy_texts": [answer], "input_texts": [question]}, [question], asked)
    return estimator("p_true", "PTrue")()(stats)[0]


def part(module, name, package="lm_polygraph"):
    """Return an attribute of a package, or skip the test if the package is not installed."""
    if not (spec := importlib.util.find_spec(package)) or not spec.origin:
        pytest.skip(f"{package} is not installed: pip install --no-deps -r envs/peers.txt")
    # These __init__ are not run: they would import every estimator and backend.
    [root] = spec.submodule_search_locations
    for folder in ("", ".estimators", ".stat_calculators", ".utils", ".white_box"):
        stub = ModuleType(f"{package}{folder}")
        stub.__path__ = [root + folder.replace(".", "/")]
        stub.__spec__ = spec
        sys.modules.setdefault(stub.__name__, stub)
    return getattr(importlib.import_module(f"{package}.{module}"), name)
