"""Score answers with every adapter that is used at a checkpoint: confidences."""

from pathlib import Path
from typing import Any

import pandas as pd

from persistcal.answers.clusters import take_predictions
from persistcal.confidence import verbalised
from persistcal.confidence.verbalised import check_digit_logits, digit_tokens
from persistcal.models import load
from persistcal.models.batches import Work, in_order
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.load import load_adapter
from persistcal.models.prompts import confidence_prompts
from persistcal.store.artifacts import SCORES, Clusters, Questions, Scores
from persistcal.store.jobs import log, run


def score_answers(
    checkpoint: Checkpoint,
    questions: Questions,
    clusters: Clusters,
    adapters: list[Path],
    *,
    scorings: list[dict[str, Any]],
    how: verbalised.HowScored,
    work: Work,
) -> Scores:
    """Return the confidence of each adapter in the predictions on a split.

    The weights of `checkpoint` compute the scores and are loaded once. Each of `adapters`
    belongs to one of `scorings`: the checkpoint with the scored answers, and the key of the
    rows. `work` is the part of the answers for this job.
    """
    tokenizer = load.open_tokenizer(checkpoint)
    digits = digit_tokens(tokenizer)
    questions = questions.sort_values("index")
    ids, tokens, scores = {}, {}, []
    for name in dict.fromkeys(key["answers_of"] for key in scorings):
        own_clusters = clusters[clusters["checkpoint"] == name]
        answers = take_predictions(questions, own_clusters, split=how.split)
        if answers.empty:
            raise ValueError(
                f"{name}: no {how.split} question has an answer; check the split and the beams."
            )
        prompts = confidence_prompts(how.prompt, answers)
        tokens[name], ids[name] = tokenizer(prompts)["input_ids"], answers["question_id"]
    model = load.open_model(checkpoint, dtype=how.dtype)
    check_digit_logits(model, next(iter(tokens.values()))[:2], digits)
    sizes: dict[str, Any] = {"batch_size": how.batch_size, "head": how.head}
    for n, (key, path) in enumerate(zip(scorings, adapters, strict=True)):
        name = key["answers_of"]
        adapted = load_adapter(model, path.parent)  # in place
        part = work.of(f"adapter{n}")
        confidences = verbalised.score_answers(model, tokens[name], digits, work=part, **sizes)
        adapted.unload()
        rows = pd.DataFrame({**key, "question_id": ids[name], "confidence": confidences})
        scores.append(rows := rows.dropna())
        log.info("%s: mean confidence %.3f", key, rows["confidence"].mean())
    return in_order(pd.concat(scores), SCORES, list(questions["question_id"]))


if __name__ == "__main__":
    run(score_answers, snakemake)
