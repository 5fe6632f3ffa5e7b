"""Copy the results behind the numbers in README and docs to the CSVs in docs/data.

`make docs-data ARGS="atlas lab"` copies the results of these studies to atlas.csv and lab.csv,
as docs/data/sources.yaml describes.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data"
NUMBERS = ["value", "low", "high"]


def read(file: str) -> pd.DataFrame:
    """Read a CSV or parquet file of results."""
    path = ROOT / file
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


def choose(source: Mapping[str, Any]) -> pd.DataFrame:
    """Return value, low and high by name; without a column for values, count the rows."""
    table = read(source["file"])
    if "questions" in source:
        table = table.merge(read(source["questions"]), on="question_id")
    if "where" in source:
        table = table.query(source["where"])
    columns = {number: table.get(source.get(number)) for number in NUMBERS}
    chosen = pd.DataFrame(columns, index=table.index).astype(float)
    rows = table.astype(object).fillna("none").to_dict("records")
    names = [source["name"].format_map(row) for row in rows]
    chosen.index = pd.Index([re.sub(",? ", "_", name) for name in names], name="name")
    if "value" not in source:
        return chosen.fillna({"value": 1}).groupby("name", sort=False).sum(min_count=1)
    if source.get("mean"):
        return chosen.groupby("name", sort=False).mean().dropna(how="all")
    return chosen.dropna(how="all")


def export(study: str) -> None:
    """Write the CSV of a study."""
    sources = yaml.safe_load((DATA / "sources.yaml").read_text(encoding="utf-8"))[study]
    table = pd.concat([choose(source) for source in sources])
    if table.index.has_duplicates:
        repeated = ", ".join(table.index[table.index.duplicated()].unique()[:3])
        raise SystemExit(f"docs/data/sources.yaml: {study} has two results named {repeated}")
    table.to_csv(DATA / f"{study}.csv", float_format="%.6g")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        export(name)
