"""The page: what the study says, and every answer behind it."""

from persistcal.store.provenance import texts_digest

ASSETS = texts_digest(ROOT / "persistcal" / "report" / "page" / "assets")
HAS_TEXTS = not study.chosen["predictions"]


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


def records(evaluated):
    return texts(CHECKPOINT, evaluated) if study.runs_models else []


def names_of_checkpoints(evaluated):
    return texts("{model}/{checkpoint}", evaluated) if study.runs_models else []


def tables_shown(names):
    shown = expand(rules.make_table.output.csv, table=names)
    shown += plain_tables(PLAIN_TABLES, "csv")
    return shown + ([rules.summarise_worlds.output.csv] if study.worlds else [])


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


rule make_page:
    input:
        predictions=of_each(PREDICTIONS, study.evaluated),
        replicates=of_each(REPLICATES, study.evaluated),
        intervals=rules.collect_significance.output.intervals,
        questions=texts(QUESTIONS, study.evaluated),
        clusters=texts(CLUSTERS, study.evaluated),
        labels=texts(LABELS, study.evaluated),
        checkpoints=records(study.evaluated),
        accuracies=rules.compute_accuracies.output.accuracies if HAS_TEXTS else [],
        tables=tables_shown(TABLES),
        transfer=[],
        variance=[],
        headroom=[],
        similarity=[],
    output:
        page=f"{RESULTS}/report/index.html",
        summary=f"{RESULTS}/report/summary.txt",
    log:
        f"{LOGS}/make_page.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        described=described_tables,
        main=main_estimators,
        labels=EVALUATED_LABELS,
        weights=names_of_checkpoints(study.evaluated),
        logs=LOGS,
        assets=ASSETS,
    script:
        "../scripts/report/make_page.py"


if study.runs_models:

    def tables_of_analyses():
        """Those of `all` that have a CSV."""
        made = [rules.correlate_variance.output.csv] if VARIANCES_MEASURED else []
        made += [rules.measure_confounds.output.csv] if CONFOUNDED else []
        made += plain_tables(FURTHER_PLAIN_TABLES, "csv")
        return made

    use rule make_page as make_full_page with:
        input:
            predictions=of_each(PREDICTIONS, study.ever_evaluated),
            replicates=of_each(REPLICATES, study.ever_evaluated),
            intervals=rules.collect_all_significance.output.intervals,
            questions=texts(QUESTIONS, study.ever_evaluated),
            clusters=texts(CLUSTERS, study.ever_evaluated),
            labels=texts(LABELS, study.ever_evaluated),
            checkpoints=records(study.ever_evaluated),
            accuracies=rules.compute_accuracies.output.accuracies,
            tables=tables_shown([*TABLES, *study.further_tables]) + tables_of_analyses(),
            transfer=of_each(
                rules.measure_transfer.output.transfer, study.analysed("transfer")
            ),
            variance=rules.correlate_variance.output.csv if VARIANCES_MEASURED else [],
            headroom=rules.draw_gcm_headroom.input.headroom,
            similarity=expand(rules.compare_weights.output.similarities, model=COMPARED),
        output:
            page=f"{RESULTS}/all/report/index.html",
            summary=f"{RESULTS}/all/report/summary.txt",
        log:
            f"{LOGS}/make_full_page.log",
        params:
            described=all_described_tables,
            main=main_estimators,
            labels=study.labels,
            weights=names_of_checkpoints(study.ever_evaluated),
            logs=LOGS,
            assets=ASSETS,
