"""Import predictions or answers from a user's files."""

ANSWERS_READ = [row._asdict() for row in study.answers_in_files]
ANSWERS_EVALUATED = [
    p
    for p in ANSWERS_READ
    if p["checkpoint"] in study.evaluation(p["model"]) and p["split"] == "test"
]
MODEL_DATASETS = [{"model": m, "dataset": d} for m in MODELS for d in DATASETS]
EACH_DATASET = [{"dataset": dataset} for dataset in DATASETS]
IMPORTS = [
    paths.predictions.format(**names, estimator=IMPORTED) for names in MODEL_DATASETS
]
EVALUATED_FILES = [paths.answers.format(**row) for row in ANSWERS_EVALUATED]

if study.chosen["predictions"]:

    rule import_predictions:
        input:
            file=existing(
                study.chosen["predictions"], "set study.predictions to your file"
            ),
        output:
            predictions=IMPORTS,
            answers=EVALUATED_FILES,
        params:
            datasets=DATASETS,
            predictions_of=MODEL_DATASETS,
            answers_of=ANSWERS_EVALUATED,
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
            beams=files_of_rows(paths.beams, study.answers_in_files),
            clusters=files_of_rows(paths.clusters, study.answers_in_files),
            labels=files_of_rows(paths.labels, study.answers_in_files),
            answers=files_of_rows(paths.answers, study.answers_in_files),
        benchmark:
            f"{LOGS}/import_options.tsv"
        params:
            entries=inputs.answer_files(),
            contents=inputs.contents_of(*ANSWER_FILES),
            normalisation=config["decoding"]["normalisation"],
            known=KNOWN,
            questions_of=without_rerun(EACH_DATASET),
            beams_of=without_rerun(ANSWERS_READ),
            clusters_of=without_rerun(ANSWERS_READ),
            labels_of=without_rerun(ANSWERS_READ),
            answers_of=without_rerun(ANSWERS_READ),
            wanted=without_rerun(inputs.answers_wanted),
        script:
            "../scripts/imports/import_options.py"

elif study.has_own_answers:

    rule import_answers:
        input:
            files=ANSWER_FILES,
        output:
            questions=expand(paths.questions, dataset=DATASETS),
            beams=files_of_rows(paths.beams, study.answers_in_files),
            labels=expand(paths.given_labels, dataset=DATASETS),
        params:
            entries=inputs.answer_files(),
            contents=inputs.contents_of(*ANSWER_FILES),
            strategy=config["decoding"]["strategy"],
            known=KNOWN,
            # A new estimator must not import the answers again.
            questions_of=without_rerun(EACH_DATASET),
            beams_of=without_rerun(ANSWERS_READ),
            labels_of=without_rerun(EACH_DATASET),
            wanted=without_rerun(inputs.answers_wanted),
            computed=without_rerun(
                [
                    n
                    for n, e in config["estimators"].items()
                    if e.get("function") != "stated"
                ]
            ),
        script:
            "../scripts/imports/import_answers.py"
