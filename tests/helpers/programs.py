"""Other programs, run to their end."""

import os
import subprocess
import sys


def python(*words, folder=None, status=0, **variables):
    """Run a Python that must exit with `status`; return the text of both streams."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == status, done.stdout[-6000:]
    return done.stdout
