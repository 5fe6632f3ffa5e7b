"""Answer the questions and group the answers by meaning: beams -> clusters."""

DECODING = config["decoding"]
DECODER = "vllm" if DECODING["backend"] == "vllm" else "gpu"
WEIGHTING = "equal" if DECODING["strategy"] == "sample" else DECODING["weighting"]


# A lookahead, because a model can have checkpoints of both kinds.
SERVED_PATHS = [
    f"{re.escape(model)}(?=/(?:{one_of(names)})/)"
    for model, names in study.served.items()
]
AT_SERVER = "|".join(SERVED_PATHS) or "(?!)"
ASKED = one_of(["train", "test", AGAIN])  # halves are parts of these answers


if study.served:

    rule sample_from_server:
        input:
            questions=paths.questions,
        output:
            beams=paths.beams,
        wildcard_constraints:
            model=AT_SERVER,
            split=ASKED,
        # Runs next to Snakemake, because compute nodes have no connection.
        localrule: True
        params:
            few_shot=settings_of_job(inputs.few_shot),
            served=settings_of_job(study.decides_answers),
            draws=settings_of_job(inputs.draws),
            api=without_rerun(inputs.api_settings),
            folder=f"{RESULTS}/api",
            replies=f"{RESULTS}/api/replies/{{model}}/{{checkpoint}}",
        script:
            "../scripts/answers/sample_from_server.py"


if study.runs_models:

    rule generate_beams:
        input:
            files_of_job(inputs.made_files),
            checkpoint=paths.checkpoint,
            questions=files_of_job(inputs.questions_asked),
        output:
            beams=shard_of(paths.beams, "decoding"),
        wildcard_constraints:
            model=f"(?!{AT_SERVER})(?:{one_of(study.models_made)})",
            split=ASKED,
        conda:
            f"../../envs/{DECODER}.yaml"
        resources:
            **ON_GPU,
        params:
            few_shot=settings_of_job(inputs.few_shot),
            backend=DECODING["backend"],
            python=without_rerun(DECODING["python"]),
            search=settings_of_job(inputs.search),
            shard=shard_number,
            n_shards=DECODING["shards"],
        script:
            "../scripts/answers/generate_beams.py"

    if config["decoding"]["shards"] > 1:

        rule merge_beams:
            input:
                questions=paths.questions,
                shards=expand(
                    rules.generate_beams.output.beams,
                    shard=range(config["decoding"]["shards"]),
                    allow_missing=True,
                ),
            output:
                merged=paths.beams,
            wildcard_constraints:
                model=f"(?!{AT_SERVER})(?:{one_of(study.models_made)})",
                split=ASKED,
            localrule: True
            script:
                "../scripts/answers/merge_beams.py"


if study.compares_by_model:

    rule fetch_entailment_model:
        output:
            model=paths.entailment_model,
        priority: EARLY
        localrule: True
        params:
            repo=config["equivalence"]["model"],
            revision=config["equivalence"]["revision"],
        script:
            "../scripts/answers/fetch_entailment_model.py"


if study.halves:

    rule halve_samples:
        input:
            beams=paths.beams.replace("{split}", "test"),
        output:
            beams=paths.beams,
        wildcard_constraints:
            split=one_of(HALVES),
        params:
            position=settings_of_job(study.position),
        script:
            "../scripts/answers/halve_samples.py"


rule cluster_answers:
    input:
        questions=paths.questions,
        entailment_model=paths.entailment_model if study.compares_by_model else [],
        beams=paths.beams,
    output:
        clusters=paths.clusters,
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        equivalence=config["equivalence"],
        weighting=WEIGHTING,
        normalisation=DECODING["normalisation"],
    script:
        "../scripts/answers/cluster_answers.py"
