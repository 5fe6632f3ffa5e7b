"""Pre-train a model again, from the first step to the last, without some facts."""

from pathlib import Path

from atlas.pretraining import Pretrained, Pretraining, new_model, pretrain_segment
from persistcal.models.checkpoint import save_checkpoint
from persistcal.models.load import load_tokenizer
from persistcal.store.artifacts import Facts
from persistcal.store.jobs import Job, log, paths, run


def retrain_checkpoint(
    facts: Facts,
    tokenizer: str,
    *,
    end_step: int,
    settings: Pretraining,
    confidence_prompt: str,
    job: Job,
) -> None:
    """Write model, tokenizer and record of a pre-training `without` some facts.

    All else is as in the ordinary one: initial weights, which facts drift together, and the
    tokenizer, which is in that file.
    """
    corpus = settings.corpus(facts, confidence_prompt)
    words = load_tokenizer(str(Path(tokenizer).parent))
    model = new_model(words, **settings.architecture, seed=settings.seed)
    initial, steps = Pretrained(model, words), {"start_step": 0, "end_step": end_step}
    trained, losses = pretrain_segment(initial, corpus, settings, **steps)
    [weights], [record] = paths(job.outputs["weights"]), paths(job.outputs["checkpoint"])
    saved = save_checkpoint(trained.model, words, str(Path(weights).parent), dtype="float32")
    saved.write(record)
    log.info("%d steps: last loss %.3f", end_step, losses[-1])


if __name__ == "__main__":
    run(retrain_checkpoint, snakemake)
