"""Use every adapter at every checkpoint: AUCs and their figure."""


rule measure_transfer:
    input:
        questions=QUESTIONS,
        clusters=clusters_of_all,
        labels=labels_of_all,
        scores=transfer_scores,
    output:
        transfer=f"{R}/transfer/{{model}}/{{dataset}}.csv",
    log:
        f"{LOGS}/measure_transfer/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints=all_checkpoints,
        sets=transfer_set_names,
        code=digest_of("analyses/measure_transfer.py"),
    script:
        "../scripts/analyses/measure_transfer.py"


rule draw_transfer:
    input:
        transfer=transfers_to_draw,
    output:
        pdf=f"{R}/figures/transfer_{{dataset}}.pdf",
        png=report(
            f"{R}/figures/transfer_{{dataset}}.png",
            caption="../report/transfer.rst",
            category="Figures",
            labels={"figure": "transfer between checkpoints, {dataset}"},
        ),
    log:
        f"{LOGS}/draw_transfer/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        sets={m: transfer_sets(m) for m, _ in selection.analysed(config, "transfer")},
        random_later=[
            r
            for r in ANALYSES["transfer"]["recipes"]
            if selection.recipe_settings(config, r)["labels"] == "random_later"
        ],
        checkpoints={
            m: checkpoint_labels(m) for m, _ in selection.analysed(config, "transfer")
        },
        models=LABELS["models"],
        recipes=ANALYSES["transfer"]["recipes"],
        code=digest_of("report/draw_transfer.py"),
    script:
        "../scripts/report/draw_transfer.py"
