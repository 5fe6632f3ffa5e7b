"""Inputs of the rules for tables, figures and the page, and of the targets."""


def subsets_of(datasets):
    """Return the metrics of subsets of the questions of some datasets."""
    pairs = [pair for pair in study.model_datasets if pair.dataset in datasets]
    return files_of_rows(
        rules.measure_subsets.output.subsets, pairs if HAS_TEXTS else []
    )


def questions_by_dataset(analysis):
    """Return the questions of each dataset of an analysis of questions."""
    chosen = config["analyses"]["questions"][analysis] if study.runs_models else []
    return {d: paths.questions.format(dataset=d) for d in DATASETS if d in chosen}


def plain_tables(target, end):
    """Return the tables of a target that compare no estimators."""
    names = [n for n, v in VIEWS["table"].items() if v["target"] == target]
    return expand(getattr(rules.make_plain_table.output, end), table=names)


def tables_made(names):
    return expand(rules.make_table.output.tex, table=names)


def figures(target):
    """Return the figures of a target."""
    names = [n for n, v in VIEWS["figure"].items() if v["target"] == target]
    return expand(rules.draw_figure.output.png, figure=names)


def reports():
    """Return the study's figures, and its tables that compare no estimators."""
    agreement = [rules.measure_agreement.output.tex] if AGREED else []
    return [*plain_tables("study", "tex"), *figures("study"), *agreement]


def reports_of_analyses():
    """Tables and figures of the analyses that have something to show in this study."""
    wanted = figures("all")
    if VARIANCES_MEASURED:
        wanted.append(rules.correlate_variance.output.tex)
    if CONFOUNDED:
        wanted.append(rules.measure_confounds.output.tex)
    wanted += plain_tables("all", "tex")
    agreements = rules.summarise_audit.output.agreements if AUDIT["filled"] else None
    sheet = agreements or rules.draw_audit.output.sheet
    return wanted + files_of_rows(sheet, study.analysed("audit"))
