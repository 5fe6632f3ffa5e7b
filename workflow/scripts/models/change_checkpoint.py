"""Change a checkpoint: train it further on the questions of some categories."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from persistcal.models.checkpoint import Checkpoint, save_checkpoint
from persistcal.models.load import open_model, open_tokenizer
from persistcal.store.artifacts import Questions
from persistcal.store.jobs import Job, paths, run
from persistcal.training import changes
from persistcal.training.methods import SETS, open_method


def change_checkpoint(
    before: Checkpoint,
    questions: Questions,
    *,
    change: dict[str, Any],
    model: str,
    checkpoint: str,
    job: Job,
) -> None:
    """Write the changed model, its tokenizer and its record.

    The training questions are from all splits, with the references of the new `checkpoint`.
    Training is in float32; the record has the dtype of `before`.
    """
    key = f"models.{model}.checkpoints.{checkpoint}.change"
    questions_there = changes.questions_at(questions, checkpoint)
    chosen = {
        name: changes.of_categories(questions_there, change.get(name, ()), f"{key}.{name}")
        for name in SETS
    }
    tokenizer = open_tokenizer(before)
    documents = {
        name: changes.write_documents(tokenizer, rows) for name, rows in chosen.items()
    }
    weights = open_model(replace(before, dtype="float32"))
    changed = changes.change_weights(weights, documents, open_method(change))
    [path], [record] = paths(job.outputs["weights"]), paths(job.outputs["checkpoint"])
    saved = save_checkpoint(changed, tokenizer, str(Path(path).parent), dtype=before.dtype)
    saved.write(record)


if __name__ == "__main__":
    run(change_checkpoint, snakemake)
