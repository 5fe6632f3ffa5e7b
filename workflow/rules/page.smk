"""The page: the results of the study, and every answer behind them."""

from functools import partial

from persistcal.store.code import texts_digest
from study.page import config_text, shown_on_page
from study.views import ViewSettings

ASSETS = texts_digest(ROOT / "persistcal" / "report" / "page" / "assets")


# The page of `all` shows the analyses, too.
PAGES = {
    "make_page": (SCOPES[0], "the study", ViewSettings(study, inputs).labels),
    "make_full_page": (SCOPES[1], "all results", study.labels),
}
if not study.runs_models:
    del PAGES["make_full_page"]


for name, (scope, title, labels) in PAGES.items():

    rule:
        name:
            name
        input:
            **(analyses_shown() if name == "make_full_page" else NO_ANALYSES),
            predictions=of_each(paths.predictions, scope["evaluated"]),
            replicates=of_each(paths.replicates, scope["evaluated"]),
            intervals=f"{scope['folder']}/intervals.csv",
            claims=f"{scope['folder']}/claims.csv",
            questions=inputs.shown_on_page(paths.questions, scope["evaluated"]),
            clusters=inputs.shown_on_page(paths.clusters, scope["evaluated"]),
            labels=inputs.shown_on_page(paths.labels, scope["evaluated"]),
            checkpoints=inputs.weights_on_page(paths.checkpoint, scope["evaluated"]),
            accuracies=(rules.compute_accuracies.output.accuracies if HAS_TEXTS else []),
            tables=tables_shown(scope["tables"], scope["with_analyses"]),
        output:
            page=reported(
                f"{scope['folder']}/report/index.html", "page", "Page", page=title
            ),
            summary=f"{scope['folder']}/report/summary.txt",
        log:
            f"{LOGS}/{name}.log",
        conda:
            "../../envs/cpu.yaml"
        params:
            # Functions, because Snakemake would fill the braces of a text among the params
            shown=per_job(partial(shown_on_page, study, scope["tables"], labels)),
            config=uncompared(partial(config_text, study, scope["evaluated"])),
            weights=inputs.weights_on_page("{model}/{checkpoint}", scope["evaluated"]),
            logs=LOGS,
            assets=ASSETS,
        script:
            "../scripts/report/make_page.py"
