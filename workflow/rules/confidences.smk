"""Rate every answer, and join the labels: adapters, verifiers, estimators -> predictions.

No confidence in an answer depends on its label.
"""

ESTIMATORS = config["estimators"]
ADAPTER_ESTIMATORS = [name for name in ESTIMATORS if study.recipe_of(name)]
BY_CHECKPOINT = [name for name in ESTIMATORS if ESTIMATORS[name].get("by_checkpoint")]
GATHERED = [*ADAPTER_ESTIMATORS, *BY_CHECKPOINT]
VERBAL = [name for name in ESTIMATORS if study.is_verbal(name)]
ASKING = [name for name in VERBAL if "asks" in ESTIMATORS[name]]


# Answers that an estimator reads, rates and is fitted on
ANSWERS = {
    "beams": files_of_job(study.answers_read, paths.beams),
    "clusters": files_of_job(study.answers_read, paths.clusters),
    "rated": files_of_job(study.answers_rated, paths.clusters),
    "answers": files_of_job(study.answers_labelled, paths.answers),
}


rule score_answers:
    input:
        checkpoint=paths.checkpoint,
        questions=files_of_job(inputs.questions_asked),
        clusters=files_of_job(inputs.clusters_to_score),
        adapters=files_of_job(inputs.adapters_that_score),
    output:
        scores=shard_of(paths.scores, "scoring"),
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        scorings=settings_of_job(study.scorings),
        how=settings_of_job(inputs.scoring_settings),
        shard=shard_number,
        n_shards=config["scoring"]["shards"],
    script:
        "../scripts/confidences/score_answers.py"


if config["scoring"]["shards"] > 1:

    rule merge_scores:
        input:
            questions=paths.questions,
            shards=expand(
                rules.score_answers.output.scores,
                shard=range(config["scoring"]["shards"]),
                allow_missing=True,
            ),
        output:
            merged=paths.scores,
        localrule: True
        script:
            "../scripts/confidences/merge_scores.py"


rule resolve_adapter:
    output:
        revision=f"{RESULTS}/verifiers/{{verifier}}/revision.json",
    log:
        f"{LOGS}/resolve_adapter/{{verifier}}.log",
    priority: EARLY
    localrule: True
    params:
        repo=lookup("{verifier}/adapter/repo", within=config["verifiers"]),
        revision=lookup("{verifier}/adapter/revision", within=config["verifiers"]),
        files=settings_of_job(inputs.adapter_files),
        # The earlier record, which is kept during the job and compared with the new one.
        record=paths.verifier_adapter,
        pins=without_rerun(read_pins(ROOT)),
    script:
        "../scripts/models/resolve_checkpoint.py"


rule fetch_adapter:
    input:
        revision=rules.resolve_adapter.output.revision,
    output:
        adapter=paths.verifier_adapter,
    priority: EARLY
    localrule: True
    resources:
        download=1,
    script:
        "../scripts/confidences/fetch_adapter.py"


rule score_with_verifier:
    input:
        unpack(files_of_job(inputs.verifier_files)),
        questions=paths.questions,
        clusters=files_of_job(study.answers_to_verify, paths.clusters),
    output:
        verified=paths.verified,
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        splits=settings_of_job(study.splits_to_verify),
        asked=settings_of_job(inputs.verifier_prompt),
        batch_size=lookup("{verifier}/batch_size", within=config["verifiers"]),
    script:
        "../scripts/confidences/score_with_verifier.py"


rule rate_at_checkpoint:
    input:
        unpack(files_of_job(inputs.further_files)),
        **ANSWERS,
    output:
        scores=paths.scores.replace("{recipe}", "{estimator}"),
    wildcard_constraints:
        estimator=one_of(BY_CHECKPOINT),
        answers=one_of(["own", "train", *FURTHER_ASKS]),
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        estimation=settings_of_job(inputs.estimation),
        further_code=settings_of_job(inputs.estimator_digest),
    script:
        "../scripts/confidences/rate_at_checkpoint.py"


if study.runs_models:

    rule ask_checkpoint:
        input:
            files_of_job(inputs.made_files),
            checkpoint=paths.checkpoint,
            questions=files_of_job(inputs.questions_asked),
            clusters=paths.clusters,
        output:
            replies=paths.replies,
        wildcard_constraints:
            model=f"(?!{AT_SERVER})(?:{one_of(study.models_made)})",
            estimator=one_of(ASKING),
        conda:
            "../../envs/gpu.yaml"
        resources:
            **ON_GPU,
        params:
            asking=settings_of_job(inputs.asking),
        script:
            "../scripts/confidences/ask_checkpoint.py"


if study.served:

    rule ask_server:
        input:
            questions=paths.questions,
            clusters=paths.clusters,
        output:
            replies=paths.replies,
        wildcard_constraints:
            model=AT_SERVER,
            estimator=one_of(ASKING),
        # Runs next to Snakemake, like sample_from_server.
        localrule: True
        params:
            asking=settings_of_job(inputs.asking),
            served=settings_of_job(study.decides_answers),
            api=without_rerun(inputs.api_settings),
            folder=f"{RESULTS}/api",
            kept=f"{RESULTS}/api/replies/{{model}}/{{checkpoint}}",
        script:
            "../scripts/confidences/ask_server.py"


rule gather_confidences:
    input:
        scores=files_of_job(study.scores_needed, paths.scores),
        answers=files_of_job(study.answers_labelled, paths.answers),
    output:
        confidences=paths.confidences,
    wildcard_constraints:
        estimator=one_of(GATHERED),
    params:
        uses=settings_of_job(study.score_sources),
        posthoc=lookup("{estimator}/posthoc", within=ESTIMATORS, default=None),
    script:
        "../scripts/confidences/gather_confidences.py"


rule estimate_confidences:
    input:
        unpack(files_of_job(inputs.further_files)),
        **ANSWERS,
    output:
        confidences=paths.confidences,
    wildcard_constraints:
        estimator=one_of(e for e in ESTIMATORS if e not in [*GATHERED, *VERBAL]),
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        estimation=settings_of_job(inputs.estimation),
        further_code=settings_of_job(inputs.estimator_digest),
    script:
        "../scripts/confidences/estimate_confidences.py"


rule read_confidences:
    input:
        **ANSWERS,
        questions=paths.questions,
        replies=files_of_job(inputs.replies_read),
    output:
        confidences=paths.confidences,
        unsaid=paths.unsaid,
    wildcard_constraints:
        estimator=one_of(VERBAL),
    params:
        estimation=settings_of_job(inputs.estimation),
        further_code=settings_of_job(inputs.estimator_digest),
    script:
        "../scripts/confidences/read_confidences.py"


rule join_labels:
    input:
        questions=paths.questions,
        confidences=paths.confidences,
        answers=files_of_job(study.rated_at_each, paths.answers),
    output:
        predictions=paths.predictions,
    localrule: True
    params:
        copies=settings_of_job(study.copies),
        splits=settings_of_job(study.splits_rated),
    script:
        "../scripts/confidences/join_labels.py"
