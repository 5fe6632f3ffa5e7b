"""Records of checkpoints that a test has saved, and the content of tables."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from resolve_checkpoint import resolve_checkpoint

from persistcal.models.checkpoint import Checkpoint, local_checkpoint
from persistcal.store.jobs import Job, execute
from persistcal.store.tables import PARAMETERS


def write_record(folder: str | Path, path: str | Path, dtype: str = "float32") -> Checkpoint:
    """Write the record of the saved checkpoint in `folder` to `path`."""
    checkpoint = replace(local_checkpoint(Path(folder)), dtype=dtype)
    checkpoint.write(path)
    return checkpoint


def resolve(path, record, repo, revision="main", **settings):
    """Run the rule that writes which files a revision has to `path`."""
    settings |= {"repo": str(repo), "revision": revision, "record": str(record)}
    execute(resolve_checkpoint, Job({}, {"revision": str(path)}, settings, threads=1))


def content_of(path):
    """Return a table and its metadata, without the digest of the settings of its job."""
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    del metadata[PARAMETERS.encode()]
    return table.to_pylist(), metadata
