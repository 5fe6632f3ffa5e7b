"""Run the function of a script as one rank of several.

``python run_rank.py SCRIPT JOB`` executes the function of SCRIPT that is named like it;
`persistcal.training.launch.execute_on_ranks` starts it and describes JOB.
"""

import json
import logging
import os
import platform
import sys

from persistcal.store.code import function_of
from persistcal.store.jobs import Job, execute, explain
from persistcal.training import launch


def run_rank(script: str, job: Job, timeout_min: float) -> None:
    """Join the other ranks and execute the function of `script`; rank 0 writes."""
    from persistcal.training import ranks  # and torch, when `read_srun` has been called

    form = f"rank {os.environ['RANK']} %(levelname)s %(message)s"
    logging.basicConfig(level=logging.INFO, format=form)
    function = function_of(script)
    try:
        ranks.join(timeout_min)
        node = os.environ.get("SLURMD_NODENAME", platform.node())
        logging.info("is one of %d, on %s", ranks.count(), node)
        execute(function, ranks.own_part(job))
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
