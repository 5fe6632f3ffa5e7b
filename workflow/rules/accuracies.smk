"""What the checkpoints know: their accuracy over training."""

ANSWERS = [
    (model, checkpoint, dataset)
    for model in MODELS
    for checkpoint in selection.group(config, model, "all")
    for dataset in DATASETS
]


rule compute_accuracies:
    input:
        questions=expand(QUESTIONS, dataset=DATASETS),
        labels=[JUDGED.format(model=m, checkpoint=c, dataset=d) for m, c, d in ANSWERS],
    output:
        accuracies=f"{R}/accuracies.csv",
    log:
        f"{LOGS}/compute_accuracies.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        datasets=DATASETS,
        answers=[list(answer) for answer in ANSWERS],
        code=digest_of("analyses/compute_accuracies.py"),
    script:
        "../scripts/analyses/compute_accuracies.py"


CHECKPOINTS = {
    model: {c: checkpoint_settings(model, c) for c in selection.group(config, model, "all")}
    for model in MODELS
}


rule make_checkpoints_table:
    input:
        accuracies=rules.compute_accuracies.output.accuracies,
    output:
        tex=report(
            f"{R}/tables/checkpoints.tex",
            caption="../report/checkpoints.rst",
            category="Tables",
            labels={"table": "checkpoints", "format": "LaTeX"},
        ),
        csv=report(
            f"{R}/tables/checkpoints.csv",
            caption="../report/checkpoints.rst",
            category="Tables",
            labels={"table": "checkpoints", "format": "CSV"},
        ),
    log:
        f"{LOGS}/make_checkpoints_table.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints=CHECKPOINTS,
        labels=LABELS,
        code=digest_of("report/make_checkpoints_table.py"),
    script:
        "../scripts/report/make_checkpoints_table.py"


rule draw_accuracy:
    input:
        accuracies=rules.compute_accuracies.output.accuracies,
    output:
        pdf=f"{R}/figures/accuracy.pdf",
        png=report(
            f"{R}/figures/accuracy.png",
            caption="../report/accuracy.rst",
            category="Figures",
            labels={"figure": "accuracy over training"},
        ),
    log:
        f"{LOGS}/draw_accuracy.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints=CHECKPOINTS,
        evaluation=EVALUATION,
        labels=LABELS,
        code=digest_of("report/draw_accuracy.py"),
    script:
        "../scripts/report/draw_accuracy.py"
