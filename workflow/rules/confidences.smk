"""Give every prediction its confidences: adapters, verifiers and estimators -> predictions."""

ESTIMATORS = config["estimators"]
ADAPTER_ESTIMATORS = [name for name in ESTIMATORS if study.recipe_of(name)]
BY_CHECKPOINT = [name for name in ESTIMATORS if ESTIMATORS[name].get("by_checkpoint")]
GATHERED = [*ADAPTER_ESTIMATORS, *BY_CHECKPOINT]
VERIFIED = f"{RESULTS}/verified/{{verifier}}/{{model}}/{{dataset}}.parquet"
VERIFIER_ADAPTER = f"{RESULTS}/verifiers/{{verifier}}/adapter.json"

scorings = ask(study.scorings)


def answers_to_score(wildcards):
    return list(dict.fromkeys(scoring.answers_of for scoring in scorings(wildcards)))


def clusters_to_score(wildcards):
    return expand(CLUSTERS, **{**wildcards, "checkpoint": answers_to_score(wildcards)})


def adapters_that_score(wildcards):
    return [
        f"{ADAPTER}/adapter_model.safetensors".format(
            model=wildcards.model,
            **{**scoring._asdict(), "dataset": scoring.train_dataset},
        )
        for scoring in scorings(wildcards)
    ]


def scorings_as_dicts(wildcards):
    return [scoring._asdict() for scoring in scorings(wildcards)]


def split_to_score(wildcards):
    return "train" if wildcards.answers == "train" else "test"


def how_scored(wildcards):
    return {
        "split": split_to_score(wildcards),
        "prompt": confidence_prompt(wildcards),
        "batch_size": config["scoring"]["batch_size"],
        "head": config["scoring"]["head"],
        "precision": config["training"]["precision"],
    }


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


def scores_read(wildcards):
    return [
        SCORES.format(**{**wildcards, **scores._asdict()})
        for scores in study.scores_read(wildcards.model, wildcards.estimator)
    ]


def checkpoints_judged(model, estimator):
    """Evaluated ones, after those whose labels the estimator is fitted on."""
    earlier = study.earlier(model) if study.is_fitted(estimator) else []
    return earlier + study.evaluation(model)


def copies(wildcards):
    """True where the confidences are another checkpoint's in its own answers."""
    return "answers_of" in ESTIMATORS[wildcards.estimator]


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


def local_adapter_files(wildcards):
    """Digests of the files of a local folder; nothing for a repository of the Hub."""
    adapter = config["verifiers"][wildcards.verifier]["adapter"]
    folder = Path(adapter["repo"]) / adapter["revision"]
    return local_digests(folder, VERIFIER_ADAPTER.format(**wildcards))


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


def verifier_files(wildcards):
    verifier = config["verifiers"][wildcards.verifier]
    files = {
        "checkpoint": CHECKPOINT.format(**verifier),
        "pretrained": pretrained_files(verifier["model"], verifier["checkpoint"]),
    }
    if verifier.get("adapter"):
        files["adapter"] = VERIFIER_ADAPTER.format(**wildcards)
    return files


def verifier_prompt(wildcards):
    verifier = config["verifiers"][wildcards.verifier]
    template = read_prompt(verifier["prompt"], f"verifiers.{wildcards.verifier}.prompt")
    asked = {key: verifier[key] for key in ("chat_template", "word")}
    return {"template": template, **asked}


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


def further_files_read(wildcards):
    """Files that an estimator may read on top of those that every one gets."""
    about = ESTIMATORS[wildcards.estimator]
    read = {}
    if about.get("reads_weights"):
        question = (
            study.read_at if wildcards.get("checkpoint") else study.checkpoints_read
        )
        names = ask(question)(wildcards)
        read["checkpoints"] = expand(
            CHECKPOINT, model=wildcards.model, checkpoint=names
        )
    if about.get("compares_answers"):
        read["entailment_model"] = ENTAILMENT_MODEL
    if "verifier" in about:
        read["verified"] = VERIFIED.format(**wildcards, verifier=about["verifier"])
    return read


def estimator_digest(wildcards):
    """Digests of the script that serves all estimators, and of this one's file."""
    name = (
        "rate_at_checkpoint" if wildcards.get("checkpoint") else "estimate_confidences"
    )
    function = ESTIMATORS[wildcards.estimator]["function"]
    own = ROOT / "persistcal" / "confidence" / "estimators" / f"{function}.py"
    if function.endswith(".py"):
        own = Path(existing(function, "correct the estimator's function"))
    script = digest_of(f"confidences/{name}.py")
    return [script, code_digest(own, ROOT)]


def estimator_prompt(wildcards):
    prompt = ESTIMATORS[wildcards.estimator].get("prompt")
    key = f"estimators.{wildcards.estimator}.prompt"
    return read_prompt(prompt, key) if prompt else CONFIDENCE_PROMPT


def estimation(wildcards, **checkpoints):
    """The entry of an estimator, as values, and the checkpoints that a job is about."""
    about = ESTIMATORS[wildcards.estimator]
    return {
        "estimator": wildcards.estimator,
        "function": about["function"],
        "dataset": wildcards.dataset,
        "equivalence": config["equivalence"],
        "compares_answers": about.get("compares_answers", False),
        "sampled": config["decoding"]["strategy"] == "sample",
        "prompt": estimator_prompt(wildcards),
        "words": about.get("words"),
        **checkpoints,
    }


def estimation_of_all(wildcards):
    return estimation(
        wildcards,
        read=ask(study.checkpoints_read)(wildcards),
        earlier=study.earlier(wildcards.model),
        evaluation=study.evaluation(wildcards.model),
        posthoc=ESTIMATORS[wildcards.estimator].get("posthoc"),
    )


def estimation_of_one(wildcards):
    return estimation(
        wildcards,
        read=ask(study.read_at)(wildcards),
        earlier=ask(study.earlier_at)(wildcards),
        evaluation=[wildcards.checkpoint],
        split=split_to_score(wildcards),
    )


rule estimate_confidences:
    input:
        unpack(further_files_read),
        questions=QUESTIONS,
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
        estimator=one_of(name for name in ESTIMATORS if name not in GATHERED),
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
        questions=QUESTIONS,
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
