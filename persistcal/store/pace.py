"""Progress of a long job, as lines of its log."""

import logging

from tqdm import tqdm

log = logging.getLogger(__name__)

SECONDS = 10.0  # between lines, and before the first
LINE = "{desc}: {n_fmt} of {total_fmt} ({percentage:.0f} %),{rate_noinv_fmt}, {remaining} left"


class Pace(tqdm):
    """Progress bar of tqdm that logs whole lines.

    A bar that redraws itself is overwritten by other jobs on the same terminal, and it becomes
    one endless line in a cluster's log files.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        intervals = {"mininterval": SECONDS, "maxinterval": SECONDS, "delay": SECONDS}
        super().__init__(*args, **kwargs, **intervals, bar_format=LINE, gui=True)

    def display(self, *_: object, **__: object) -> None:
        """Log the progress of the job."""
        log.info("%s", str(self))
