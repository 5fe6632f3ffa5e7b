"""The page of a study as one HTML file that needs nothing else, and its summary as text.

The first screen is drawn here, so that it needs no script. The other charts are drawn by a few
hundred lines of plain JavaScript. Observable Plot was tried: it draws an axis in one line, but
adds 0.49 MB to each page and a style sheet that the policy must name, and glyphs, tables for
screen readers, and charts without axes would stay our own. Vega-Lite would add 0.8 MB and,
under a policy without eval, an interpreter.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from itertools import groupby
from textwrap import fill
from typing import Any, NamedTuple

import jinja2
import numpy as np

from persistcal.evaluation.findings import is_constant
from persistcal.evaluation.settings import Member
from persistcal.report.drawing import looks
from persistcal.report.grid import lay_out
from persistcal.report.page import about, charts, tables
from persistcal.report.page.contents import Contents, Part
from persistcal.report.page.sentences import findings, sentences
from persistcal.report.page.verdict import (
    CommandWords,
    broken_answers,
    chance_of,
    first_screens,
    verdict_of,
)
from persistcal.report.phrases import (
    MARKS,
    as_number,
    exact_percent,
    phrase_numbers,
    phrase_word,
    slice_numbers,
)
from persistcal.store.tables import TableFiles

_ASSETS = jinja2.PackageLoader("persistcal.report.page", "assets")
# These files are joined into one script, in this order.
_SCRIPTS = ("base.js", "charts.js", "explorer.js", "main.js")
WIDTH = 100  # characters of the summary's lines
# The values of an estimator in the first chart, by label
_HERO = {
    "follows": ("contrast", "delta0_balanced"),
    "contrast": ("contrast", "change_auc"),
    "full": ("full", "auc"),
}


class Origin(NamedTuple):
    """Origin of a study: terms and texts, kinds of jobs, and the settings as text.

    `gate` is the line of a release gate, and `given` are the words of the command.
    """

    about: list[tuple[str, str]]
    jobs: list[dict[str, Any]]
    config: str
    gate: str = ""
    given: CommandWords | None = None


def compose(study: Contents, origin: Origin) -> str:
    """Return the page of a study."""
    parts, labels = study.parts, study.labels
    chosen = charts.choose_questions(parts, seed=study.seed)
    kept = [len(c) == len(p.answers.questions) for c, p in zip(chosen, parts, strict=True)]
    shown_tables = [_table(files, study) for files in study.made.tables]
    names = [e for part in parts for _, e in part.members]
    ordered = [e for e in labels["estimators"] if e in names]
    rows = [row for t in shown_tables for grid in t["grids"] for row in grid.rows()]
    seen = looks([*ordered, *names, *(row.estimator for row in rows)])
    families = [*dict.fromkeys(look.family for look in seen.values())]
    styled = {name: (f"f{families.index(look.family)}", look) for name, look in seen.items()}
    words: dict[str, int] = {}
    packed_parts = [charts.pack(p, c, words) for p, c in zip(parts, chosen, strict=True)]
    analysed = charts.analyses(study)
    shown_parts = [_part(part, study) for part in parts]
    data = {
        "looks": {
            name: {
                "class": css_class,
                "marker": look.marker,
                "dash": " ".join(map(str, look.dash)),
                "variant": look.variant,
            }
            for name, (css_class, look) in styled.items()
        },
        "labels": dict(labels["estimators"]),
        "main": study.main,
        "hero": _hero(study),
        "accuracy": _accuracy(study),
        "parts": shown_parts,
        "analyses": analysed,
        "tables": {
            files.name: {"csv": files.csv, "tex": files.tex} for files in study.made.tables
        },
    }
    models = [labels["models"].get(model, model) for model in study.stages]
    view = {
        "title": f"Persistent calibration: {', '.join(models)}",
        "verdicts": first_screens(study, shown_parts, origin.given),
        "marks": MARKS,
        "lede": about.lede(study),
        "facts": about.counts(study),
        "sentences": findings(study),
        "tables": shown_tables,
        "parts": [{"label": part.subject.title(labels)} for part in parts],
        "analyses": any(analysed.values()),
        "explorer_note": about.explorer_note(study, chosen, kept),
        "missing": about.missing(study, kept),
        "looks": styled,
        **origin._asdict(),
    }
    return render(view, data, {"parts": packed_parts, "texts": list(words)})


def summary(study: Contents) -> str:
    """Return a study's sentences, its first table of results, and a list of gaps, as text."""
    lines = [fill(f"{topic}: {text}", WIDTH) for topic, text in sentences(study)]
    descriptions = study.shown.descriptions
    for name in [name for name in study.rows if name in descriptions][:1]:
        bootstraps = {
            (part.subject.model, part.subject.dataset): part.replicates for part in study.parts
        }
        rows = tables.mark_best_sets(study.rows[name], bootstraps)
        grids = lay_out(rows, descriptions[name], labels=study.labels)
        lines += [tables.plain_text(grid) for grid in grids]
        lines.append(
            "* best of its block, ~ cannot be distinguished from the best (simultaneous 95 % "
            "intervals)"
        )
    absent = about.missing(study, [True] * len(study.parts))
    lines += [fill(f"Left out: {line}", WIDTH, subsequent_indent="  ") for line in absent]
    return "\n\n".join(lines) + "\n"


def _hero(study: Contents) -> list[dict[str, Any]]:
    """Return a facet per part: each measure with its interval, a point per estimator."""
    odds = study.made.intervals[
        (study.made.intervals["conditioning"] == "odds") & study.made.intervals["value"].notna()
    ]
    key = ["model", "dataset", "train_dataset", "estimator", "scope", "metric"]
    ends = odds.set_index(key)[["value", "lower_2_5pct", "upper_97_5pct"]]
    bounds = {place: list(map(as_number, row)) for place, *row in ends.itertuples(name=None)}
    facets = []
    for part in study.parts:
        subject, points = part.subject, []
        for member in part.members:
            measured = {
                name: bounds.get((subject.model, subject.dataset, *member, *label), [None] * 3)
                for name, label in _HERO.items()
            }
            if measured["full"][0] is not None and measured["contrast"][0] is not None:
                label = subject.name(member, study.labels)
                control = _control(part, study, member)
                points.append(
                    {"estimator": member[1], "label": label, "control": control, **measured}
                )
        title, chance = subject.title(study.labels), chance_of(part.findings)
        facets.append({"title": title, "points": points, "chance": chance})
    return facets


def _control(part: Part, study: Contents, member: Member) -> float | None:
    """Return an estimator's change AUC on pairs of the same weights, their mean, or None."""
    names = part.answers.checkpoints
    asked_again = {tuple(ends) for ends in study.shown.controls.get(part.subject.model, ())}
    pairs = [p for p in part.pairs if (names[p.earlier], names[p.later]) in asked_again]
    values = [part.on_pair(member, pair)["change_auc"] for pair in pairs]
    defined = [value for value in values if value == value]
    return as_number(float(np.mean(defined))) if defined else None


def _accuracy(study: Contents) -> list[dict[str, Any]]:
    """Return by model a line per dataset, from the accuracies or else the predictions."""
    models = []
    for model, model_parts in groupby(study.parts, key=lambda part: part.subject.model):
        parts = list(model_parts)
        accuracies = {
            (row["dataset"], row["checkpoint"]): (row["accuracy"], row["n"])
            for row in study.made.accuracies.to_dict("records")
            if row["model"] == model
        }
        for part in parts:
            for name, row in zip(part.checkpoints, part.correct, strict=True):
                defined = row[row >= 0]
                if len(defined):
                    accuracy = float(defined.mean()), len(defined)
                    accuracies.setdefault((part.subject.dataset, name), accuracy)
        answered = {checkpoint for _, checkpoint in accuracies}
        stages = {name: s for name, s in study.stages[model].items() if name in answered}
        evaluation = {c for part in parts for c in part.answers.checkpoints}
        lines = []
        for dataset in (part.subject.dataset for part in parts):
            series = [accuracies.get((dataset, name), (float("nan"), 0)) for name in stages]
            lines.append(
                {
                    "label": study.labels["datasets"].get(dataset, dataset),
                    "accuracy": [as_number(accuracy) for accuracy, _ in series],
                    "n": [int(n) for _, n in series],
                }
            )
        checkpoints = [
            {**stage._asdict(), "role": "evaluation" if name in evaluation else "earlier"}
            for name, stage in stages.items()
        ]
        models.append({"model": model, "checkpoints": checkpoints, "datasets": lines})
    return models


def _part(part: Part, study: Contents) -> dict[str, Any]:
    """Return the data of the charts of a model and dataset."""
    subject, stages = part.subject, study.stages[part.subject.model]
    verdict = verdict_of(study, part)
    roles = ["earlier"] * part.n_earlier + ["evaluation"] * len(part.answers.checkpoints)
    thresholds: dict[str, Any] | None = None
    if verdict:
        selected = {row.member: [*row.cuts.values()] for row in verdict.rows}
        ends, target = verdict.update[:2], verdict.target
        thresholds = {
            "target": target,
            "names": [verdict.update.earlier_name, verdict.update.later_name],
            "selected": [selected.get(member, []) for member in part.members],
            "estimators": charts.threshold_curves(part, ends, target),
        }
    return {
        "key": f"{subject.model}/{subject.dataset}",
        "label": subject.title(study.labels),
        "model": subject.model,
        "n_earlier": part.n_earlier,
        "checkpoints": [
            {"label": stages[name].label, "role": role}
            for name, role in zip(part.checkpoints, roles, strict=True)
        ],
        "estimators": [
            {
                "estimator": member[1],
                "label": subject.name(member, study.labels),
                "main": member[1] in study.main,
                "baseline": all(is_constant(run[k]) for run in runs for k in range(len(run))),
            }
            for member, runs in part.members.items()
        ],
        "flows": charts.flows(part.correct),
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
        "calibration": charts.calibration(part),
        "pair_metrics": [
            [
                {name: as_number(v) for name, v in part.on_pair(member, pair).items()}
                for pair in part.pairs
            ]
            for member in part.members
        ],
        "shifts": charts.shifts(part),
        "update": list(verdict.update[:2]) if verdict else None,
        "broken": broken_answers(part, verdict),
        "risks": charts.risk_curves(part),
        "thresholds": thresholds,
    }


def _table(files: TableFiles, study: Contents) -> dict[str, Any]:
    name, rows = files.name, study.rows[files.name]
    title = tables.heading(name, list(study.labels["datasets"]), study.labels)
    entry = {"name": name, "heading": title, "tex": bool(files.tex)}
    if name not in study.shown.descriptions:
        return {**entry, "caption": "", "grids": [], "plain": tables.plain_grid(rows)}
    described = study.shown.descriptions[name]
    grids = lay_out(rows, described, labels=study.labels, intervals=study.made.intervals)
    return {**entry, "caption": described["caption"], "grids": grids, "plain": None}


def render(
    view: Mapping[str, Any], study: Mapping[str, Any], explorer: Mapping[str, Any]
) -> str:
    """Return the page from the variables of the template.

    `study` and `explorer` are data for the page's script: for charts and for the explorer.
    """
    environment = jinja2.Environment(
        loader=_ASSETS,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "group_heads": tables.group_heads,
        "percent": exact_percent,
        "shown": tables.shown,
        "word": phrase_word,
        "numbers": phrase_numbers,
        "slice_numbers": slice_numbers,
    }
    families = dict(view["looks"].values())
    style = environment.get_template("page.css").render(families=families)
    script = "\n".join(_ASSETS.get_source(environment, name)[0] for name in _SCRIPTS)
    script = f"'use strict';\n(() => {{\n{script}\n}})();"
    digests = [hashlib.sha256(text.encode()).digest() for text in (style, script)]
    of_style, of_script = (f"sha256-{base64.b64encode(digest).decode()}" for digest in digests)
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{of_style}'; script-src '{of_script}'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return environment.get_template("page.html").render(
        **view,
        policy=policy,
        style=style,
        script=script,
        study=packed(study),
        explorer=packed(explorer),
    )


def packed(data: Mapping[str, Any]) -> str:
    """Return JSON, compressed and as ASCII; the same data give the same text."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
