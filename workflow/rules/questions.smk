"""Prepare the questions of every dataset: one rule per source."""

FROM = {
    source: one_of(
        d for d, about in config["datasets"].items() if about.get("source") == source
    )
    for source in ("atlas", "elements", "triviaqa", "jeopardy", "bioasq", "file")
}


rule prepare_atlas:
    output:
        questions=QUESTIONS,
        facts=FACTS,
    log:
        f"{LOGS}/prepare_atlas/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["atlas"],
    priority: EARLY
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        n_few_shot=lookup("{dataset}/n_few_shot", within=config["datasets"]),
        n_train=lookup("{dataset}/n_train", within=config["datasets"]),
        n_test=lookup("{dataset}/n_test", within=config["datasets"]),
        seed=lookup("{dataset}/seed", within=config["datasets"]),
        min_city_population=lookup(
            "{dataset}/min_city_population", within=config["datasets"]
        ),
        code=digest_of("questions/prepare_atlas.py"),
    script:
        "../scripts/questions/prepare_atlas.py"


rule prepare_elements:
    output:
        questions=QUESTIONS,
        facts=FACTS,
    log:
        f"{LOGS}/prepare_elements/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["elements"],
    priority: EARLY
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        n_few_shot=lookup("{dataset}/n_few_shot", within=config["datasets"]),
        n_test=lookup("{dataset}/n_test", within=config["datasets"]),
        seed=lookup("{dataset}/seed", within=config["datasets"]),
        code=digest_of("questions/prepare_elements.py"),
    script:
        "../scripts/questions/prepare_elements.py"


rule prepare_triviaqa:
    output:
        questions=QUESTIONS,
    log:
        f"{LOGS}/prepare_triviaqa/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["triviaqa"],
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        repo=lookup("{dataset}/repo", within=config["datasets"]),
        revision=lookup("{dataset}/revision", within=config["datasets"]),
        train=lookup("{dataset}/train", within=config["datasets"]),
        test=lookup("{dataset}/test", within=config["datasets"]),
        expect=lookup("{dataset}/expect", within=config["datasets"], default={}),
        code=digest_of("questions/prepare_triviaqa.py"),
    script:
        "../scripts/questions/prepare_triviaqa.py"


def jeopardy_categories(wildcards):
    """The list is the project's unless the user has one of that name."""
    return find_file(config["datasets"][wildcards.dataset]["categories"])


def contents_of_categories(wildcards):
    return contents_of(jeopardy_categories(wildcards))


rule prepare_jeopardy:
    input:
        categories=jeopardy_categories,
    output:
        questions=QUESTIONS,
    log:
        f"{LOGS}/prepare_jeopardy/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["jeopardy"],
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        repo=lookup("{dataset}/repo", within=config["datasets"]),
        revision=lookup("{dataset}/revision", within=config["datasets"]),
        train=lookup("{dataset}/train", within=config["datasets"]),
        test=lookup("{dataset}/test", within=config["datasets"]),
        expect=lookup("{dataset}/expect", within=config["datasets"], default={}),
        contents=contents_of_categories,
        code=digest_of("questions/prepare_jeopardy.py"),
    script:
        "../scripts/questions/prepare_jeopardy.py"


def contents_of_file(wildcards):
    return contents_of(config["datasets"][wildcards.dataset]["file"])


def bioasq_file_if_there(wildcards):
    """Nothing where the file is missing: the job, and not a dry run, asks for it."""
    file = config["datasets"][wildcards.dataset]["file"]
    return [file] if Path(file).exists() else []


rule prepare_bioasq:
    input:
        bioasq_file_if_there,
    output:
        questions=QUESTIONS,
    log:
        f"{LOGS}/prepare_bioasq/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["bioasq"],
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        file=lookup("{dataset}/file", within=config["datasets"]),
        expect=lookup("{dataset}/expect", within=config["datasets"], default={}),
        contents=contents_of_file,
        code=digest_of("questions/prepare_bioasq.py"),
    script:
        "../scripts/questions/prepare_bioasq.py"


rule read_questions:
    input:
        file=lookup("{dataset}/file", within=config["datasets"]),
    output:
        questions=QUESTIONS,
    log:
        f"{LOGS}/read_questions/{{dataset}}.log",
    wildcard_constraints:
        dataset=FROM["file"],
    priority: EARLY
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        n_few_shot=lookup("{dataset}/n_few_shot", within=config["datasets"], default=0),
        n_train=lookup("{dataset}/n_train", within=config["datasets"], default=0),
        n_test=lookup("{dataset}/n_test", within=config["datasets"], default=0),
        seed=lookup("{dataset}/seed", within=config["datasets"], default=17),
        contents=contents_of_file,
        code=digest_of("questions/read_questions.py"),
    script:
        "../scripts/questions/read_questions.py"
