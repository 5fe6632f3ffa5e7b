"""Tables and figures of the targets `study` and `all`."""


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
