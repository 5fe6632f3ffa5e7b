"""Read a file of answers that were generated elsewhere, whoever wrote it.

A log of another program has a reader of its own: a module that turns it into the columns of
`persistcal.imports.own_answers`, and a case here.
"""

from collections.abc import Mapping

import pandas as pd

from persistcal.imports.inspect_logs import inspect_rows
from persistcal.imports.lm_eval_logs import is_lm_eval_log, lm_eval_rows
from persistcal.imports.own_answers import KNOWN, LISTS, NAMES, tidy_answers
from persistcal.imports.user_files import kind_of, name_of, naming, read_file
from persistcal.imports.user_tables import UserTableError

OF_LOGS = {"labels", "filter"}  # keys of an entry that say what to take from a log


def read_answers(entry: Mapping[str, str], *, several: bool = False) -> pd.DataFrame:
    """Return the answers of one file, each row checked for itself.

    Parameters
    ----------
    entry : mapping
        Key `file`, of `model`, `checkpoint` and `dataset` what its rows do not say, and of
        a log's `filter` and `labels` what to take from it.
    several : bool, default=False
        Whether errors are to name the file of a row.
    """
    file, labelled = entry["file"], entry.get("labels") == "log"
    used: set[str] = set()
    with naming(file):
        if kind_of(file) == ".eval":
            rows, used = inspect_rows(file, labelled=labelled), {"labels"}
        else:
            rows = read_file(file, known=KNOWN, lists=LISTS)
        if is_lm_eval_log(rows.columns):
            rows = lm_eval_rows(rows, filtered=entry.get("filter"), labelled=labelled)
            used = OF_LOGS
        for key in sorted(OF_LOGS & set(entry) - used):
            raise UserTableError(f"is no log that has {key}; remove the key from its entry")
        for name in sorted(set(NAMES) & set(entry)):
            if name in rows.columns:
                raise UserTableError(
                    f"has a column {name!r} and study.answers gives one beside it; keep one"
                )
            rows[name] = entry[name]
        return tidy_answers(rows, file=name_of(file) if several else "")
