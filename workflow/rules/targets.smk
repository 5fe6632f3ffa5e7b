"""Tables and figures of the targets `study` and `all`."""


def tables_made(names):
    return expand(rules.make_table.output.tex, table=names)


def figures(target):
    """Figures that a target makes: those that have something to show in this study."""
    names = [
        name
        for name, about in FIGURES.items()
        if about.get("target", "study") == target and about.get("shown", True)
    ]
    return expand(rules.draw_figure.output.png, figure=names)


def reports():
    """Tables and figures of the study beside those that compare estimators."""
    plain = [name for name in PLAIN_TABLES if name not in FURTHER_PLAIN_TABLES]
    agreement = [rules.measure_agreement.output.tex] if AGREED else []
    return [*plain_tables(plain, "tex"), *figures("study"), *agreement]


def reports_of_analyses():
    """Tables and figures of the analyses that have something to show in this study."""
    wanted = figures("all")
    if VARIANCES_MEASURED:
        wanted.append(rules.correlate_variance.output.tex)
    if CONFOUNDED:
        wanted.append(rules.measure_confounds.output.tex)
    wanted += plain_tables(FURTHER_PLAIN_TABLES, "tex")
    agreements = rules.summarise_audit.output.agreements if AUDIT["filled"] else None
    sheet = agreements or rules.draw_audit.output.sheet
    return wanted + of_each(sheet, study.analysed("audit"))
