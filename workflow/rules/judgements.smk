"""Label the candidate answers, and let a person check the labels.

A paid judge keeps its replies in one folder for all jobs, so a rerun asks only
what is new. A person's labels in its queue are a parameter: filling one in
reruns the jobs whose answers it labels.
"""


include: "inputs/judgements.smk"


JUDGE = f"{RESULTS}/judge"
CONSULTED = f"{JUDGE}/consulted/{{model}}/{{checkpoint}}/{{dataset}}.csv"
AUDIT = config["analyses"]["audit"]
DRAWN = {
    "draws": {key: AUDIT[key] for key in ("n_contrast", "n_correct", "n_incorrect")},
    "seed": AUDIT["seed"],
}

ASKED = {}
if config["judge"]["backend"] != "lexical":
    PROMPT = "judge_together" if config["judge"].get("together") else "judge"
    if config["judge"].get("form") == "released":
        PROMPT = "judge_released"
    FIELDS = (
        ["question", "references", "answer" if PROMPT == "judge" else "answers"],
        [],
    )
    ASKED = {
        "model": config["judge"]["model"],
        "prompt": read_prompt(
            config["prompts"][PROMPT],
            f"prompts.{PROMPT}",
            FIELDS if PROMPT == "judge_released" else ([], []),
            FIELDS,
        ),
        "request": config["judge"].get("request", {}),
    }


rule judge_answers:
    input:
        questions=QUESTIONS,
        clusters=CLUSTERS,
        given=GIVEN_LABELS if study.has_own_answers else [],
    output:
        labels=LABELS,
        answers=ANSWERS,
    log:
        f"{LOGS}/judge_answers/{{model}}/{{checkpoint}}/{{dataset}}.log",
    # A paid judge is asked from where Snakemake runs: compute nodes have no connection.
    localrule: config["judge"]["backend"] != "lexical"
    conda:
        "../../envs/cpu.yaml"
    params:
        judged_clusters=study.judged_clusters,
        judge=ASKED,
        reached=reached,
        folder=JUDGE,
        noted=CONSULTED,
        human_labels=human_labels,
    script:
        "../scripts/judgements/judge_answers.py"


rule draw_audit:
    input:
        questions=QUESTIONS,
        answers=answers_audited,
    output:
        # Not removed before the job, which then refuses to write over a person's entries.
        sheet=update(f"{RESULTS}/audit/{{model}}/{{dataset}}.csv"),
    log:
        f"{LOGS}/draw_audit/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        **DRAWN,
    script:
        "../scripts/judgements/draw_audit.py"


if AUDIT["filled"]:

    rule summarise_audit:
        input:
            sheet=AUDIT["filled"],
            answers=answers_audited,
        output:
            agreements=f"{RESULTS}/audit_agreements/{{model}}/{{dataset}}.csv",
        log:
            f"{LOGS}/summarise_audit/{{model}}/{{dataset}}.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            contents=contents_of(AUDIT["filled"]),
        script:
            "../scripts/judgements/summarise_audit.py"

    rule correct_results:
        input:
            sheet=AUDIT["filled"],
            answers=answers_audited,
            predictions=predictions_audited,
        output:
            corrections=f"{RESULTS}/corrections/{{model}}/{{dataset}}.csv",
        log:
            f"{LOGS}/correct_results/{{model}}/{{dataset}}.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            **DRAWN,
            checkpoints=checkpoints_audited,
            contents=contents_of(AUDIT["filled"]),
        script:
            "../scripts/judgements/correct_results.py"
