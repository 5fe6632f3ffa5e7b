"""Tables and figures of the targets `study` and `all`."""

FEW_CHECKPOINTS = 4  # with more, metrics are also drawn over the distance of a pair


def tables_made(names):
    return expand(rules.make_table.output.tex, table=names)


def figures(names):
    return expand(rules.draw_figure.output.png, figure=names)


def reports():
    """Tables and figures of the study beside those that compare estimators."""
    plain = plain_tables(
        [t for t in PLAIN_TABLES if t not in FURTHER_PLAIN_TABLES], "tex"
    )
    drawn = ["full_vs_contrast", *(["states"] if HAS_STATES else [])]
    drawn += ["changes"] if NAMED_PAIRS else []
    if any(len(study.evaluation(model)) > FEW_CHECKPOINTS for model in MODELS):
        drawn.append("distance")
    if study.chosen["predictions"]:
        return plain + figures(drawn)
    agreement = [rules.measure_agreement.output.tex] if AGREED else []
    return [*plain, *figures([*drawn, "accuracy"]), *agreement]


def reports_of_analyses():
    """Tables and figures of the analyses that have something to show in this study."""
    wanted = figures([*TRANSFERS, *(["leaderboard"] if LEADERBOARD else [])])
    if VARIANCES_MEASURED:
        wanted.append(rules.correlate_variance.output.tex)
    if CONFOUNDED:
        wanted.append(rules.measure_confounds.output.tex)
    if HEADROOMS:
        wanted += figures(["gcm_headroom"])
    wanted += plain_tables(FURTHER_PLAIN_TABLES, "tex")
    agreements = rules.summarise_audit.output.agreements if AUDIT["filled"] else None
    sheet = agreements or rules.draw_audit.output.sheet
    return wanted + of_each(sheet, study.analysed("audit"))
