"""Make, fetch or change the checkpoints: a record of each, and the path of its weights.

Rules that fetch have no digest of their code: editing it must not rerun jobs
that read the files.
"""


rule pretrain_checkpoint:
    input:
        unpack(files_of_job(inputs.previous_weights)),
        facts=files_of_job(inputs.facts_to_learn),
    output:
        paths.beside_weights,
        weights=paths.weights,
        checkpoint=paths.checkpoint,
    benchmark:
        f"{LOGS}/pretrain_checkpoint/{{model}}/{{checkpoint}}.tsv"
    wildcard_constraints:
        model=inputs.made_by("pretraining"),
    # Every other job waits for the chain of checkpoints.
    priority: 100
    resources:
        mem_mb=2000,
    params:
        start_step=settings_of_job(study.step_before),
        end_step=lookup(
            "{model}/checkpoints/{checkpoint}/step", within=config["models"]
        ),
        settings=settings_of_job(inputs.pretraining),
        confidence_prompt=settings_of_job(inputs.pretraining_prompt),
    script:
        "../scripts/models/pretrain_checkpoint.py"


rule resolve_checkpoint:
    output:
        revision=f"{RESULTS}/revisions/{{model}}/{{checkpoint}}.json",
    wildcard_constraints:
        model=inputs.made_by("repo"),
    priority: EARLY
    localrule: True
    params:
        repo=checkpoint_setting("repo"),
        revision=checkpoint_setting("revision"),
        # By content, so that a touch of local files reruns nothing.
        files=settings_of_job(inputs.local_files),
        # The earlier record, which is kept during the job and compared with the new one.
        record=paths.checkpoint,
        allow_identical_weights=checkpoint_setting(
            "allow_identical_weights", default=False
        ),
        beside_weights=settings_of_job(study.beside_weights),
        pins=without_rerun(read_pins(ROOT)),
    script:
        "../scripts/models/resolve_checkpoint.py"


rule fetch_checkpoint:
    input:
        revision=rules.resolve_checkpoint.output.revision,
    output:
        checkpoint=paths.checkpoint,
    wildcard_constraints:
        model=inputs.made_by("repo"),
    priority: EARLY
    localrule: True
    resources:
        download=1,
    params:
        dtype=checkpoint_setting("dtype"),
    script:
        "../scripts/models/fetch_checkpoint.py"


rule merge_checkpoints:
    input:
        files_of_job(inputs.made_files),
        parts=files_of_job(study.made_from, paths.checkpoint),
    output:
        checkpoint=paths.checkpoint,
    wildcard_constraints:
        model=inputs.made_by("merge"),
    priority: EARLY
    localrule: True
    params:
        merge=checkpoint_setting("merge"),
        dtype=checkpoint_setting("dtype"),
        beside_weights=settings_of_job(study.beside_weights),
        key="models.{model}.checkpoints.{checkpoint}.merge",
        files=settings_of_job(inputs.local_files),
    script:
        "../scripts/models/merge_checkpoints.py"


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
        "../scripts/models/change_checkpoint.py"


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
        "../scripts/models/retrain_checkpoint.py"
