"""Import the authors' release."""

from reproduce.released import release_dataset, release_model

TRANSFERRED = [
    {
        **dict(zip(("model", "checkpoint", "dataset"), names)),
        "answers": "transfer",
        "recipe": recipe,
    }
    for names in study.checkpoints_asked
    for recipe in list(config["analyses"]["transfer"]["recipes"])
]


rule import_release:
    input:
        archive=existing(study.chosen["archive"], "set study.archive to the release"),
        digest=existing(
            f"{study.chosen['archive']}.sha256", "download it with the archive"
        ),
    output:
        questions=expand(paths.questions, dataset=DATASETS),
        beams=files_of_rows(paths.beams, study.answers_in_files),
        clusters=files_of_rows(paths.clusters, study.answers_in_files),
        labels=files_of_rows(paths.labels, study.answers_in_files),
        scores=[paths.scores.format(**row) for row in TRANSFERRED],
        predictions=IMPORTS,
        answers=EVALUATED_FILES,
        missing=f"{RESULTS}/release/missing.csv",
    resources:
        mem_mb=4000,
    params:
        contents=inputs.contents_of(study.chosen["archive"]),
        models={name: release_model(study, name) for name in MODELS},
        questions_of=EACH_DATASET,
        beams_of=ANSWERS_READ,
        clusters_of=ANSWERS_READ,
        labels_of=ANSWERS_READ,
        scores_of=TRANSFERRED,
        predictions_of=MODEL_DATASETS,
        answers_of=ANSWERS_EVALUATED,
        datasets={name: release_dataset(study, name) for name in DATASETS},
        recipes=list(config["analyses"]["transfer"]["recipes"]),
        seeds=config["training"]["seeds"],
        posthoc={
            name: about["posthoc"]
            for name, about in config["estimators"].items()
            if "posthoc" in about
        },
    script:
        "../scripts/import_release.py"
