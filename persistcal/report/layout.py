"""The contents of a table of results, and the estimators that it compares.

A table is described by a plain mapping (`tables:` in the config):

columns
    Metrics by scope, in order: ``{contrast: [delta0_balanced, auc], full: [auc]}``.
blocks
    Groups of rows that are compared with each other. A block can have a
    ``title`` and ``rows``; a row has an ``estimator`` and can have a ``label``, an
    ``indent`` and ``trained: false`` (the same estimator whatever a transfer table
    was trained on). A block without rows contains all estimators.
layout
    ``models_as_blocks`` (one section per model and dataset) or
    ``models_as_columns`` (one section per dataset, models side by side).
conditioning
    ``odds`` or ``fitted``, for the contrast metrics.
marks
    The underlined values: ``paper``, values not significantly worse than the best by the
    paper's one-sided test, or ``best_set``, values that simultaneous intervals of all pairs of
    the block cannot distinguish from the best.
models, datasets, transfer, per_dataset
    Some of the study's models and datasets; whether the table shows estimators that were
    trained on other datasets; whether each dataset has a separate table.
caption
    Plain text.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from persistcal.evaluation.settings import EVERY, Member

Description = Mapping[str, Any]
Names = Mapping[str, str]  # display names by key, in order
DisplayNames = Mapping[str, Names]  # names of models, datasets and estimators


class Section(NamedTuple):
    """Model, dataset and training set of the cells of one section of a table."""

    model: str
    dataset: str
    train_dataset: str


def expand_tables(
    tables: Mapping[str, Description], datasets: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """Return the tables of a study by name, with a `per_dataset` table for each dataset.

    `datasets` maps each dataset to the other datasets on which its estimators are trained.
    """
    expanded = {}
    for name, table in tables.items():
        if not table.get("per_dataset", False):
            expanded[name] = dict(table)
            continue
        anywhere = sections({**table, "models": [""]}, [""], datasets)
        for dataset in dict.fromkeys(section.dataset for section in anywhere):
            expanded[f"{name}_{dataset}"] = {**table, "datasets": [dataset]}
    return expanded


def sections(
    table: Description, models: Sequence[str], datasets: Mapping[str, Sequence[str]]
) -> list[Section]:
    """Return the sections of `table` in a study of `models` and `datasets`."""
    sections = []
    for model in models:
        for dataset, trained_on in datasets.items():
            if dataset not in table.get("datasets", datasets):
                continue
            if table.get("transfer", False):
                sections += [Section(model, dataset, train) for train in trained_on]
            elif not trained_on:
                sections.append(Section(model, dataset, dataset))
    names = table.get("models", models)
    return [section for section in sections if section.model in names]


def members(block: Mapping[str, Any], section: Section) -> list[Member]:
    """Return the estimators that a block compares, with their training datasets."""
    rows = block.get("rows", [{"estimator": EVERY}])
    return [
        (
            section.train_dataset if row.get("trained", True) else section.dataset,
            row["estimator"],
        )
        for row in rows
    ]


def comparison_blocks(
    tables: Mapping[str, Description],
    model: str,
    dataset: str,
    train_datasets: Sequence[str] = (),
) -> list[list[Member]]:
    """Return the distinct blocks that `tables` compare for one model and dataset.

    A changed caption or label is not in them, and so does not ask for the test again.
    """
    blocks: list[list[Member]] = []
    for table in tables.values():
        for section in sections(table, [model], {dataset: train_datasets}):
            for block in table["blocks"]:
                if (compared := members(block, section)) not in blocks:
                    blocks.append(compared)
    return blocks


def columns(table: Description) -> Iterator[tuple[str, str, str]]:
    """Yield (conditioning, scope, metric) of each column of `table`."""
    for scope, metrics in table["columns"].items():
        for metric in metrics:
            # Metrics on the full set do not depend on conditioning and are stored once.
            of_contrast = table.get("conditioning", "odds")
            yield of_contrast if scope == "contrast" else "odds", scope, metric


def place_title(place: Iterable[Hashable], labels: DisplayNames, separator: str = ", ") -> str:
    """Return the display names of a model, or two, and of a dataset."""
    *models, dataset = map(str, place)
    names = [labels["models"].get(name, name) for name in models if name]
    return separator.join([" → ".join(names), labels["datasets"].get(dataset, dataset)])


def trained_name(row: Mapping[Hashable, Any], labels: DisplayNames) -> str:
    """Return an estimator's display name, with another dataset that it was trained on."""
    name = labels["estimators"].get(row["estimator"], row["estimator"])
    trained_on = row.get("train_dataset") or row["dataset"]
    if trained_on == row["dataset"]:
        return name
    return f"{name} (trained on {labels['datasets'].get(trained_on, trained_on)})"


def pair_title(row: Mapping[Hashable, Any], checkpoints: DisplayNames) -> str:
    """Return the printed names of the two checkpoints of a row."""
    ends = {"earlier": row["model"], "later": row.get("other_model") or row["model"]}
    named = (checkpoints.get(model, {}).get(row[end], row[end]) for end, model in ends.items())
    return " → ".join(named)
