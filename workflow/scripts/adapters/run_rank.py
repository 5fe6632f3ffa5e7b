"""Run the function of a script as one rank of several.

``python run_rank.py SCRIPT ARGUMENTS`` calls the function of SCRIPT that is named like
it with ARGUMENTS, a JSON list of the positional and the keyword ones and of the minutes
that ranks wait for each other; `persistcal.training.launch.call_on_ranks` starts it.
"""

import importlib.util
import json
import logging
import os
import platform
import sys
from pathlib import Path

from persistcal.store.gpu_errors import explain
from persistcal.training import launch


def run_rank(script_path: str, arguments: list, settings: dict, timeout_min: float) -> None:
    """Join the other ranks and call the function of the script at `script_path`."""
    from persistcal.training import ranks  # and torch, when `read_srun` has been called

    rank, name = os.environ["RANK"], Path(script_path).stem
    logging.basicConfig(level=logging.INFO, format=f"rank {rank} %(levelname)s %(message)s")
    spec = importlib.util.spec_from_file_location(name, script_path)
    assert spec and spec.loader, script_path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        ranks.join(timeout_min)
        node = os.environ.get("SLURMD_NODENAME", platform.node())
        logging.info("is one of %d, on %s", ranks.count(), node)
        getattr(module, name)(*arguments, **settings)
    except Exception as error:
        # Not raised: ranks that wait for this one would only add their own complaints.
        logging.exception("stops: %s", explain(error))
        sys.exit(1)
    ranks.leave()


if __name__ == "__main__":
    launch.end_with_parent()
    launch.read_srun()
    run_rank(sys.argv[1], *json.loads(sys.argv[2]))
