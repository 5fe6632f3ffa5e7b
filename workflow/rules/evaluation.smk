"""Evaluate the predictions: each estimator, each table, and the study as a whole."""


rule list_contrast_sets:
    input:
        answers=files_of_job(study.evaluation, paths.answers, split="test"),
        clusters=(
            []
            if study.chosen["predictions"]
            else files_of_job(study.evaluation, paths.clusters, split="test")
        ),
    output:
        contrast_questions=paths.contrast_sets,
        contrast_sets=paths.contrast_members,
    params:
        checkpoints=settings_of_job(study.evaluation),
        settings=settings_of_job(study.settings_drawn),
    script:
        "../scripts/evaluation/list_contrast_sets.py"


rule evaluate_estimator:
    input:
        predictions=paths.predictions,
        contrast_sets=paths.contrast_members,
    output:
        metrics=paths.metrics,
        intervals=paths.intervals,
        replicates=paths.replicates,
    benchmark:
        f"{LOGS}/evaluate_estimator/{{model}}/{{dataset}}/{{estimator}}.tsv"
    resources:
        mem_mb=memory_to_resample,
    params:
        checkpoints=settings_of_job(study.evaluation),
        settings=settings_of_job(study.settings_drawn),
    script:
        "../scripts/evaluation/evaluate_estimator.py"


rule compare_table:
    input:
        replicates=files_of_job(study.shown, paths.replicates),
    output:
        significance=f"{RESULTS}/significance/{{table}}.parquet",
    params:
        comparisons=settings_of_job(study.comparisons),
    script:
        "../scripts/evaluation/compare_table.py"


CONTRAST_MEMBERS = files_of_rows(paths.contrast_members, study.model_datasets)
NAMED_PAIRS = isinstance(config["study"]["pairs"], dict)


rule compare_study:
    input:
        predictions=files_of_rows(paths.predictions, study.evaluated),
        contrast_sets=CONTRAST_MEMBERS,
        answers=files_of_rows(
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
    benchmark:
        f"{LOGS}/compare_study.tsv"
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
        predictions=files_of_job(inputs.predictions),
        contrast_sets=paths.contrast_members,
        clusters=files_of_job(study.evaluation, paths.clusters, split="test"),
        questions=files_of_job(inputs.questions_of_subsets),
    output:
        subsets=f"{RESULTS}/subsets/{{model}}/{{dataset}}.parquet",
    params:
        checkpoints=settings_of_job(study.evaluation),
        settings=settings_of_job(study.settings_drawn),
        by_category=settings_of_job(study.wants_categories),
    script:
        "../scripts/evaluation/measure_subsets.py"


rule collect_results:
    input:
        metrics=files_of_rows(paths.metrics, study.evaluated),
        intervals=files_of_rows(paths.intervals, study.evaluated),
        significance=expand(rules.compare_table.output.significance, table=TABLES),
        contrast_sets=CONTRAST_MEMBERS,
    output:
        metrics=f"{RESULTS}/metrics.csv",
        intervals=f"{RESULTS}/intervals.csv",
        significance=f"{RESULTS}/significance.csv",
        contrast_sets=f"{RESULTS}/contrast_sets.csv",
    params:
        holm=config["evaluation"]["holm"],
    script:
        "../scripts/evaluation/collect_results.py"


rule make_claims:
    input:
        predictions=files_of_rows(paths.predictions, study.evaluated),
        contrast_sets=CONTRAST_MEMBERS,
        replicates=files_of_rows(paths.replicates, study.evaluated),
    output:
        claims=f"{RESULTS}/claims.csv",
        placebos=f"{RESULTS}/placebos.csv",
    resources:
        mem_mb=memory_to_resample,
    params:
        checkpoints=EVALUATED,
        settings={d: study.settings_drawn(d) for d in DATASETS},
        determinism=study.determinism,
    script:
        "../scripts/evaluation/make_claims.py"


rule make_findings:
    input:
        predictions=files_of_rows(paths.predictions, study.evaluated),
        contrast_sets=CONTRAST_MEMBERS,
        claims=rules.make_claims.output.claims,
        states=rules.compare_study.output.states,
        thresholds=rules.compare_study.output.thresholds,
        questions=inputs.shown_on_page(paths.questions),
    output:
        findings=f"{RESULTS}/findings.csv",
    resources:
        mem_mb=memory_to_resample,
    params:
        checkpoints=EVALUATED,
        settings={d: study.settings(d) for d in DATASETS},
    script:
        "../scripts/evaluation/make_findings.py"
