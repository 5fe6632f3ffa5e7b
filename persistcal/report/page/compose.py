"""Gather what the page shows of a study, from frames alone."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pandas as pd

from persistcal.evaluation.significance import Replicates
from persistcal.report.families import looks
from persistcal.report.layout import Description
from persistcal.report.page.analyses import Analyses, analyses_view
from persistcal.report.page.calibration import calibration, pair_metrics
from persistcal.report.page.explorer import Words, choose_questions, pack
from persistcal.report.page.parts import Part, flows
from persistcal.report.page.render import render
from persistcal.report.page.sentences import compare, sentence
from persistcal.report.page.tables import heading, plain_grid, result_grids

Labels = Mapping[str, Mapping[str, str]]


class Checkpoint(NamedTuple):
    """What is printed for a checkpoint, and how much training it had seen (if known)."""

    label: str
    tokens: float | None


class StudyTable(NamedTuple):
    """A table of the study.

    Attributes
    ----------
    name : str
        Of its files.
    csv, tex : str
        Their content; `tex` may be empty.
    cells : DataFrame
        The CSV as a table.
    description : mapping or None
        For a table of results, see `persistcal.report.layout`.
    """

    name: str
    csv: str
    tex: str
    cells: pd.DataFrame
    description: Description | None


class Study(NamedTuple):
    """All that the page is made of.

    Attributes
    ----------
    parts : list of Part
        A model and dataset each.
    n_confidences : int
        How many predictions there are.
    replicates : list of Replicates
        Of each part, the study's bootstrap.
    main : list of str
        Estimators that the page speaks of; the others are a click away.
    checkpoints : mapping
        By model and name, earlier ones first.
    accuracies : DataFrame
        Table ACCURACIES of `persistcal.artifacts`; empty where there is none.
    intervals : DataFrame
        Table INTERVALS of `persistcal.artifacts`.
    min_contrast : mapping
        By dataset.
    tables : list of StudyTable
        In order.
    analyses : Analyses
        Those that the study has.
    labels : mapping
        Labels of `models`, `datasets` and `estimators`.
    seed : int
        Of the bootstrap and of samples.
    """

    parts: list[Part]
    n_confidences: int
    replicates: list[Replicates]
    main: list[str]
    checkpoints: Mapping[str, Mapping[str, Checkpoint]]
    accuracies: pd.DataFrame
    intervals: pd.DataFrame
    min_contrast: Mapping[str, int]
    tables: list[StudyTable]
    analyses: Analyses
    labels: Labels
    seed: int


class Facts(NamedTuple):
    """What the page's foot says of how the study was made.

    Attributes
    ----------
    about : list of (term, text)
    missing : list of str
        What the study lacks, and why, beyond what its data tell.
    jobs : list of dict
        `name`, `n`, `seconds` and `memory` (most, MB) of each kind of job.
    config : str
        As YAML.
    """

    about: list[tuple[str, str]]
    missing: list[str]
    jobs: list[dict[str, Any]]
    config: str


def compose(study: Study, facts: Facts) -> str:
    """Return the page of a study."""
    labels = study.labels
    chosen = choose_questions(study.parts, seed=study.seed)
    kept = [len(some) == len(p.answers.questions) for some, p in zip(chosen, study.parts, strict=True)]
    names = [e for part in study.parts for _, e in part.members]
    ordered = [e for e in labels["estimators"] if e in names]
    tabled = [
        row["estimator"] for table in study.tables if table.description is not None
        for block in table.description["blocks"] for row in block.get("rows", [])
    ]
    seen = looks([*ordered, *names, *tabled])
    words = Words()
    explorer = {
        "parts": [pack(p, some, words) for p, some in zip(study.parts, chosen, strict=True)],
        "texts": words.texts,
    }
    families = list(dict.fromkeys(look.family for look in seen.values()))
    data = {
        "looks": {
            name: {
                "class": f"f{families.index(look.family)}",
                "marker": look.marker,
                "variant": look.variant,
            }
            for name, look in seen.items()
        },
        "labels": dict(labels["estimators"]),
        "main": study.main,
        "hero": _hero(study),
        "accuracy": _accuracy(study),
        "parts": [_part(part, study) for part in study.parts],
        "analyses": analyses_view(study.analyses, study.checkpoints, labels),
        "tables": {table.name: {"csv": table.csv, "tex": table.tex} for table in study.tables},
    }
    view = {
        "title": "Persistent calibration: "
        + ", ".join(labels["models"].get(m, m) for m in dict.fromkeys(p.model for p in study.parts)),
        "lede": _lede(study),
        "facts": _facts(study),
        "sentences": _sentences(study),
        "tables": [_table(table, study) for table in study.tables],
        "parts": [{"label": _label(part, labels)} for part in study.parts],
        "analyses": any(data["analyses"].values()),
        "explorer_note": _explorer_note(study, chosen, kept),
        "about": facts.about,
        "missing": [*_missing(study, kept), *facts.missing],
        "jobs": facts.jobs,
        "config": facts.config,
        "looks": seen,
    }
    return render(view, data, explorer)


def _label(part: Part, labels: Labels) -> str:
    model = labels["models"].get(part.model, part.model)
    return f"{model} · {labels['datasets'].get(part.dataset, part.dataset)}"


def member_label(member: tuple[str, str], dataset: str, labels: Labels) -> str:
    """Return what is printed for (train_dataset, estimator) on a dataset."""
    train_dataset, estimator = member
    label = labels["estimators"].get(estimator, estimator)
    if train_dataset == dataset:
        return label
    return f"{label} ({labels['datasets'].get(train_dataset, train_dataset)})"


def _hero(study: Study) -> list[dict[str, Any]]:
    """Return a facet per part: AUC on both scopes with intervals, a point per estimator."""
    facets = []
    for part in study.parts:
        here = study.intervals[
            (study.intervals["model"] == part.model)
            & (study.intervals["dataset"] == part.dataset)
            & (study.intervals["conditioning"] == "odds")
            & (study.intervals["metric"] == "auc")
            & study.intervals["value"].notna()
        ]
        found = {
            (row["train_dataset"], row["estimator"], row["scope"]): [
                _number(row[name]) for name in ("value", "lower_2_5pct", "upper_97_5pct")
            ]
            for row in here.to_dict("records")
        }
        points = [
            {
                "estimator": member[1],
                "label": member_label(member, part.dataset, study.labels),
                "full": found[(*member, "full")],
                "contrast": found[(*member, "contrast")],
            }
            for member in part.members
            if (*member, "full") in found and (*member, "contrast") in found
        ]
        facets.append({"title": _label(part, study.labels), "points": points})
    return facets


def _number(value: float) -> float | None:
    return None if value != value else round(float(value), 4)


def _checkpoint(study: Study, model: str, name: str) -> Checkpoint:
    return study.checkpoints.get(model, {}).get(name, Checkpoint(name, None))


def _accuracy(study: Study) -> list[dict[str, Any]]:
    """Return by model a line per dataset, from the accuracies or else the predictions."""
    models = []
    for model, some in groupby(study.parts, key=lambda part: part.model):
        parts = list(some)
        known = {
            (row["dataset"], row["checkpoint"]): (row["accuracy"], row["n"])
            for row in study.accuracies.to_dict("records")
            if row["model"] == model
        }
        for part in parts:
            for name, row in zip(part.checkpoints, part.correct, strict=True):
                there = row[row >= 0]
                if len(there):
                    known.setdefault((part.dataset, name), (float(there.mean()), len(there)))
        names = [
            name
            for name in dict.fromkeys(
                [*study.checkpoints.get(model, {}), *(c for p in parts for c in p.checkpoints)]
            )
            if any(checkpoint == name for _, checkpoint in known)
        ]
        evaluation = {c for part in parts for c in part.answers.checkpoints}
        models.append(
            {
                "model": model,
                "checkpoints": [
                    {
                        **_checkpoint(study, model, name)._asdict(),
                        "role": "evaluation" if name in evaluation else "earlier",
                    }
                    for name in names
                ],
                "datasets": [
                    {
                        "label": study.labels["datasets"].get(part.dataset, part.dataset),
                        "accuracy": [
                            _number(known.get((part.dataset, name), (float("nan"), 0))[0])
                            for name in names
                        ],
                        "n": [int(known.get((part.dataset, name), (0, 0))[1]) for name in names],
                    }
                    for part in parts
                ],
            }
        )
    return models


def _part(part: Part, study: Study) -> dict[str, Any]:
    drawn, pairs = calibration(part, seed=study.seed), pair_metrics(part)
    members = list(part.members)
    return {
        "key": part.key,
        "label": _label(part, study.labels),
        "model": part.model,
        "n_earlier": part.n_earlier,
        "checkpoints": [
            {
                "label": _checkpoint(study, part.model, name).label,
                "role": "earlier" if place < part.n_earlier else "evaluation",
            }
            for place, name in enumerate(part.checkpoints)
        ],
        "estimators": [
            {
                "estimator": member[1],
                "label": member_label(member, part.dataset, study.labels),
                "main": member[1] in study.main,
            }
            for member in members
        ],
        "flows": flows(part.correct),
        "pairs": [
            {
                "earlier": pair.earlier,
                "later": pair.later,
                "size": len(pair.questions),
                "improvement": int(pair.improvement.sum()),
                "regression": int((~pair.improvement).sum()),
                "kept": pair.kept,
            }
            for pair in part.pairs
        ],
        "calibration": [drawn[member] for member in members],
        "pair_metrics": [pairs[member] for member in members],
    }


def _sentences(study: Study) -> list[dict[str, str]]:
    said = []
    for part, replicates in zip(study.parts, study.replicates, strict=True):
        members = list(part.members)
        trained = list(dict.fromkeys(t for t, _ in members if t != part.dataset)) or [part.dataset]
        for train_dataset in trained:
            # Where adapters come from elsewhere, what needs no training stands beside them.
            chosen = {
                e: (t, e)
                for t, e in sorted(members, key=lambda m: m[0] == train_dataset)
                if t in (train_dataset, part.dataset) and (e in study.main or not study.main)
            }
            compared = compare(replicates, list(chosen.values()))
            about = _label(part, study.labels)
            if len(trained) > 1 or train_dataset != part.dataset:
                name = study.labels["datasets"].get(train_dataset, train_dataset)
                about += f", trained on {name}"
            text = (
                sentence(compared, study.labels["estimators"])
                if compared
                else "Nothing can be said: no measure is defined."
            )
            if compared and compared.scope == "full":
                text += " No contrast set is large enough to say whether confidence follows knowledge."
            said.append({"about": about, "text": text})
    return said


def _lede(study: Study) -> str:
    models = len({part.model for part in study.parts})
    return (
        f"{'A model' if models == 1 else f'{models} models'} of several training checkpoints "
        "answered the same questions; what the checkpoints know grows, and some of it is lost "
        "again. A good confidence rises and falls with it. A confidence that only knows which "
        "questions are hard looks just as good on all questions together, and is at chance where "
        "knowledge changed."
    )


def _facts(study: Study) -> list[tuple[str, str]]:
    parts = study.parts
    def plural(n: int, name: str) -> tuple[str, str]:
        return f"{n:,}", name if n == 1 else f"{name}s"

    return [
        plural(len({p.model for p in parts}), "model"),
        plural(len({(p.model, c) for p in parts for c in p.checkpoints}), "checkpoint"),
        plural(len({p.dataset for p in parts}), "dataset"),
        plural(sum(len(p.answers.questions) for p in parts), "question"),
        plural(len({e for p in parts for _, e in p.answers.estimators}), "estimator"),
        plural(study.n_confidences, "confidence"),
    ]


def _table(table: StudyTable, study: Study) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": table.name,
        "heading": heading(table.name, list(study.labels["datasets"]), study.labels),
        "caption": "",
        "tex": bool(table.tex),
        "grids": [],
        "plain": None,
    }
    if table.description is None:
        return {**shown, "plain": plain_grid(table.cells)}
    grids = result_grids(table.cells, table.description, study.intervals, labels=study.labels)
    for grid in grids:
        heads = [column["group"] for column in grid["columns"]]
        grid["groups"] = [(name, len(list(some))) for name, some in groupby(heads)]
    return {**shown, "caption": table.description["caption"], "grids": grids}


def _explorer_note(study: Study, chosen: Sequence[Any], kept: Sequence[bool]) -> str:
    n, of = sum(map(len, chosen)), sum(len(p.answers.questions) for p in study.parts)
    if all(kept):
        return f"Every question, every answer, every confidence: {n:,} of them, each with a link of its own."
    return (
        f"{n:,} of {of:,} questions, so that the page stays small: those of contrast sets first, "
        f"then a random sample of the others (seed {study.seed}). All other numbers on this page "
        "are of all questions."
    )


def _missing(study: Study, kept: Sequence[bool]) -> list[str]:
    """Return what the data themselves say is missing."""
    lines = []
    for part, whole in zip(study.parts, kept, strict=True):
        name = _label(part, study.labels)
        small = [pair for pair in part.pairs if not pair.kept]
        if small:
            pairs = ", ".join(
                f"{part.answers.checkpoints[p.earlier]}–{part.answers.checkpoints[p.later]} "
                f"({len(p.questions):,})"
                for p in small
            )
            lines.append(
                f"{name}: contrast sets of fewer than {study.min_contrast[part.dataset]:,} "
                f"questions are left out of the contrast metrics: {pairs}."
            )
        if part.texts is None:
            lines.append(f"{name}: the study has predictions alone, so there are no texts to read.")
        if not whole:
            lines.append(f"{name}: the explorer holds a part of the questions.")
    for table in study.tables:
        if table.description is not None and (lost := int(table.cells["value"].isna().sum())):
            lines.append(
                f"Table {table.name}: {lost:,} of {len(table.cells):,} cells have no value; the "
                f"log of make_table names the estimators."
            )
    return [*lines, *study.analyses.absent()]
