"""Prepare the questions of the atlas study and the facts that its model is pre-trained on."""

import logging

import pandas as pd

from persistcal.questions.cities import load_facts, split_questions
from persistcal.store.artifacts import FACTS, QUESTIONS, Facts, Questions
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def prepare_atlas(
    *, n_few_shot: int, n_train: int, n_test: int, seed: int, min_city_population: int
) -> tuple[Questions, Facts]:
    """Return questions about cities and countries, and facts to pre-train on."""
    facts = load_facts(min_city_population=min_city_population)
    order, splits = split_questions(
        len(facts), n_few_shot=n_few_shot, n_train=n_train, n_test=n_test, seed=seed
    )
    table = pd.DataFrame([facts[position] for position in order]).assign(
        index=range(len(facts)),
        split=splits,
        references=pd.Series([[facts[n].answer, *facts[n].aliases] for n in order]),
        any_of=True,
        category=lambda t: t["relation"],
        excluded=False,
    )
    log.info("Questions per split: %s", table["split"].value_counts().to_dict())
    log.info("Questions per continent: %s", table["group"].value_counts().to_dict())
    return table[QUESTIONS.schema.names], table[FACTS.schema.names]


if __name__ == "__main__":
    run(prepare_atlas, snakemake)
