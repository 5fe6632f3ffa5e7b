"""Accuracy, confounds, and the agreement of states."""


rule compute_accuracies:
    input:
        questions=expand(paths.questions, dataset=DATASETS),
        labels=files_of_rows(paths.labels, study.answered),
    output:
        accuracies=f"{RESULTS}/accuracies.csv",
    script:
        "../scripts/analyses/compute_accuracies.py"


CONFOUNDED = study.analysed("confounds")
DATASETS_CONFOUNDED = list(dict.fromkeys(dataset for _, dataset in CONFOUNDED))
WITH_FACTS = [
    dataset
    for dataset in DATASETS_CONFOUNDED
    if config["datasets"][dataset].get("source") in ("atlas", "elements")
]


rule measure_confounds:
    input:
        answers=files_of_rows(
            paths.answers,
            [
                Answered(m, c, d, split)
                for m, d in CONFOUNDED
                for c in study.evaluation(m)
                for split in ("train", "test")
            ],
        ),
        questions=expand(paths.questions, dataset=DATASETS_CONFOUNDED),
        facts=expand(paths.facts, dataset=WITH_FACTS),
    output:
        **reported_table("confounds"),
    params:
        settings={d: study.settings_drawn(d) for d in DATASETS_CONFOUNDED},
        labels=LABELS,
    script:
        "../scripts/analyses/measure_confounds.py"


AGREED = study.analysed("agreement")
AGREEMENT = config["analyses"]["agreement"]
STATES_AGREED = list(
    dict.fromkeys(
        [AGREEMENT["reference"], *(c for pair in AGREEMENT["pairs"] for c in pair)]
    )
)


rule measure_agreement:
    input:
        answers=files_of_rows(
            paths.answers,
            [Answered(m, c, d, "test") for m, d in AGREED for c in STATES_AGREED],
        ),
        questions=expand(
            paths.questions,
            dataset=list(dict.fromkeys(dataset for _, dataset in AGREED)),
        ),
    output:
        **reported_table("agreement"),
    params:
        reference=AGREEMENT["reference"],
        pairs=AGREEMENT["pairs"],
        labels=LABELS,
        checkpoints={model: study.checkpoint_labels(model) for model, _ in AGREED},
    script:
        "../scripts/analyses/measure_agreement.py"
