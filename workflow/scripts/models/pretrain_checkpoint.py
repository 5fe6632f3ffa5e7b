"""Pre-train a small model from one checkpoint to the next."""

from pathlib import Path

from atlas.pretraining import Pretrained, Pretraining, pretrain_segment, untrained
from persistcal.store.artifacts import Facts
from persistcal.store.jobs import Job, log, paths, run


def pretrain_checkpoint(
    facts: Facts,
    previous: Pretrained | None = None,
    *,
    start_step: int,
    end_step: int,
    settings: Pretraining,
    confidence_prompt: str,
    job: Job,
) -> None:
    """Train from `start_step` to `end_step` and write model, tokenizer, optimizer and record.

    The facts make the documents; `previous` is the checkpoint before, None for the first.
    """
    corpus = settings.corpus(facts, confidence_prompt)
    initial = previous or untrained(settings, corpus)
    steps = {"start_step": start_step, "end_step": end_step}
    trained, losses = pretrain_segment(initial, corpus, settings, **steps)
    [weights], [record] = paths(job.outputs["weights"]), paths(job.outputs["checkpoint"])
    trained.save(str(Path(weights).parent)).write(record)
    log.info("Steps %d to %d: last loss %.3f", start_step, end_step, losses[-1])


if __name__ == "__main__":
    run(pretrain_checkpoint, snakemake)
