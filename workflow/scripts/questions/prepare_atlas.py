"""Prepare the questions of the atlas study and the facts that its model is pre-trained on."""

from collections.abc import Sequence

from atlas.cities import load_facts, split_questions
from atlas.facts import fact_tables
from persistcal.questions.question_list import edit_answers, group_facts, limit_questions
from persistcal.store.artifacts import Facts, Questions
from persistcal.store.jobs import log, run


def prepare_atlas(
    *,
    n_few_shot: int,
    n_train: int,
    n_test: int,
    seed: int,
    min_city_population: int,
    groups: dict[str, float] | None = None,
    edits: Sequence[str] = (),
    limit: int | None = None,
) -> tuple[Questions, Facts]:
    """Return questions about cities and countries, and facts to pre-train on.

    With `groups` these are the categories, and facts of the group "edited" have another
    answer at the checkpoints `edits`. Only the first `limit` questions of each split are asked.
    """
    facts = load_facts(min_city_population=min_city_population)
    order, splits = split_questions(
        len(facts), n_few_shot=n_few_shot, n_train=n_train, n_test=n_test, seed=seed
    )
    questions, asked = fact_tables([facts[position] for position in order], splits)
    log.info("Questions per split: %s", asked["split"].value_counts().to_dict())
    log.info("Questions per continent: %s", asked["group"].value_counts().to_dict())
    if groups:
        asked["category"] = questions["category"] = group_facts(asked, groups, seed=seed)
        log.info("Questions per category: %s", asked["category"].value_counts().to_dict())
    if edits:
        references = questions["references"]
        questions["truths"] = edit_answers(asked, references, edits, seed=seed)
    return limit_questions(questions, limit), asked


if __name__ == "__main__":
    run(prepare_atlas, snakemake)
