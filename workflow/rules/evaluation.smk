"""Evaluate the predictions: each estimator, each table, and the study as a whole."""


rule list_contrast_sets:
    input:
        answers=for_each(study.evaluation, paths.answers, split="test"),
        clusters=(
            []
            if study.chosen["predictions"]
            else for_each(study.evaluation, paths.clusters, split="test")
        ),
    output:
        contrast_questions=paths.contrast_sets,
        contrast_sets=paths.contrast_set_sizes,
    log:
        f"{LOGS}/list_contrast_sets/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        checkpoints=per_job(study.evaluation),
        settings=per_job(study.settings_drawn),
    script:
        "../scripts/evaluation/list_contrast_sets.py"


rule evaluate_estimator:
    input:
        predictions=paths.predictions,
    output:
        metrics=paths.metrics,
        intervals=paths.intervals,
        replicates=paths.replicates,
    log:
        f"{LOGS}/evaluate_estimator/{{model}}/{{dataset}}/{{estimator}}.log",
    benchmark:
        f"{LOGS}/evaluate_estimator/{{model}}/{{dataset}}/{{estimator}}.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=memory_to_resample,
    params:
        checkpoints=per_job(study.evaluation),
        settings=per_job(study.settings_drawn),
    script:
        "../scripts/evaluation/evaluate_estimator.py"


rule compare_table:
    input:
        replicates=for_each(study.shown, paths.replicates),
    output:
        significance=f"{RESULTS}/significance/{{table}}.parquet",
    log:
        f"{LOGS}/compare_table/{{table}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        comparisons=per_job(study.comparisons),
    script:
        "../scripts/evaluation/compare_table.py"


NAMED_PAIRS = isinstance(config["study"]["pairs"], dict)


rule compare_study:
    input:
        predictions=of_each(paths.predictions, study.evaluated),
        answers=of_each(
            paths.answers,
            [
                Answered(model, checkpoint, dataset, "test")
                for model, dataset in study.model_datasets
                for checkpoint in study.evaluation(model)
            ],
        ),
    output:
        states=f"{RESULTS}/states.csv",
        trends=f"{RESULTS}/trends.csv",
        pairs=f"{RESULTS}/pairs.csv",
        min_contrast=f"{RESULTS}/min_contrast.csv",
        thresholds=f"{RESULTS}/thresholds.csv",
        threshold_cells=f"{RESULTS}/threshold_cells.csv",
        confident_regressions=f"{RESULTS}/confident_regressions.csv",
        selective=f"{RESULTS}/selective.csv",
        changes=f"{RESULTS}/changes.csv",
    log:
        f"{LOGS}/compare_study.log",
    benchmark:
        f"{LOGS}/compare_study.tsv"
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=memory_to_resample,
    params:
        checkpoints=EVALUATED,
        settings={d: study.settings(d) for d in DATASETS},
        controls=study.controls,
    script:
        "../scripts/evaluation/compare_study.py"


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
        checkpoints=per_job(study.evaluation),
        settings=per_job(study.settings_drawn),
        by_category=per_job(study.wants_categories),
    script:
        "../scripts/evaluation/measure_subsets.py"


rule collect_results:
    input:
        metrics=of_each(paths.metrics, study.evaluated),
        intervals=of_each(paths.intervals, study.evaluated),
        significance=expand(rules.compare_table.output.significance, table=TABLES),
        contrast_sets=of_each(paths.contrast_set_sizes, study.model_datasets),
    output:
        metrics=f"{RESULTS}/metrics.csv",
        intervals=f"{RESULTS}/intervals.csv",
        significance=f"{RESULTS}/significance.csv",
        contrast_sets=f"{RESULTS}/contrast_sets.csv",
    log:
        f"{LOGS}/collect_results.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        holm=config["evaluation"]["holm"],
    script:
        "../scripts/evaluation/collect_results.py"


rule make_claims:
    input:
        predictions=of_each(paths.predictions, study.evaluated),
        replicates=of_each(paths.replicates, study.evaluated),
    output:
        claims=f"{RESULTS}/claims.csv",
    log:
        f"{LOGS}/make_claims.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        mem_mb=memory_to_resample,
    params:
        checkpoints=EVALUATED,
        settings={d: study.settings_drawn(d) for d in DATASETS},
        is_greedy=study.is_greedy,
    script:
        "../scripts/evaluation/make_claims.py"
