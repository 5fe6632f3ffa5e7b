"""The tests of models, answers, confidence and training pass with GPUs that are pretended."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pretended_cuda
import pytest

ROOT = Path(__file__).parents[2]
FILES = ["tests/pretend"]


@pytest.mark.slow
@pytest.mark.skipif(bool(pretended_cuda.why_not()), reason=pretended_cuda.why_not())
def test_tests_pass_under_pretence():
    pretended_cuda.build()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests/pretend/site"), "PRETEND_GPUS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= len(FILES)
    assert "skipped" not in done.stdout.splitlines()[-1]
