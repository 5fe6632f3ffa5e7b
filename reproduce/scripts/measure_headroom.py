"""Measure the gain of the oracle over an external verifier, and its backbone's errors."""

import pandas as pd

from persistcal.evaluation.replicates import from_table
from persistcal.store import artifacts
from persistcal.store.artifacts import Answers, ContrastMembers, Headroom, Replicates
from persistcal.store.jobs import log, run
from reproduce.transfer import error_rate, headroom


def measure_headroom(
    contrast_sets: ContrastMembers,
    backbone: Answers,
    replicates: Replicates,
    *,
    dataset: str,
    compared: tuple[str, str],
) -> Headroom:
    """Return a verifier's headroom, and its backbone's error rate on contrast questions.

    Questions that the backbone does not answer have no part in its error rate. `compared` are
    the verifier and the oracle.
    """
    kept = contrast_sets[contrast_sets["kept"]]
    ids = {question for ids in [*kept["gained"], *kept["lost"]] for question in ids}
    verifier, oracle = compared
    measured = headroom(
        from_table(replicates), dataset=dataset, verifier=verifier, oracle=oracle
    )
    wrong, n_answered = error_rate(backbone[backbone["split"] == "test"], ids)
    log.info(
        "Headroom %.3f, backbone wrong on %.1f %% of %d answers to %d questions",
        *(measured.value, 100 * wrong, n_answered, len(ids)),
    )
    row = [(*measured, wrong, n_answered, len(ids))]
    return pd.DataFrame(row, columns=artifacts.HEADROOM.but("model", "dataset"))


if __name__ == "__main__":
    run(measure_headroom, snakemake)
