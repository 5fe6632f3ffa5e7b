"""Take predictions or answers from elsewhere: a user's files, or the authors' release."""


include: "inputs/imports.smk"


PLACES_ANSWERED = [place._asdict() for place in study.answered]
PLACES_EVALUATED = [
    p for p in PLACES_ANSWERED if p["checkpoint"] in study.evaluation(p["model"])
]
PLACES_PREDICTED = [{"model": m, "dataset": d} for m in MODELS for d in DATASETS]
OF_DATASETS = [{"dataset": dataset} for dataset in DATASETS]
IMPORTS = [
    PREDICTIONS.format(**place, estimator=IMPORTED) for place in PLACES_PREDICTED
]
EVALUATED_ANSWERS = [ANSWERS.format(**place) for place in PLACES_EVALUATED]

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
            checkpoints={m: study.may_be_equal(m, study.evaluation(m)) for m in MODELS},
            contents=contents_of(study.chosen["predictions"]),
        script:
            "../scripts/imports/import_predictions.py"


if study.has_own_answers:
    ANSWER_FILES = [
        existing(entry[key], "set study.answers to your file")
        for entry in study.answer_files
        for key in ("file", "requests")
        if key in entry
    ]
    KNOWN = {
        m: study.may_be_equal(m, study.known_checkpoints(m)) for m in config["models"]
    }

if study.has_own_options:
    ENTAILMENT_MODEL = []  # nothing compares options

    rule import_options:
        input:
            files=ANSWER_FILES,
        output:
            questions=expand(QUESTIONS, dataset=DATASETS),
            beams=of_each(BEAMS, study.answered),
            clusters=of_each(CLUSTERS, study.answered),
            labels=of_each(LABELS, study.answered),
            answers=of_each(ANSWERS, study.answered),
        log:
            f"{LOGS}/import_options.log",
        benchmark:
            f"{LOGS}/import_options.tsv"
        conda:
            "../../envs/cpu.yaml"
        params:
            entries=study.answer_files,
            contents=contents_of(*ANSWER_FILES),
            normalisation=config["decoding"]["normalisation"],
            known=KNOWN,
            questions_of=uncompared(made_of_datasets),
            beams_of=uncompared(made_of_answers),
            clusters_of=uncompared(made_of_answers),
            labels_of=uncompared(made_of_answers),
            answers_of=uncompared(made_of_answers),
            wanted=uncompared(wanted_answers),
        script:
            "../scripts/imports/import_options.py"

elif study.has_own_answers:
    GIVEN_LABELS = f"{RESULTS}/given_labels/{{dataset}}.parquet"

    rule import_answers:
        input:
            files=ANSWER_FILES,
        output:
            questions=expand(QUESTIONS, dataset=DATASETS),
            beams=of_each(BEAMS, study.answered),
            labels=expand(GIVEN_LABELS, dataset=DATASETS),
        log:
            f"{LOGS}/import_answers.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            entries=study.answer_files,
            contents=contents_of(*ANSWER_FILES),
            strategy=config["decoding"]["strategy"],
            known=KNOWN,
            # One more estimator must not import the answers again.
            questions_of=uncompared(made_of_datasets),
            beams_of=uncompared(made_of_answers),
            labels_of=uncompared(made_of_datasets),
            wanted=uncompared(wanted_answers),
            computed=uncompared(computed_estimators),
        script:
            "../scripts/imports/import_answers.py"


if study.chosen["source"] == "release":
    TRANSFERRED = [
        {**place, "answers": "transfer", "recipe": recipe}
        for place in PLACES_ANSWERED
        for recipe in study.transfer_recipes
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
            questions=expand(QUESTIONS, dataset=DATASETS),
            beams=of_each(BEAMS, study.answered),
            clusters=of_each(CLUSTERS, study.answered),
            labels=of_each(LABELS, study.answered),
            scores=[SCORES.format(**place) for place in TRANSFERRED],
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
            contents=contents_of(study.chosen["archive"]),
            models={name: release_model(name) for name in MODELS},
            questions_of=OF_DATASETS,
            beams_of=PLACES_ANSWERED,
            clusters_of=PLACES_ANSWERED,
            labels_of=PLACES_ANSWERED,
            scores_of=TRANSFERRED,
            predictions_of=PLACES_PREDICTED,
            answers_of=PLACES_EVALUATED,
            datasets={name: release_dataset(name) for name in DATASETS},
            recipes=study.transfer_recipes,
            seeds=config["training"]["seeds"],
            posthoc={
                name: about["posthoc"]
                for name, about in config["estimators"].items()
                if "posthoc" in about
            },
        script:
            "../scripts/imports/import_release.py"
