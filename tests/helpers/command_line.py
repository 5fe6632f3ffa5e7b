"""Runs the command `persistcal` in this process."""

import pytest

from persistcal.api.command import main


def run(*words):
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as end:
        main(list(map(str, words)))
    return end.value.code
