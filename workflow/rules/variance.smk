"""Measure how hidden states vary over seeds, and whether that grows with training."""

VARIANCE_RECIPE = ANALYSES["hidden_state_variance"]["recipe"]
VARIANCE_SEEDS = selection.recipe_settings(config, VARIANCE_RECIPE)["seeds"]
VARIANCES_MEASURED = [
    (model, checkpoint, dataset)
    for model, dataset in selection.analysed(config, "hidden_state_variance")
    for checkpoint in selection.training_sets(config, model, VARIANCE_RECIPE)
]


rule measure_variance:
    input:
        checkpoint=CHECKPOINT,
        questions=QUESTIONS,
        clusters=CLUSTERS,
        adapters=expand(
            f"{ADAPTER}/adapter_model.safetensors",
            recipe=VARIANCE_RECIPE,
            trained_on="{checkpoint}",
            seed=VARIANCE_SEEDS,
            allow_missing=True,
        ),
    output:
        variances=f"{R}/variances/{{model}}/{{checkpoint}}/{{dataset}}.parquet",
    log:
        f"{LOGS}/measure_variance/{{model}}/{{checkpoint}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/measure_variance/{{model}}/{{checkpoint}}/{{dataset}}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpus,
        mem_mb=memory,
        runtime=runtime,
    params:
        prompt=confidence_prompt,
        batch_size=config["scoring"]["batch_size"],
        code=digest_of("analyses/measure_variance.py"),
    script:
        "../scripts/analyses/measure_variance.py"


rule correlate_variance:
    input:
        variances=[
            rules.measure_variance.output.variances.format(
                model=model, checkpoint=checkpoint, dataset=dataset
            )
            for model, checkpoint, dataset in VARIANCES_MEASURED
        ],
    output:
        tex=report(
            f"{R}/tables/hidden_state_variance.tex",
            caption="../report/hidden_state_variance.rst",
            category="Tables",
            labels={"table": "hidden_state_variance", "format": "LaTeX"},
        ),
        csv=report(
            f"{R}/tables/hidden_state_variance.csv",
            caption="../report/hidden_state_variance.rst",
            category="Tables",
            labels={"table": "hidden_state_variance", "format": "CSV"},
        ),
    log:
        f"{LOGS}/correlate_variance.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        measured=[list(measured) for measured in VARIANCES_MEASURED],
        labels=LABELS,
        code=digest_of("analyses/correlate_variance.py"),
    script:
        "../scripts/analyses/correlate_variance.py"
