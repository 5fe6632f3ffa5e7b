"""Take one half of the samples of each question, which is an ask of its own."""

from persistcal.answers import halves
from persistcal.questions.splits import HALVES, LEAST_SAMPLES
from persistcal.store.artifacts import Beams
from persistcal.store.jobs import log, run


def halve_samples(beams: Beams, *, split: str, position: int) -> Beams:
    """Return the half that `split` names; it is empty if a question has too few samples.

    `position` is that of the checkpoint among the model's checkpoints.
    """
    if not halves.can_be_halved(beams):
        log.info("A question has fewer than %d samples, so none is halved", LEAST_SAMPLES)
        return beams.drop(columns="split").head(0)
    halving, side = divmod(HALVES.index(split), 2)
    samples, taken = halves.halve_samples(beams, position, n_halvings=halving + 1)
    is_split = (taken["halving"] == halving) & (taken["side"] == side + 1)
    half = samples.merge(taken.loc[is_split, ["question_id", "half"]])
    log.info("%d of %d samples", len(half), len(beams))
    return half.drop(columns=["split", "half"])


if __name__ == "__main__":
    run(halve_samples, snakemake)
