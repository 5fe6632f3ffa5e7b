"""The page: what the study says, and every answer behind it."""

from persistcal.store.code import texts_digest


include: "inputs/page.smk"


ASSETS = texts_digest(ROOT / "persistcal" / "report" / "page" / "assets")
HAS_TEXTS = not study.chosen["predictions"]


rule make_page:
    input:
        predictions=of_each(PREDICTIONS, study.evaluated),
        replicates=of_each(REPLICATES, study.evaluated),
        intervals=rules.collect_significance.output.intervals,
        questions=texts(QUESTIONS, study.evaluated),
        clusters=texts(CLUSTERS, study.evaluated),
        labels=texts(LABELS, study.evaluated),
        checkpoints=of_weights(CHECKPOINT, study.evaluated),
        accuracies=rules.compute_accuracies.output.accuracies if HAS_TEXTS else [],
        tables=tables_shown(TABLES),
        transfer=[],
        variance=[],
        headroom=[],
        similarity=[],
    output:
        page=reported_page(f"{RESULTS}/report/index.html", "the study"),
        summary=f"{RESULTS}/report/summary.txt",
    log:
        f"{LOGS}/make_page.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        described=described_tables,
        main=main_estimators,
        labels=EVALUATED_LABELS,
        weights=of_weights("{model}/{checkpoint}", study.evaluated),
        logs=LOGS,
        assets=ASSETS,
    script:
        "../scripts/report/make_page.py"


if study.runs_models:

    use rule make_page as make_full_page with:
        input:
            predictions=of_each(PREDICTIONS, study.ever_evaluated),
            replicates=of_each(REPLICATES, study.ever_evaluated),
            intervals=rules.collect_all_significance.output.intervals,
            questions=texts(QUESTIONS, study.ever_evaluated),
            clusters=texts(CLUSTERS, study.ever_evaluated),
            labels=texts(LABELS, study.ever_evaluated),
            checkpoints=of_weights(CHECKPOINT, study.ever_evaluated),
            accuracies=rules.compute_accuracies.output.accuracies,
            tables=tables_shown([*TABLES, *study.further_tables]) + tables_of_analyses(),
            transfer=of_each(
                rules.measure_transfer.output.transfer, study.analysed("transfer")
            ),
            variance=rules.correlate_variance.output.csv if VARIANCES_MEASURED else [],
            headroom=HEADROOMS,
            similarity=expand(rules.compare_weights.output.similarities, model=COMPARED),
        output:
            page=reported_page(f"{RESULTS}/all/report/index.html", "all results"),
            summary=f"{RESULTS}/all/report/summary.txt",
        log:
            f"{LOGS}/make_full_page.log",
        params:
            described=all_described_tables,
            main=main_estimators,
            labels=study.labels,
            weights=of_weights("{model}/{checkpoint}", study.ever_evaluated),
            logs=LOGS,
            assets=ASSETS,
