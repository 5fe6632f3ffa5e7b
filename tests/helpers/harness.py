"""A small model, and the scores that lm-evaluation-harness gives to options."""

import functools
import json
import sys
from pathlib import Path

from tiny_models import tiny_model, tiny_tokenizer

from persistcal.models.prompts import few_shot_prefix, question_suffix

PREFIX = few_shot_prefix([("Which country is Oslo in?", "Norway"), ("2+2?", "4")])
ASKED = {
    "Which country is Lima in?": ["Peru", "Perugia", "Per", "the kingdom of Norway"],
    "Wie heißt 日本?": ["Japan", "Norway"],
    "Which is it, the first or the last one of all the candidates? ": ["a", "b", " b", "ab"],
}
CONTEXTS = [PREFIX + question_suffix(question) for question in ASKED]
CONTEXTS[2] += " \n"  # white space at the end, as chat templates have it
OPTIONS = list(ASKED.values())
CHAT = {"text": " ", "chat": ""}  # the separator before an option


@functools.cache
def harness_checkpoint(kind):
    """Return a random model and its tokenizer; the harness scores the kind llama."""
    text = "".join(CONTEXTS) + " Norway Peru the kingdom of"
    return tiny_model(kind, seed=5), tiny_tokenizer(text)


def harness_scores(folder):
    """Return each option's log-probability with and without its question, by the package."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    for part in harness_checkpoint("llama"):
        part.save_pretrained(folder)
    model = HFLM(str(folder), device="cpu", dtype="float32", batch_size=2)

    def logprobs(pairs):
        asked = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
        return [logprob for logprob, _ in model.loglikelihood(asked, disable_tqdm=True)]

    scores = {}
    for name, space in CHAT.items():
        pairs = [
            (context, space + option)
            for context, options in zip(CONTEXTS, OPTIONS, strict=True)
            for option in options
        ]
        unconditional = logprobs([("", option) for _, option in pairs])
        scores[name] = [list(pair) for pair in zip(logprobs(pairs), unconditional, strict=True)]
    return scores


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(harness_scores(sys.argv[1]), indent=1) + "\n")
