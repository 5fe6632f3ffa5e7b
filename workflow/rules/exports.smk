"""Results in the formats of others; only the target `exports` makes them."""


include: "inputs/exports.smk"


EXPORTS = f"{RESULTS}/exports"
# The collected tables by the names of their artifacts
COLLECTED = {
    "METRICS": rules.collect_metrics.output.metrics,
    "CONTRAST_SETS": rules.collect_metrics.output.contrast_sets,
    "SIGNIFICANCE": rules.collect_significance.output.significance,
    "INTERVALS": rules.collect_significance.output.intervals,
    "STATES": rules.collect_states.output.states,
    "TRENDS": rules.collect_states.output.trends,
    "PAIRS": rules.measure_pairs.output.pairs,
    "MIN_CONTRAST": rules.measure_pairs.output.min_contrast,
}
if NAMED_PAIRS:
    COLLECTED["CHANGES"] = rules.measure_changes.output.changes
if HAS_TEXTS:
    COLLECTED["ACCURACIES"] = rules.compute_accuracies.output.accuracies


rule describe_results:
    input:
        tables=list(COLLECTED.values()),
    output:
        description=f"{RESULTS}/croissant.json",
    log:
        f"{LOGS}/describe_results.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        about=tables_of_results,
        title=f"{Path(RESULTS).name} of persistent-calibration",
    script:
        "../scripts/exports/describe_results.py"


rule export_eval_results:
    input:
        intervals=rules.collect_significance.output.intervals,
        accuracies=COLLECTED.get("ACCURACIES", []),
    output:
        results=f"{EXPORTS}/{{model}}/.eval_results/{{dataset}}.yaml",
    log:
        f"{LOGS}/export_eval_results/{{model}}/{{dataset}}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        checkpoints=evaluation_labels,
        on_hub=dataset_on_hub,
        labels=EVALUATED_LABELS,
    script:
        "../scripts/exports/export_eval_results.py"


RUNS = runs_exported()


rule export_every_eval_ever:
    input:
        questions=as_exported(QUESTIONS),
        beams=as_exported(BEAMS),
        clusters=as_exported(CLUSTERS),
        labels=as_exported(LABELS),
        answers=as_exported(ANSWERS),
        predictions=predictions_exported,
    output:
        record=f"{EXPORTS}/every_eval_ever/{RUN}.json",
        lines=f"{EXPORTS}/every_eval_ever/{RUN}_samples.jsonl",
    log:
        f"{LOGS}/export_every_eval_ever/{{collection}}/{{owner}}/{{name}}/{{uuid}}.log",
    wildcard_constraints:
        uuid="[0-9a-f-]{36}",
    conda:
        "../../envs/cpu.yaml"
    params:
        place=run_exported,
    script:
        "../scripts/exports/export_every_eval_ever.py"


rule exports:
    input:
        rules.describe_results.output,
        expand(f"{EXPORTS}/every_eval_ever/{{run}}.json", run=RUNS),
        expand(rules.export_eval_results.output.results, model=MODELS, dataset=DATASETS),
    localrule: True
