"""The files of each version: folders, logs, names of checkpoints, and slices by a column."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from persistcal.readers.columns import ANSWERS, PREDICTIONS, match_columns
from persistcal.readers.predictions import DEFAULTS
from persistcal.readers.reading import Reading
from persistcal.store.user_files import (
    TABLES,
    UserTableError,
    is_inspect_log,
    kind_of,
    name_files_in_errors,
    read_file,
)

KEY = ["dataset", "question_id"]
PLACE = ["checkpoint", "model", "dataset", "category"]
# Known columns; only `category` and `group` can slice the questions
USED = {*PREDICTIONS.names, *ANSWERS.names} - {"category", "group"}

# The time in the name of a log of lm-evaluation-harness or Inspect
STAMP = re.compile(
    r"[_-]?\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d[-:]?\d\d)?(?=_|$)_?"
)

LOG_NAME = re.compile(
    r"^samples_.*\.jsonl(\.gz)?$|-predictions\.jsonl(\.gz)?$|\.eval$"  # lm-eval, OLMES, Inspect
)


class VersionFile(NamedTuple):
    """A file, with defaults for its checkpoint and its dataset."""

    file: str
    checkpoint: str
    dataset: str = DEFAULTS["dataset"]
    category: str = ""  # category of the questions, if several files are one dataset
    is_labelled: bool = True  # whether labels are read

    @property
    def names(self) -> dict[str, str]:
        """Values of columns that the file can lack."""
        model = DEFAULTS["model"]
        return {"model": model, "checkpoint": self.checkpoint, "dataset": self.dataset}


class WayOfAsking(NamedTuple):
    """How a log's questions were asked: a hash of each prompt by id, and the settings."""

    prompts: Mapping[str, int]
    settings: str


def describe_settings(settings: Mapping[str, object]) -> str:
    """Return the settings of a generation as one text, in the order of their names."""
    return ", ".join(f"{name} {settings[name]}" for name in sorted(settings)) or "none"


def name_other_asking(logs: Iterable[pd.DataFrame]) -> Iterator[str]:
    """Yield a sentence for each checkpoint that was asked in another way than the first one.

    `logs` are answers whose attribute `asking`, which is taken, is a `WayOfAsking` or None.
    """
    by_place: dict[str, dict[str, WayOfAsking]] = {}
    for rows in logs:
        if (asking := rows.attrs.pop("asking", None)) and len(rows):
            checkpoint, *place = rows.filter(PLACE).iloc[0]
            asked = by_place.setdefault(", ".join(place), {})
            before = asked.get(checkpoint, asking)
            asked[checkpoint] = asking._replace(prompts={**before.prompts, **asking.prompts})
    for name, asked in by_place.items():
        (first, usual), *others = asked.items()
        for checkpoint, asking in others:
            shared = usual.prompts.keys() & asking.prompts.keys()
            n = sum(usual.prompts[question] != asking.prompts[question] for question in shared)
            ways = [f"other prompts in {n:,} of {len(shared):,} questions"] * bool(n)
            if asking.settings != usual.settings:
                ways.append(f"other settings ({asking.settings}, not {usual.settings})")
            if ways:
                yield (
                    f"{name}: {checkpoint} was asked with {' and '.join(ways)} than {first}, "
                    "which can change answers without new knowledge."
                )


def files_of_version(argument: str) -> list[str]:
    """Return the files of one version: a file itself, or the logs or tables of a folder.

    Hidden files and folders, such as ``.ipynb_checkpoints``, are left out.
    """
    path = Path(argument)
    if path.is_dir():
        contents = sorted(file for file in path.rglob("*") if file.is_file())
        contents = [
            file
            for file in contents
            if not any(part.startswith(".") for part in file.relative_to(path).parts)
        ]
        logs = [
            str(file)
            for file in contents
            if LOG_NAME.search(file.name) or is_inspect_log(str(file))
        ]
        tables = [
            str(f)
            for f in contents
            if f.parent == path and kind_of(f.name) in (*TABLES, ".jsonl", ".parquet")
        ]
        if not (logs or tables):
            raise ValueError(
                f"{argument}: the folder has no log (samples_*.jsonl, *-predictions.jsonl, "
                "logs of Inspect) and no table; name the files."
            )
        return logs or tables
    if path.exists() or not set("*?[") & set(argument):
        return [argument]
    start = Path(path.anchor or ".")
    named = sorted(map(str, start.glob(str(path.relative_to(path.anchor)))))
    if not named:
        raise ValueError(f"{argument}: no file has such a name; correct the pattern.")
    listed = ([name] if Path(name).is_file() else files_of_version(name) for name in named)
    return [file for files in listed for file in files]


def task_of(file: str) -> str:
    """Return the task of a log, which is part of the name of the file.

    >>> task_of("v1/samples_mmlu_law_2026-01-01T08-16-28.840983.jsonl")
    'mmlu_law'
    >>> task_of("v1/task-003-arc_easy-predictions.jsonl")
    'arc_easy'
    >>> task_of("2026-01-01T08-16-28+00-00_arc-easy_2UrQ6kzPqSNXcGJ8RmdxkT.eval")
    'arc-easy'
    """
    name = STAMP.sub("", Path(file.removesuffix(".gz")).stem)
    name = re.sub(r"^task-\d+-", "", name.removeprefix("samples_")).removesuffix("-predictions")
    return re.sub(r"_\w{22}$", "", name)


def list_sources(
    versions: Mapping[str, Sequence[str]], names: Mapping[str, str], pool: bool
) -> list[VersionFile]:
    """Return each file with its checkpoint. Each file of a folder is a dataset."""
    several = any(list(listed) != [argument] for argument, listed in versions.items())
    if not several:
        if pool:
            raise ValueError("--pool has no meaning without folders of logs; leave it out.")
        return [VersionFile(argument, names[argument]) for argument in versions]
    sources, tasks_of = [], {}
    for argument, listed in versions.items():
        tasks: dict[str, str] = {}
        for file in listed:
            if (first := tasks.setdefault(task_of(file), file)) != file:
                raise ValueError(
                    f"{argument}: {first} and {file} are both of the task {task_of(file)}; "
                    "keep one, or name the files by a pattern in quotes."
                )
        tasks_of[argument] = set(tasks)
        for task, file in tasks.items():
            names_of_file = (DEFAULTS["dataset"], task) if pool else (task, "")
            sources.append(VersionFile(file, names[argument], *names_of_file))
    all_tasks = set.union(*tasks_of.values())
    for argument, present in tasks_of.items():
        if lacking := sorted(all_tasks - present):
            raise ValueError(
                f"{argument}: has no log of the task {', '.join(lacking[:3])}, and another "
                "version has; add it, or name the files of each version by a pattern in quotes."
            )
    return sources


def name_checkpoints(files: Sequence[str]) -> list[str]:
    """Return a name for each file: the part that differs, without the time stamps of logs.

    Files of one name are named after their folders, which are the models' names in results of
    lm-evaluation-harness. Logs of Inspect are named after their models.

    >>> name_checkpoints(["early.jsonl.gz", "late.jsonl"])
    ['early', 'late']
    >>> name_checkpoints(["org__a/samples_quiz_2026-01-01T08-16-28.840983.jsonl",
    ...                   "org__b/samples_quiz_2026-01-02T09-26-58.123456.jsonl"])
    ['a', 'b']
    >>> name_checkpoints(["quiz_v1.csv", "quiz_v2.csv"])
    ['v1', 'v2']
    """
    stems = [
        Path(file).name if Path(file).is_dir() else Path(file.removesuffix(".gz")).stem
        for file in files
    ]
    folders = [Path(file).parent.name for file in files]
    unstamped = [STAMP.sub("", stem) for stem in stems]
    for names in (_models_of_logs(files), unstamped, folders, stems):
        parts = _differing_parts(names) if names else []
        if len(set(parts)) == len(files) and all(parts):
            return parts
    raise ValueError(
        f"{', '.join(files)}: the names of the files and of their folders do not distinguish "
        "the checkpoints; rename the files, give --names, or add a column checkpoint."
    )


def _differing_parts(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them begin or end with."""
    words = [re.split(r"_+", name) for name in names]
    if len(names) == 1:
        return list(names)
    for end in (0, -1):
        while min(map(len, words)) > 1 and len({name[end] for name in words}) == 1:
            words = [name[1:] if end == 0 else name[:-1] for name in words]
    return ["_".join(name) for name in words]


def _models_of_logs(files: Sequence[str]) -> list[str]:
    """Return the models of Inspect's logs; empty names for other files."""
    if not all(map(is_inspect_log, files)):
        return []
    try:
        from inspect_ai.log import read_eval_log

        headers = [read_eval_log(file, header_only=True) for file in files]
    except (ImportError, ValueError, OSError):  # errors of logs are raised by their reader
        return []
    return [header.eval.model.replace("/", "_") for header in headers]


def explain_tasks(files: Sequence[str]) -> str:
    """Return a remedy if the files are logs of several tasks, as of one version's folder."""
    names = {task_of(file) for file in files}
    if len(names) < 2 or not all(LOG_NAME.search(Path(file).name) for file in files):
        return ""
    return (
        f" The files are logs of the tasks {', '.join(sorted(names)[:3])}: if a version has "
        "several logs, give the folder of each, or a pattern in quotes such as 'v1/*.jsonl'."
    )


def read_slices(sources: Sequence[VersionFile], reading: Reading) -> pd.DataFrame:
    """Return dataset, question_id and the columns `reading.by` of all questions of files."""
    frames = []
    keys = {name: column for name, column in reading.columns.items() if name in KEY}
    for source in sources:

        def choose(present: Sequence[str]) -> Mapping[str, str]:
            matched = match_columns(present, KEY, keys)
            used = USED | {*matched, *reading.columns.values()}
            check_by(reading.by, [name for name in present if name not in used])
            return matched | {name: name for name in reading.by}

        with name_files_in_errors(source.file):
            rows = read_file(source.file, known_names={*KEY, *keys.values()}, choose=choose)
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
    if (repeated := texts.duplicated(KEY)).any():
        row = texts[repeated].iloc[0]
        same = texts[(texts[KEY] == row[KEY]).all(axis=1)]
        name = next(name for name in by if same[name].nunique() > 1)
        raise UserTableError(
            f"question {row['question_id']!r} has the values "
            f"{' and '.join(sorted(set(same[name])))} in the column {name!r}; give a question "
            "one value in all rows"
        )
    return texts.reset_index(drop=True)
