"""Input functions and params of the rules in page.smk."""


def answered(evaluated):
    """Whose answers can be read: earlier checkpoints answer the study's own datasets."""
    places = dict.fromkeys((row.model, row.dataset) for row in evaluated)
    return [
        Answered(m, c, d)
        for m, d in places
        for c in (study.checkpoints if d in DATASETS else study.evaluation)(m)
        if HAS_TEXTS
    ]


def texts(pattern, evaluated):
    return list(dict.fromkeys(of_each(pattern, answered(evaluated))))


def of_weights(pattern, evaluated):
    """For each checkpoint that is run here, and not by a server or by the user."""
    rows = answered(evaluated) if study.runs_models else []
    here = [row for row in rows if not study.api(row.model, row.checkpoint)]
    return list(dict.fromkeys(of_each(pattern, here)))


def tables_shown(names):
    shown = expand(rules.make_table.output.csv, table=names)
    shown += plain_tables(PLAIN_TABLES, "csv")
    return shown + ([rules.measure_agreement.output.csv] if AGREED else [])


def described_tables(wildcards):
    """A function, as the braces of a text among the params would be filled in."""
    return {name: study.every_table[name] for name in TABLES}


def all_described_tables(wildcards):
    return study.every_table


def main_estimators(wildcards):
    """Those of the study's first table."""
    rows = [
        row
        for block in study.every_table[TABLES[0]]["blocks"]
        for row in block.get("rows", [])
    ]
    return [row["estimator"] for row in rows]


def tables_of_analyses():
    """Those of `all` that have a CSV."""
    made = [rules.correlate_variance.output.csv] if VARIANCES_MEASURED else []
    made += [rules.measure_confounds.output.csv] if CONFOUNDED else []
    made += plain_tables(FURTHER_PLAIN_TABLES, "csv")
    return made
