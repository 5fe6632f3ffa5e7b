"""Write the tables, and the study beside the paper."""

ALL_TABLES = {name: (part, t) for part in PARTS for name, t in tables_of(part).items()}


rule make_table:
    input:
        metrics=metrics_to_show,
        significance=significance_to_show,
    output:
        tex=report(
            f"{R}/tables/{{table}}.tex",
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}", "format": "LaTeX"},
        ),
        csv=report(
            f"{R}/tables/{{table}}.csv",
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}", "format": "CSV"},
        ),
    log:
        f"{LOGS}/make_table/{{table}}.log",
    wildcard_constraints:
        table=one_of(ALL_TABLES),
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        table=table_description,
        models=MODELS,
        datasets=datasets_to_show,
        labels=LABELS,
        missing_ok=STUDY["source"] == "release",
        code=digest_of("report/make_table.py"),
    script:
        "../scripts/report/make_table.py"


rule make_contrast_table:
    input:
        contrast_sets=expand(rules.collect_metrics.output.contrast_sets, part=R),
    output:
        tex=report(
            f"{R}/tables/contrast_set_sizes_{{dataset}}.tex",
            caption="../report/contrast_set_sizes.rst",
            category="Tables",
            labels={"table": "contrast_set_sizes_{dataset}", "format": "LaTeX"},
        ),
        csv=report(
            f"{R}/tables/contrast_set_sizes_{{dataset}}.csv",
            caption="../report/contrast_set_sizes.rst",
            category="Tables",
            labels={"table": "contrast_set_sizes_{dataset}", "format": "CSV"},
        ),
    log:
        f"{LOGS}/make_contrast_table/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        checkpoints={
            m: {c: checkpoint_settings(m, c).get("label", c) for c in EVALUATION[m]}
            for m in MODELS
        },
        min_contrast=lookup("{dataset}/min_contrast", within=config["datasets"]),
        labels=LABELS,
        code=digest_of("report/make_contrast_table.py"),
    script:
        "../scripts/report/make_contrast_table.py"


rule compare_with_paper:
    input:
        intervals=expand(rules.collect_significance.output.intervals, part=R),
        paper=find_file("resources/paper/results.csv"),
    output:
        comparison=f"{R}/paper_comparison.csv",
    log:
        f"{LOGS}/compare_with_paper.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    params:
        labels=LABELS,
        code=digest_of("report/compare_with_paper.py"),
    script:
        "../scripts/report/compare_with_paper.py"
