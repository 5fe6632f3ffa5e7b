"""What jobs read and are told, where that follows from the study: functions only."""


def confidence_prompt(wildcards):
    return CONFIDENCE_PROMPT


def pretraining_prompt(wildcards):
    """Prompt whose format the pre-training shows: a verifier's own, or for confidence."""
    own = pretraining(wildcards).get("prompt")
    return read_prompt(own, "pretraining.prompt") if own else CONFIDENCE_PROMPT


def for_each(checkpoints, pattern, wildcards):
    """Fill `pattern` for each of `checkpoints`, and otherwise from the wildcards."""
    return [pattern.format(**{**wildcards, "checkpoint": name}) for name in checkpoints]


def earlier_checkpoints(wildcards):
    return selection.group(config, wildcards.model, "earlier")


def evaluation_checkpoints(wildcards):
    return selection.group(config, wildcards.model, "evaluation")


# What a job asks for; `rulename` is filled in by Snakemake


def gpus(wildcards, rulename):
    return request(config, rulename, wildcards).gpu


def memory(wildcards, rulename, attempt):
    return request(config, rulename, wildcards, attempt).mem_mb


def runtime(wildcards, rulename, attempt):
    return request(config, rulename, wildcards, attempt).runtime


def ranks(wildcards, rulename):
    return request(config, rulename, wildcards).ranks


# Questions


def jeopardy_categories(wildcards):
    return find_file(config["datasets"][wildcards.dataset]["categories"])


def bioasq_file_if_there(wildcards):
    """Nothing where the file is missing: the job, and not a dry run, asks for it."""
    file = config["datasets"][wildcards.dataset]["file"]
    return [file] if Path(file).exists() else []


# Checkpoints


def pretraining(wildcards):
    return config["models"][wildcards.model]["pretraining"]


def facts_to_learn(wildcards):
    return expand(FACTS, dataset=pretraining(wildcards)["datasets"])


def previous_weights(wildcards):
    name = selection.previous_checkpoint(config, *wildcards)
    return {"previous": for_each([name], WEIGHTS, wildcards)[0]} if name else {}


def step_before(wildcards):
    return selection.step_before(config, *wildcards)


def local_weights(wildcards):
    """Weight files of a local folder; none for a repository of the Hub."""
    model = config["models"][wildcards.model]
    folder = (
        Path(model["repo"]) / model["checkpoints"][wildcards.checkpoint]["revision"]
    )
    return sorted(map(str, folder.glob("*.safetensors")))


# Candidates and their labels


def shard_number(wildcards):
    return int(wildcards.get("shard", 0))


def examples_by_category(wildcards):
    return config["datasets"][wildcards.dataset]["source"] == "bioasq"


def entailment_model(wildcards):
    """Record of the model that compares answers, if the config asks for one."""
    return ENTAILMENT_MODEL if config["equivalence"]["backend"] == "nli" else []


def human_labels(wildcards):
    """What a person has labelled since the job first ran."""
    return human_labels_digest(f"{JUDGE}/queue.csv", CONSULTED.format(**wildcards))


# Adapters


def checkpoints_trained_on(wildcards):
    sets = selection.training_sets(config, wildcards.model, wildcards.recipe)
    return sets[wildcards.trained_on]


def checkpoints_learnt_from(wildcards):
    return selection.data_checkpoints(
        config, wildcards.model, wildcards.recipe, wildcards.trained_on
    )


def checkpoints_to_train(wildcards):
    return for_each(checkpoints_trained_on(wildcards), CHECKPOINT, wildcards)


def clusters_to_learn(wildcards):
    return for_each(checkpoints_learnt_from(wildcards), CLUSTERS, wildcards)


def labels_to_learn(wildcards):
    return for_each(checkpoints_learnt_from(wildcards), JUDGED, wildcards)


# Confidences


def chosen_estimators(wildcards):
    return selection.chosen_estimators(config, wildcards.part, wildcards.dataset)


def scorings(wildcards):
    job = wildcards.part, wildcards.model, wildcards.checkpoint, wildcards.dataset
    return selection.scorings_in(config, *job)


def answers_to_score(wildcards):
    return list(dict.fromkeys(scoring.answers_of for scoring in scorings(wildcards)))


def clusters_to_score(wildcards):
    return for_each(answers_to_score(wildcards), CLUSTERS, wildcards)


def adapters_that_score(wildcards):
    return [
        f"{ADAPTER}/adapter_model.safetensors".format(
            model=wildcards.model,
            dataset=scoring.train_dataset,
            recipe=scoring.recipe,
            trained_on=scoring.trained_on,
            seed=scoring.seed,
        )
        for scoring in scorings(wildcards)
    ]


def scorings_as_dicts(wildcards):
    return [scoring._asdict() for scoring in scorings(wildcards)]


def checkpoints_read(wildcards):
    return selection.checkpoints_read(config, wildcards.model, wildcards.estimator)


def clusters_read(wildcards):
    return for_each(checkpoints_read(wildcards), CLUSTERS, wildcards)


def labels_read(wildcards):
    return for_each(checkpoints_read(wildcards), JUDGED, wildcards)


def beams_read(wildcards):
    return for_each(checkpoints_read(wildcards), BEAMS, wildcards)


def further_files_read(wildcards):
    """What an estimator may read on top of what every one gets."""
    about = config["estimators"][wildcards.estimator]
    read = {}
    if about.get("reads_weights"):
        read["checkpoints"] = for_each(
            checkpoints_read(wildcards), CHECKPOINT, wildcards
        )
    if about.get("compares_answers"):
        read["entailment_model"] = entailment_model(wildcards)
    if "verifier" in about:
        read["verdicts"] = VERDICTS.format(**wildcards, verifier=about["verifier"])
    return read


def estimator_script(wildcards):
    """Path of a script of the project's or of the user's, seen from the former."""
    name = config["estimators"][wildcards.estimator]["script"]
    if (SCRIPTS / name).exists():
        return name
    return os.path.relpath(existing(name, "correct the estimator's script"), SCRIPTS)


def estimator_digest(wildcards):
    return digest_of(estimator_script(wildcards))


def clusters_evaluated(wildcards):
    return for_each(evaluation_checkpoints(wildcards), CLUSTERS, wildcards)


def labels_evaluated(wildcards):
    return for_each(evaluation_checkpoints(wildcards), JUDGED, wildcards)


def checkpoints_that_score(wildcards):
    return selection.checkpoints_that_score(
        config, chosen_estimators(wildcards), wildcards.model, wildcards.dataset
    )


def scores_evaluated(wildcards):
    return for_each(checkpoints_that_score(wildcards), SCORES, wildcards)


def scored_predictions(wildcards):
    return selection.scored_predictions(
        config, chosen_estimators(wildcards), wildcards.model, wildcards.dataset
    )


def estimators_with_script(wildcards):
    return selection.estimators(
        config, chosen_estimators(wildcards), wildcards.dataset, kind="script"
    )


def confidences_evaluated(wildcards):
    return [
        CONFIDENCES.format(**{**wildcards, "estimator": name})
        for name in estimators_with_script(wildcards)
    ]


# Verifiers


def splits_to_verify(wildcards):
    return selection.splits_to_verify(
        config, wildcards.verifier, wildcards.model, wildcards.dataset
    )


def clusters_to_verify(wildcards):
    return for_each(splits_to_verify(wildcards), CLUSTERS, wildcards)


def verifier_files(wildcards):
    verifier = config["verifiers"][wildcards.verifier]
    files = {"checkpoint": CHECKPOINT.format(**verifier)}
    if verifier.get("adapter"):
        files["adapter"] = VERIFIER_ADAPTER.format(**wildcards)
    return files


def verifier_prompt(wildcards):
    return read_prompt(
        config["verifiers"][wildcards.verifier]["prompt"], "verifiers.*.prompt"
    )


def verifier_settings(wildcards):
    keys = ("chat_template", "word", "batch_size")
    return {key: config["verifiers"][wildcards.verifier][key] for key in keys}


# Evaluation and tables


def datasets_of(part):
    """Datasets of a part of the study, with those that their adapters are trained on."""
    return {dataset: TRAIN_DATASETS[dataset] for dataset in DATASETS_OF[part]}


def tables_of(part):
    """Descriptions of the tables of a part of the study by name."""
    catalogue = {name: config["tables"][name] for name in PARTS[part]["tables"]}
    return expand_tables(catalogue, datasets_of(part))


def parts_up_to(part):
    """Parts whose predictions the tables of `part` may show."""
    return [R] if part == R else [R, FURTHER]


def predictions_to_test(wildcards):
    return [
        PREDICTIONS.format(**{**wildcards, "part": part})
        for part in parts_up_to(wildcards.part)
        if wildcards.dataset in DATASETS_OF[part]
    ]


def of_each_dataset(artifact, wildcards):
    pattern = f"{{part}}/{artifact}/{{model}}/{{dataset}}.parquet"
    part = wildcards.part
    return expand(pattern, part=part, model=MODELS, dataset=DATASETS_OF[part])


def metrics_to_collect(wildcards):
    return of_each_dataset("metrics", wildcards)


def contrast_sets_to_collect(wildcards):
    return of_each_dataset("contrast_sets", wildcards)


def significance_to_collect(wildcards):
    return of_each_dataset("significance", wildcards)


def intervals_to_collect(wildcards):
    return of_each_dataset("intervals", wildcards)


def blocks_to_test(wildcards):
    model, dataset = wildcards.model, wildcards.dataset
    blocks = comparison_blocks(
        tables_of(wildcards.part), model, dataset, TRAIN_DATASETS[dataset]
    )
    if wildcards.part == FURTHER:
        blocks += selection.headroom_blocks(config, model, dataset)
    return blocks


def metrics_to_show(wildcards):
    part, _ = ALL_TABLES[wildcards.table]
    return expand(METRICS_CSV, part=parts_up_to(part))


def significance_to_show(wildcards):
    part, _ = ALL_TABLES[wildcards.table]
    return expand(SIGNIFICANCE_CSV, part=parts_up_to(part))


def table_description(wildcards):
    return ALL_TABLES[wildcards.table][1]


def datasets_to_show(wildcards):
    return datasets_of(ALL_TABLES[wildcards.table][0])


def checkpoint_settings(model, checkpoint):
    return config["models"][model].get("checkpoints", {}).get(checkpoint, {})


# Analyses


def checkpoint_labels(model):
    return {
        c: checkpoint_settings(model, c).get("label", c)
        for c in selection.group(config, model, "all")
    }


def all_checkpoints(wildcards):
    return selection.group(config, wildcards.model, "all")


def transfer_sets(model):
    return {
        recipe: selection.training_sets(config, model, recipe)
        for recipe in ANALYSES["transfer"]["recipes"]
    }


def transfer_set_names(wildcards):
    return {
        recipe: list(sets) for recipe, sets in transfer_sets(wildcards.model).items()
    }


def clusters_of_all(wildcards):
    return for_each(all_checkpoints(wildcards), CLUSTERS, wildcards)


def labels_of_all(wildcards):
    return for_each(all_checkpoints(wildcards), JUDGED, wildcards)


def transfer_scores(wildcards):
    return for_each(all_checkpoints(wildcards), SCORES, {**wildcards, "part": FURTHER})


def transfer_models(dataset):
    return [m for m, d in selection.analysed(config, "transfer") if d == dataset]


def transfers_to_draw(wildcards):
    return expand(
        rules.measure_transfer.output.transfer,
        model=transfer_models(wildcards.dataset),
        dataset=wildcards.dataset,
    )


def checkpoints_of_all(wildcards):
    return for_each(all_checkpoints(wildcards), CHECKPOINT, wildcards)


def audited_checkpoints(wildcards):
    """The first and the last evaluation checkpoint: the widest contrast set."""
    names = evaluation_checkpoints(wildcards)
    return [names[0], names[-1]]


def clusters_audited(wildcards):
    return for_each(audited_checkpoints(wildcards), CLUSTERS, wildcards)


def labels_audited(wildcards):
    return for_each(audited_checkpoints(wildcards), JUDGED, wildcards)


def datasets_shown(table):
    """Datasets of the study whose questions `table` is to show."""
    return [d for d in ANALYSES["questions"][table] if d in DATASETS_OF[FURTHER]]


# Imports


def existing(path, remedy):
    """Return `path` when it is there; Snakemake's own message would list every output."""
    if not Path(path).exists():
        raise WorkflowError(f"config: {path} does not exist; {remedy}.")
    return path


def release_model(name):
    """What the importer must know of a model: its revisions by checkpoint."""
    model = config["models"][name]
    revisions = {c: about["revision"] for c, about in model["checkpoints"].items()}
    groups = {"earlier": model.get("earlier", []), "evaluation": model["evaluation"]}
    return {
        "repo": model["repo"],
        **{group: {c: revisions[c] for c in names} for group, names in groups.items()},
    }


def release_dataset(name):
    known = ("train", "test", "train_datasets")
    return {
        key: value for key, value in config["datasets"][name].items() if key in known
    }


# Targets


def reports_of(part):
    """Tables and figures that the target of `part` asks for."""
    # Of one's own predictions only the user knows which other tables they fill.
    names = ["all_estimators"] if STUDY["predictions"] else tables_of(part)
    tables = [f"{R}/tables/{name}.tex" for name in names]
    if part != R:
        return tables
    sizes = expand(rules.make_contrast_table.output.tex, dataset=DATASETS)
    figures = [rules.draw_full_vs_contrast.output.png]
    if not STUDY["predictions"]:
        tables.append(rules.make_checkpoints_table.output.tex)
        figures.append(rules.draw_accuracy.output.png)
    return [*tables, *sizes, *figures]


def reports_of_analyses():
    """Tables and figures of the analyses that have something to show in this study."""
    transfers = dict.fromkeys(d for _, d in selection.analysed(config, "transfer"))
    sheets = selection.analysed(config, "audit")
    wanted = expand(rules.draw_transfer.output.png, dataset=transfers)
    if VARIANCES_MEASURED:
        wanted.append(rules.correlate_variance.output.tex)
    if selection.analysed(config, "gcm_headroom"):
        wanted.append(rules.draw_gcm_headroom.output.png)
    if COMPARED:
        wanted.append(rules.make_weights_table.output.tex)
    wanted += expand(
        rules.make_categories_table.output.tex, dataset=datasets_shown("categories")
    )
    wanted += expand(
        rules.make_examples_table.output.tex, dataset=datasets_shown("examples")
    )
    audits = rules.summarise_audit.output.agreements if AUDIT["filled"] else None
    pattern = audits or rules.draw_audit.output.sheet
    return wanted + [pattern.format(model=m, dataset=d) for m, d in sheets]
