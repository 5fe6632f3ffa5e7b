"""Label the candidate answers: clusters -> labels.

A paid judge keeps its verdicts in one folder for all jobs, so a rerun asks only
what is new. A person's labels in its queue are a parameter: filling one in
reruns the jobs whose answers it labels.
"""


rule judge_answers:
    input:
        questions=QUESTIONS,
        clusters=CLUSTERS,
    output:
        labels=JUDGED,
    log:
        f"{LOGS}/judge_answers/{{model}}/{{checkpoint}}/{{dataset}}.log",
    # A paid judge is asked from where Snakemake runs: compute nodes have no connection.
    localrule: config["judge"]["backend"] != "lexical"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        judged_clusters=selection.judged_clusters(config),
        judge=VERDICT,
        folder=JUDGE,
        noted=CONSULTED,
        human_labels=human_labels,
        code=digest_of("judgements/judge_answers.py"),
    script:
        "../scripts/judgements/judge_answers.py"
