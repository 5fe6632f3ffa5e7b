"""Further analyses: accuracy, confounds, transfer, hidden states, headroom and weights."""


rule compute_accuracies:
    input:
        questions=expand(paths.questions, dataset=DATASETS),
        labels=of_each(paths.labels, study.answered),
    output:
        accuracies=f"{RESULTS}/accuracies.csv",
    log:
        f"{LOGS}/compute_accuracies.log",
    conda:
        "../../envs/cpu.yaml"
    script:
        "../scripts/analyses/compute_accuracies.py"


CONFOUNDED = study.analysed("confounds")
DATASETS_CONFOUNDED = list(dict.fromkeys(dataset for _, dataset in CONFOUNDED))
WITH_FACTS = [
    dataset
    for dataset in DATASETS_CONFOUNDED
    if config["datasets"][dataset].get("source") in ("atlas", "elements")
]


rule measure_confounds:
    input:
        answers=of_each(
            paths.answers,
            [
                Answered(m, c, d, split)
                for m, d in CONFOUNDED
                for c in study.evaluation(m)
                for split in ("train", "test")
            ],
        ),
        questions=expand(paths.questions, dataset=DATASETS_CONFOUNDED),
        facts=expand(paths.facts, dataset=WITH_FACTS),
    output:
        **reported_table("confounds"),
    log:
        f"{LOGS}/measure_confounds.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        settings={d: study.settings_drawn(d) for d in DATASETS_CONFOUNDED},
        labels=LABELS,
    script:
        "../scripts/analyses/measure_confounds.py"


AGREED = study.analysed("agreement")
AGREEMENT = config["analyses"]["agreement"]
STATES_AGREED = list(
    dict.fromkeys(
        [AGREEMENT["reference"], *(c for pair in AGREEMENT["pairs"] for c in pair)]
    )
)


rule measure_agreement:
    input:
        answers=of_each(
            paths.answers,
            [Answered(m, c, d, "test") for m, d in AGREED for c in STATES_AGREED],
        ),
        questions=expand(
            paths.questions,
            dataset=list(dict.fromkeys(dataset for _, dataset in AGREED)),
        ),
    output:
        **reported_table("agreement"),
    log:
        f"{LOGS}/measure_agreement.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        reference=AGREEMENT["reference"],
        pairs=AGREEMENT["pairs"],
        labels=LABELS,
        checkpoints={model: study.checkpoint_labels(model) for model, _ in AGREED},
    script:
        "../scripts/analyses/measure_agreement.py"


rule measure_transfer:
    input:
        answers=for_each(study.checkpoints, paths.answers, split="test"),
        scores=for_each(
            study.checkpoints,
            paths.scores,
            recipe=list(config["analyses"]["transfer"]["recipes"]),
            answers="transfer",
        ),
    output:
        transfer=f"{RESULTS}/transfer/{{model}}/{{dataset}}.csv",
    log:
        f"{LOGS}/measure_transfer/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        checkpoints=per_job(study.checkpoints),
        sets=per_job(study.transfer_set_names),
    script:
        "../scripts/analyses/measure_transfer.py"


VARIANCE_RECIPE = config["analyses"]["hidden_state_variance"]["recipe"]
VARIANCES_MEASURED = study.variances()


rule measure_variance:
    input:
        checkpoint=paths.checkpoint,
        questions=per_job(inputs.questions_asked),
        clusters=expand(paths.clusters, split="test", allow_missing=True),
        adapters=expand(
            f"{paths.adapter}/adapter_model.safetensors",
            recipe=VARIANCE_RECIPE,
            trained_on="{checkpoint}",
            seed=study.recipe(VARIANCE_RECIPE)["seeds"],
            allow_missing=True,
        ),
    output:
        variances=f"{RESULTS}/variances/{{model}}/{{checkpoint}}/{{dataset}}.parquet",
    log:
        f"{LOGS}/measure_variance/{{model}}/{{checkpoint}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/measure_variance/{{model}}/{{checkpoint}}/{{dataset}}.tsv"
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        prompt=per_job(inputs.confidence_prompt),
        last_layer=config["analyses"]["hidden_state_variance"]["last_layer"],
        batch_size=config["scoring"]["batch_size"],
        dtype=config["training"]["dtype"],
    script:
        "../scripts/analyses/measure_variance.py"


rule correlate_variance:
    input:
        variances=of_each(rules.measure_variance.output.variances, VARIANCES_MEASURED),
    output:
        **reported_table("hidden_state_variance"),
    log:
        f"{LOGS}/correlate_variance.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        labels=LABELS,
        last_layer=config["analyses"]["hidden_state_variance"]["last_layer"],
    script:
        "../scripts/analyses/correlate_variance.py"


HEADROOM = config["analyses"]["gcm_headroom"]


rule measure_headroom:
    input:
        answers=for_each(study.evaluation, paths.answers, split="test"),
        replicates=[
            paths.replicates.replace("{estimator}", HEADROOM[name])
            for name in ("verifier", "oracle")
        ],
        backbone=paths.answers.format(
            **HEADROOM["backbone"], dataset="{dataset}", split="test"
        ),
    output:
        headroom=f"{RESULTS}/headroom/{{model}}/{{dataset}}.csv",
    log:
        f"{LOGS}/measure_headroom/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        checkpoints=per_job(study.evaluation),
        settings=per_job(study.settings_drawn),
        compared=[HEADROOM["verifier"], HEADROOM["oracle"]],
    script:
        "../scripts/analyses/measure_headroom.py"


rule compare_weights:
    input:
        records=for_each(study.checkpoints_in_files, paths.checkpoint),
    output:
        similarities=f"{RESULTS}/weight_similarities/{{model}}.csv",
    log:
        f"{LOGS}/compare_weights/{{model}}.log",
    conda:
        "../../envs/cpu.yaml"
    script:
        "../scripts/analyses/compare_weights.py"
