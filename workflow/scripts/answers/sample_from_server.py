"""Answer the questions of a dataset with samples of a checkpoint behind an API."""

import pandas as pd

from persistcal.answers.options import has_options
from persistcal.answers.served import ApiSettings, SampleDraws, Served, samples_of_questions
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
    api: ApiSettings,
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
    bodies = {question_id: bodies[question_id] for question_id in asked["question_id"]}
    samples = samples_of_questions(bodies, served, draws, api, folder=folder, replies=replies)
    rows = [
        {"question_id": question_id, "beam": number, **sample._asdict()}
        for question_id, of_question in samples.items()
        for number, sample in enumerate(of_question)
    ]
    return pd.DataFrame(rows).reindex(columns=BEAMS.schema.names)


if __name__ == "__main__":
    run(sample_from_server, snakemake)
