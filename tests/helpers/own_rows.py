"""Rows as a user's file, and the answers that a study requires."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from persistcal.readers.answers import Wanted
from persistcal.store.user_files import read_file

ONE = {"model": "m1", "checkpoint": "a", "dataset": "quiz"}


def wanted(checkpoints="ab", *, split="test", needs=None):
    """Return the answers that a study of `ONE` at several checkpoints requires."""
    return Wanted(
        datasets=["quiz"],
        answered=[{**ONE, "checkpoint": name} for name in checkpoints],
        needed={"m1": {name: {split: "estimators.some"} for name in checkpoints}},
        needs=needs or {},
    )


def write_rows(path, rows):
    """Write `rows` as JSON lines, CSV (lists as JSON) or parquet, as the path ends."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        lists = [
            {k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()}
            for row in rows
        ]
        pd.DataFrame(lists).to_csv(path, index=False)
    else:
        pd.DataFrame(rows).to_parquet(path, index=False)
    return str(path)


def read_content(content, kind, known_names):
    """Read the rows of a file with this content."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"own{kind}")
        path.write_bytes(content)
        return read_file(str(path), known_names=known_names)
