"""Make the states that the config describes as changes: checkpoints that are trained further."""


include: "inputs/laboratory.smk"


# What else a changed checkpoint consists of
BESIDE_CHANGED = [CHANGED.replace("model.safetensors", name) for name in MODEL_FILES]


rule change_checkpoint:
    input:
        unpack(checkpoint_to_change),
        questions=questions_of_change,
    output:
        BESIDE_CHANGED,
        weights=CHANGED,
        checkpoint=CHECKPOINT,
    log:
        f"{LOGS}/change_checkpoint/{{model}}/{{checkpoint}}.log",
    benchmark:
        f"{LOGS}/change_checkpoint/{{model}}/{{checkpoint}}.tsv"
    wildcard_constraints:
        model=with_states("change"),
    # Like the checkpoints of a pre-training: all else waits for them.
    priority: 100
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        change=settings_of_change,
    script:
        "../scripts/laboratory/change_checkpoint.py"


rule retrain_checkpoint:
    input:
        facts=facts_to_learn,
        tokenizer=ordinary_tokenizer,
    output:
        BESIDE_CHANGED,
        weights=CHANGED,
        checkpoint=CHECKPOINT,
    log:
        f"{LOGS}/retrain_checkpoint/{{model}}/{{checkpoint}}.log",
    benchmark:
        f"{LOGS}/retrain_checkpoint/{{model}}/{{checkpoint}}.tsv"
    wildcard_constraints:
        model=with_states("retraining"),
    priority: 100
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=2000,
    params:
        end_step=ask(study.last_step),
        settings=settings_of_retraining,
        confidence_prompt=pretraining_prompt,
    script:
        "../scripts/laboratory/retrain_checkpoint.py"
