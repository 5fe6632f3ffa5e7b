"""Let a person check the judge."""

AUDIT = ANALYSES["audit"]


rule draw_audit:
    input:
        questions=QUESTIONS,
        clusters=clusters_audited,
        labels=labels_audited,
    output:
        # Not removed before the job, which then refuses to write over a person's entries.
        sheet=update(f"{R}/audit/{{model}}/{{dataset}}.csv"),
    log:
        f"{LOGS}/draw_audit/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        n_contrast=AUDIT["n_contrast"],
        n_correct=AUDIT["n_correct"],
        n_incorrect=AUDIT["n_incorrect"],
        seed=AUDIT["seed"],
        code=digest_of("judgements/draw_audit.py"),
    script:
        "../scripts/judgements/draw_audit.py"


if AUDIT["filled"]:

    rule summarise_audit:
        input:
            sheet=AUDIT["filled"],
            questions=QUESTIONS,
            clusters=clusters_audited,
            labels=labels_audited,
        output:
            agreements=f"{R}/audit_agreements/{{model}}/{{dataset}}.csv",
        log:
            f"{LOGS}/summarise_audit/{{model}}/{{dataset}}.log",
        conda:
            "../../envs/cpu.yaml"
        threads: 1
        params:
            code=digest_of("judgements/summarise_audit.py"),
        script:
            "../scripts/judgements/summarise_audit.py"
