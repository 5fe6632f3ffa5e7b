"""Compare the weights of the checkpoints."""

COMPARED = [m for m in MODELS if m in ANALYSES["weight_similarity"]["models"]]


rule compare_weights:
    input:
        checkpoints=checkpoints_of_all,
    output:
        similarities=f"{R}/weight_similarities/{{model}}.csv",
    log:
        f"{LOGS}/compare_weights/{{model}}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints=all_checkpoints,
        code=digest_of("analyses/compare_weights.py"),
    script:
        "../scripts/analyses/compare_weights.py"


rule make_weights_table:
    input:
        similarities=expand(rules.compare_weights.output.similarities, model=COMPARED),
    output:
        tex=report(
            f"{R}/tables/weight_similarity.tex",
            caption="../report/weight_similarity.rst",
            category="Tables",
            labels={"table": "weight_similarity", "format": "LaTeX"},
        ),
        csv=report(
            f"{R}/tables/weight_similarity.csv",
            caption="../report/weight_similarity.rst",
            category="Tables",
            labels={"table": "weight_similarity", "format": "CSV"},
        ),
    log:
        f"{LOGS}/make_weights_table.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints={m: checkpoint_labels(m) for m in COMPARED},
        models=LABELS["models"],
        code=digest_of("report/make_weights_table.py"),
    script:
        "../scripts/report/make_weights_table.py"
