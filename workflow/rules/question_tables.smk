"""Show the questions: their categories, and examples."""


rule make_categories_table:
    input:
        questions=QUESTIONS,
    output:
        tex=report(
            f"{R}/tables/{{dataset}}_categories.tex",
            caption="../report/question_categories.rst",
            category="Tables",
            labels={"table": "{dataset}_categories", "format": "LaTeX"},
        ),
        csv=report(
            f"{R}/tables/{{dataset}}_categories.csv",
            caption="../report/question_categories.rst",
            category="Tables",
            labels={"table": "{dataset}_categories", "format": "CSV"},
        ),
    log:
        f"{LOGS}/make_categories_table/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        labels=LABELS["datasets"],
        code=digest_of("report/make_categories_table.py"),
    script:
        "../scripts/report/make_categories_table.py"


rule make_examples_table:
    input:
        questions=QUESTIONS,
    output:
        tex=report(
            f"{R}/tables/{{dataset}}_examples.tex",
            caption="../report/question_examples.rst",
            category="Tables",
            labels={"table": "{dataset}_examples", "format": "LaTeX"},
        ),
        csv=report(
            f"{R}/tables/{{dataset}}_examples.csv",
            caption="../report/question_examples.rst",
            category="Tables",
            labels={"table": "{dataset}_examples", "format": "CSV"},
        ),
    log:
        f"{LOGS}/make_examples_table/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        labels=LABELS["datasets"],
        code=digest_of("report/make_examples_table.py"),
    script:
        "../scripts/report/make_examples_table.py"
