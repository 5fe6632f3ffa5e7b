"""Make or fetch the checkpoints: a record of each, and where its weights are.

Rules that fetch have no digest of their code: an edit of how a file is fetched
must not rerun what was computed from it.
"""


include: "inputs/models.smk"


WEIGHTS = f"{RESULTS}/pretrained/{{model}}/{{checkpoint}}/model.safetensors"
# What else a checkpoint that is made here consists of, and a pre-trained one.
MODEL_FILES = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
]
BESIDE_WEIGHTS = [
    WEIGHTS.replace("model.safetensors", name)
    for name in [*MODEL_FILES, "optimizer.safetensors"]
]


rule pretrain_checkpoint:
    input:
        unpack(previous_weights),
        facts=facts_to_learn,
    output:
        BESIDE_WEIGHTS,
        weights=WEIGHTS,
        checkpoint=CHECKPOINT,
    log:
        f"{LOGS}/pretrain_checkpoint/{{model}}/{{checkpoint}}.log",
    benchmark:
        f"{LOGS}/pretrain_checkpoint/{{model}}/{{checkpoint}}.tsv"
    wildcard_constraints:
        model=with_states("pretraining"),
    # Every other job waits for the chain of checkpoints.
    priority: 100
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=2000,
    params:
        start_step=ask(study.step_before),
        end_step=lookup(
            "{model}/checkpoints/{checkpoint}/step", within=config["models"]
        ),
        settings=ask(study.pretraining),
        confidence_prompt=pretraining_prompt,
    script:
        "../scripts/models/pretrain_checkpoint.py"


rule resolve_checkpoint:
    output:
        revision=f"{RESULTS}/revisions/{{model}}/{{checkpoint}}.json",
    log:
        f"{LOGS}/resolve_checkpoint/{{model}}/{{checkpoint}}.log",
    wildcard_constraints:
        model=with_states("repo"),
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        repo=of_state("repo"),
        revision=of_state("revision"),
        # By content, so that a touch of local files reruns nothing.
        files=local_files,
        # The record of before, which outlives this job; compared with what is there now.
        record=CHECKPOINT,
        allow_identical_weights=of_state("allow_identical_weights", default=False),
        beside_weights=ask(study.beside_weights),
    script:
        "../scripts/models/resolve_checkpoint.py"


rule fetch_checkpoint:
    input:
        revision=rules.resolve_checkpoint.output.revision,
    output:
        checkpoint=CHECKPOINT,
    log:
        f"{LOGS}/fetch_checkpoint/{{model}}/{{checkpoint}}.log",
    wildcard_constraints:
        model=with_states("repo"),
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        dtype=of_state("dtype"),
    script:
        "../scripts/models/fetch_checkpoint.py"


rule merge_checkpoints:
    input:
        ask(pretrained_files),
        parts=ask(records_merged),
    output:
        checkpoint=CHECKPOINT,
    log:
        f"{LOGS}/merge_checkpoints/{{model}}/{{checkpoint}}.log",
    wildcard_constraints:
        model=with_states("merge"),
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        merge=of_state("merge"),
        dtype=of_state("dtype"),
        beside_weights=ask(study.beside_weights),
        key=key_of_state,
        files=local_files,
    script:
        "../scripts/models/merge_checkpoints.py"
