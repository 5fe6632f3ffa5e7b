"""Make tables and figures."""

from study.views import CATALOGUE, plan_views


rule make_table:
    input:
        metrics=files_of_job(study.shown, paths.metrics),
        significance=rules.compare_table.output.significance,
    output:
        **reported_table("{table}", "table"),
    params:
        description=lookup("{table}", within=study.tables),
        models=MODELS,
        datasets=settings_of_job(study.datasets_of_table),
        labels=settings_of_job(study.labels_shown),
        missing_ok=study.chosen["source"] == "release",
    script:
        "../scripts/report/make_table.py"


HAS_PAIRS = any(len(study.evaluation(m)) > 1 for m in MODELS)
HAS_TEXTS = not study.chosen["predictions"]
# The figure over distances needs more than four checkpoints.
HAS_DISTANCES = any(len(study.evaluation(m)) > 4 for m in MODELS)
IN_WORDS = [
    row for row in study.evaluated if study.estimates and study.is_verbal(row.estimator)
]
IS_AUDITED = study.estimates and not study.has_own_options and AUDIT["filled"]
# Only the estimators of the study's first table are drawn as curves.
CURVES = (
    [row for table in TABLES[:1] for row in study.shown(table)] if HAS_PAIRS else []
)

# Files with the rows of figures and tables (`files` in persistcal/report/catalogue.py), in the
# order of tables on the page. A figure or table without files is not made.
ROWS = {
    "contrast_sets": rules.collect_results.output.contrast_sets,
    "intervals": rules.collect_results.output.intervals,
    "states": rules.compare_study.output.states if HAS_PAIRS or MODELS[1:] else [],
    "thresholds": rules.compare_study.output.thresholds if HAS_PAIRS else [],
    "predictions": files_of_rows(paths.predictions, CURVES),
    "pairs": rules.compare_study.output.pairs if HAS_PAIRS else [],
    "distances": rules.compare_study.output.pairs if HAS_DISTANCES else [],
    "min_contrast": rules.compare_study.output.min_contrast if HAS_PAIRS else [],
    "changes": rules.compare_study.output.changes if NAMED_PAIRS else [],
    "threshold_changes": (rules.compare_study.output.thresholds if NAMED_PAIRS else []),
    "subsets": subsets_of(DATASETS),
    "subsets_by_category": subsets_of(config["evaluation"]["by_category"]),
    "accuracies": rules.compute_accuracies.output.accuracies if HAS_TEXTS else [],
    "unsaid": files_of_rows(paths.unsaid, IN_WORDS),
    "corrections": (
        files_of_rows(rules.correct_results.output.corrections, study.analysed("audit"))
        if IS_AUDITED
        else []
    ),
    "leaderboard": (
        rules.collect_results.output.intervals if "leaderboard" in study.tables else []
    ),
    **PAPER_ROWS,
    "categories": questions_by_dataset("categories"),
    "examples": questions_by_dataset("examples"),
}

ALL_VIEWS = {kind: [*CATALOGUE[kind], *PAPER_VIEWS[kind]] for kind in CATALOGUE}
VIEWS = plan_views(study, ROOT, ROWS, ALL_VIEWS, PAPER_SETTINGS)


rule draw_figure:
    input:
        rows=lookup("figure/{figure}/rows", within=VIEWS),
    output:
        pdf=f"{RESULTS}/figures/{{figure}}.pdf",
        png=report(
            f"{RESULTS}/figures/{{figure}}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels=lookup("figure/{figure}/labels", within=VIEWS),
        ),
    wildcard_constraints:
        figure=one_of(VIEWS["figure"]),
    params:
        figure=lookup("figure/{figure}/about", within=VIEWS),
        further_code=lookup("figure/{figure}/code", within=VIEWS),
    script:
        "../scripts/report/draw_figure.py"


rule make_plain_table:
    input:
        rows=lookup("table/{table}/rows", within=VIEWS),
    output:
        **reported_table("{table}", "plain_table"),
    wildcard_constraints:
        table=one_of(VIEWS["table"]),
    params:
        table=lookup("table/{table}/about", within=VIEWS),
        further_code=lookup("table/{table}/code", within=VIEWS),
    script:
        "../scripts/report/make_plain_table.py"
