"""Take predictions from elsewhere: a file of one's own, or the authors' release."""

if STUDY["predictions"]:

    rule import_predictions:
        input:
            file=existing(STUDY["predictions"], "set study.predictions to your file"),
        output:
            predictions=expand(PREDICTIONS, part=R, model=MODELS, dataset=DATASETS),
        log:
            f"{LOGS}/import_predictions.log",
        conda:
            "../../envs/cpu.yaml"
        threads: 1
        params:
            wanted=[[model, dataset] for model in MODELS for dataset in DATASETS],
            checkpoints={m: config["models"][m]["evaluation"] for m in MODELS},
            code=digest_of("imports/import_predictions.py"),
        script:
            "../scripts/imports/import_predictions.py"


if STUDY["source"] == "release":
    ANSWERED = [
        {"model": m, "checkpoint": c, "dataset": d}
        for m in MODELS
        for c in selection.group(config, m, "all")
        for d in DATASETS
    ]

    rule import_release:
        input:
            archive=existing(STUDY["archive"], "set study.archive to the release"),
            digest=existing(
                f"{STUDY['archive']}.sha256", "download it with the archive"
            ),
        output:
            questions=expand(QUESTIONS, dataset=DATASETS),
            beams=[BEAMS.format(**answered) for answered in ANSWERED],
            clusters=[CLUSTERS.format(**answered) for answered in ANSWERED],
            labels=[JUDGED.format(**answered) for answered in ANSWERED],
            scores=[SCORES.format(part=R, **answered) for answered in ANSWERED],
            predictions=expand(PREDICTIONS, part=R, model=MODELS, dataset=DATASETS),
            missing=f"{R}/release/missing.csv",
        log:
            f"{LOGS}/import_release.log",
        conda:
            "../../envs/cpu.yaml"
        threads: 1
        resources:
            mem_mb=4000,
        params:
            models={name: release_model(name) for name in MODELS},
            backbones={},
            datasets={name: release_dataset(name) for name in DATASETS},
            seeds=config["training"]["seeds"],
            code=digest_of("imports/import_release.py"),
        script:
            "../scripts/imports/import_release.py"
