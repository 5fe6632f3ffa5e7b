"""Answer the questions of a dataset with beams or samples of a checkpoint."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from persistcal.answers.decode import Draw, Search
from persistcal.answers.decode import generate_beams as decode
from persistcal.confidence.prompts import (
    few_shot_groups,
    few_shot_message,
    few_shot_prefix,
    question_suffix,
)
from persistcal.models.batches import Work, in_order
from persistcal.models.chat import chat_prompt
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import fetch_checked
from persistcal.models.load import load_model, load_tokenizer, set_threads
from persistcal.models.vllm import VllmModel
from persistcal.store import artifacts
from persistcal.store.logs import log_to
from persistcal.store.pace import Pace
from persistcal.store.progress import Progress

log = logging.getLogger(__name__)


def generate_beams(
    checkpoint_path: str,
    questions_path: str,
    beams_path: str,
    *,
    splits: list[str],
    few_shot: int,
    few_shot_by_category: bool,
    threads: int,
    chat: str = "",
    backend: str = "transformers",
    draw: Mapping[str, Any] | None = None,
    shard: int = 0,
    n_shards: int = 1,
    about: Mapping[str, str] | None = None,
    code: str = "",
    **search: Any,  # noqa: ANN401
) -> None:
    """Write the beams of the questions of `splits`, except excluded ones.

    The examples are the first `few_shot` questions of the split few_shot, of the
    question's own category if `few_shot_by_category`, each with its first reference. They
    are text before the question or, if `chat` is "turns", earlier turns of a conversation
    or, if it is "one_message", in the user's message with the question.
    `backend`, "transformers" or "vllm", runs the model. `draw`, the values of a
    `persistcal.answers.decode.Draw`, makes them samples. Of `n_shards` parts of the work,
    `shard` is done. An interrupted run is continued if it had the same `code`, a digest.
    `search` holds the sizes of a `persistcal.answers.decode.Search`.
    """
    settings = dict(locals(), threads=None)
    set_threads(threads)
    questions = artifacts.read(questions_path, artifacts.QUESTIONS).sort_values("index")
    examples = questions[questions["split"] == "few_shot"]
    asked = questions[questions["split"].isin(splits) & ~questions["excluded"]]
    groups = few_shot_groups(asked, examples, few_shot, by_category=few_shot_by_category)

    checkpoint = Checkpoint.read(checkpoint_path)
    folder = str(fetch_checked(checkpoint))
    tokenizer = load_tokenizer(folder)

    def prompts(shown: list[tuple[str, str]], texts: list[str]) -> tuple[str, list[str]]:
        in_chat = partial(chat_prompt, tokenizer, key="the model's chat")
        if chat == "one_message":
            return "", [in_chat(few_shot_message(shown, text)) for text in texts]
        if chat:
            return "", [in_chat(text, shown) for text in texts]
        return few_shot_prefix(shown), [question_suffix(text) for text in texts]

    # Before the weights, so that a tokenizer that cannot chat is refused at once.
    asked_in = [(*prompts(shown, [*group["question"]]), group) for shown, group in groups]
    load = VllmModel if backend == "vllm" else load_model
    model = load(folder, dtype=checkpoint.dtype)
    rows, inputs = [], [checkpoint_path, questions_path]
    with (
        Progress(beams_path, inputs, settings) as progress,
        Pace(total=len(asked) // n_shards, desc="decoding", unit=" questions") as bar,
    ):
        for number, (prefix, suffixes, group) in enumerate(asked_in):
            work = Work(shard, n_shards, partial(progress.remember, f"group{number}"))
            decoded = decode(
                model,
                tokenizer,
                prefix,
                suffixes,
                Search(draw=Draw(**draw) if draw else None, **search),
                add_special_tokens=not chat,
                work=work,
                progress=bar.update,
            )
            for question_id, beams in zip(group["question_id"], decoded, strict=True):
                rows += [(question_id, rank, *beam) for rank, beam in enumerate(beams)]
        frame = pd.DataFrame(rows, columns=artifacts.BEAMS.schema.names)
        frame = in_order(frame, artifacts.BEAMS, list(asked["question_id"]))
        artifacts.write(frame, beams_path, artifacts.BEAMS, about=about)
    log.info("%d beams of %d questions", len(frame), frame["question_id"].nunique())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    paths = snakemake.input.checkpoint, snakemake.input.questions, snakemake.output.beams
    settings = {**dict(snakemake.params.items()), "about": dict(snakemake.wildcards.items())}
    generate_beams(*paths, threads=snakemake.threads, **settings)
