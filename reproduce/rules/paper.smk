"""Compare the study with the paper's printed numbers."""

from reproduce.released import settings_compared, shares_cells

PRINTED = inputs.find_file("resources/paper/results.csv")
# A study is compared with the paper if they share a model and a dataset.
SHARES_PAPER = shares_cells(study.labels, Path(PRINTED))

OTHER_NUMBERS = ["contrast_set_sizes", "checkpoints", "hidden_state_variance"]
OTHER_NUMBERS += ["transfer", "weight_similarity"]
ANALYSES_PRINTED = [*VARIANCE, *sum(transfers().values(), []), *SIMILARITIES]


rule compare_with_paper:
    input:
        intervals=rules.collect_results.output.intervals,
        tables=expand(rules.make_table.output.csv, table=TABLES),
        paper=PRINTED,
        printed=[
            inputs.find_file(f"resources/paper/{name}.csv") for name in OTHER_NUMBERS
        ],
        measured=with_analyses(
            ANALYSES_PRINTED,
            [
                rules.collect_results.output.contrast_sets,
                *([rules.compute_accuracies.output.accuracies] if HAS_TEXTS else []),
            ],
        ),
    output:
        comparison=f"{RESULTS}/paper_comparison.csv",
        numbers=f"{RESULTS}/paper_numbers.csv",
    params:
        labels=study.labels,
        checkpoints={model: study.checkpoint_labels(model) for model in MODELS},
        settings=settings_compared(config, ROOT),
    script:
        "../scripts/compare_with_paper.py"
