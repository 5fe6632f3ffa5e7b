"""Turn the authors' released results into the artifacts of a study."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from persistcal.store.jobs import Job, log, run
from reproduce.release_files import ROOT, check_digest, unpack
from reproduce.release_tables import release_tables


def import_release(
    archive: str,
    digest: str,
    job: Job,
    *,
    models: dict[str, dict[str, Any]],
    datasets: dict[str, dict[str, Any]],
    recipes: list[str],
    seeds: list[int],
    posthoc: dict[str, str],
) -> None:
    """Write the archive's tables for `models` and `datasets`, see `release_tables`."""
    check_digest(archive, digest)
    options: dict[str, Any] = {"models": models, "datasets": datasets, "recipes": recipes}
    parent = Path(str(job.outputs["missing"])).parent
    parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=parent) as folder:
        log.info("%d files in %s", unpack(archive, folder, below=ROOT), archive)
        root = Path(folder, ROOT)
        for table, entry, frame in release_tables(
            root, **options, seeds=seeds, posthoc=posthoc
        ):
            job.write(table, frame, entry)


if __name__ == "__main__":
    run(import_release, snakemake)
