"""Take predictions or answers from elsewhere: a user's files, or the authors' release."""

from study.needs import all_needs

PLACES_ANSWERED = [place._asdict() for place in study.answered]
PLACES_EVALUATED = [p for p in PLACES_ANSWERED if p["checkpoint"] in study.evaluation(p["model"])]
PLACES_PREDICTED = [{"model": m, "dataset": d} for m in MODELS for d in DATASETS]
OF_DATASETS = [{"dataset": dataset} for dataset in DATASETS]
IMPORTS = [PREDICTIONS.format(**place, estimator=IMPORTED) for place in PLACES_PREDICTED]
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
    GIVEN_LABELS = f"{RESULTS}/given_labels/{{dataset}}.parquet"

    rule import_answers:
        input:
            files=[
                existing(entry["file"], "set study.answers to your file")
                for entry in study.answer_files
            ],
        output:
            questions=expand(QUESTIONS, dataset=DATASETS),
            beams=[BEAMS.format(**place) for place in PLACES_ANSWERED],
            labels=expand(GIVEN_LABELS, dataset=DATASETS),
        log:
            f"{LOGS}/import_answers.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            entries=study.answer_files,
            contents=contents_of(*(entry["file"] for entry in study.answer_files)),
            strategy=config["decoding"]["strategy"],
            known={
                m: study.may_be_equal(m, study.known_checkpoints(m))
                for m in config["models"]
            },
            # One more estimator must not import the answers again.
            datasets=uncompared(list(config["datasets"])),
            questions_of=uncompared(OF_DATASETS),
            beams_of=uncompared(PLACES_ANSWERED),
            labels_of=uncompared(OF_DATASETS),
            needed=uncompared(
                {
                    m: {c: study.splits_needed(m, c) for c in study.checkpoints(m)}
                    for m in MODELS
                }
            ),
            needs=uncompared(all_needs(config)),
        script:
            "../scripts/imports/import_answers.py"


if study.chosen["source"] == "release":
    ANSWERED = [
        {"model": m, "checkpoint": c, "dataset": d}
        for m in MODELS
        for c in study.checkpoints(m)
        for d in DATASETS
    ]

    def release_model(name):
        """What the importer must know of a model: its revisions by checkpoint."""
        revisions = {c: about["revision"] for c, about in study.described(name).items()}
        return {
            "repo": config["models"][name]["repo"],
            **{
                group: {c: revisions[c] for c in study.group(name, group)}
                for group in ("earlier", "evaluation")
            },
        }

    def release_dataset(name):
        known = ("train", "test", "train_datasets")
        return {
            key: value
            for key, value in config["datasets"][name].items()
            if key in known
        }

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
            beams=[BEAMS.format(**answered) for answered in ANSWERED],
            clusters=[CLUSTERS.format(**answered) for answered in ANSWERED],
            labels=[LABELS.format(**answered) for answered in ANSWERED],
            scores=[
                SCORES.format(**answered, recipe=recipe, answers="transfer")
                for answered in ANSWERED
                for recipe in study.transfer_recipes
            ],
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
            backbones={},
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
