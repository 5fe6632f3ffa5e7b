"""Give every answer its confidences: adapters and estimators -> predictions."""


rule score_answers:
    input:
        checkpoint=CHECKPOINT,
        questions=QUESTIONS,
        clusters=clusters_to_score,
        adapters=adapters_that_score,
    output:
        scores=shard_of(SCORES, "scoring"),
    log:
        shard_of(
            "{part}/logs/score_answers/{model}/{checkpoint}/{dataset}.log", "scoring"
        ),
    benchmark:
        shard_of(
            "{part}/logs/score_answers/{model}/{checkpoint}/{dataset}.tsv", "scoring"
        )
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpus,
        mem_mb=memory,
        runtime=runtime,
    params:
        answers_of=answers_to_score,
        adapters=scorings_as_dicts,
        prompt=confidence_prompt,
        batch_size=config["scoring"]["batch_size"],
        shard=shard_number,
        n_shards=config["scoring"]["shards"],
        code=digest_of("confidences/score_answers.py"),
    script:
        "../scripts/confidences/score_answers.py"


if config["scoring"]["shards"] > 1:

    rule merge_scores:
        input:
            questions=QUESTIONS,
            shards=expand(
                rules.score_answers.output.scores,
                shard=range(config["scoring"]["shards"]),
                allow_missing=True,
            ),
        output:
            merged=SCORES,
        log:
            "{part}/logs/merge_scores/{model}/{checkpoint}/{dataset}.log",
        localrule: True
        conda:
            "../../envs/cpu.yaml"
        threads: 1
        params:
            table="SCORES",
            code=digest_of("answers/merge_shards.py"),
        script:
            "../scripts/answers/merge_shards.py"


rule estimate_confidences:
    input:
        unpack(further_files_read),
        questions=QUESTIONS,
        beams=beams_read,
        clusters=clusters_read,
        labels=labels_read,
    output:
        confidences=CONFIDENCES,
    log:
        f"{LOGS}/estimate_confidences/{{model}}/{{dataset}}/{{estimator}}.log",
    benchmark:
        f"{LOGS}/estimate_confidences/{{model}}/{{dataset}}/{{estimator}}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpus,
        mem_mb=memory,
        runtime=runtime,
    params:
        checkpoints=checkpoints_read,
        earlier=earlier_checkpoints,
        evaluation=evaluation_checkpoints,
        equivalence=config["equivalence"],
        script=estimator_script,
        code=estimator_digest,
    script:
        "../scripts/{params.script}"


rule assemble_predictions:
    input:
        questions=QUESTIONS,
        clusters=clusters_evaluated,
        labels=labels_evaluated,
        scores=scores_evaluated,
        confidences=confidences_evaluated,
    output:
        predictions=PREDICTIONS,
    log:
        "{part}/logs/assemble_predictions/{model}/{dataset}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints=evaluation_checkpoints,
        scored_at=checkpoints_that_score,
        scored=scored_predictions,
        estimators=estimators_with_script,
        code=digest_of("confidences/assemble_predictions.py"),
    script:
        "../scripts/confidences/assemble_predictions.py"
