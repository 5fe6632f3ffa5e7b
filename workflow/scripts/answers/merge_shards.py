"""Put the shards of a table together: what one job would have written."""

from collections.abc import Mapping

import pandas as pd

from persistcal.models.batches import in_order
from persistcal.store import artifacts
from persistcal.store.logs import log_to


def merge_shards(
    shard_paths: list[str],
    questions_path: str,
    merged_path: str,
    *,
    table: str,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write the rows of all shards to `merged_path`.

    Parameters
    ----------
    shard_paths : list of str
        Files of all shards, in any order.
    questions_path : str
        Table QUESTIONS, for the order of the rows.
    merged_path : str
    table : {"BEAMS", "SCORES"}
        Name of the table in `persistcal.store.artifacts`.
    about : mapping of str to str, optional
        What its rows are about.
    """
    kind: artifacts.Table = getattr(artifacts, table)
    questions = artifacts.read(questions_path, artifacts.QUESTIONS).sort_values("index")
    rows = pd.concat([artifacts.read(path, kind) for path in shard_paths])
    merged = in_order(rows, kind, questions["question_id"].tolist())
    artifacts.write(merged, merged_path, kind, about=about)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    merge_shards(
        snakemake.input.shards,
        snakemake.input.questions,
        snakemake.output.merged,
        table=snakemake.params.table,
        about=dict(snakemake.wildcards.items()),
    )
