"""Make checkpoints with a `change` in the config, by further training."""


rule change_checkpoint:
    input:
        unpack(files_of_job(inputs.checkpoint_to_change)),
        questions=files_of_job(inputs.questions_of_change),
    output:
        paths.beside_changed,
        weights=paths.changed,
        checkpoint=paths.checkpoint,
    wildcard_constraints:
        model=inputs.made_by("change"),
    # All other jobs wait for these, as for the checkpoints of a pre-training.
    priority: 100
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        change=checkpoint_setting("change"),
    script:
        "../scripts/laboratory/change_checkpoint.py"


rule retrain_checkpoint:
    input:
        facts=files_of_job(inputs.facts_to_learn),
        tokenizer=files_of_job(inputs.first_tokenizer),
    output:
        paths.beside_changed,
        weights=paths.changed,
        checkpoint=paths.checkpoint,
    benchmark:
        f"{LOGS}/retrain_checkpoint/{{model}}/{{checkpoint}}.tsv"
    wildcard_constraints:
        model=inputs.made_by("retraining"),
    priority: 100
    resources:
        mem_mb=2000,
    params:
        end_step=settings_of_job(study.last_step),
        settings=settings_of_job(inputs.retraining),
        confidence_prompt=settings_of_job(inputs.pretraining_prompt),
    script:
        "../scripts/laboratory/retrain_checkpoint.py"
