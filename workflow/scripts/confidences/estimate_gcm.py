"""Confidence of an external verifier that knows nothing of the checkpoints."""

from collections.abc import Sequence
from pathlib import Path

from persistcal import artifacts
from persistcal.logs import log_to


def estimate_gcm(
    verdicts_path: str, confidences_path: str, *, evaluation: Sequence[str]
) -> None:
    """Write the verifier's probability that the evaluation checkpoints' answers are right.

    Parameters
    ----------
    verdicts_path : str
        Table VERDICTS.
    confidences_path : str
        Table CONFIDENCES.
    evaluation : sequence of str
        Checkpoints to take.

    Notes
    -----
    Paper, section "Comparison to Generalized Correctness Models".
    """
    verdicts = artifacts.read(verdicts_path, artifacts.VERDICTS)
    chosen = verdicts[verdicts["checkpoint"].isin(evaluation)]
    dataset = Path(confidences_path).parent.name
    confidences = chosen.assign(train_dataset=dataset, seed=0)
    artifacts.write(
        confidences[artifacts.CONFIDENCES.schema.names], confidences_path, artifacts.CONFIDENCES
    )


if __name__ == "__main__":
    log_to(snakemake.log[0])
    estimate_gcm(
        snakemake.input.verdicts,
        snakemake.output.confidences,
        evaluation=snakemake.params.evaluation,
    )
