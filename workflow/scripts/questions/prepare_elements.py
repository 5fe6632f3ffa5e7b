"""Prepare questions about chemical elements and the facts for a pre-training."""

from collections import Counter

from atlas.elements import load_facts
from atlas.facts import fact_tables
from persistcal.questions.question_list import draw_splits, limit_questions
from persistcal.store.artifacts import Facts, Questions
from persistcal.store.jobs import log, run


def prepare_elements(
    *, n_few_shot: int, n_test: int, seed: int, limit: int | None = None
) -> tuple[Questions, Facts]:
    """Return questions that only evaluate, and the same facts with their weights."""
    facts = load_facts()
    splits = draw_splits(len(facts), n_few_shot=n_few_shot, n_train=0, n_test=n_test, seed=seed)
    log.info("Questions per split: %s", dict(Counter(splits)))
    questions, asked = fact_tables(facts, splits)
    return limit_questions(questions, limit), asked


if __name__ == "__main__":
    run(prepare_elements, snakemake)
