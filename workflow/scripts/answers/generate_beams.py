"""Answer the questions of a dataset with beams or samples of a checkpoint, or by options."""

from typing import Any

import pandas as pd

from persistcal.answers.decode import Search, score_options
from persistcal.answers.decode import generate_beams as decode
from persistcal.answers.options import has_options
from persistcal.answers.slots import check_model
from persistcal.models import hub, load
from persistcal.models.batches import Work, in_order
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.prompts import FewShot, few_shot_prompts
from persistcal.models.vllm import open_vllm
from persistcal.questions.splits import split_of_questions
from persistcal.store import artifacts
from persistcal.store.artifacts import Beams, Questions
from persistcal.store.jobs import run_with
from persistcal.store.progress import Pace


def generate_beams(
    checkpoint: Checkpoint,
    questions: Questions,
    *,
    split: str,
    few_shot: FewShot,
    backend: str,
    search: Search,
    work: Work,
) -> Beams:
    """Return the beams of the questions of `split` that are in `work` and not excluded.

    For questions with options, each option is a beam.
    """
    questions = questions.sort_values("index")
    asked = questions[
        (questions["split"] == split_of_questions(split)) & ~questions["excluded"]
    ]
    if asked.empty:
        return artifacts.empty(artifacts.BEAMS)
    options = questions.set_index("question_id")["options"] if has_options(questions) else None
    if options is not None and backend == "vllm":
        raise ValueError(
            "Options are scored with decoding.backend transformers, and it is vllm; set it so."
        )
    tokenizer = load.open_tokenizer(checkpoint)
    # Before the weights, so that a tokenizer that cannot chat is refused at once.
    groups = few_shot_prompts(tokenizer, questions, asked, few_shot)
    if backend != "vllm":
        check_model(load.build_empty(hub.fetch_checked(checkpoint, weights=False)))
    model: Any = (open_vllm if backend == "vllm" else load.open_model)(checkpoint)
    rows: list[dict[str, Any]] = []
    with Pace(total=len(asked) // work.n_shards, desc="decoding", unit=" questions") as bar:
        for number, (prefix, suffixes, question_ids) in enumerate(groups):
            settings: Any = {"work": work.of(f"group{number}"), "progress": bar.update}
            answered: Any
            if options is None:
                settings["add_special_tokens"] = not few_shot.chat
                answered = decode(model, tokenizer, prefix, suffixes, search, **settings)
            else:
                contexts = [prefix + suffix for suffix in suffixes]
                given = [list(options[question_id]) for question_id in question_ids]
                settings["chat"] = bool(few_shot.chat)
                answered = score_options(model, tokenizer, contexts, given, search, **settings)
            for question_id, beams in zip(question_ids, answered, strict=True):
                rows += [
                    {"question_id": question_id, "beam": number, **beam._asdict()}
                    for number, beam in enumerate(beams)
                ]
    frame = pd.DataFrame(rows).reindex(columns=artifacts.BEAMS.schema.names)
    return in_order(frame, artifacts.BEAMS, list(asked["question_id"]))


if __name__ == "__main__":
    run_with(snakemake.params.python, generate_beams, __file__, snakemake)
