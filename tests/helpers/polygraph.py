"""The estimators of lm-polygraph and uqlm, without the rest and what that pulls in."""

import importlib
import importlib.util
import sys
from types import ModuleType

import pytest


def estimator(module, name):
    """A class of ``lm_polygraph.estimators``; the test is skipped where there is none."""
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

        def generate(self, **how):
            # as WhiteboxModel does: what is kept is normalised after all other processors
            def normalised(_, scores):
                return scores.log_softmax(-1)

            return model.generate(**how, do_sample=False, logits_processor=[normalised])

    asked = Asked()
    asked.tokenizer = tokenizer
    stats = calculator({"greedy_texts": [answer], "input_texts": [question]}, [question], asked)
    return estimator("p_true", "PTrue")()(stats)[0]


def part(module, name, package="lm_polygraph"):
    """Something of a package; the test is skipped if it is not installed."""
    if not (spec := importlib.util.find_spec(package)) or not spec.origin:
        pytest.skip(f"{package} is not installed: pip install --no-deps -r envs/peers.txt")
    # Packages whose __init__ is not run, as it would import every estimator and backend.
    [root] = spec.submodule_search_locations
    for folder in ("", ".estimators", ".stat_calculators", ".utils", ".white_box"):
        stub = ModuleType(f"{package}{folder}")
        stub.__path__ = [root + folder.replace(".", "/")]
        stub.__spec__ = spec
        sys.modules.setdefault(stub.__name__, stub)
    return getattr(importlib.import_module(f"{package}.{module}"), name)
