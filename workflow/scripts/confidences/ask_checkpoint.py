"""Ask a checkpoint in words about its answers, with its weights."""

from functools import partial

from persistcal.confidence.asking import Asking, ask_about_answers, replies_of_weights
from persistcal.models import load
from persistcal.models.checkpoint import Checkpoint
from persistcal.store.artifacts import Clusters, Questions, Replies
from persistcal.store.jobs import run


def ask_checkpoint(
    checkpoint: Checkpoint,
    questions: Questions,
    clusters: Clusters,
    *,
    split: str,
    asking: Asking,
) -> Replies:
    """Return the replies about the predictions on a split."""
    model, tokenizer = load.open_model(checkpoint), load.open_tokenizer(checkpoint)
    asks = partial(replies_of_weights, model, tokenizer)
    return ask_about_answers(questions, clusters, asks, asking, split)


if __name__ == "__main__":
    run(ask_checkpoint, snakemake)
