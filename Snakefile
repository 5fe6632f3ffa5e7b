"""Persistent calibration: from checkpoints and questions to tables and figures.

snakemake --profile profiles/laptop --configfile config/atlas.yaml
snakemake --profile slurm results/tables/oracle_vs_methods.tex
"""

from snakemake.utils import min_version

min_version("9.25")


configfile: f"{workflow.basedir}/config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"


if RUNS_MODELS:

    include: "workflow/rules/questions.smk"
    include: "workflow/rules/question_tables.smk"
    include: "workflow/rules/checkpoints.smk"
    include: "workflow/rules/candidates.smk"
    include: "workflow/rules/judgements.smk"
    include: "workflow/rules/adapters.smk"
    include: "workflow/rules/verifiers.smk"
    include: "workflow/rules/confidences.smk"

else:

    include: "workflow/rules/imports.smk"


include: "workflow/rules/evaluation.smk"
include: "workflow/rules/tables.smk"


if not STUDY["predictions"]:

    include: "workflow/rules/accuracies.smk"


include: "workflow/rules/figures.smk"


if RUNS_MODELS:

    include: "workflow/rules/transfer.smk"
    include: "workflow/rules/variance.smk"
    include: "workflow/rules/headroom.smk"
    include: "workflow/rules/weights.smk"
    include: "workflow/rules/audit.smk"


report: "workflow/report/study.rst"


rule study:
    default_target: True
    input:
        expand(rules.collect_metrics.output, part=R),
        expand(rules.collect_significance.output, part=R),
        rules.compare_with_paper.output,
        reports_of(R),
    localrule: True


rule all:
    input:
        rules.study.input,
        reports_of(FURTHER),
        reports_of_analyses() if RUNS_MODELS else [],
    localrule: True
