"""Collect the comparisons of states, and the trends, on all datasets."""

from persistcal.store.artifacts import States, Trends
from persistcal.store.jobs import run


def collect_states(states: States, trends: Trends) -> tuple[States, Trends]:
    """Return both tables as they are: the files of each, one below the other."""
    return states, trends


if __name__ == "__main__":
    run(collect_states, snakemake)
