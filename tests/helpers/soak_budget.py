"""The time of `make soak`, shared by its tests, its kills, and the counts that it prints."""

import os
import time
from collections import Counter

MINUTES = float(os.environ.get("SOAK_MINUTES", "60"))
BEGIN = time.monotonic()
COUNTS: Counter = Counter()


def count(label, n=1):
    """Add to the counts that are printed at the end."""
    COUNTS[label] += n


def rounds(label, share):
    """Yield numbers from 0 on, at least one, for `share` of the minutes, and count them.

    A round does not start after nine tenths of all the minutes.
    """
    begin, number = time.monotonic(), 0
    ends = min(begin + share * 60 * MINUTES, BEGIN + 0.9 * 60 * MINUTES)
    while number == 0 or time.monotonic() < ends:
        yield number
        count(label)
        number += 1


def kill_after(job, seen, n, pause_s=0.0):
    """Kill a process a while after `seen` has n entries; return whether it was running."""
    deadline = time.monotonic() + 60
    while len(seen) < n and time.monotonic() < deadline:
        assert job.poll() in (None, 0)
        time.sleep(0.001)
    time.sleep(pause_s)
    was_running = job.poll() is None
    job.kill()
    job.wait(30)
    return was_running
