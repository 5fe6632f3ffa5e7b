"""Python runs this first where PYTHONPATH names its folder: each process gets GPUs."""

import os
import sys
from pathlib import Path

if n_gpus := os.environ.get("PRETEND_GPUS"):
    sys.path.append(str(Path(__file__).parents[1]))
    import pretended_cuda

    pretended_cuda.start(int(n_gpus))
