"""The page: what the study says, and every answer behind it."""

from persistcal.store.code import texts_digest

ASSETS = texts_digest(ROOT / "persistcal" / "report" / "page" / "assets")
HAS_TEXTS = not study.chosen["predictions"]


rule make_page:
    input:
        predictions=of_each(paths.predictions, study.evaluated),
        replicates=of_each(paths.replicates, study.evaluated),
        intervals=rules.collect_significance.output.intervals,
        questions=inputs.shown_on_page(paths.questions, study.evaluated),
        clusters=inputs.shown_on_page(paths.clusters, study.evaluated),
        labels=inputs.shown_on_page(paths.labels, study.evaluated),
        checkpoints=inputs.weights_on_page(paths.checkpoint, study.evaluated),
        accuracies=rules.compute_accuracies.output.accuracies if HAS_TEXTS else [],
        tables=tables_shown(TABLES),
        transfer=[],
        variance=[],
        headroom=[],
        similarity=[],
    output:
        page=reported(f"{RESULTS}/report/index.html", "page", "Page", page="the study"),
        summary=f"{RESULTS}/report/summary.txt",
    log:
        f"{LOGS}/make_page.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        described=described_tables,
        main=main_estimators,
        labels=EVALUATED_LABELS,
        weights=inputs.weights_on_page("{model}/{checkpoint}", study.evaluated),
        logs=LOGS,
        assets=ASSETS,
    script:
        "../scripts/report/make_page.py"


if study.runs_models:

    use rule make_page as make_full_page with:
        input:
            predictions=of_each(paths.predictions, study.ever_evaluated),
            replicates=of_each(paths.replicates, study.ever_evaluated),
            intervals=rules.collect_all_significance.output.intervals,
            questions=inputs.shown_on_page(paths.questions, study.ever_evaluated),
            clusters=inputs.shown_on_page(paths.clusters, study.ever_evaluated),
            labels=inputs.shown_on_page(paths.labels, study.ever_evaluated),
            checkpoints=inputs.weights_on_page(paths.checkpoint, study.ever_evaluated),
            accuracies=rules.compute_accuracies.output.accuracies,
            tables=tables_shown([*TABLES, *study.further_tables]) + tables_of_analyses(),
            transfer=of_each(
                rules.measure_transfer.output.transfer, study.analysed("transfer")
            ),
            variance=rules.correlate_variance.output.csv if VARIANCES_MEASURED else [],
            headroom=HEADROOMS,
            similarity=expand(rules.compare_weights.output.similarities, model=COMPARED),
        output:
            page=reported(
                f"{RESULTS}/all/report/index.html", "page", "Page", page="all results"
            ),
            summary=f"{RESULTS}/all/report/summary.txt",
        log:
            f"{LOGS}/make_full_page.log",
        params:
            described=all_described_tables,
            main=main_estimators,
            labels=study.labels,
            weights=inputs.weights_on_page("{model}/{checkpoint}", study.ever_evaluated),
            logs=LOGS,
            assets=ASSETS,
