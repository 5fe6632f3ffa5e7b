"""Evaluate the predictions: metrics, contrast sets and paired bootstrap tests."""


rule count_contrast_sets:
    input:
        answers=for_each(study.evaluation, paths.answers, split="test"),
        clusters=(
            []
            if study.chosen["predictions"]
            else for_each(study.evaluation, paths.clusters, split="test")
        ),
    output:
        contrast_sets=paths.contrast_sets,
    log:
        f"{LOGS}/count_contrast_sets/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        **SETS,
    script:
        "../scripts/evaluation/count_contrast_sets.py"


rule compute_metrics:
    input:
        predictions=paths.predictions,
    output:
        metrics=paths.metrics,
    log:
        f"{LOGS}/compute_metrics/{{model}}/{{dataset}}/{{estimator}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        **SETS,
        conditioning=config["evaluation"]["conditioning"],
    script:
        "../scripts/evaluation/compute_metrics.py"


rule resample_metrics:
    input:
        predictions=paths.predictions,
    output:
        replicates=paths.replicates,
        intervals=paths.intervals,
    log:
        f"{LOGS}/resample_metrics/{{model}}/{{dataset}}/{{estimator}}.log",
    benchmark:
        f"{LOGS}/resample_metrics/{{model}}/{{dataset}}/{{estimator}}.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=memory_to_resample,
    params:
        **SETS,
        **BOOTSTRAP,
        conditioning=config["evaluation"]["conditioning"],
    script:
        "../scripts/evaluation/resample_metrics.py"


rule compare_estimators:
    input:
        replicates=per_job(inputs.replicates_compared),
    output:
        significance=f"{RESULTS}/significance/{{table}}.parquet",
    log:
        f"{LOGS}/compare_estimators/{{table}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        comparisons=per_job(inputs.comparisons),
    script:
        "../scripts/evaluation/compare_estimators.py"


rule compare_states:
    input:
        predictions=per_job(inputs.predictions),
    output:
        states=f"{RESULTS}/states/{{dataset}}.parquet",
        trends=f"{RESULTS}/trends/{{dataset}}.parquet",
    log:
        f"{LOGS}/compare_states/{{dataset}}.log",
    benchmark:
        f"{LOGS}/compare_states/{{dataset}}.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=memory_to_resample,
    params:
        **SETS_OF_STUDY,
        **RESAMPLING,
    script:
        "../scripts/evaluation/compare_states.py"


rule collect_states:
    input:
        states=expand(rules.compare_states.output.states, dataset=DATASETS),
        trends=expand(rules.compare_states.output.trends, dataset=DATASETS),
    output:
        states=f"{RESULTS}/states.csv",
        trends=f"{RESULTS}/trends.csv",
    log:
        f"{LOGS}/collect_states.log",
    conda:
        "../../envs/cpu.yaml"
    script:
        "../scripts/evaluation/collect_states.py"


rule check_thresholds:
    input:
        predictions=of_each(paths.predictions, study.evaluated),
        answers=[
            path
            for model in MODELS
            for path in expand(
                paths.answers,
                model=model,
                dataset=DATASETS,
                checkpoint=study.evaluation(model),
                split="test",
            )
        ],
    output:
        thresholds=f"{RESULTS}/thresholds.csv",
        threshold_cells=f"{RESULTS}/threshold_cells.csv",
        confident_regressions=f"{RESULTS}/confident_regressions.csv",
        selective=f"{RESULTS}/selective.csv",
    log:
        f"{LOGS}/check_thresholds.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        **SETS_OF_STUDY,
        **RESAMPLING,
        threshold=config["evaluation"]["threshold"],
    script:
        "../scripts/evaluation/check_thresholds.py"


rule measure_pairs:
    input:
        predictions=of_each(paths.predictions, study.evaluated),
    output:
        pairs=f"{RESULTS}/pairs.csv",
        min_contrast=f"{RESULTS}/min_contrast.csv",
    log:
        f"{LOGS}/measure_pairs.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        **SETS_OF_STUDY,
        min_contrast={d: config["datasets"][d]["min_contrast"] for d in DATASETS},
    script:
        "../scripts/evaluation/measure_pairs.py"


NAMED_PAIRS = config["study"]["pairs"]
NAMED_PAIRS = NAMED_PAIRS if isinstance(NAMED_PAIRS, dict) else {}
if NAMED_PAIRS:

    rule measure_changes:
        input:
            predictions=of_each(paths.predictions, study.evaluated),
        output:
            changes=f"{RESULTS}/changes.csv",
        log:
            f"{LOGS}/measure_changes.log",
        benchmark:
            f"{LOGS}/measure_changes.tsv"
        conda:
            "../../envs/cpu.yaml"
        resources:
            mem_mb=memory_to_resample,
        params:
            **BOOTSTRAP,
            checkpoints=EVALUATED,
            changes=NAMED_PAIRS,
            controls=study.controls,
        script:
            "../scripts/evaluation/measure_changes.py"


rule measure_subsets:
    input:
        predictions=per_job(inputs.predictions),
        clusters=for_each(study.evaluation, paths.clusters, split="test"),
        questions=per_job(inputs.questions_of_subsets),
    output:
        subsets=f"{RESULTS}/subsets/{{model}}/{{dataset}}.parquet",
    log:
        f"{LOGS}/measure_subsets/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        **SETS,
        by_category=per_job(inputs.wants_categories),
    script:
        "../scripts/evaluation/measure_subsets.py"


for scope in SCOPES:

    rule:
        name:
            scope["name"]("collect", "metrics")
        input:
            metrics=of_each(paths.metrics, scope["evaluated"]),
            contrast_sets=expand(
                paths.contrast_sets, model=MODELS, dataset=scope["datasets"]
            ),
        output:
            metrics=f"{scope['folder']}/metrics.csv",
            contrast_sets=f"{scope['folder']}/contrast_sets.csv",
        log:
            f"{LOGS}/{scope['name']('collect', 'metrics')}.log",
        conda:
            "../../envs/cpu.yaml"
        script:
            "../scripts/evaluation/collect_metrics.py"

    rule:
        name:
            scope["name"]("collect", "significance")
        input:
            significance=expand(
                rules.compare_estimators.output.significance, table=scope["tables"]
            ),
            intervals=of_each(paths.intervals, scope["evaluated"]),
        output:
            significance=f"{scope['folder']}/significance.csv",
            intervals=f"{scope['folder']}/intervals.csv",
        log:
            f"{LOGS}/{scope['name']('collect', 'significance')}.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            holm=config["evaluation"]["holm"],
        script:
            "../scripts/evaluation/collect_significance.py"

    rule:
        name:
            scope["name"]("make", "claims")
        input:
            predictions=of_each(paths.predictions, scope["evaluated"]),
            replicates=of_each(paths.replicates, scope["evaluated"]),
        output:
            claims=f"{scope['folder']}/claims.csv",
        log:
            f"{LOGS}/{scope['name']('make', 'claims')}.log",
        conda:
            "../../envs/cpu.yaml"
        resources:
            mem_mb=memory_to_resample,
        params:
            **SETS_OF_STUDY,
            bootstrap=BOOTSTRAP,
            min_contrast={
                d: config["datasets"][d]["min_contrast"] for d in scope["datasets"]
            },
            is_greedy=study.is_greedy,
        script:
            "../scripts/evaluation/make_claims.py"
