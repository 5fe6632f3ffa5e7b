"""Make the page of a study: results and all answers."""

from persistcal.report.page.about import about, jobs_of
from persistcal.report.page.compose import Origin, compose, summary
from persistcal.report.page.contents import Shown, StudyTables, gather
from persistcal.store.code import commit
from persistcal.store.jobs import log, read_benchmarks, run
from persistcal.store.provenance import describe_machines, read_makers


def make_page(
    made: StudyTables, *, shown: Shown, config: str, weights: list[str], logs: str
) -> tuple[str, str]:
    """Return the page of a study, and its summary in a few lines of text.

    `config` is printed on the page. `weights` names the checkpoints of `made`, and `logs` is
    the folder of the logs and benchmark files.
    """
    study = gather(made, shown)
    origin = Origin(
        about(
            study,
            commit=commit(),
            weights=dict(zip(weights, made.checkpoints, strict=True)),
            machines=describe_machines(read_makers(logs)),
        ),
        jobs_of(read_benchmarks(logs)),
        config,
    )
    page = compose(study, origin)
    log.info("The page has %.2f MB", len(page) / 1e6)
    return page, summary(study)


if __name__ == "__main__":
    run(make_page, snakemake)
