"""The estimators of lm-polygraph, without the rest of it and what that pulls in."""

import importlib
import importlib.util
import sys
from types import ModuleType

import pytest


def estimator(module, name):
    """A class of ``lm_polygraph.estimators``; the test is skipped where there is none."""
    if not (spec := importlib.util.find_spec("lm_polygraph")) or not spec.origin:
        pytest.skip("lm-polygraph is not installed: pip install --no-deps -r envs/peers.txt")
    # Packages whose __init__ is not run, as it would import every estimator and backend.
    [root] = spec.submodule_search_locations
    for package, folder in (("", ""), (".estimators", "/estimators"), (".utils", "/utils")):
        stub = ModuleType(f"lm_polygraph{package}")
        stub.__path__ = [root + folder]
        stub.__spec__ = spec
        sys.modules.setdefault(stub.__name__, stub)
    return getattr(importlib.import_module(f"lm_polygraph.estimators.{module}"), name)
