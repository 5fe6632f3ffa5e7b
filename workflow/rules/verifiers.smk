"""Ask external verifiers about the predictions: clusters -> verdicts."""


rule fetch_adapter:
    output:
        adapter=VERIFIER_ADAPTER,
    log:
        f"{LOGS}/fetch_adapter/{{verifier}}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        repo=lookup("{verifier}/adapter/repo", within=config["verifiers"]),
        revision=lookup("{verifier}/adapter/revision", within=config["verifiers"]),
    script:
        "../scripts/confidences/fetch_adapter.py"


rule score_with_verifier:
    input:
        unpack(verifier_files),
        questions=QUESTIONS,
        clusters=clusters_to_verify,
    output:
        verdicts=VERDICTS,
    log:
        f"{LOGS}/score_with_verifier/{{verifier}}/{{model}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/score_with_verifier/{{verifier}}/{{model}}/{{dataset}}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpus,
        mem_mb=memory,
        runtime=runtime,
    params:
        splits=splits_to_verify,
        prompt=verifier_prompt,
        settings=verifier_settings,
        code=digest_of("confidences/score_with_verifier.py"),
    script:
        "../scripts/confidences/score_with_verifier.py"
