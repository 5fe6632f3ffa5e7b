"""Read a file of imported answers or scored options in any supported format."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from persistcal.readers import harness_logs
from persistcal.readers.answers import one_per_sample, read_replies, tidy_answers
from persistcal.readers.columns import ANSWERS, NAMES, OPTIONS, ColumnChoice, match_columns
from persistcal.readers.inspect_logs import inspect_rows
from persistcal.readers.options import tidy_options
from persistcal.readers.scales import Scale
from persistcal.store.user_files import (
    Choose,
    UserTableError,
    is_inspect_log,
    name_files_in_errors,
    read_file,
)

# Keys of an entry that apply only to logs
LOG_KEYS = {"labels", "filter", "requests", "scorer", "errored"}


def read_answers(
    entry: Mapping[str, str],
    *,
    several: bool = False,
    defaults: Mapping[str, str] | None = None,
    choose: Choose | None = None,
    scale: Scale | None = None,
) -> pd.DataFrame:
    """Return the answers of one file after checking each row.

    `entry` is an entry of `study.answers`. With `several` files, errors name the file too. The
    command has `defaults` of columns, and `choose` finds the columns of a file that is not a
    log. Confidences are on the `scale` of the command, which a study does not have.
    """
    file, labelled = entry["file"], entry.get("labels") == "log"
    used: set[str] = set()
    with name_files_in_errors(file):
        is_inspect = is_inspect_log(file)
        if is_inspect:
            scorer, errored = entry.get("scorer"), entry.get("errored")
            rows = inspect_rows(
                file, labelled=labelled or bool(scorer), scorer=scorer, errored=errored
            )
            used = {"labels", "scorer", "errored"}
        else:
            rows = read_file(
                file, known_names=ANSWERS.names, lists=ANSWERS.lists, choose=choose
            )
        columns = set(rows.columns)
        if columns >= harness_logs.LM_EVAL_KEYS:
            filtered = entry.get("filter")
            rows = harness_logs.lm_eval_rows(rows, filtered=filtered, labelled=labelled)
            used = {"labels", "filter"}
        elif columns >= harness_logs.OLMES_KEYS or "option_logprobs" in columns:
            raise UserTableError(
                "contains scores of options, not answers; in a study, set decoding.strategy to "
                "options"
            )
        elif not is_inspect:
            if choose and "question_id" not in rows:
                texts = rows["question"].map(str).str.split().str.join(" ")
                rows = rows.assign(question_id=texts)
            rows = one_per_sample(rows) if "answer" in rows else rows
        if "answer" in rows:
            rows = read_replies(rows, are_stated=bool(entry.get("stated")))
        read = {"failed": [], "greedy": False, "says": False, "asking": None, **rows.attrs}
        rows = _named(rows, entry, used, defaults or {})
        tidy = tidy_answers(rows, file=Path(file).name if several else "", scale=scale)
        tidy.attrs |= {name: read[name] for name in ("failed", "greedy", "says", "asking")}
        return tidy


def read_options(
    entry: Mapping[str, str],
    normalisation: str,
    *,
    several: bool = False,
    defaults: Mapping[str, str] | None = None,
    columns: ColumnChoice | None = None,
) -> pd.DataFrame:
    """Return the scored options of one file after checking each row; see `read_answers`."""
    file, used = entry["file"], set()
    with name_files_in_errors(file):
        rows = read_file(file, known_names=OPTIONS.names, lists=OPTIONS.lists)
        if columns:
            names = match_columns([*map(str, rows)], OPTIONS.names, {})
            columns.names |= names
            rows = rows.rename(columns=names)
        present = set(rows.columns)
        if present >= harness_logs.LM_EVAL_KEYS:
            rows = harness_logs.lm_eval_options(rows, normalisation)
        elif present >= harness_logs.OLMES_KEYS:
            rows = harness_logs.olmes_options(rows, normalisation, entry.get("requests"))
            used = {"requests"}
        elif "option_logprobs" not in present:
            raise UserTableError(
                "has no scores of options (column 'option_logprobs'); add them, or in a study "
                "set decoding.strategy to sample or beams"
            )
        rows = _named(rows, entry, used, defaults or {})
        shown_file = Path(file).name if several else ""
        return tidy_options(rows, normalisation, file=shown_file)


def _named(
    rows: pd.DataFrame, entry: Mapping[str, str], used: set[str], defaults: Mapping[str, str]
) -> pd.DataFrame:
    """Return `rows` with the names that their entry sets for all of them, and the defaults."""
    for key in sorted(LOG_KEYS & set(entry) - used):
        raise UserTableError(f"is not a log with {key}; leave {key} out")
    keys = {name: entry[name] for name in NAMES if name in entry}
    for name in sorted(keys):
        if name in rows.columns:
            raise UserTableError(
                f"has a column {name!r}, and study.answers sets {name!r} too; keep one"
            )
    lacking = {name: value for name, value in defaults.items() if name not in rows.columns}
    return rows.assign(**(lacking | keys))
