"""Make the page of a study: results and all answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from persistcal.report.layout import Description, DisplayNames
from persistcal.report.page.compose import Origin, compose, summary
from persistcal.report.page.contents import StudyTables, gather
from persistcal.report.page.facts import about, config_of_study, jobs_of
from persistcal.store.code import commit
from persistcal.store.jobs import log, read_benchmarks, run


def make_page(
    made: StudyTables,
    *,
    config: Mapping[str, Any],
    described: Mapping[str, Description],
    main: Sequence[str],
    labels: DisplayNames,
    weights: Sequence[str],
    logs: str,
) -> tuple[str, str]:
    """Return the page of a study, and its summary in a few lines of text.

    `weights` names the checkpoints of `made`, and `logs` is the folder of the benchmark files.
    `config` is not a parameter of the rule, because every change would rerun the page.
    """
    predictions = made.predictions
    estimators, datasets = predictions["estimator"].unique(), predictions["dataset"].unique()
    shown = config_of_study(config, estimators, datasets)
    study = gather(made, shown, described=described, main=main, labels=labels)
    origin = Origin(
        about(
            shown,
            commit=commit(),
            weights=dict(zip(weights, made.checkpoints, strict=True)),
            seeds=predictions["seed"].unique(),
        ),
        jobs_of(read_benchmarks(logs)),
        yaml.safe_dump(shown, sort_keys=False, allow_unicode=True),
    )
    page = compose(study, origin)
    log.info("The page has %.2f MB", len(page) / 1e6)
    return page, summary(study)


if __name__ == "__main__":
    run(make_page, snakemake)
