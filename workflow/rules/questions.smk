"""Prepare the questions of every dataset: one rule per source."""

FROM = {
    source: one_of(
        d for d, about in config["datasets"].items() if about.get("source") == source
    )
    for source in ("atlas", "elements", "triviaqa", "jeopardy", "bioasq", "file")
}


rule prepare_atlas:
    output:
        questions=paths.questions,
        facts=paths.facts,
    log:
        f"{LOGS}/prepare_atlas/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["atlas"],
    priority: EARLY
    conda:
        "../../envs/cpu.yaml"
    params:
        n_few_shot=of_dataset("n_few_shot"),
        n_train=of_dataset("n_train"),
        n_test=of_dataset("n_test"),
        seed=of_dataset("seed"),
        min_city_population=of_dataset("min_city_population"),
        groups=of_dataset("groups", default={}),
        edits=of_dataset("edits", default=[]),
    script:
        "../scripts/questions/prepare_atlas.py"


rule prepare_elements:
    output:
        questions=paths.questions,
        facts=paths.facts,
    log:
        f"{LOGS}/prepare_elements/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["elements"],
    priority: EARLY
    conda:
        "../../envs/cpu.yaml"
    params:
        n_few_shot=of_dataset("n_few_shot"),
        n_test=of_dataset("n_test"),
        seed=of_dataset("seed"),
    script:
        "../scripts/questions/prepare_elements.py"


rule prepare_triviaqa:
    output:
        questions=paths.questions,
    log:
        f"{LOGS}/prepare_triviaqa/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["triviaqa"],
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        repo=of_dataset("repo"),
        revision=of_dataset("revision"),
        train=of_dataset("train"),
        test=of_dataset("test"),
        expect=of_dataset("expect", default={}),
    script:
        "../scripts/questions/prepare_triviaqa.py"


rule prepare_jeopardy:
    input:
        categories=per_job(inputs.jeopardy_categories),
    output:
        questions=paths.questions,
    log:
        f"{LOGS}/prepare_jeopardy/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["jeopardy"],
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        repo=of_dataset("repo"),
        revision=of_dataset("revision"),
        train=of_dataset("train"),
        test=of_dataset("test"),
        expect=of_dataset("expect", default={}),
        contents=per_job(inputs.contents_of_categories),
    script:
        "../scripts/questions/prepare_jeopardy.py"


rule prepare_bioasq:
    input:
        per_job(inputs.file_if_present),
    output:
        questions=paths.questions,
    log:
        f"{LOGS}/prepare_bioasq/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["bioasq"],
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        file=of_dataset("file"),
        expect=of_dataset("expect", default={}),
        contents=per_job(inputs.contents_of_file),
    script:
        "../scripts/questions/prepare_bioasq.py"


rule read_questions:
    input:
        file=of_dataset("file"),
    output:
        questions=paths.questions,
    log:
        f"{LOGS}/read_questions/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["file"],
    priority: EARLY
    conda:
        "../../envs/cpu.yaml"
    params:
        n_few_shot=of_dataset("n_few_shot", default=0),
        n_train=of_dataset("n_train", default=0),
        n_test=of_dataset("n_test", default=0),
        seed=of_dataset("seed", default=17),
        contents=per_job(inputs.contents_of_file),
        # One more estimator must not read the questions again.
        least=uncompared(inputs.least_questions),
        states=uncompared(study.checkpoint_names),
    script:
        "../scripts/questions/read_questions.py"


rule read_context:
    input:
        questions=paths.questions,
        file=per_job(inputs.context_file),
    output:
        contexts=paths.contexts,
    log:
        f"{LOGS}/read_context/{{model}}/{{checkpoint}}/{{dataset}}.log",
    priority: EARLY
    conda:
        "../../envs/cpu.yaml"
    params:
        prompt=per_job(inputs.context_prompt),
        splits=per_job(study.splits_asked),
        contents=per_job(inputs.contents_of_context),
    script:
        "../scripts/questions/read_context.py"
