"""Tables as people read and edit them: CSV files, with LaTeX beside them."""

import io
from typing import Any, NamedTuple, Self

import pandas as pd

from persistcal.store.files import exists, last_part, read_text

NAMES = [
    *("model", "other_model", "dataset", "train_dataset", "checkpoint", "earlier", "later"),
    *("estimator", "recipe", "trained_on"),
]


def read_cells(path: str) -> pd.DataFrame | None:
    """Read a CSV file that people edit, all cells as text; None when there is no file."""
    if not exists(path):
        return None
    return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")


class TableFiles(NamedTuple):
    """A table as people read it: the name of its files, and their text (LaTeX or none)."""

    name: str
    csv: str
    tex: str

    @classmethod
    def read(cls, path: str) -> Self:
        """Read the CSV at `path`, and the LaTeX beside it."""
        stem = path.removesuffix(".csv")
        tex = read_text(f"{stem}.tex") if exists(f"{stem}.tex") else ""
        return cls(last_part(stem), read_text(path), tex)

    def rows(self, missing: Any = None) -> pd.DataFrame:  # noqa: ANN401
        r"""Return the rows of the CSV, where `missing` texts (of pandas) are no value.

        Names are text, also those that look like numbers.

        >>> print(TableFiles("sizes", "earlier,size\n0200,7", "").rows().to_string(index=False))
        earlier  size
           0200     7
        """
        text = dict.fromkeys(NAMES, str)
        csv = io.StringIO(self.csv)
        return pd.read_csv(csv, dtype=text, keep_default_na=False, na_values=missing)
