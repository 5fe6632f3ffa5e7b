"""Inputs of the rules for tables, figures and the page."""


def subsets_of(datasets):
    """Return the metrics of subsets of the questions of some datasets."""
    pairs = [pair for pair in study.model_datasets if pair.dataset in datasets]
    return files_of_rows(
        rules.measure_subsets.output.subsets, pairs if HAS_TEXTS else []
    )


def questions_by_dataset(analysis):
    """Return the questions of each dataset of an analysis of questions."""
    chosen = config["analyses"]["questions"][analysis] if study.runs_models else []
    return {d: paths.questions.format(dataset=d) for d in DATASETS if d in chosen}


def plain_tables(target, end):
    """Return the tables of a target that compare no estimators."""
    names = [n for n, v in VIEWS["table"].items() if v["target"] == target]
    return expand(getattr(rules.make_plain_table.output, end), table=names)
