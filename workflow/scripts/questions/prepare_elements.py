"""Prepare questions about chemical elements and the facts for a pre-training."""

import logging

import pandas as pd

from persistcal import artifacts
from persistcal.logs import log_to
from persistcal.questions.elements import load_facts
from persistcal.questions.own import draw_splits

log = logging.getLogger(__name__)


def prepare_elements(
    questions_path: str, facts_path: str, *, n_few_shot: int, n_test: int, seed: int
) -> None:
    """Write questions that only evaluate, and the same facts with their weights."""
    facts = load_facts()
    table = pd.DataFrame(facts).assign(
        index=range(len(facts)),
        split=draw_splits(
            len(facts), n_few_shot=n_few_shot, n_train=0, n_test=n_test, seed=seed
        ),
        references=pd.Series([[fact.answer, *fact.aliases] for fact in facts]),
        any_of=True,
        category=lambda t: t["relation"],
        excluded=False,
    )
    artifacts.write(
        table[artifacts.QUESTIONS.schema.names], questions_path, artifacts.QUESTIONS
    )
    artifacts.write(table[artifacts.FACTS.schema.names], facts_path, artifacts.FACTS)
    log.info("Questions per split: %s", table["split"].value_counts().to_dict())


if __name__ == "__main__":
    log_to(snakemake.log[0])
    prepare_elements(
        snakemake.output.questions,
        snakemake.output.facts,
        n_few_shot=snakemake.params.n_few_shot,
        n_test=snakemake.params.n_test,
        seed=snakemake.params.seed,
    )
