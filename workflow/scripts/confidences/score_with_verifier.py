"""Ask a verifier model whether the checkpoints' answers are right."""

import pandas as pd
from peft import PeftModel
from transformers import PreTrainedModel

from persistcal.answers.clusters import take_predictions
from persistcal.confidence import verbalised
from persistcal.models import hub, load
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.load import load_adapter
from persistcal.store.artifacts import VERIFIED, Clusters, Questions, Verified
from persistcal.store.jobs import log, run


def score_with_verifier(
    checkpoint: Checkpoint,
    questions: Questions,
    clusters: Clusters,
    adapter: Checkpoint | None = None,
    *,
    splits: dict[str, str],
    asked: verbalised.VerifierPrompt,
    batch_size: int,
) -> Verified:
    """Return the verifier's confidence in the predictions of checkpoints.

    The verifier is loaded once, and the same answer of several checkpoints is scored once.
    `splits` contains the scored split of each checkpoint.
    """
    tokenizer = load.open_tokenizer(checkpoint)
    yes = verbalised.word_token(tokenizer, asked.word)
    answers = pd.concat(
        take_predictions(
            questions, clusters[clusters["checkpoint"] == name], split=split
        ).assign(checkpoint=name)
        for name, split in splits.items()
    )
    pairs = answers[["question", "answer"]].drop_duplicates()
    prompts = [asked.token_ids(tokenizer, *pair) for pair in pairs.itertuples(index=False)]
    base = load.open_model(checkpoint)
    model: PreTrainedModel | PeftModel = base
    if adapter is not None:
        model = load_adapter(base, hub.fetch_checked(adapter))
    confidence = verbalised.word_probability(model, prompts, yes, batch_size=batch_size)
    verified = answers.merge(pairs.assign(confidence=confidence), validate="many_to_one")
    log.info("%d answers, %d of them distinct", len(verified), len(pairs))
    return verified[VERIFIED.schema.names]


if __name__ == "__main__":
    run(score_with_verifier, snakemake)
