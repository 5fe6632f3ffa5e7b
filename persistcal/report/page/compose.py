"""Gather what the page shows of a study, from frames alone."""

from itertools import groupby
from typing import Any, NamedTuple

from persistcal.report.families import looks
from persistcal.report.grid import lay_out
from persistcal.report.page import overview
from persistcal.report.page.analyses import analyses_view
from persistcal.report.page.calibration import calibration, pair_metrics
from persistcal.report.page.explorer import Words, choose_questions, pack
from persistcal.report.page.parts import Part, flows
from persistcal.report.page.render import render
from persistcal.report.page.states import states_sentences
from persistcal.report.page.study import (
    Checkpoint,
    Study,
    StudyTable,
    member_label,
    part_label,
)
from persistcal.report.page.tables import heading, plain_grid


class Facts(NamedTuple):
    """What the page's foot says of how the study was made.

    Attributes
    ----------
    about : list of (term, text)
    jobs : list of dict
        `name`, `n`, `seconds` and `memory` (most, MB) of each kind of job.
    config : str
        As YAML.
    """

    about: list[tuple[str, str]]
    jobs: list[dict[str, Any]]
    config: str


def compose(study: Study, facts: Facts) -> str:
    """Return the page of a study."""
    labels = study.labels
    chosen = choose_questions(study.parts, seed=study.seed)
    kept = [
        len(some) == len(p.answers.questions)
        for some, p in zip(chosen, study.parts, strict=True)
    ]
    names = [e for part in study.parts for _, e in part.members]
    ordered = [e for e in labels["estimators"] if e in names]
    tables = [_table(table, study) for table in study.tables]
    grids = [grid for table in tables for grid in table["grids"]]
    tabled = [row.estimator for grid in grids for row in grid.rows()]
    seen = looks([*ordered, *names, *tabled])
    words = Words()
    explorer = {
        "parts": [pack(p, some, words) for p, some in zip(study.parts, chosen, strict=True)],
        "texts": words.texts,
    }
    families = list(dict.fromkeys(look.family for look in seen.values()))
    analyses = analyses_view(study.analyses, study.checkpoints, labels)
    data = {
        "looks": {
            name: {
                "class": f"f{families.index(look.family)}",
                "marker": look.marker,
                "dash": " ".join(map(str, look.dash)),
                "variant": look.variant,
            }
            for name, look in seen.items()
        },
        "labels": dict(labels["estimators"]),
        "main": study.main,
        "hero": _hero(study),
        "accuracy": _accuracy(study),
        "parts": [_part(part, study) for part in study.parts],
        "analyses": analyses,
        "tables": {table.name: {"csv": table.csv, "tex": table.tex} for table in study.tables},
    }
    view = {
        "title": "Persistent calibration: "
        + ", ".join(
            labels["models"].get(m, m) for m in dict.fromkeys(p.model for p in study.parts)
        ),
        "lede": overview.lede(study),
        "facts": overview.counts(study),
        "sentences": overview.sentences(study) + states_sentences(study),
        "tables": tables,
        "parts": [{"label": part_label(part, labels)} for part in study.parts],
        "analyses": any(analyses.values()),
        "explorer_note": overview.explorer_note(study, chosen, kept),
        "about": facts.about,
        "missing": overview.missing(study, kept),
        "jobs": facts.jobs,
        "config": facts.config,
        "looks": seen,
    }
    return render(view, data, explorer)


# What the first chart shows of an estimator, by its name there
_HERO = {
    "follows": ("contrast", "delta0_balanced"),
    "contrast": ("contrast", "auc"),
    "full": ("full", "auc"),
}


def _hero(study: Study) -> list[dict[str, Any]]:
    """Return a facet per part: each measure with its interval, a point per estimator."""
    odds = study.intervals[
        (study.intervals["conditioning"] == "odds") & study.intervals["value"].notna()
    ]
    key = ["model", "dataset", "train_dataset", "estimator", "scope", "metric"]
    ends = odds.set_index(key)[["value", "lower_2_5pct", "upper_97_5pct"]]
    bounds = {place: list(map(_number, row)) for place, *row in ends.itertuples(name=None)}
    facets = []
    for part in study.parts:
        points = [
            {
                "estimator": member[1],
                "label": member_label(member, part.dataset, study.labels),
                **{
                    name: bounds.get((part.model, part.dataset, *member, *of), [None] * 3)
                    for name, of in _HERO.items()
                },
            }
            for member in part.members
        ]
        shown = [p for p in points if p["full"][0] is not None and p["contrast"][0] is not None]
        facets.append({"title": part_label(part, study.labels), "points": shown})
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
                        "n": [
                            int(known.get((part.dataset, name), (0, 0))[1]) for name in names
                        ],
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
        "label": part_label(part, study.labels),
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
    grids = lay_out(
        table.cells, table.description, labels=study.labels, intervals=study.intervals
    )
    return {**shown, "caption": table.description["caption"], "grids": grids}
