"""Slices of the questions by the values of a user's columns, such as a topic."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from persistcal.readers.columns import ANSWERS, PREDICTIONS, match_columns
from persistcal.readers.reading import Reading
from persistcal.readers.versions import VersionFile
from persistcal.store.user_files import UserTableError, name_files_in_errors, read_batches

KEY = ["dataset", "question_id"]
# Known columns; only `category` and `group` can slice the questions
USED = {*PREDICTIONS.names, *ANSWERS.names} - {"category", "group"}


def read_slices(sources: Sequence[VersionFile], reading: Reading) -> pd.DataFrame:
    """Return dataset, question_id and the columns `reading.by` of all questions of files."""
    frames = []
    given = {name: column for name, column in reading.columns.items() if name in KEY}
    for source in sources:

        def choose(present: Sequence[str]) -> Mapping[str, str]:
            matched = match_columns(present, KEY, given)
            used = USED | {*matched, *reading.columns.values()}
            check_by(reading.by, [name for name in present if name not in used])
            return matched | {name: name for name in reading.by}

        with name_files_in_errors(source.file):
            batches = read_batches(
                source.file, known_names={*KEY, *given.values()}, choose=choose
            )
            rows = pd.concat([batch.to_pandas() for batch in batches], ignore_index=True)
        if "dataset" not in rows:
            rows["dataset"] = source.dataset
        if source.category:
            rows["question_id"] = f"{source.category}:" + rows["question_id"].astype(str)
        frames.append(rows)
    with name_files_in_errors(*(source.file for source in sources)):
        return slice_names(pd.concat(frames, ignore_index=True), reading.by)


def check_by(by: Iterable[str], present: Sequence[str]) -> None:
    """Refuse a column that the rows lack or that has another use."""
    for name in by:
        if name not in present:
            raise UserTableError(
                f"has no further column {name!r} for --by, but {', '.join(present) or 'none'}; "
                "name one of these"
            )


def slice_names(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return a row per question; refuse a question with two values."""
    texts = rows[[*KEY, *by]].astype("string").fillna("").astype(str).drop_duplicates()
    if (again := texts.duplicated(KEY)).any():
        one = texts[again].iloc[0]
        same = texts[(texts[KEY] == one[KEY]).all(axis=1)]
        name = next(name for name in by if same[name].nunique() > 1)
        raise UserTableError(
            f"question {one['question_id']!r} has the values "
            f"{' and '.join(sorted(set(same[name])))} in the column {name!r}; give a question "
            "one value in all rows"
        )
    return texts.reset_index(drop=True)
