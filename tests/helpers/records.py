"""Records of checkpoints that a test has saved."""

from dataclasses import replace
from pathlib import Path

from persistcal.models.checkpoint import Checkpoint, local_checkpoint


def write_record(folder: str | Path, path: str | Path, dtype: str = "float32") -> Checkpoint:
    """Write the record of the saved checkpoint in `folder` to `path`."""
    checkpoint = replace(local_checkpoint(Path(folder)), dtype=dtype)
    checkpoint.write(path)
    return checkpoint
