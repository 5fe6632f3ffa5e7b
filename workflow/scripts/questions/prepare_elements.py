"""Prepare questions about chemical elements and the facts for a pre-training."""

import logging

import pandas as pd

from persistcal.questions.elements import load_facts
from persistcal.questions.own import draw_splits
from persistcal.store.artifacts import FACTS, QUESTIONS, Facts, Questions
from persistcal.store.jobs import run

log = logging.getLogger(__name__)


def prepare_elements(*, n_few_shot: int, n_test: int, seed: int) -> tuple[Questions, Facts]:
    """Return questions that only evaluate, and the same facts with their weights."""
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
    log.info("Questions per split: %s", table["split"].value_counts().to_dict())
    return table[QUESTIONS.schema.names], table[FACTS.schema.names]


if __name__ == "__main__":
    run(prepare_elements, snakemake)
