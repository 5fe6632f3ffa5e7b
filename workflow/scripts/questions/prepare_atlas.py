"""Prepare the questions of the atlas study and the facts that its model is pre-trained on."""

import logging

from persistcal.questions.cities import load_facts, split_questions
from persistcal.questions.facts import fact_tables
from persistcal.store.artifacts import Facts, Questions
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
    questions, asked = fact_tables([facts[position] for position in order], splits)
    log.info("Questions per split: %s", asked["split"].value_counts().to_dict())
    log.info("Questions per continent: %s", asked["group"].value_counts().to_dict())
    return questions, asked


if __name__ == "__main__":
    run(prepare_atlas, snakemake)
