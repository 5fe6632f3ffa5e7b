"""Answer the questions of a dataset with samples of a checkpoint behind an API."""

import os

import pandas as pd

from persistcal.answers.options import has_options
from persistcal.answers.served import (
    Reach,
    SampleDraws,
    Served,
    ask_for_samples,
    sample_requests,
)
from persistcal.models.prompts import FewShot, few_shot_bodies
from persistcal.store.artifacts import BEAMS, Beams, Questions
from persistcal.store.jobs import run


def sample_from_server(
    questions: Questions,
    *,
    split: str,
    few_shot: FewShot,
    served: Served,
    draws: SampleDraws,
    reach: Reach,
    folder: str,
    replies: str,
) -> Beams:
    """Return samples of the answers to the questions of `split`, except excluded ones.

    `folder` is shared by all jobs that ask for answers; `replies` belongs to this checkpoint.
    """
    if has_options(questions):
        raise ValueError(
            "Options are compared by log-probabilities that an API does not give; leave the "
            "column options out, or run the checkpoint here."
        )
    questions = questions.sort_values("index")
    asked = questions[(questions["split"] == split) & ~questions["excluded"]]
    bodies = few_shot_bodies(questions, asked, few_shot)
    requests = {
        question_id: sample_requests(bodies[question_id], served, draws)
        for question_id in asked["question_id"]
    }
    samples = ask_for_samples(
        {key: body for prompt in requests.values() for key, body in prompt.items()},
        served,
        reach,
        folder=folder,
        replies=replies,
        api_key=os.environ.get(reach.api_key_env, "").strip(),
    )
    rows = [
        {"question_id": question_id, "beam": number, **sample._asdict()}
        for question_id, keys in requests.items()
        for number, sample in enumerate(sample for key in keys for sample in samples[key])
    ]
    return pd.DataFrame(rows).reindex(columns=BEAMS.schema.names)


if __name__ == "__main__":
    run(sample_from_server, snakemake)
