"""Run the function of a script as one rank of several.

``python run_rank.py SCRIPT JOB`` executes the function of SCRIPT that is named like it;
`persistcal.training.launch.execute_on_ranks` starts it and describes JOB.
"""

import importlib.util
import json
import logging
import os
import platform
import sys
from pathlib import Path

from persistcal.store.jobs import Job, execute, explain
from persistcal.training import launch


def run_rank(script: str, job: Job, timeout_min: float) -> None:
    """Join the other ranks and execute the function of `script`; rank 0 writes."""
    from persistcal.training import ranks  # and torch, when `read_srun` has been called

    rank, name = os.environ["RANK"], Path(script).stem
    logging.basicConfig(level=logging.INFO, format=f"rank {rank} %(levelname)s %(message)s")
    spec = importlib.util.spec_from_file_location(name, script)
    assert spec and spec.loader, script
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        ranks.join(timeout_min)
        node = os.environ.get("SLURMD_NODENAME", platform.node())
        logging.info("is one of %d, on %s", ranks.count(), node)
        execute(getattr(module, name), ranks.own_part(job))
    except Exception as error:
        # Not raised: ranks that wait for this one would only add their own complaints.
        logging.exception("stops: %s", explain(error))
        logging.shutdown()
        os._exit(1)  # torch's threads can abort a Python that ends with a group half open
    ranks.leave()


if __name__ == "__main__":
    launch.end_with_parent()
    launch.read_srun()
    described, minutes = json.loads(sys.argv[2])
    run_rank(sys.argv[1], Job(**described), minutes)
