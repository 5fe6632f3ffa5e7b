"""Prepare the questions of every dataset: facts of the demo, or a registered source."""

N_ASKED = (study.chosen["limit"] or {}).get("questions")
FROM = {
    source: one_of(
        d for d, about in config["datasets"].items() if about.get("source") == source
    )
    for source in ("atlas", "elements")
}
# Without a limit there is no such parameter, so that the limit of one study reruns no other.
LIMIT = {"limit": N_ASKED} if N_ASKED else {}


rule prepare_atlas:
    output:
        questions=paths.questions,
        facts=paths.facts,
    wildcard_constraints:
        dataset=FROM["atlas"],
    priority: EARLY
    params:
        **LIMIT,
        n_few_shot=dataset_setting("n_few_shot"),
        n_train=dataset_setting("n_train"),
        n_test=dataset_setting("n_test"),
        seed=dataset_setting("seed"),
        min_city_population=dataset_setting("min_city_population"),
        groups=dataset_setting("groups", default={}),
        edits=dataset_setting("edits", default=[]),
    script:
        "../scripts/questions/prepare_atlas.py"


rule prepare_elements:
    output:
        questions=paths.questions,
        facts=paths.facts,
    wildcard_constraints:
        dataset=FROM["elements"],
    priority: EARLY
    params:
        **LIMIT,
        n_few_shot=dataset_setting("n_few_shot"),
        n_test=dataset_setting("n_test"),
        seed=dataset_setting("seed"),
    script:
        "../scripts/questions/prepare_elements.py"


rule prepare_questions:
    input:
        files_of_job(inputs.source_files),
    output:
        questions=paths.questions,
    wildcard_constraints:
        dataset=one_of(
            d
            for d, about in config["datasets"].items()
            if about.get("source") not in FROM
        ),
    priority: EARLY
    # Runs next to Snakemake, because compute nodes have no connection.
    localrule: True
    params:
        **LIMIT,
        source=dataset_setting("source"),
        settings=settings_of_job(inputs.source_settings),
        contents=settings_of_job(inputs.source_contents),
        # A new estimator must not read the questions again.
        least=without_rerun(study.least_questions),
        states=without_rerun(study.checkpoint_names),
    script:
        "../scripts/questions/prepare_questions.py"


rule read_context:
    input:
        questions=paths.questions,
        file=files_of_job(inputs.context_file),
    output:
        contexts=paths.contexts,
    priority: EARLY
    params:
        prompt=settings_of_job(inputs.context_prompt),
        splits=settings_of_job(study.splits_asked),
        contents=settings_of_job(inputs.contents_of_context),
    script:
        "../scripts/questions/read_context.py"
