"""Reasons to skip a test, and whether they are true on this machine."""

import os
import re
import shutil
from importlib.util import find_spec

MODULES = {"inspect-ai": "inspect_ai", "lm-evaluation-harness": "lm_eval"}


def is_installed(name):
    """Return whether a package or a program is installed."""
    module = MODULES.get(name, name)
    has_package = module.isidentifier() and find_spec(module) is not None
    return has_package or shutil.which(name.lower()) is not None


def is_true(reason):
    """Return whether a test must be skipped here for this reason.

    Tests that need another environment name the target of the Makefile that makes it. Other
    reasons name packages or programs that are missing, or the user or hardware of the test.
    """
    if re.search(r"make test-(nli|vllm|judge|api)\b", reason):
        return True
    if names := re.match(r"(.+?) (?:is not installed|not found)|there is no (\S+)", reason):
        listed = re.split(r", ", names[1] or names[2].rstrip(":,"))
        return not all(map(is_installed, listed))
    if re.search(r"only root|as root", reason):
        return os.geteuid() != 0
    return re.search(r"GPU|no file system can be mounted", reason) is not None


def false_reasons(reports):
    """Return a line for each skipped test that this machine could run."""
    lines = []
    for report in reports:
        reason = str(report.longrepr[-1]).removeprefix("Skipped: ")
        if not is_true(reason):
            lines.append(f"{report.nodeid}: {reason}")
    return lines
