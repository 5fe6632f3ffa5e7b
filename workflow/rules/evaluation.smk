"""Evaluate the predictions: metrics, contrast sets and paired bootstrap tests."""


rule compute_metrics:
    input:
        predictions=PREDICTIONS,
    output:
        metrics="{part}/metrics/{model}/{dataset}.parquet",
        contrast_sets="{part}/contrast_sets/{model}/{dataset}.parquet",
    log:
        "{part}/logs/compute_metrics/{model}/{dataset}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints=evaluation_checkpoints,
        min_contrast=lookup("{dataset}/min_contrast", within=config["datasets"]),
        code=digest_of("evaluation/compute_metrics.py"),
    script:
        "../scripts/evaluation/compute_metrics.py"


rule assess_significance:
    input:
        predictions=predictions_to_test,
    output:
        significance="{part}/significance/{model}/{dataset}.parquet",
        intervals="{part}/intervals/{model}/{dataset}.parquet",
    log:
        "{part}/logs/assess_significance/{model}/{dataset}.log",
    benchmark:
        "{part}/logs/assess_significance/{model}/{dataset}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        checkpoints=evaluation_checkpoints,
        min_contrast=lookup("{dataset}/min_contrast", within=config["datasets"]),
        blocks=blocks_to_test,
        conditioning=config["evaluation"]["conditioning"],
        n_replicates=config["evaluation"]["replicates"],
        seed=config["evaluation"]["seed"],
        code=digest_of("evaluation/assess_significance.py"),
    script:
        "../scripts/evaluation/assess_significance.py"


rule collect_metrics:
    input:
        metrics=metrics_to_collect,
        contrast_sets=contrast_sets_to_collect,
    output:
        metrics=METRICS_CSV,
        contrast_sets="{part}/contrast_sets.csv",
    log:
        "{part}/logs/collect_metrics.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        code=digest_of("evaluation/collect_metrics.py"),
    script:
        "../scripts/evaluation/collect_metrics.py"


rule collect_significance:
    input:
        significance=significance_to_collect,
        intervals=intervals_to_collect,
    output:
        significance=SIGNIFICANCE_CSV,
        intervals="{part}/intervals.csv",
    log:
        "{part}/logs/collect_significance.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        code=digest_of("evaluation/collect_significance.py"),
    script:
        "../scripts/evaluation/collect_significance.py"
