"""Give every prediction its confidences: adapters, verifiers and estimators -> predictions."""


include: "inputs/confidences.smk"


ESTIMATORS = config["estimators"]
ADAPTER_ESTIMATORS = [name for name in ESTIMATORS if study.recipe_of(name)]
BY_CHECKPOINT = [name for name in ESTIMATORS if ESTIMATORS[name].get("by_checkpoint")]
GATHERED = [*ADAPTER_ESTIMATORS, *BY_CHECKPOINT]
SAYING = [name for name in ESTIMATORS if study.is_said(name)]
ASKING = [name for name in SAYING if "asks" in ESTIMATORS[name]]
REPLIES = (
    f"{RESULTS}/replies/{{model}}/{{checkpoint}}/{{dataset}}/{{estimator}}.parquet"
)
UNSAID = f"{RESULTS}/unsaid/{{model}}/{{dataset}}/{{estimator}}.parquet"
VERIFIED = f"{RESULTS}/verified/{{verifier}}/{{model}}/{{dataset}}.parquet"
VERIFIER_ADAPTER = f"{RESULTS}/verifiers/{{verifier}}/adapter.json"

scorings = ask(study.scorings)


rule score_answers:
    input:
        checkpoint=CHECKPOINT,
        questions=ask(questions_asked),
        clusters=clusters_to_score,
        adapters=adapters_that_score,
    output:
        scores=shard_of(SCORES, "scoring"),
    log:
        shard_of(
            f"{LOGS}/score_answers/{{model}}/{{checkpoint}}/{{dataset}}/{{recipe}}/{{answers}}.log",
            "scoring",
        ),
    benchmark:
        shard_of(
            f"{LOGS}/score_answers/{{model}}/{{checkpoint}}/{{dataset}}/{{recipe}}/{{answers}}.tsv",
            "scoring",
        )
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        scorings=scorings_as_dicts,
        how=how_scored,
        shard=shard_number,
        n_shards=config["scoring"]["shards"],
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
            f"{LOGS}/merge_scores/{{model}}/{{checkpoint}}/{{dataset}}/{{recipe}}/{{answers}}.log",
        localrule: True
        conda:
            "../../envs/cpu.yaml"
        script:
            "../scripts/confidences/merge_scores.py"


rule gather_confidences:
    input:
        scores=scores_read,
        answers=for_each(checkpoints_judged, ANSWERS),
    output:
        predictions=PREDICTIONS,
    log:
        f"{LOGS}/gather_confidences/{{model}}/{{dataset}}/{{estimator}}.log",
    wildcard_constraints:
        estimator=one_of(GATHERED),
    conda:
        "../../envs/cpu.yaml"
    params:
        evaluation=ask(study.evaluation),
        uses=ask(study.uses),
        copies=copies,
        posthoc=lookup("{estimator}/posthoc", within=ESTIMATORS, default=None),
    script:
        "../scripts/confidences/gather_confidences.py"


rule resolve_adapter:
    output:
        revision=f"{RESULTS}/verifiers/{{verifier}}/revision.json",
    log:
        f"{LOGS}/resolve_adapter/{{verifier}}.log",
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        repo=lookup("{verifier}/adapter/repo", within=config["verifiers"]),
        revision=lookup("{verifier}/adapter/revision", within=config["verifiers"]),
        files=local_adapter_files,
        # The record of before, which outlives this job; compared with what is there now.
        record=VERIFIER_ADAPTER,
    script:
        "../scripts/models/resolve_checkpoint.py"


rule fetch_adapter:
    input:
        revision=rules.resolve_adapter.output.revision,
    output:
        adapter=VERIFIER_ADAPTER,
    log:
        f"{LOGS}/fetch_adapter/{{verifier}}.log",
    priority: EARLY
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    script:
        "../scripts/confidences/fetch_adapter.py"


rule score_with_verifier:
    input:
        unpack(verifier_files),
        questions=QUESTIONS,
        clusters=for_each(study.splits_to_verify, CLUSTERS),
    output:
        verified=VERIFIED,
    log:
        f"{LOGS}/score_with_verifier/{{verifier}}/{{model}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/score_with_verifier/{{verifier}}/{{model}}/{{dataset}}.tsv"
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        splits=ask(study.splits_to_verify),
        asked=verifier_prompt,
        batch_size=lookup("{verifier}/batch_size", within=config["verifiers"]),
    script:
        "../scripts/confidences/score_with_verifier.py"


rule estimate_confidences:
    input:
        unpack(further_files_read),
        beams=for_each(study.checkpoints_read, BEAMS),
        clusters=for_each(study.checkpoints_read, CLUSTERS),
        answers=for_each(checkpoints_judged, ANSWERS),
    output:
        predictions=PREDICTIONS,
    log:
        f"{LOGS}/estimate_confidences/{{model}}/{{dataset}}/{{estimator}}.log",
    benchmark:
        f"{LOGS}/estimate_confidences/{{model}}/{{dataset}}/{{estimator}}.tsv"
    wildcard_constraints:
        estimator=one_of(e for e in ESTIMATORS if e not in [*GATHERED, *SAYING]),
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        estimation=estimation_of_all,
        code=estimator_digest,
    script:
        "../scripts/confidences/estimate_confidences.py"


rule rate_at_checkpoint:
    input:
        unpack(further_files_read),
        beams=for_each(study.read_at, BEAMS),
        clusters=for_each(study.read_at, CLUSTERS),
        answers=for_each(study.judged_at, ANSWERS),
    output:
        scores=SCORES.replace("{recipe}", "{estimator}"),
    log:
        f"{LOGS}/rate_at_checkpoint/{{model}}/{{checkpoint}}/{{dataset}}/{{estimator}}/{{answers}}.log",
    benchmark:
        f"{LOGS}/rate_at_checkpoint/{{model}}/{{checkpoint}}/{{dataset}}/{{estimator}}/{{answers}}.tsv"
    wildcard_constraints:
        estimator=one_of(BY_CHECKPOINT),
        answers="own|train",
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        estimation=estimation_of_one,
        code=estimator_digest,
    script:
        "../scripts/confidences/rate_at_checkpoint.py"


if study.runs_models:

    rule ask_checkpoint:
        input:
            ask(pretrained_files),
            checkpoint=CHECKPOINT,
            questions=ask(questions_asked),
            clusters=CLUSTERS,
        output:
            replies=REPLIES,
        log:
            f"{LOGS}/ask_checkpoint/{{model}}/{{checkpoint}}/{{dataset}}/{{estimator}}.log",
        benchmark:
            f"{LOGS}/ask_checkpoint/{{model}}/{{checkpoint}}/{{dataset}}/{{estimator}}.tsv"
        wildcard_constraints:
            model=f"(?!{AT_SERVER})(?:{one_of(study.models_made)})",
            estimator=one_of(ASKING),
        conda:
            "../../envs/gpu.yaml"
        resources:
            **ON_GPU,
        params:
            split=ask(study.split_rated),
            asking=how_asked,
        script:
            "../scripts/confidences/ask_checkpoint.py"


if study.ever_served:

    rule ask_server:
        input:
            questions=QUESTIONS,
            clusters=CLUSTERS,
        output:
            replies=REPLIES,
        log:
            f"{LOGS}/ask_server/{{model}}/{{checkpoint}}/{{dataset}}/{{estimator}}.log",
        wildcard_constraints:
            model=AT_SERVER,
            estimator=one_of(ASKING),
        # From where Snakemake runs, as sample_from_server does.
        localrule: True
        conda:
            "../../envs/cpu.yaml"
        params:
            split=ask(study.split_rated),
            asking=how_asked,
            served=ask(study.decides_answers),
            reach=uncompared(study.reaches),
            folder=f"{RESULTS}/api",
            kept=f"{RESULTS}/api/replies/{{model}}/{{checkpoint}}",
        script:
            "../scripts/confidences/ask_server.py"


rule read_confidences:
    input:
        questions=QUESTIONS,
        beams=for_each(study.checkpoints_read, BEAMS),
        clusters=for_each(study.checkpoints_read, CLUSTERS),
        answers=for_each(checkpoints_judged, ANSWERS),
        replies=replies_read,
    output:
        predictions=PREDICTIONS,
        unsaid=UNSAID,
    log:
        f"{LOGS}/read_confidences/{{model}}/{{dataset}}/{{estimator}}.log",
    wildcard_constraints:
        estimator=one_of(SAYING),
    conda:
        "../../envs/cpu.yaml"
    params:
        estimation=estimation_of_all,
        code=estimator_digest,
    script:
        "../scripts/confidences/read_confidences.py"
