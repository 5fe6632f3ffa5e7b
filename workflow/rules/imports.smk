"""Import predictions or answers from a user's files or the authors' release."""

PLACES_ANSWERED = [place._asdict() for place in study.answers_in_files]
PLACES_EVALUATED = [
    p
    for p in PLACES_ANSWERED
    if p["checkpoint"] in study.evaluation(p["model"]) and p["split"] == "test"
]
PLACES_PREDICTED = [{"model": m, "dataset": d} for m in MODELS for d in DATASETS]
OF_DATASETS = [{"dataset": dataset} for dataset in DATASETS]
IMPORTS = [
    paths.predictions.format(**place, estimator=IMPORTED) for place in PLACES_PREDICTED
]
EVALUATED_ANSWERS = [paths.answers.format(**place) for place in PLACES_EVALUATED]

if study.chosen["predictions"]:

    rule import_predictions:
        input:
            file=existing(
                study.chosen["predictions"], "set study.predictions to your file"
            ),
        output:
            predictions=IMPORTS,
            answers=EVALUATED_ANSWERS,
        log:
            f"{LOGS}/import_predictions.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            datasets=DATASETS,
            predictions_of=PLACES_PREDICTED,
            answers_of=PLACES_EVALUATED,
            checkpoints={
                m: study.allows_identical(m, study.evaluation(m)) for m in MODELS
            },
            contents=inputs.contents_of(study.chosen["predictions"]),
        script:
            "../scripts/imports/import_predictions.py"


if study.has_own_answers:
    ANSWER_FILES = [
        existing(entry[key], "set study.answers to your file")
        for entry in inputs.answer_files()
        for key in ("file", "requests")
        if key in entry
    ]
    KNOWN = {
        m: study.allows_identical(m, study.known_checkpoints(m))
        for m in config["models"]
    }

if study.has_own_options:

    rule import_options:
        input:
            files=ANSWER_FILES,
        output:
            questions=expand(paths.questions, dataset=DATASETS),
            beams=of_each(paths.beams, study.answers_in_files),
            clusters=of_each(paths.clusters, study.answers_in_files),
            labels=of_each(paths.labels, study.answers_in_files),
            answers=of_each(paths.answers, study.answers_in_files),
        log:
            f"{LOGS}/import_options.log",
        benchmark:
            f"{LOGS}/import_options.tsv"
        conda:
            "../../envs/cpu.yaml"
        params:
            entries=inputs.answer_files(),
            contents=inputs.contents_of(*ANSWER_FILES),
            normalisation=config["decoding"]["normalisation"],
            known=KNOWN,
            questions_of=uncompared(OF_DATASETS),
            beams_of=uncompared(PLACES_ANSWERED),
            clusters_of=uncompared(PLACES_ANSWERED),
            labels_of=uncompared(PLACES_ANSWERED),
            answers_of=uncompared(PLACES_ANSWERED),
            wanted=uncompared(inputs.answers_wanted),
        script:
            "../scripts/imports/import_options.py"

elif study.has_own_answers:
    paths.given_labels = f"{RESULTS}/given_labels/{{dataset}}.parquet"

    rule import_answers:
        input:
            files=ANSWER_FILES,
        output:
            questions=expand(paths.questions, dataset=DATASETS),
            beams=of_each(paths.beams, study.answers_in_files),
            labels=expand(paths.given_labels, dataset=DATASETS),
        log:
            f"{LOGS}/import_answers.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            entries=inputs.answer_files(),
            contents=inputs.contents_of(*ANSWER_FILES),
            strategy=config["decoding"]["strategy"],
            known=KNOWN,
            # A new estimator must not import the answers again.
            questions_of=uncompared(OF_DATASETS),
            beams_of=uncompared(PLACES_ANSWERED),
            labels_of=uncompared(OF_DATASETS),
            wanted=uncompared(inputs.answers_wanted),
            computed=uncompared(inputs.computed_estimators),
        script:
            "../scripts/imports/import_answers.py"


if study.chosen["source"] == "release":
    TRANSFERRED = [
        {
            **dict(zip(("model", "checkpoint", "dataset"), place)),
            "answers": "transfer",
            "recipe": recipe,
        }
        for place in study.places_answered
        for recipe in list(config["analyses"]["transfer"]["recipes"])
    ]

    rule import_release:
        input:
            archive=existing(
                study.chosen["archive"], "set study.archive to the release"
            ),
            digest=existing(
                f"{study.chosen['archive']}.sha256", "download it with the archive"
            ),
        output:
            questions=expand(paths.questions, dataset=DATASETS),
            beams=of_each(paths.beams, study.answers_in_files),
            clusters=of_each(paths.clusters, study.answers_in_files),
            labels=of_each(paths.labels, study.answers_in_files),
            scores=[paths.scores.format(**place) for place in TRANSFERRED],
            predictions=IMPORTS,
            answers=EVALUATED_ANSWERS,
            missing=f"{RESULTS}/release/missing.csv",
        log:
            f"{LOGS}/import_release.log",
        conda:
            "../../envs/cpu.yaml"
        resources:
            mem_mb=4000,
        params:
            contents=inputs.contents_of(study.chosen["archive"]),
            models={name: inputs.release_model(name) for name in MODELS},
            questions_of=OF_DATASETS,
            beams_of=PLACES_ANSWERED,
            clusters_of=PLACES_ANSWERED,
            labels_of=PLACES_ANSWERED,
            scores_of=TRANSFERRED,
            predictions_of=PLACES_PREDICTED,
            answers_of=PLACES_EVALUATED,
            datasets={name: inputs.release_dataset(name) for name in DATASETS},
            recipes=list(config["analyses"]["transfer"]["recipes"]),
            seeds=config["training"]["seeds"],
            posthoc={
                name: about["posthoc"]
                for name, about in config["estimators"].items()
                if "posthoc" in about
            },
        script:
            "../scripts/imports/import_release.py"
