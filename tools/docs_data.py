"""Copy the results behind the numbers in README and docs to the CSVs in docs/data.

`make docs-data ARGS="atlas lab"` copies the results of these studies to atlas.csv and lab.csv,
as docs/data/sources.yaml describes.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data"
NUMBERS = ["value", "low", "high"]


def choose(source: Mapping[str, Any]) -> pd.DataFrame:
    """Return value, low and high by name; without a column for values, count the rows."""
    table = pd.read_csv(ROOT / source["file"])
    if "where" in source:
        table = table.query(source["where"])
    columns = {number: table.get(source.get(number)) for number in NUMBERS}
    chosen = pd.DataFrame(columns, index=table.index)
    chosen["name"] = [
        source["name"].format_map(row).replace(" ", "_") for row in table.to_dict("records")
    ]
    chosen = chosen.set_index("name").astype(float)
    if "value" not in source:
        return chosen.fillna({"value": 1}).groupby("name", sort=False).sum(min_count=1)
    return chosen.dropna(how="all")


def export(study: str) -> None:
    """Write the CSV of a study."""
    sources = yaml.safe_load((DATA / "sources.yaml").read_text(encoding="utf-8"))[study]
    table = pd.concat([choose(source) for source in sources])
    if table.index.has_duplicates:
        repeated = ", ".join(table.index[table.index.duplicated()].unique()[:3])
        raise SystemExit(
            f"docs/data/sources.yaml: {study} has several results named {repeated}"
        )
    table.to_csv(DATA / f"{study}.csv", float_format="%.6g")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        export(name)
