"""Prepare the questions of the atlas study and the facts that its model is pre-trained on."""

import logging

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.questions.cities import load_facts, split_questions

log = logging.getLogger(__name__)


def prepare_atlas(
    questions_path: str,
    facts_path: str,
    *,
    n_few_shot: int,
    n_train: int,
    n_test: int,
    seed: int,
    min_city_population: int,
) -> None:
    """Write questions about cities and countries, and facts to pre-train on."""
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
    artifacts.write(
        table[artifacts.QUESTIONS.schema.names], questions_path, artifacts.QUESTIONS
    )
    artifacts.write(table[artifacts.FACTS.schema.names], facts_path, artifacts.FACTS)
    log.info("Questions per split: %s", table["split"].value_counts().to_dict())
    log.info("Questions per continent: %s", table["group"].value_counts().to_dict())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    prepare_atlas(
        snakemake.output.questions,
        snakemake.output.facts,
        n_few_shot=snakemake.params.n_few_shot,
        n_train=snakemake.params.n_train,
        n_test=snakemake.params.n_test,
        seed=snakemake.params.seed,
        min_city_population=snakemake.params.min_city_population,
    )
