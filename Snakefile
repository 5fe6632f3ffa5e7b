"""Persistent calibration: from checkpoints and questions to tables and figures.

snakemake --profile profiles/laptop --configfile config/atlas.yaml
snakemake --profile slurm results/tables/oracle_vs_methods.tex
"""

import sys
import time

from snakemake.utils import min_version

STARTED = time.time()
min_version("9.25")


# Before any import of the project's own: it says where they are.
include: "workflow/rules/root.smk"


from study.preflight import at_end_of_dry_run, has_gpu, refuse_if_missing, too_much
from study.record import config_to_record, pin_revisions, read_summary
from study.record import write_provenance, write_study


include: "workflow/rules/common.smk"


# Of all rules; only `--sdm apptainer` uses it
container: config["container"]


if study.runs_models:

    include: "workflow/rules/questions.smk"
    include: "workflow/rules/models.smk"
    include: "workflow/rules/answers.smk"
    include: "workflow/rules/judgements.smk"
    include: "workflow/rules/adapters.smk"
    include: "workflow/rules/confidences.smk"

else:

    include: "workflow/rules/imports.smk"


if study.chosen["source"] == "release":

    include: "reproduce/rules/release.smk"


if study.has_own_answers:

    if not study.has_own_options:

        include: "workflow/rules/answers.smk"
        include: "workflow/rules/judgements.smk"
    include: "workflow/rules/confidences.smk"


include: "workflow/rules/evaluation.smk"
include: "workflow/rules/analyses.smk"
include: "reproduce/rules/analyses.smk"
include: "reproduce/rules/shown.smk"
include: "workflow/rules/shown.smk"
include: "workflow/rules/report.smk"
include: "reproduce/rules/paper.smk"
include: "workflow/rules/page.smk"


complete_rules()


report: "workflow/report/study.rst"


rule study:
    default_target: True
    input:
        rules.collect_results.output,
        rules.compare_study.output,
        rules.compare_with_paper.output if SHARES_PAPER else [],
        tables_made(TABLES),
        reports(),
        rules.make_page.output.page,
    localrule: True


if workflow.is_main_process:
    at_end_of_dry_run(
        lambda: "\n\n".join(
            filter(None, [resources.table(jobs_of_run()), found_before_start().text])
        )
    )


onstart:
    # The paper's study, which nobody meant who named no config, profile or GPU.
    if not (
        workflow.overwrite_configfiles
        or "gpu" in workflow.global_resources
        or not workflow.local_exec
        or workflow.touch
        or has_gpu()
    ):
        if plan := too_much(resources.cost(jobs_of_run())):
            raise WorkflowError(plan)
    if workflow.is_main_process and not workflow.touch:
        found = found_before_start(imports=True)
        refuse_if_missing(found)
        print(*found.lines, sep="\n", file=sys.stderr)
        write_study(config_to_record(GIVEN, ROOT), Path(RESULTS), sys.argv)
    # For its default limit of 100 jobs a second, Snakemake 9 goes through all ready jobs once a
    # second, and once more for each that has ended: after some hundred jobs that takes a core.
    limiter = getattr(workflow.scheduler, "job_rate_limiter", None)
    if limiter and (limiter.max_jobs, limiter.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


onsuccess:
    if workflow.is_main_process:
        codes = {each.name: each.params.get("code") for each in workflow.rules}
        write_provenance(config, Path(RESULTS), codes)
        pin_revisions(Path(RESULTS), ROOT)
    print(read_summary(Path(RESULTS), STARTED), file=sys.stderr)


# The analyses, as files and as sections of the page
rule all:
    input:
        rules.study.input,
        reports_of_analyses() if study.runs_models else [],
    localrule: True
