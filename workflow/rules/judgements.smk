"""Label the candidate answers, and let a person check the labels.

A paid judge keeps its replies in one folder for all jobs, so a rerun asks only
for new ones. A person's labels in its queue are a parameter: a new label
reruns the jobs that use it.
"""

JUDGE = f"{RESULTS}/judge"
AUDIT = config["analyses"]["audit"]
DRAWN = {
    "draws": {key: AUDIT[key] for key in ("n_contrast", "n_correct", "n_incorrect")},
    "seed": AUDIT["seed"],
}


rule judge_answers:
    input:
        questions=paths.questions,
        clusters=paths.clusters,
        given=paths.given_labels if study.has_own_answers else [],
    output:
        labels=paths.labels,
        answers=paths.answers,
    # Runs next to Snakemake, because compute nodes have no connection.
    localrule: study.judge.asks_server
    # A job that waits for a batch, up to a day, holds no core.
    threads: 0 if study.judge.in_batches else 1
    resources:
        judging=1,
    params:
        judged_clusters=settings_of_job(study.clusters_judged),
        judge=inputs.label_settings(),
        reached=without_rerun(inputs.judge_settings),
        folder=JUDGE,
        noted=paths.consulted,
        human_labels=settings_of_job(inputs.human_labels),
    script:
        "../scripts/judgements/judge_answers.py"


rule draw_audit:
    input:
        questions=paths.questions,
        answers=files_of_job(study.checkpoints_audited, paths.answers, split="test"),
    output:
        # Kept before the job, which refuses to write over a person's entries.
        sheet=update(f"{RESULTS}/audit/{{model}}/{{dataset}}.csv"),
    params:
        **DRAWN,
    script:
        "../scripts/judgements/draw_audit.py"


if AUDIT["filled"]:

    rule summarise_audit:
        input:
            sheet=AUDIT["filled"],
            questions=paths.questions,
            answers=files_of_job(study.checkpoints_audited, paths.answers, split="test"),
        output:
            agreements=f"{RESULTS}/audit_agreements/{{model}}/{{dataset}}.csv",
        params:
            contents=inputs.contents_of(AUDIT["filled"]),
        script:
            "../scripts/judgements/summarise_audit.py"

    rule correct_results:
        input:
            sheet=AUDIT["filled"],
            questions=paths.questions,
            answers=files_of_job(study.checkpoints_audited, paths.answers, split="test"),
            predictions=files_of_job(inputs.predictions),
        output:
            corrections=f"{RESULTS}/corrections/{{model}}/{{dataset}}.csv",
        params:
            **DRAWN,
            checkpoints=settings_of_job(study.checkpoints_audited),
            contents=inputs.contents_of(AUDIT["filled"]),
        script:
            "../scripts/judgements/correct_results.py"
