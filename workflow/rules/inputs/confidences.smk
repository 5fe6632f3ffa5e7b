"""Input functions and params of the rules in confidences.smk."""


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


def local_adapter_files(wildcards):
    """Digests of the files of a local folder; nothing for a repository of the Hub."""
    adapter = config["verifiers"][wildcards.verifier]["adapter"]
    folder = Path(adapter["repo"]) / adapter["revision"]
    return local_digests(folder, VERIFIER_ADAPTER.format(**wildcards))


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
    template = read_prompt(
        verifier["prompt"], f"verifiers.{wildcards.verifier}.prompt", RATED
    )
    asked = {key: verifier[key] for key in ("chat_template", "word")}
    return {"template": template, **asked}


def further_files_read(wildcards):
    """Files that an estimator may read on top of answers; contexts, where it asks itself."""
    about = ESTIMATORS[wildcards.estimator]
    read = {"questions": QUESTIONS.format(**wildcards)}
    if about.get("reads_weights"):
        question = (
            study.read_at if wildcards.get("checkpoint") else study.checkpoints_read
        )
        names = ask(question)(wildcards)
        read["questions"] = questions_of_each(wildcards.model, names, wildcards.dataset)
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
    if study.is_said(wildcards.estimator):
        name = "read_confidences"
    function = ESTIMATORS[wildcards.estimator]["function"]
    file = existing(str(file_of(function)), "correct the estimator's function")
    return [digest_of(f"confidences/{name}.py"), code_digest(Path(file), ROOT)]


def estimator_prompt(wildcards):
    about = ESTIMATORS[wildcards.estimator]
    if "prompt" not in about:
        return CONFIDENCE_PROMPT
    optional = ["answer", "scale"] if "scale" in about else ["answer"]
    fields = (["question"], optional) if "asks" in about else RATED
    return read_prompt(
        about["prompt"], f"estimators.{wildcards.estimator}.prompt", fields
    )


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
        **({"scale": about["scale"]} if "scale" in about else {}),
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


def how_asked(wildcards):
    """How an estimator asks a checkpoint about its answers."""
    state = study.state(wildcards.model, wildcards.checkpoint)
    served = bool(study.api(wildcards.model, wildcards.checkpoint))
    on_a_gpu = {key: DECODING[key] for key in ("batch_size", "memory_gb")}
    return {
        "prompt": estimator_prompt(wildcards),
        **ESTIMATORS[wildcards.estimator]["asks"],
        "seed": study.draws(wildcards.model, wildcards.checkpoint)["seed"],
        "chat": state["chat"],
        "scale": list(ESTIMATORS[wildcards.estimator].get("scale", {})),
        **({} if served else on_a_gpu),
    }


def replies_read(wildcards):
    if wildcards.estimator not in ASKING:
        return []
    names = checkpoints_judged(wildcards.model, wildcards.estimator)
    return expand(REPLIES, checkpoint=names, **wildcards)
