"""Progress of a long job: lines of its log, with rate and time left."""

import logging

from tqdm import tqdm

SECONDS = 10.0  # between two lines, and before the first
LINE = "{desc}: {n_fmt} of {total_fmt} ({percentage:.0f} %),{rate_noinv_fmt}, {remaining} left"

log = logging.getLogger(__name__)


class Pace(tqdm):
    """A bar of tqdm that is written as whole lines.

    A bar that draws over itself is hidden by those of other jobs on the same terminal,
    and in the files that a cluster keeps it is one line without end.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        every = {"mininterval": SECONDS, "maxinterval": SECONDS, "delay": SECONDS}
        super().__init__(*args, **kwargs, **every, bar_format=LINE, gui=True)

    def display(self, *_: object, **__: object) -> None:
        """Log where the job is."""
        log.info("%s", str(self))
