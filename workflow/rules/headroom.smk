"""Compare the oracle with the external verifier, and with what its backbone knows."""

HEADROOM = ANALYSES["gcm_headroom"]
BACKBONE = {**HEADROOM["backbone"], "dataset": "{dataset}"}


rule measure_headroom:
    input:
        predictions=PREDICTIONS.replace("{part}", R),
        significance=rules.assess_significance.output.significance.replace(
            "{part}", FURTHER
        ),
        questions=QUESTIONS,
        clusters=CLUSTERS.format(**BACKBONE),
        labels=JUDGED.format(**BACKBONE),
    output:
        headroom=f"{R}/headroom/{{model}}/{{dataset}}.csv",
    log:
        f"{LOGS}/measure_headroom/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints=evaluation_checkpoints,
        min_contrast=lookup("{dataset}/min_contrast", within=config["datasets"]),
        verifier=HEADROOM["verifier"],
        oracle=HEADROOM["oracle"],
        code=digest_of("analyses/measure_headroom.py"),
    script:
        "../scripts/analyses/measure_headroom.py"


rule draw_gcm_headroom:
    input:
        headroom=[
            rules.measure_headroom.output.headroom.format(model=m, dataset=d)
            for m, d in selection.analysed(config, "gcm_headroom")
        ],
    output:
        pdf=f"{R}/figures/gcm_headroom.pdf",
        png=report(
            f"{R}/figures/gcm_headroom.png",
            caption="../report/gcm_headroom.rst",
            category="Figures",
            labels={"figure": "headroom of the external verifier"},
        ),
    log:
        f"{LOGS}/draw_gcm_headroom.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        verifier=HEADROOM["verifier"],
        oracle=HEADROOM["oracle"],
        labels=LABELS,
        code=digest_of("report/draw_gcm_headroom.py"),
    script:
        "../scripts/report/draw_gcm_headroom.py"
