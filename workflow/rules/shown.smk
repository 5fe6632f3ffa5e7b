"""What rules about tables, figures and the page read."""


def transfers():
    """The models whose adapters are used at other checkpoints, by dataset."""
    models = {}
    for model, dataset in study.analysed("transfer"):
        models.setdefault(dataset, []).append(model)
    return models


def rows_of_figure(wildcards):
    return expand(FIGURES[wildcards.figure]["rows"])


def about_figure(wildcards):
    """A function, as the braces of a text among the params would be filled in."""
    about = FIGURES[wildcards.figure]
    return {
        name: value
        for name, value in about.items()
        if name in ("function", "artifact", "settings", "caption")
    }


def label_of_figure(wildcards):
    return {"figure": FIGURES[wildcards.figure]["label"]}


def parts_table(name, rows, artifact, caption, by, columns, only, **parts):
    """Describe a table of metrics on parts of the questions."""
    settings = {"by": by, "columns": columns, "only": only, "labels": EVALUATED_LABELS}
    settings |= parts
    settings |= {"caption": caption, "label": name}
    about = {"function": "by_part", "artifact": artifact, "rows": rows}
    return {name: {**about, "caption": caption, "settings": settings}}


def rows_of_plain_table(wildcards):
    return expand(EVERY_PLAIN_TABLE[wildcards.table]["rows"])


def about_plain_table(wildcards):
    """A function, as the braces of a text among the params would be filled in."""
    about = EVERY_PLAIN_TABLE[wildcards.table]
    return {name: value for name, value in about.items() if name != "rows"}


def plain_tables(names, end):
    return expand(getattr(rules.make_plain_table.output, end), table=names)


def tables_shown(names):
    """Tables on a page; analyses come last on the page of `all`."""
    shown = expand(rules.make_table.output.csv, table=names)
    shown += plain_tables(PLAIN_TABLES, "csv")
    shown += [rules.measure_agreement.output.csv] if AGREED else []
    if names is SCOPES[0]["tables"]:
        return shown
    shown += [rules.correlate_variance.output.csv] if VARIANCES_MEASURED else []
    shown += [rules.measure_confounds.output.csv] if CONFOUNDED else []
    return shown + plain_tables(FURTHER_PLAIN_TABLES, "csv")


NO_ANALYSES = {"transfer": [], "variance": [], "headroom": [], "similarity": []}


def analyses_shown():
    transfer = rules.measure_transfer.output.transfer
    return {
        "transfer": of_each(transfer, study.analysed("transfer")),
        "variance": (rules.correlate_variance.output.csv if VARIANCES_MEASURED else []),
        "headroom": HEADROOMS,
        "similarity": expand(rules.compare_weights.output.similarities, model=COMPARED),
    }
