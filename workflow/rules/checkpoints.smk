"""Make or fetch the checkpoints: a record of each, and where its weights are.

Rules that fetch have no digest of their code: an edit of how a file is fetched
must not rerun what was computed from it.
"""


rule pretrain_checkpoint:
    input:
        unpack(previous_weights),
        facts=facts_to_learn,
    output:
        weights=WEIGHTS,
        checkpoint=CHECKPOINT,
    log:
        f"{LOGS}/pretrain_checkpoint/{{model}}/{{checkpoint}}.log",
    benchmark:
        f"{LOGS}/pretrain_checkpoint/{{model}}/{{checkpoint}}.tsv"
    wildcard_constraints:
        model=one_of(
            m for m in selection.models(config) if "pretraining" in config["models"][m]
        ),
    # Every other job waits for the chain of checkpoints.
    priority: 100
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        start_step=step_before,
        end_step=lookup(
            "{model}/checkpoints/{checkpoint}/step", within=config["models"]
        ),
        settings=pretraining,
        confidence_prompt=pretraining_prompt,
        code=digest_of("models/pretrain_checkpoint.py"),
    script:
        "../scripts/models/pretrain_checkpoint.py"


rule resolve_checkpoint:
    input:
        weights=local_weights,
    output:
        revision=f"{R}/revisions/{{model}}/{{checkpoint}}.json",
    log:
        f"{LOGS}/resolve_checkpoint/{{model}}/{{checkpoint}}.log",
    wildcard_constraints:
        model=one_of(m for m in selection.models(config) if "repo" in config["models"][m]),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        repo=lookup("{model}/repo", within=config["models"]),
        revision=lookup(
            "{model}/checkpoints/{checkpoint}/revision", within=config["models"]
        ),
        # The record of before, which outlives this job; compared with what is there now.
        record=CHECKPOINT,
        allow_identical_weights=lookup(
            "{model}/checkpoints/{checkpoint}/allow_identical_weights",
            within=config["models"],
            default=False,
        ),
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
        model=one_of(m for m in selection.models(config) if "repo" in config["models"][m]),
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        dtype=lookup("{model}/dtype", within=config["models"], default=None),
    script:
        "../scripts/models/fetch_checkpoint.py"
