"""The page: the results of the study, and every answer behind them."""

from functools import partial

from persistcal.store.code import texts_digest
from study.page import config_text, shown_on_page
from study.views import labels as labels_of_views

CONFOUNDS = [rules.measure_confounds.output.csv] if CONFOUNDED else []
ASSETS = texts_digest(ROOT / "persistcal" / "report" / "page" / "assets")


rule make_page:
    input:
        predictions=files_of_rows(paths.predictions, study.evaluated),
        replicates=files_of_rows(paths.replicates, study.evaluated),
        intervals=rules.collect_results.output.intervals,
        findings=rules.make_findings.output.findings,
        questions=inputs.shown_on_page(paths.questions),
        clusters=inputs.shown_on_page(paths.clusters),
        labels=inputs.shown_on_page(paths.labels),
        checkpoints=inputs.weights_on_page(paths.checkpoint),
        accuracies=(rules.compute_accuracies.output.accuracies if HAS_TEXTS else []),
        tables=with_analyses(
            [*VARIANCE, *CONFOUNDS, *plain_tables("all", "csv")],
            [
                *expand(rules.make_table.output.csv, table=TABLES),
                *plain_tables("study", "csv"),
                *([rules.measure_agreement.output.csv] if AGREED else []),
            ],
        ),
        transfer=with_analyses(sum(transfers().values(), [])),
        variance=with_analyses(VARIANCE),
        headroom=with_analyses(HEADROOMS),
        similarity=with_analyses(SIMILARITIES),
        pairs=ROWS["pairs"],
    output:
        page=reported(f"{RESULTS}/report/index.html", "page", "Page", page="results"),
        summary=f"{RESULTS}/report/summary.txt",
    params:
        # Functions, because Snakemake would fill the braces of a text among the params
        shown=settings_of_job(partial(shown_on_page, study, labels_of_views(study))),
        config=without_rerun(partial(config_text, study)),
        weights=inputs.weights_on_page("{model}/{checkpoint}"),
        logs=LOGS,
        assets=ASSETS,
    script:
        "../scripts/report/make_page.py"
